"""What a kernel computes for one element: a graph of loads, arithmetic and choices over index expressions.

Made from a fusion (or a single instruction) by `compiler.kernel.expansion`, read by the backends' emitters. Nodes are
compared by identity; the expansion makes one node for equal values, so whatever is shared is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from compiler.ir.program import Attributes
from compiler.ir.types import ElementType
from compiler.kernel.index_expression import Axis, Index


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One scalar value as a function of the loop axes."""

    element: ElementType
    axes: frozenset[Axis]
    """The axes it depends on."""
    label: str
    """How it is called when the kernel is shown to people."""


@dataclass(frozen=True, slots=True, eq=False)
class Load(Node):
    """Element `offset` (counted in elements, in memory order) of an operand; negative numbers name tables."""

    operand: int
    offset: Index


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Node):
    """A known value."""

    value: complex


@dataclass(frozen=True, slots=True, eq=False)
class IndexValue(Node):
    """An index as a number (`iota`)."""

    index: Index


@dataclass(frozen=True, slots=True, eq=False)
class Compute(Node):
    """An elementwise operation, by its record's scalar rule."""

    opcode: str
    attributes: Attributes
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Within:
    """The condition `low <= index < high`."""

    index: Index
    low: int
    high: int

    def __str__(self) -> str:
        if self.high == self.low + 1:
            return f"{self.index} == {self.low}"
        return f"{self.low} <= {self.index} < {self.high}"


@dataclass(frozen=True, slots=True, eq=False)
class Choose(Node):
    """`then` where all conditions hold, else `otherwise`; neither reads memory where it is not chosen."""

    conditions: tuple[Within, ...]
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True, eq=False)
class External(Node):
    """A value that the surrounding code supplies: an accumulator, a product's sum."""

    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Fold(Node):
    """Result number `result` of folding `inputs` over `over` axes, innermost last, with `body` from `initial`.

    `body` holds the nodes of the results as functions of External values: accumulators, then elements.
    """

    over: tuple[Axis, ...]
    initial: tuple[Node, ...]
    inputs: tuple[Node, ...]
    body: tuple[Node, ...]
    result: int
    group: object = field(default_factory=object)
    """Equal for the results of one fold."""


def children(node: Node) -> tuple[Node, ...]:
    """The nodes a node is computed from, those inside its indices included."""
    found: list[Node] = []
    if isinstance(node, Compute):
        found += node.operands
    elif isinstance(node, Load):
        found += dynamic_nodes(node.offset)
    elif isinstance(node, IndexValue):
        found += dynamic_nodes(node.index)
    elif isinstance(node, Choose):
        for condition in node.conditions:
            found += dynamic_nodes(condition.index)
        found += (node.then, node.otherwise)
    elif isinstance(node, Fold):
        found += (*node.initial, *node.inputs)
    return tuple(found)


def dynamic_nodes(index: Index) -> tuple[Node, ...]:
    """The nodes whose values an index depends on."""
    found: list[Node] = []
    for atom, _ in index.terms:
        if isinstance(atom, Axis):
            continue
        found += (atom.node,) if hasattr(atom, "node") else dynamic_nodes(atom.expression)
    return tuple(found)


def walk(roots: tuple[Node, ...]) -> Iterator[Node]:
    """Every node once, operands first (the bodies of folds excepted)."""
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(children(node)) if child not in seen)


def indices_of(node: Node) -> tuple[Index, ...]:
    """The index expressions that a node itself holds."""
    if isinstance(node, Load):
        return (node.offset,)
    if isinstance(node, IndexValue):
        return (node.index,)
    if isinstance(node, Choose):
        return tuple(condition.index for condition in node.conditions)
    return ()
