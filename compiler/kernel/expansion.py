"""From a fusion's computation to the graph of what one element of its result is computed from.

Starts at the root with one index expression a dimension and follows the index maps of data movement down to the
parameters. A value asked for at the same indices twice is one node. Reshapes that would need divisions ask for a loop
to be split (`NeedsSplit`); the caller then starts again with the finer loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compiler.ir.literal import Literal
from compiler.ir.program import NO_ATTRIBUTES, Attributes, Computation, Instruction
from compiler.ir.types import I32, I64, ElementType, TensorType
from compiler.kernel import index_map
from compiler.kernel.elemental import (
    Choose,
    Compute,
    Constant,
    External,
    Fold,
    IndexValue,
    Load,
    Node,
    Within,
)
from compiler.kernel.index_expression import Axis, Dynamic, Index, constant_index
from compiler.kernel.index_map import Indices
from compiler.ops import OPERATIONS

Computations = Mapping[str, Computation]


class CannotExpand(Exception):
    """The computation holds something that has no elemental form; the message names it."""


@dataclass(frozen=True, slots=True)
class Table:
    """A constant that the kernel carries itself."""

    literal: Literal


@dataclass
class Expansion:
    """Expands the values of one computation; see the module's docstring.

    Attributes:
        computation: what is expanded.
        computations: where called computations are found.
        parameters: nodes that stand for parameters of rank 0, by index; others are loads.
        externals: values that the surrounding code supplies, by instruction name.
        split: whether to ask for loops to be split.
        most_nodes: where to give up.
    """

    computation: Computation
    computations: Computations
    parameters: Mapping[int, Node] = field(default_factory=dict)
    externals: Mapping[str, Node] = field(default_factory=dict)
    split: bool = True
    most_nodes: int = 4000
    tables: list[Literal] = field(default_factory=list)
    _made: dict[tuple[str, Indices], Node] = field(default_factory=dict)
    _unique: dict[Any, Node] = field(default_factory=dict)
    _axes: int = 0
    _count: int = 0

    def value(self, name: str, at: Indices) -> Node:
        """The node of an instruction's element at given indices."""
        key = (name, at)
        found = self._made.get(key)
        if found is None:
            self._count += 1
            if self._count > self.most_nodes:
                raise CannotExpand("its elements take too much code")
            found = self._made[key] = self._expand(self.computation[name], at)
        return found

    def type_of(self, name: str) -> TensorType:
        """The type of an instruction."""
        return self.computation[name].tensor

    def _expand(self, instruction: Instruction, at: Indices) -> Node:
        opcode = instruction.opcode
        external = self.externals.get(instruction.name)
        if external is not None:
            return external
        from compiler.kernel.expansion_rules import RULES

        special = RULES.get(opcode)
        if special is not None:
            return special(self, instruction, at)
        if opcode in index_map.MOVERS:
            operand = self.type_of(instruction.operands[0])
            return self.value(instruction.operands[0], index_map.MOVERS[opcode](instruction, operand, at))
        record = OPERATIONS.get(opcode)
        if record is None or record.scalar is None or not isinstance(instruction.type, TensorType):
            raise CannotExpand(f"{opcode} has no elemental form")
        operands = tuple(self._elementwise_operand(instruction, name, at) for name in instruction.operands)
        return self.compute(
            opcode, plain(instruction.tensor), operands, instruction.attributes, instruction.name
        )

    def _elementwise_operand(self, instruction: Instruction, name: str, at: Indices) -> Node:
        operand = self.type_of(name)
        plain(operand)
        return self.value(name, at if operand.rank == instruction.tensor.rank else ())

    def compute(
        self,
        opcode: str,
        result: ElementType,
        operands: tuple[Node, ...],
        attributes: Attributes = NO_ATTRIBUTES,
        label: str = "",
    ) -> Node:
        """An elementwise operation on nodes."""
        axes = frozenset[Axis]().union(*(operand.axes for operand in operands))
        key = (opcode, result, operands, attributes)
        return self._once(key, lambda: Compute(result, axes, label or opcode, opcode, attributes, operands))

    def load(self, kind: ElementType, operand: int, offset: Index, label: str) -> Node:
        """An element of an operand's memory."""
        return self._once(
            ("load", operand, offset), lambda: Load(kind, offset.axes(), label, operand, offset)
        )

    def constant(self, kind: ElementType, value: complex, label: str = "") -> Node:
        """A known value."""
        key = ("constant", kind, repr(value))
        return self._once(key, lambda: Constant(kind, frozenset(), label or str(value), value))

    def index_value(self, index: Index) -> Node:
        """An index as a number, in 32 bits where they are enough (twice as many fit a vector)."""
        low, high = index.range()
        kind = I32 if low >= -(1 << 31) and high < 1 << 31 else I64
        return self._once(("index", index), lambda: IndexValue(kind, index.axes(), "index", index))

    def choose(self, pieces: Sequence[tuple[tuple[Within, ...], Node]]) -> Node:
        """The first piece whose conditions hold; the last one holds wherever no other does."""
        result = pieces[-1][1]
        for conditions, node in reversed(pieces[:-1]):
            needed = undecided(conditions)
            if needed is None:
                continue
            result = self._choice(needed, node, result) if needed else node
        return result

    def _choice(self, needed: tuple[Within, ...], then: Node, otherwise: Node) -> Node:
        if then is otherwise:
            return then
        axes = then.axes | otherwise.axes
        axes = axes.union(*(condition.index.axes() for condition in needed))
        key = ("choose", needed, then, otherwise)
        return self._once(key, lambda: Choose(then.element, axes, "choose", needed, then, otherwise))

    def dynamic_start(self, name: str, at: Indices, limit: int) -> Index:
        """An index read at run time, clamped into `[0, limit]`."""
        if limit <= 0:
            return constant_index(0)
        node = self.value(name, at)
        if isinstance(node, Constant):
            return constant_index(max(0, min(int(node.value.real), limit)))
        return Index(((Dynamic(node, limit), 1),))

    def new_axis(self, extent: int) -> Axis:
        """A loop of its own, for a fold."""
        self._axes += 1
        return Axis(1000 + self._axes, extent)

    def _once(self, key: Any, make: Any) -> Node:
        found = self._unique.get(key)
        if found is None:
            found = self._unique[key] = make()
        return found


