"""Graphs as plain data, and their text in Graphviz's language.

`program_graph` and `pipeline_graph` make graphs, `dot_text` writes them, `graphviz_engine` draws the text. Names come from
strangers' files: every label is escaped, control characters are made visible, and ids are always quoted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from views.highlight import visible

COLOURS: dict[str, str] = {
    "parameter": "#ffe0b2",
    "constant": "#e0e0e0",
    "elementwise": "#fff9c4",
    "contraction": "#90caf9",
    "reduction": "#d1c4e9",
    "movement": "#c8e6c9",
    "control": "#ffcdd2",
    "communication": "#f8bbd0",
    "tuple": "#f5f5f5",
    "fusion": "#b2dfdb",
    "other": "#ffffff",
    "stage": "#bbdefb",
    "unchanged": "#f5f5f5",
}
"""Fill colour of each kind of node."""

MAX_LABEL = 120


@dataclass(frozen=True)
class Node:
    """One box. `lines` are its label's; `marks` of `root`, `centre`, `cut` change its outline."""

    id: str
    lines: tuple[str, ...]
    kind: str
    cluster: str = ""
    tooltip: str = ""
    marks: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Edge:
    """An arrow. `kind` is `data`, or `call` from an instruction to what it calls."""

    source: str
    target: str
    label: str = ""
    kind: str = "data"


@dataclass(frozen=True)
class Cluster:
    """A frame around nodes, perhaps inside another one."""

    id: str
    label: str
    parent: str = ""


@dataclass
class Graph:
    """Nodes, edges and frames, in the order in which they are written."""

    title: str
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    clusters: list[Cluster] = field(default_factory=list)


def quoted(text: str) -> str:
    """A quoted string of the dot language that stands for exactly this text."""
    return '"' + visible(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _label(lines: tuple[str, ...]) -> str:
    shown = (line if len(line) <= MAX_LABEL else line[: MAX_LABEL - 1] + "…" for line in lines)
    return '"' + "\\n".join(quoted(line)[1:-1] for line in shown) + '"'


def dot_text(graph: Graph) -> str:
    """The graph's text."""
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    yield f"digraph {quoted(graph.title)} {{"
    yield f'  graph [label={quoted(graph.title)}, labelloc=t, fontname="Helvetica", compound=true];'
    yield '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10, color="#616161"];'
    yield '  edge [fontname="Helvetica", fontsize=8, color="#616161"];'
    inside: dict[str, list[Node]] = {}
    for node in graph.nodes:
        inside.setdefault(node.cluster, []).append(node)
    children: dict[str, list[Cluster]] = {}
    for cluster in graph.clusters:
        children.setdefault(cluster.parent, []).append(cluster)
    yield from _frame("", inside, children, 1)
    for edge in graph.edges:
        yield f"  {_edge(edge)}"
    yield "}"


def _frame(
    name: str, inside: dict[str, list[Node]], children: dict[str, list[Cluster]], depth: int
) -> Iterator[str]:
    lead = "  " * depth
    for node in inside.get(name, ()):
        yield lead + _node(node)
    for cluster in children.get(name, ()):
        yield f"{lead}subgraph {quoted('cluster_' + cluster.id)} {{"
        yield f'{lead}  label={quoted(cluster.label)}; style="rounded"; color="#9e9e9e"; fontsize=10;'
        yield from _frame(cluster.id, inside, children, depth + 1)
        yield lead + "}"


def _node(node: Node) -> str:
    parts = [f"label={_label(node.lines)}", f'fillcolor="{COLOURS.get(node.kind, COLOURS["other"])}"']
    if node.tooltip:
        parts.append(f"tooltip={quoted(node.tooltip)}")
    if "centre" in node.marks:
        parts += ['color="#c62828"', "penwidth=3"]
    elif "root" in node.marks:
        parts.append("penwidth=2")
    if "cut" in node.marks:
        parts.append('style="rounded,filled,dashed"')
    if node.kind in ("parameter", "constant"):
        parts.append("shape=ellipse")
    return f"{quoted(node.id)} [{', '.join(parts)}];"


def _edge(edge: Edge) -> str:
    parts = [f"label={quoted(edge.label)}"] if edge.label else []
    if edge.kind == "call":
        parts += ["style=dashed", "arrowhead=empty"]
    attributes = f" [{', '.join(parts)}]" if parts else ""
    return f"{quoted(edge.source)} -> {quoted(edge.target)}{attributes};"
