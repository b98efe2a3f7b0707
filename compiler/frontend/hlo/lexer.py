"""Tokens of HLO text, by one regular expression.

Array shapes with their layouts, constants, windows and metadata are single tokens: they are the bulk of the text, are read by
code of their own, and repeat (what they say is cached by their text). No alternative gives back what it took, so that the time
is linear in the text, whatever it holds.
"""

from __future__ import annotations

import re

from compiler.frontend.errors import error_at

_STRING = r'"(?:[^"\\]|\\.)*+"'
_NAME = r"[A-Za-z_](?:[\w.]|-(?!>))*+"
TOKEN = re.compile(
    r"constant\((?:[^()]|\([^()]*+\))*+\)"
    rf"|metadata=\{{(?:[^\"{{}}]|{_STRING}|\{{[^{{}}]*+\}})*+\}}"
    r"|window=\{[^{}]*+\}"
    r"|dim_labels=[\w?]++->[\w?]++"
    r"|(?:[a-z][a-z0-9]*+)\[[^\[\]{}\"()]*+\](?:\{[^{}\"\s]*+\})?"
    rf"|%?{_NAME}"
    rf"|{_STRING}"
    r"|->"
    r"|-?\d(?:[\w.]|[eE_x][-+]|-(?=\d))*+"
    r"|[^\s\"]"
)
_SCAN = re.compile(rf"(?s:\s++|/\*.*?(?:\*/|\Z)|//[^\n]*+)*+(?:({TOKEN.pattern})|\Z|(.))")


def tokenize(text: str, filename: str) -> tuple[list[str], list[int]]:
    """All tokens and their offsets, each list ended by three empty tokens, so that one may look ahead.

    Raises:
        SourceError: at a string that never ends.
    """
    tokens: list[str] = []
    offsets: list[int] = []
    add_token, add_offset = tokens.append, offsets.append
    for match in _SCAN.finditer(text):
        index = match.lastindex
        if index == 1:
            add_token(match[1])
            add_offset(match.start(1))
        elif index is not None:
            raise error_at(filename, text, match.start(index), "this string never ends")
    tokens += ["", "", ""]
    offsets += [len(text)] * 3
    return tokens, offsets


_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9A-Fa-f]{1,2})|(.))", re.DOTALL)
_SIMPLE = {"n": b"\n", "t": b"\t", "r": b"\r", "a": b"\a", "b": b"\b", "f": b"\f", "v": b"\v"}


def unquote(token: str) -> str:
    """The text of a string token: C's escapes, octal and hexadecimal ones being bytes of UTF-8."""
    body = token[1:-1]
    if "\\" not in body:
        return body
    raw = bytearray()
    at = 0
    for match in _ESCAPE.finditer(body):
        raw += body[at : match.start()].encode("utf-8", "surrogatepass")
        at = match.end()
        octal, hexadecimal, other = match.groups()
        if octal is not None:
            raw.append(int(octal, 8) & 255)
        elif hexadecimal is not None:
            raw.append(int(hexadecimal, 16))
        else:
            raw += _SIMPLE.get(other) or other.encode("utf-8", "surrogatepass")
    raw += body[at:].encode("utf-8", "surrogatepass")
    return raw.decode("utf-8", "replace")
