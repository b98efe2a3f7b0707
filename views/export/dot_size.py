"""How many nodes a graph in Graphviz's language has, told from its text before any layout starts.

The engine asks before it lays a graph out. It reads the tokens of the dot language and skips attribute lists; ports,
subgraph names and `name = value` settings are not nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | ^\#[^\n]* | /\*.*?\*/
      | (?P<name>"(?:[^"\\]|\\.)*" | -?(?:\.\d+|\d+(?:\.\d*)?) | \w+)
      | (?P<arrow>->|--)
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_KEYWORDS = frozenset({"digraph", "edge", "graph", "node", "strict", "subgraph"})


def count_nodes(dot_source: str) -> int:
    """The number of different nodes that a graph's statements name."""
    tokens = list(_statement_tokens(dot_source))
    nodes = set()
    for index, token in enumerate(tokens):
        if token in _PUNCTUATION or token.lower() in _KEYWORDS:
            continue
        before = tokens[index - 1] if index else ""
        after = tokens[index + 1] if index + 1 < len(tokens) else ""
        names_a_graph = before.lower() in ("digraph", "graph", "subgraph")
        if not names_a_graph and before not in (":", "=") and after != "=":
            nodes.add(token)
    return len(nodes)


_PUNCTUATION = frozenset({"->", "--", "{", "}", ";", ",", "=", ":", "+"})


def _statement_tokens(dot_source: str) -> Iterator[str]:
    """Tokens outside attribute lists; a quoted name loses its quotes, an HTML string is one token."""
    position = depth = 0
    while position < len(dot_source):
        found = _TOKEN.match(dot_source, position)
        if found is None:
            return
        position = found.end()
        mark = found["mark"]
        if mark == "<":
            position = _after_html(dot_source, position)
            mark = None
            if not depth:
                yield "<html>"
        if mark == "[":
            depth += 1
        elif mark == "]":
            depth = max(0, depth - 1)
        elif not depth:
            if found["name"]:
                yield found["name"].strip('"')
            elif found["arrow"] or mark in _PUNCTUATION:
                yield found["arrow"] or found["mark"]


def _after_html(dot_source: str, position: int) -> int:
    """Where an HTML string ends that was opened just before `position`; angle brackets nest."""
    depth = 1
    for found in re.compile(r"[<>]").finditer(dot_source, position):
        depth += 1 if found[0] == "<" else -1
        if not depth:
            return found.end()
    return len(dot_source)
