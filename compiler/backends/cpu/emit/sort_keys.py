"""Sort keys: one element as an unsigned integer whose order is the order wanted, with the element's place below it."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.backends.cpu.emit.registers import (
    Registers,
    computed,
    memory_kind,
    part_bytes,
    register_kind,
)
from compiler.backends.cpu.emit.sorting import PLACE_BITS
from compiler.backends.cpu.text_builder import TextBuilder, llvm_type
from compiler.ir.types import ElementType
from compiler.ops.sorting import Key


@dataclass(frozen=True, slots=True)
class KeyForm:
    """How elements of one type are made into keys.

    `kind` is the LLVM type of key and place together.
    """

    element: ElementType
    key: Key

    @property
    def is_total(self) -> bool:
        """Whether floats are ordered by their bits as they stand in memory."""
        return self.key.is_total and not self.key.zeros_equal

    @property
    def bits(self) -> int:
        """Bits of the key alone."""
        e = self.element
        if e.is_float and not self.is_total:
            return computed(e).bits
        return 8 * part_bytes(e)

    @property
    def kind(self) -> str:
        """LLVM's type of a key with its place."""
        return "i64" if self.bits + PLACE_BITS <= 64 else "i128"

    def emit(self, registers: Registers, address: str, place: str) -> str:
        """The key of the element at an address, and its place (an ``i64``), as one integer."""
        b, e = registers.b, self.element
        memory = llvm_type(memory_kind(e))
        raw = b.load(memory, address, part_bytes(e))
        whole = self._of_value(registers, raw) if e.is_float and not self.is_total else self._of_bits(b, raw)
        wide = b.op(f"zext i{self.bits} {whole} to {self.kind}")
        high = b.op(f"shl {self.kind} {wide}, {PLACE_BITS}")
        low = place if self.kind == "i64" else b.op(f"zext i64 {place} to {self.kind}")
        return b.op(f"or {self.kind} {high}, {low}", "key")

    def _of_bits(self, b: TextBuilder, raw: str) -> str:
        e, kind = self.element, f"i{self.bits}"
        if e.is_float:
            if memory_kind(e).startswith("f"):
                raw = b.op(f"bitcast {llvm_type(memory_kind(e))} {raw} to {kind}")
            return self._turned(b, _ordered(b, raw, self.bits))
        if e.kind == "int":
            raw = b.op(f"xor {kind} {raw}, {-(1 << (e.bits - 1))}")
        if e.is_integer and e.bits < 8:
            # Whether the bits above are the sign's or zeros differs between who wrote them.
            raw = b.op(f"and {kind} {raw}, {(1 << e.bits) - 1}")
        return self._turned(b, raw)

    def _turned(self, b: TextBuilder, whole: str) -> str:
        return b.op(f"xor i{self.bits} {whole}, -1") if self.key.is_descending else whole

    def _of_value(self, registers: Registers, raw: str) -> str:
        """Both zeros are equal; NaN come last unless they are a key like any other."""
        b, e = registers.b, self.element
        value = registers.from_memory(e, 1, raw)
        real = llvm_type(register_kind(e))
        is_last = not self.key.is_total
        if is_last and self.key.is_descending:
            value = b.op(f"fneg {real} {value}")
        value = b.op(f"fadd {real} {value}, 0.0")
        nan = b.op(f"fcmp uno {real} {value}, {value}")
        bits = b.op(f"bitcast {real} {value} to i{self.bits}")
        whole = b.select(nan, -1, _ordered(b, bits, self.bits), f"i{self.bits}")
        return whole if is_last else self._turned(b, whole)


def _ordered(b: TextBuilder, raw: str, bits: int) -> str:
    """The bits of a float so that they are in order as an unsigned integer (IEEE 754, totalOrder)."""
    kind = f"i{bits}"
    negative = b.op(f"ashr {kind} {raw}, {bits - 1}")
    return b.op(f"xor {kind} {raw}, {b.op(f'or {kind} {negative}, {-(1 << (bits - 1))}')}")


__all__ = ["KeyForm"]
