"""Emits index expressions: one number for the first lane, the step from lane to lane, or a vector of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.backends.cpu.emit.registers import register_kind
from compiler.backends.cpu.text_builder import TextBuilder, llvm_type
from compiler.kernel.elemental import Node, Within
from compiler.kernel.index_expression import Atom, Axis, Dynamic, Index, atom_axes

if TYPE_CHECKING:
    from compiler.backends.cpu.emit.elemental import ElementalEmitter


@dataclass(frozen=True, slots=True)
class IndexEmitter:
    """Emits the indices of an elemental emitter's nodes, and remembers them there."""

    owner: ElementalEmitter

    @property
    def b(self) -> TextBuilder:
        """The function under construction."""
        return self.owner.b

    def step(self, index: Index) -> int | None:
        """How much the index grows from lane to lane; None when it does not grow evenly."""
        along = self.owner.along
        step = 0
        for atom, count in index.terms:
            if atom == along:
                step += count
            elif along is not None and not isinstance(atom, Axis) and along in atom_axes(atom):
                return None
        return step

    def scalar(self, index: Index) -> str:
        """The index of the first lane (of all lanes, where they agree)."""
        along = self.owner.along
        own = [(atom, count) for atom, count in index.terms if along is not None and along in atom_axes(atom)]
        if own and len(own) < len(index.terms):
            # What does not depend on the lanes may have been computed outside the loop along them.
            rest = tuple(term for term in index.terms if term not in own)
            return self.b.add(self.scalar(Index(rest, index.constant)), self._sum(own))
        found = self.owner.remember(index)
        if found is None:
            found = self.b.add(self._sum(index.terms), index.constant)
            if not own:
                self.owner.note(index, found)
        return str(found)

    def _sum(self, terms: Sequence[tuple[Atom, int]]) -> str:
        total = "0"
        for atom, count in terms:
            total = self.b.add(total, self.b.mul(self._atom(atom), count))
        return total

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Axis):
            return self.owner.axes[atom]
        key = (atom, 1)
        found = self.owner.remember(key)
        if found is None:
            if isinstance(atom, Dynamic):
                found = self._clamped(atom)
            else:
                found = self._divided(atom.expression, atom.divisor, type(atom).__name__ == "Quotient")
            varies = self.owner.along is not None and self.owner.along in atom_axes(atom)
            if not varies:
                self.owner.note(key, found)
        return str(found)

    def _divided(self, expression: Index, divisor: int, quotient: bool) -> str:
        value = self.scalar(expression)
        if expression.range()[0] >= 0:
            return self.b.div(value, divisor) if quotient else self.b.rem(value, divisor)
        # Only ever below zero where a condition leaves the result unused; any in-range number will do.
        return self.b.op(f"{'sdiv' if quotient else 'srem'} i64 {value}, {divisor}", "i")

    def _clamped(self, atom: Dynamic) -> str:
        value = str(self.owner.uniform(atom.node))
        return self._clamp(self._extended(atom.node, value, 1), atom, 1)

    def _extended(self, node: Node, value: str, lanes: int) -> str:
        kind = register_kind(node.element)
        if kind == "i64":
            return value
        op = "sext" if node.element.kind == "int" else "zext"
        return self.b.op(f"{op} {llvm_type(kind, lanes)} {value} to {llvm_type('i64', lanes)}", "start")

    def _clamp(self, value: str, atom: Dynamic, lanes: int) -> str:
        kind = llvm_type("i64", lanes)
        suffix = "i64" if lanes == 1 else f"v{lanes}i64"
        limit = str(atom.limit) if lanes == 1 else f"splat (i64 {atom.limit})"
        zero = "0" if lanes == 1 else "zeroinitializer"
        if atom.node.element.kind == "uint":
            return self.b.intrinsic(kind, f"llvm.umin.{suffix}", (kind, value), (kind, limit), hint="start")
        low = self.b.intrinsic(kind, f"llvm.smax.{suffix}", (kind, value), (kind, zero), hint="start")
        return self.b.intrinsic(kind, f"llvm.smin.{suffix}", (kind, low), (kind, limit), hint="start")

    def narrowed(self, index: Index, kind: str) -> str:
        """The first lane's index as an integer of another width."""
        value = self.scalar(index)
        if kind == "i64" or not value.startswith("%"):
            return value
        return self.b.op(f"trunc i64 {value} to {kind}")

    def vector(self, index: Index, kind: str) -> str:
        """The index of every lane as a vector of integers."""
        key = ("lanes", index, kind)
        found = self.owner.remember(key)
        if found is None:
            found = self._vector(index, kind)
            self.owner.note(key, found)
        return str(found)

    def _vector(self, index: Index, kind: str) -> str:
        lanes, vector = self.owner.lanes, llvm_type(kind, self.owner.lanes)
        step = self.step(index)
        if step is not None:
            base = self._spread(self.narrowed(index, kind), kind)
            if step == 0:
                return base
            numbers = ", ".join(f"{kind} {lane * step}" for lane in range(lanes))
            return self.b.op(f"add {vector} {base}, <{numbers}>")
        if kind != "i64":
            wide = self.vector(index, "i64")
            return self.b.op(f"trunc {llvm_type('i64', lanes)} {wide} to {vector}")
        total = self._spread(str(index.constant), kind)
        for atom, count in index.terms:
            factor = f"splat (i64 {count})"
            part = self.b.op(f"mul {vector} {self._atom_lanes(atom)}, {factor}")
            total = self.b.op(f"add {vector} {total}, {part}")
        return total

    def _spread(self, value: str, kind: str) -> str:
        if value.startswith("%"):
            return self.b.splat(kind, value, self.owner.lanes)
        return f"splat ({kind} {value})"

    def _atom_lanes(self, atom: Atom) -> str:
        along, lanes = self.owner.along, self.owner.lanes
        if along not in atom_axes(atom) or isinstance(atom, Axis):
            return self.vector(Index(((atom, 1),)), "i64")
        if isinstance(atom, Dynamic):
            value = str(self.owner.value(atom.node))
            return self._clamp(self._extended(atom.node, value, lanes), atom, lanes)
        value = self.vector(atom.expression, "i64")
        unsigned = "u" if atom.expression.range()[0] >= 0 else "s"
        op = "div" if type(atom).__name__ == "Quotient" else "rem"
        if unsigned == "u" and atom.expression.range()[1] < 1 << 31:
            # Vectors of 64-bit integers are multiplied slowly.
            narrow, wide = llvm_type("i32", lanes), llvm_type("i64", lanes)
            short = (
                self.vector(atom.expression, "i32")
                if self.step(atom.expression) is not None
                else self.b.op(f"trunc {wide} {value} to {narrow}")
            )
            result = self.b.op(f"u{op} {narrow} {short}, splat (i32 {atom.divisor})")
            return self.b.op(f"zext {narrow} {result} to {wide}")
        return self.b.op(f"{unsigned}{op} {llvm_type('i64', lanes)} {value}, splat (i64 {atom.divisor})")

    def lane_places(self, index: Index, mask: str | None) -> list[str]:
        """The index of each lane; 0 for the lanes that a mask leaves out."""
        lanes = self.owner.lanes
        wide = llvm_type("i64", lanes)
        vector = self.vector(index, "i64")
        if mask is not None:
            vector = self.b.op(f"select <{lanes} x i1> {mask}, {wide} {vector}, {wide} zeroinitializer")
        return [self.b.op(f"extractelement {wide} {vector}, i64 {lane}", "i") for lane in range(lanes)]

    def holds(self, conditions: Sequence[Within]) -> str:
        """Whether conditions that are the same for all lanes hold."""
        total = ""
        for condition in conditions:
            value = self.scalar(condition.index)
            low, high = condition.index.range()
            if low >= condition.low:
                one = self.b.compare("slt", value, condition.high)
            elif high < condition.high:
                one = self.b.compare("sge", value, condition.low)
            else:
                moved = self.b.sub(value, condition.low)
                one = self.b.compare("ult", moved, condition.high - condition.low)
            total = one if not total else self.b.op(f"and i1 {total}, {one}")
        return total

    def lanes_hold(self, conditions: Sequence[Within]) -> str:
        """In which lanes conditions hold."""
        lanes = self.owner.lanes
        total = ""
        for condition in conditions:
            moved = condition.index - condition.low
            low, high = moved.range()
            span = condition.high - condition.low
            small = low >= -(1 << 31) and max(high, span) < 1 << 31
            kind = "i32" if small else "i64"
            value = self.vector(moved, kind)
            one = self.b.op(f"icmp ult {llvm_type(kind, lanes)} {value}, splat ({kind} {span})", "mask")
            total = one if not total else self.b.op(f"and <{lanes} x i1> {total}, {one}", "mask")
        return total
