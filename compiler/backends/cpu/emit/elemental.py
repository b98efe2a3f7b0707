"""Emits the values of a kernel's element graph at a vector of neighbouring points.

One loop axis runs along the lanes; all others have one value for all of them. Values that do not depend on the lanes'
axis are computed once and spread. Loads become vector loads where neighbours are neighbours in memory, else one load a
lane. A choice whose conditions are the same for all lanes is a branch; any other one is a masked computation, in which
nothing is read for lanes that are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from compiler.backends.cpu.emit.index_emission import IndexEmitter
from compiler.backends.cpu.emit.memory_access import MemoryAccess
from compiler.backends.cpu.emit.registers import (
    Held,
    Registers,
    register_kind,
    register_type,
)
from compiler.backends.cpu.emit.scalar_builder import CpuScalarBuilder
from compiler.backends.cpu.text_builder import TextBuilder, llvm_type
from compiler.ir.types import ElementType
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
from compiler.kernel.expansion import CannotExpand
from compiler.kernel.index_expression import Axis, Index
from compiler.ops import OPERATIONS
from compiler.ops.scalar import ScalarSite

_MOST_EMITTED = 1500
"""A fusion that takes more is split into several kernels: the code generator's time grows faster than a function."""


@dataclass
class ElementalEmitter:
    """Emits nodes into one function.

    Attributes:
        registers: conversions, and the function under construction.
        buffers: the address of each operand's memory; tables have negative numbers.
        lanes: how many points are computed at once.
        along: the axis that runs along the lanes; None when all points are computed one by one.
        mask: the lanes that exist, as ``<lanes x i1>``; None for all.
    """

    registers: Registers
    buffers: Mapping[int, str]
    lanes: int = 1
    along: Axis | None = None
    mask: str | None = None
    axes: dict[Axis, str] = field(default_factory=dict)
    """The value of each axis, of the first lane for the one along the lanes."""
    bound: dict[int, Held] = field(default_factory=dict)
    """External values, at `bound_lanes` lanes each."""
    bound_lanes: int = 1
    emitted: int = 0
    """Nodes emitted so far, those in several branches counted again."""
    _scopes: list[dict[Any, Any]] = field(default_factory=lambda: [{}])

    @property
    def b(self) -> TextBuilder:
        """The function under construction."""
        return self.registers.b

    @property
    def index(self) -> IndexEmitter:
        """Emission of indices, in the present scope."""
        return IndexEmitter(self)

    def builder(self, lanes: int) -> CpuScalarBuilder:
        """Arithmetic at so many lanes."""
        return CpuScalarBuilder(self.registers, lanes)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside is forgotten afterwards (it may not have been computed on every way)."""
        self._scopes.append({})
        yield
        self._scopes.pop()

    @contextmanager
    def vectorised(self, along: Axis | None, lanes: int, mask: str | None = None) -> Iterator[None]:
        """Computes `lanes` points along an axis at once."""
        before = self.along, self.lanes, self.mask
        self.along, self.lanes, self.mask = along, lanes, mask
        with self.scope():
            yield
        self.along, self.lanes, self.mask = before

    def remember(self, key: Any) -> Any:
        """A value computed before that still holds, or None."""
        for scope in reversed(self._scopes):
            if key in scope:
                return scope[key]
        return None

    def note(self, key: Any, value: Any) -> None:
        """Notes a value for the present scope."""
        self._scopes[-1][key] = value

    def varies(self, node: Node) -> bool:
        """Whether the lanes have different values."""
        if self.lanes == 1:
            return False
        if isinstance(node, External):
            return self.bound_lanes > 1
        return self.along in node.axes or (isinstance(node, Compute) and self._has_external(node))

    def _has_external(self, node: Compute) -> bool:
        key = ("external", node)
        found = self.remember(key)
        if found is None:
            found = any(
                isinstance(entry, External)
                or (isinstance(entry, Compute) and self._has_external(entry))
                or (isinstance(entry, Choose) and self.varies(entry))
                for entry in node.operands
            )
            self.note(key, found)
        return bool(found) and self.bound_lanes > 1

    def value(self, node: Node) -> Held:
        """The node at all lanes."""
        if self.lanes == 1 or self.varies(node):
            return self._value(node, self.lanes)
        key = ("spread", node, self.lanes)
        found = self.remember(key)
        if found is None:
            found = self.spread(node.element, self._uniform(node))
            self.note(key, found)
        return found  # type: ignore[no-any-return]

    def uniform(self, node: Node) -> Held:
        """The one value of a node that is the same at all lanes."""
        return self._uniform(node)

    def _uniform(self, node: Node) -> Held:
        if isinstance(node, Constant):
            return self.builder(1).constant(node.element, node.value)
        return self._value(node, 1)

    def spread(self, e: ElementType, value: Held) -> Held:
        """One value in all lanes."""
        if isinstance(value, tuple):
            return (self._spread(e, value[0]), self._spread(e, value[1]))
        return self._spread(e, value)

    def _spread(self, e: ElementType, value: str) -> str:
        if value.startswith("%"):
            return self.b.splat(llvm_type(register_kind(e)), value, self.lanes)
        return f"splat ({llvm_type(register_kind(e))} {value})"

    def _value(self, node: Node, lanes: int) -> Held:
        if isinstance(node, External):
            return self.bound[node.number]
        key = (node, lanes)
        found = self.remember(key)
        if found is None:
            if lanes == self.lanes:
                found = self._emit(node)
            else:
                # A uniform value: its own operands are uniform too.
                before = self.lanes, self.mask
                self.lanes, self.mask = 1, None
                found = self._emit(node)
                self.lanes, self.mask = before
            self.note(key, found)
        return found  # type: ignore[no-any-return]

    def _emit(self, node: Node) -> Held:
        self.emitted += 1
        if self.emitted > _MOST_EMITTED:
            raise CannotExpand("its code would be too long")
        if isinstance(node, Compute):
            return self._compute(node)
        if isinstance(node, Load):
            return MemoryAccess(self).load(node)
        if isinstance(node, Constant):
            return self.builder(self.lanes).constant(node.element, node.value)
        if isinstance(node, IndexValue):
            return self._index_value(node)
        if isinstance(node, Choose):
            return self._choose(node)
        assert isinstance(node, Fold)
        return self._fold(node)

    def _compute(self, node: Compute) -> Held:
        rule = OPERATIONS[node.opcode].scalar
        assert rule is not None
        values = [self.value(operand) for operand in node.operands]
        site = ScalarSite([operand.element for operand in node.operands], node.element, node.attributes)
        result: Held = rule(self.builder(self.lanes), site, values)
        return result

    def _index_value(self, node: IndexValue) -> Held:
        kind = register_kind(node.element)
        return (
            self.index.vector(node.index, kind) if self.lanes > 1 else self.index.narrowed(node.index, kind)
        )

    def address(self, base: str, place: str | int, scalar: str) -> str:
        """The address of an element; may lie outside where nothing is read, hence without `inbounds`."""
        if str(place) == "0":
            return base
        return self.b.op(f"getelementptr {scalar}, ptr {base}, i64 {place}", "p")

    # Choices

    def _choose(self, node: Choose) -> Held:
        fixed = [c for c in node.conditions if self.lanes == 1 or self.along not in c.index.axes()]
        varying = [c for c in node.conditions if c not in fixed]
        if not fixed:
            return self._blend(node, varying)
        condition = self.index.holds(fixed)
        inside = self.lanes == 1 or not varying
        return self._branch(
            node.element,
            condition,
            lambda: self.value(node.then) if inside else self._blend(node, varying),
            lambda: self.value(node.otherwise),
        )

    def _branch(self, e: ElementType, condition: str, then: Any, otherwise: Any) -> Held:
        yes, no, done = self.b.label("chosen"), self.b.label("other"), self.b.label("joined")
        self.b.branch_if(condition, yes, no)
        ends = []
        for label, make in ((yes, then), (no, otherwise)):
            self.b.place(label)
            with self.scope():
                ends.append((make(), self.b.block))
            self.b.branch(done)
        self.b.place(done)
        kind = register_type(e, self.lanes)
        (first, left), (second, right) = ends
        pairs = zip(_parts(first), _parts(second), strict=True)
        joined = [self.b.op(f"phi {kind} [ {one}, %{left} ], [ {two}, %{right} ]") for one, two in pairs]
        return joined[0] if len(joined) == 1 else (joined[0], joined[1])

    def _blend(self, node: Choose, varying: Sequence[Within]) -> Held:
        condition = self.index.lanes_hold(varying)
        flag = llvm_type("i1", self.lanes)
        before = self.mask
        inverse = self.b.op(f"xor {flag} {condition}, splat (i1 true)", "mask")
        values = []
        for chosen, own in ((node.then, condition), (node.otherwise, inverse)):
            self.mask = own if before is None else self.b.op(f"and {flag} {before}, {own}", "mask")
            with self.scope():
                values.append(self.value(chosen))
        self.mask = before
        return self.builder(self.lanes).select(node.element, condition, values[0], values[1])

    # Folds

    def apply(self, body: Sequence[Node], values: Sequence[Held]) -> list[Held]:
        """The results of a scalar computation on values at the present number of lanes."""
        before = self.bound, self.bound_lanes
        self.bound, self.bound_lanes = dict(enumerate(values)), self.lanes
        with self.scope():
            results = [self.value(node) for node in body]
        self.bound, self.bound_lanes = before
        return results

    def _fold(self, node: Fold) -> Held:
        key = ("fold", node.group, self.lanes)
        found = self.remember(key)
        if found is None:
            found = self._fold_all(node)
            self.note(key, found)
        return found[node.result]  # type: ignore[no-any-return]

    def _fold_all(self, node: Fold) -> list[Held]:
        elements = [entry.element for entry in node.initial]
        start = [self.value(entry) for entry in node.initial]

        def inside(values: list[Held]) -> list[Held]:
            return self.apply(node.body, [*values, *(self.value(entry) for entry in node.inputs)])

        return self.looped(node.over, elements, start, inside)

    def looped(
        self, over: Sequence[Axis], elements: Sequence[ElementType], start: list[Held], inside: Any
    ) -> list[Held]:
        """Runs `inside`, which takes the carried values to the next ones, over loops."""
        if not over:
            return list(inside(start))
        kinds = [register_type(e, self.lanes) for e in elements for _ in range(2 if e.is_complex else 1)]
        flat = [part for value in start for part in _parts(value)]
        axis = over[0]
        with self.b.carried_loop(0, axis.extent, zip(kinds, flat, strict=True), hint=str(axis)) as loop:
            self.axes[axis] = loop.index
            with self.scope():
                values = self.looped(over[1:], elements, regrouped(elements, loop.values), inside)
            loop.next = [part for value in values for part in _parts(value)]
        return regrouped(elements, loop.results)

    def store(self, e: ElementType, base: str, offset: Index, value: Held) -> None:
        """Stores a value at all lanes (those of the mask)."""
        MemoryAccess(self).store(e, base, offset, value)


def _parts(value: Held) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else (value,)


def regrouped(elements: Sequence[ElementType], flat: Sequence[str]) -> list[Held]:
    """Values of given types from their parts in a row."""
    found: list[Held] = []
    rest = iter(flat)
    for e in elements:
        first = next(rest)
        found.append((first, next(rest)) if e.is_complex else first)
    return found
