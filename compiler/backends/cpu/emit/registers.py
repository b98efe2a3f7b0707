"""How values of each element type are held in registers and in memory.

In registers: booleans as ``i1``, integers as themselves (sub-byte ones as ``i8``, extended), floats narrower than f32
as the f32 of the same value, complex numbers as a pair of floats. In memory: one byte for booleans and everything
narrower, narrow floats as the integer of their bits, complex numbers interleaved.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TypeAlias

from compiler.backends.cpu.text_builder import TextBuilder, llvm_type
from compiler.backends.cpu.vector_math import Key, closure, define, function_name, held_kind
from compiler.ir.types import F32, ElementType

Held: TypeAlias = str | tuple[str, str]
"""A value in registers: an SSA name or constant; a pair of them for complex numbers."""


def computed(e: ElementType) -> ElementType:
    """The float type that a float type is computed in."""
    return F32 if e.bits < 32 else e


def register_kind(e: ElementType) -> str:
    """The kind of an element (of the parts of a complex one) in registers: ``i1``, ``i8`` … ``i64``, ``f32``, ``f64``."""
    if e.kind == "bool":
        return "i1"
    if e.is_complex:
        return e.real.name
    if e.is_float:
        return computed(e).name
    return f"i{max(e.bits, 8)}"


def register_bits(e: ElementType) -> int:
    """Bits of an element (of the parts of a complex one) in registers; a flag counts as a byte."""
    return max(int(register_kind(e)[1:]), 8)


def register_type(e: ElementType, lanes: int) -> str:
    """LLVM's type of what `register_kind` names."""
    return llvm_type(register_kind(e), lanes)


def memory_kind(e: ElementType) -> str:
    """The kind of an element (of the parts of a complex one) in memory: ``i8`` … ``i64``, ``f32``, ``f64``."""
    if e.kind == "bool":
        return "i8"
    if e.is_float and e.bits < 32:
        return held_kind(e.name)
    return register_kind(e)


def memory_type(e: ElementType, lanes: int) -> str:
    """LLVM's type of what `memory_kind` names."""
    return llvm_type(memory_kind(e), lanes)


def part_bytes(e: ElementType) -> int:
    """Bytes of an element, or of one part of a complex one."""
    return e.storage_bytes // 2 if e.is_complex else e.storage_bytes


def splat_text(kind: str, value: str, lanes: int) -> str:
    """A constant in all lanes."""
    return value if lanes == 1 else f"splat ({llvm_type(kind)} {value})"


def float_text(kind: str, value: float) -> str:
    """A float constant, exactly. LLVM writes f32 with the bits of the double of the same value."""
    if kind == "f32":
        if math.isfinite(value):
            try:
                value = struct.unpack("<f", struct.pack("<f", value))[0]
            except OverflowError:
                value = math.copysign(math.inf, value)
        elif math.isnan(value):
            return "0x7FF8000000000000" if math.copysign(1.0, value) > 0 else "0xFFF8000000000000"
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


@dataclass
class Registers:
    """Moves values between memory form, register form and types, in one function under construction.

    Attributes:
        b: the function.
        needed: the vector functions it calls.
    """

    b: TextBuilder
    needed: dict[Key, None]

    def call(self, op: str, element: str, lanes: int, result: str, *typed: str) -> str:
        """Calls a function of `vector_math`."""
        self.needed[(op, element, lanes)] = None
        return self.b.call(result, function_name(op, element, lanes), *typed)

    def convert_call(self, source: str, target: str, lanes: int, value: str) -> str:
        """A conversion between types of which one at least is a float, on held values."""
        if source == target:
            return value
        result = llvm_type(held_kind(target), lanes)
        return self.call(
            "convert", f"{source}.{target}", lanes, result, f"{llvm_type(held_kind(source), lanes)} {value}"
        )

    def from_memory(self, e: ElementType, lanes: int, value: str) -> str:
        """The register form of a loaded element (or part)."""
        if e.kind == "bool":
            zero = splat_text("i8", "0", lanes)
            return self.b.op(f"icmp ne {llvm_type('i8', lanes)} {value}, {zero}", "flag")
        if e.is_float and e.bits < 32:
            return self.convert_call(e.name, "f32", lanes, value)
        if e.kind == "int" and e.bits < 8:
            return self.extended(e.bits, lanes, value)
        if e.kind == "uint" and e.bits < 8:
            return self._low_bits(e.bits, lanes, value)
        return value

    def extended(self, bits: int, lanes: int, value: str) -> str:
        """The low bits of an ``i8``, sign-extended."""
        kind, shift = llvm_type("i8", lanes), splat_text("i8", str(8 - bits), lanes)
        return self.b.op(f"ashr {kind} {self.b.op(f'shl {kind} {value}, {shift}')}, {shift}")

    def _low_bits(self, bits: int, lanes: int, value: str) -> str:
        mask = splat_text("i8", str((1 << bits) - 1), lanes)
        return self.b.op(f"and {llvm_type('i8', lanes)} {value}, {mask}")

    def to_memory(self, e: ElementType, lanes: int, value: str) -> str:
        """The memory form of an element (or part) in registers."""
        if e.kind == "bool":
            return self.b.op(f"zext {llvm_type('i1', lanes)} {value} to {llvm_type('i8', lanes)}")
        if e.is_float and e.bits < 32:
            return self.convert_call("f32", e.name, lanes, value)
        if e.kind == "int" and e.bits < 8:
            return self._low_bits(e.bits, lanes, value)
        return value


def math_functions(needed: dict[Key, None]) -> tuple[list[str], set[str]]:
    """Texts and declarations of the vector functions a kernel needs."""
    functions = closure(needed)
    declared = {line for function in functions for line in function.declarations}
    return [function.text for function in functions], declared


__all__ = [
    "Held",
    "Registers",
    "computed",
    "define",
    "float_text",
    "math_functions",
    "memory_kind",
    "memory_type",
    "part_bytes",
    "register_kind",
    "register_type",
    "splat_text",
]