def plain(kind: TensorType) -> ElementType:
    """The element type of a tensor that is not quantised. Raises CannotExpand otherwise."""
    if not isinstance(kind.element, ElementType):
        raise CannotExpand(f"{kind} has quantised elements")
    return kind.element


def undecided(conditions: tuple[Within, ...]) -> tuple[Within, ...] | None:
    """The conditions that are not always true; None when one is never true."""
    needed = []
    for condition in conditions:
        low, high = condition.index.range()
        if high < condition.low or low >= condition.high:
            return None
        if low < condition.low or high >= condition.high:
            needed.append(condition)
    return tuple(needed)


def starts_of(
    e: Expansion, names: Sequence[str], operand: TensorType, sizes: Sequence[int]
) -> tuple[Index, ...]:
    """Where a window of some sizes starts in an operand: the run-time indices, clamped so that it fits."""
    limits = [whole - size for whole, size in zip(operand.shape, sizes, strict=True)]
    return tuple(e.dynamic_start(name, (), limit) for name, limit in zip(names, limits, strict=True))


def body_nodes(
    computation: Computation, computations: Computations, kinds: Sequence[ElementType], first: int = 0
) -> tuple[Node, ...]:
    """A scalar computation's results as functions of External values numbered from `first`."""
    parameters = {
        number: External(kind, frozenset(), f"%{number}", first + number) for number, kind in enumerate(kinds)
    }
    inner = Expansion(computation, computations, parameters, split=False)
    root = computation.root_instruction
    names = root.operands if root.opcode == "tuple" else (root.name,)
    return tuple(inner.value(name, ()) for name in names)


def fold_of_reduce(
    e: Expansion,
    instruction: Instruction,
    at: Indices,
    within: Sequence[Index] | None = None,
    loops: Sequence[Axis] = (),
) -> tuple[Node, ...]:
    """A reduction's results at given indices; `within` and `loops` run over the reduced dimensions."""
    count = len(instruction.operands) // 2
    dimensions = sorted(instruction.attributes["dimensions"])
    operand = e.type_of(instruction.operands[0])
    if within is None:
        loops = tuple(e.new_axis(operand.shape[d]) for d in dimensions)
        within = tuple(Index(((loop, 1),)) for loop in loops)
    inside = dict(zip(dimensions, within, strict=True))
    kept = iter(at)
    full = tuple(inside[d] if d in inside else next(kept) for d in range(operand.rank))
    initial = tuple(e.value(name, ()) for name in instruction.operands[count:])
    if operand.size == 0:
        return initial
    inputs = tuple(e.value(name, full) for name in instruction.operands[:count])
    return make_fold(e, instruction.called[0], tuple(loops), initial, inputs)


def make_fold(
    e: Expansion, body: str, loops: tuple[Axis, ...], initial: tuple[Node, ...], inputs: tuple[Node, ...]
) -> tuple[Fold, ...]:
    """Folds inputs over loops with a called computation."""
    kinds = [node.element for node in (*initial, *inputs)]
    nodes = body_nodes(e.computations[body], e.computations, kinds)
    axes = frozenset[Axis]().union(*(node.axes for node in (*initial, *inputs))) - set(loops)
    group = object()
    return tuple(
        Fold(node.element, axes, "fold", loops, initial, inputs, nodes, number, group)
        for number, node in enumerate(nodes)
    )
