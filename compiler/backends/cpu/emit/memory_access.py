"""Loads and stores of elements at all lanes: whole vectors where neighbours are neighbours, else lane by lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.backends.cpu.emit.registers import Held, memory_kind, memory_type, part_bytes
from compiler.backends.cpu.text_builder import TextBuilder, llvm_type
from compiler.ir.types import ElementType
from compiler.kernel.elemental import Load
from compiler.kernel.index_expression import Index

if TYPE_CHECKING:
    from compiler.backends.cpu.emit.elemental import ElementalEmitter


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """Reads and writes the buffers of an elemental emitter."""

    owner: ElementalEmitter

    @property
    def b(self) -> TextBuilder:
        """The function under construction."""
        return self.owner.b

    def load(self, node: Load) -> Held:
        """An operand's element at all lanes (0 where the mask leaves one out)."""
        e = node.element
        if e.is_complex:
            return self._load_complex(node)
        return self.owner.registers.from_memory(
            e, self.owner.lanes, self._load_parts(node, memory_kind(e), part_bytes(e), 1, 0)
        )

    def _load_parts(self, node: Load, kind: str, size: int, parts: int, part: int) -> str:
        """Loads part `part` of `parts` of each element, in memory form."""
        base, lanes, scalar = self.owner.buffers[node.operand], self.owner.lanes, llvm_type(kind)
        if lanes == 1:
            place = self.b.add(self.b.mul(self.owner.index.scalar(node.offset), parts), part)
            return self.b.load(scalar, self.owner.address(base, place, scalar), size)
        step = self.owner.index.step(node.offset)
        if step in (1, -1) and parts == 1:
            return self._load_row(node, kind, size, step)
        return self._load_lanes(node, kind, size, step, parts, part)

    def _load_row(self, node: Load, kind: str, size: int, step: int) -> str:
        lanes, scalar = self.owner.lanes, llvm_type(kind)
        place = self.owner.index.scalar(node.offset)
        if step == -1:
            place = self.b.sub(place, lanes - 1)
        address = self.owner.address(self.owner.buffers[node.operand], place, scalar)
        vector = llvm_type(kind, lanes)
        mask = self.owner.mask
        if mask is not None and step == -1:
            mask = self._reversed(mask, "i1")
        if mask is not None:
            row = self.b.masked_load(scalar, lanes, address, mask, size)
        else:
            row = self.b.load(vector, address, size)
        return row if step == 1 else self._reversed(row, kind)

    def _reversed(self, vector: str, kind: str) -> str:
        numbers = ", ".join(f"i32 {lane}" for lane in reversed(range(self.owner.lanes)))
        kind = llvm_type(kind, self.owner.lanes)
        return self.b.op(
            f"shufflevector {kind} {vector}, {kind} poison, <{self.owner.lanes} x i32> <{numbers}>"
        )

    def _load_lanes(self, node: Load, kind: str, size: int, step: int | None, parts: int, part: int) -> str:
        """One load a lane; a lane that is left out reads the first element, which is always there."""
        lanes, scalar, base = self.owner.lanes, llvm_type(kind), self.owner.buffers[node.operand]
        vector = "poison"
        kinds = llvm_type(kind, lanes)
        if step is not None and self.owner.mask is None:
            first = self.b.add(self.b.mul(self.owner.index.scalar(node.offset), parts), part)
            start = self.owner.address(base, first, scalar)
            places = [self.owner.address(start, lane * step * parts, scalar) for lane in range(lanes)]
        else:
            places = []
            for place in self.owner.index.lane_places(node.offset, self.owner.mask):
                places.append(self.owner.address(base, self.b.add(self.b.mul(place, parts), part), scalar))
        for lane, place in enumerate(places):
            element = self.b.load(scalar, place, size)
            vector = self.b.op(f"insertelement {kinds} {vector}, {scalar} {element}, i64 {lane}")
        return vector

    def _load_complex(self, node: Load) -> Held:
        kind, size, lanes = memory_kind(node.element), part_bytes(node.element), self.owner.lanes
        if lanes > 1 and self.owner.mask is None and self.owner.index.step(node.offset) == 1:
            scalar = llvm_type(kind)
            first = self.b.mul(self.owner.index.scalar(node.offset), 2)
            both = self.b.load(
                llvm_type(kind, 2 * lanes),
                self.owner.address(self.owner.buffers[node.operand], first, scalar),
                size,
            )
            return (self._every_other(both, kind, 0), self._every_other(both, kind, 1))
        return (self._load_parts(node, kind, size, 2, 0), self._load_parts(node, kind, size, 2, 1))

    def _every_other(self, both: str, kind: str, first: int) -> str:
        numbers = ", ".join(f"i32 {2 * lane + first}" for lane in range(self.owner.lanes))
        wide = llvm_type(kind, 2 * self.owner.lanes)
        return self.b.op(
            f"shufflevector {wide} {both}, {wide} poison, <{self.owner.lanes} x i32> <{numbers}>"
        )

    def store(self, e: ElementType, base: str, offset: Index, value: Held) -> None:
        """Stores a value at all lanes (those of the mask)."""
        if isinstance(value, tuple):
            self._store_complex(e, base, offset, value)
            return
        self._store_parts(e, base, offset, self.owner.registers.to_memory(e, self.owner.lanes, value), 1, 0)

    def _store_parts(
        self, e: ElementType, base: str, offset: Index, value: str, parts: int, part: int
    ) -> None:
        kind, size, lanes = memory_kind(e), part_bytes(e), self.owner.lanes
        scalar = llvm_type(kind)
        place = self.b.add(self.b.mul(self.owner.index.scalar(offset), parts), part)
        if lanes == 1:
            self.b.store(scalar, value, self.owner.address(base, place, scalar), size)
            return
        step = self.owner.index.step(offset)
        if step == 1 and parts == 1:
            address = self.owner.address(base, place, scalar)
            if self.owner.mask is not None:
                self.b.masked_store(scalar, lanes, value, address, self.owner.mask, size)
            else:
                self.b.store(memory_type(e, lanes), value, address, size)
            return
        if self.owner.mask is not None or step is None:
            raise AssertionError("only neighbours are stored under a mask")
        start = self.owner.address(base, place, scalar)
        for lane in range(lanes):
            element = self.b.op(f"extractelement {llvm_type(kind, lanes)} {value}, i64 {lane}")
            self.b.store(scalar, element, self.owner.address(start, lane * step * parts, scalar), size)

    def _store_complex(self, e: ElementType, base: str, offset: Index, value: tuple[str, str]) -> None:
        lanes, kind = self.owner.lanes, memory_kind(e)
        if lanes > 1 and self.owner.mask is None and self.owner.index.step(offset) == 1:
            numbers = ", ".join(f"i32 {lane}, i32 {lane + lanes}" for lane in range(lanes))
            half = llvm_type(kind, lanes)
            both = self.b.op(
                f"shufflevector {half} {value[0]}, {half} {value[1]}, <{2 * lanes} x i32> <{numbers}>"
            )
            place = self.b.mul(self.owner.index.scalar(offset), 2)
            address = self.owner.address(base, place, llvm_type(kind))
            self.b.store(llvm_type(kind, 2 * lanes), both, address, part_bytes(e))
            return
        for number, part in enumerate(value):
            self._store_parts(e, base, offset, part, 2, number)
