"""Matrices in double precision for the linear algebra kernels: elements loaded widened, working copies in planes.

A working matrix lies in scratch memory row by row, its real and its imaginary parts each in a plane of their own, so that
vectors run along rows for real and complex elements alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from compiler.backends.cpu.emit.registers import Registers, memory_kind, part_bytes
from compiler.backends.cpu.text_builder import TextBuilder, Value, llvm_type
from compiler.ir.types import ElementType

Parts: TypeAlias = tuple[str, ...]
"""A number in double precision: its real part, and the imaginary one where elements are complex."""


@dataclass(frozen=True, slots=True)
class Elements:
    """Elements of a tensor in memory, seen as doubles."""

    registers: Registers
    element: ElementType

    @property
    def b(self) -> TextBuilder:
        """The function under construction."""
        return self.registers.b

    def _address(self, base: str, place: Value, part: int) -> tuple[str, str]:
        kind = llvm_type(memory_kind(self.element))
        parts = 2 if self.element.is_complex else 1
        return kind, self.b.gep(base, self.b.add(self.b.mul(place, parts), part), kind)

    def load(self, base: str, place: Value, *, conjugate: bool = False) -> Parts:
        """Element number `place`, widened."""
        found = []
        for part in range(2 if self.element.is_complex else 1):
            kind, address = self._address(base, place, part)
            value = self.b.load(kind, address, part_bytes(self.element))
            if not self.element.is_complex:
                value = self.registers.from_memory(self.element, 1, value)
            if self.element.real.bits < 64:
                value = self.b.op(f"fpext float {value} to double")
            found.append(self.b.op(f"fneg double {value}") if conjugate and part else value)
        return tuple(found)

    def store(self, base: str, place: Value, value: Parts, *, conjugate: bool = False) -> None:
        """Rounds a number to the element type, once, and stores it."""
        real = self.element.real
        for part, wide in enumerate(value):
            if conjugate and part:
                wide = self.b.op(f"fneg double {wide}")
            if real.bits < 64:
                wide = self.registers.convert_call("f64", real.name, 1, wide)
            kind, address = self._address(base, place, part)
            self.b.store(kind, wide, address, part_bytes(self.element))


@dataclass(frozen=True, slots=True)
class WideMatrix:
    """A working matrix: `stride` doubles a row, `rows` rows a plane."""

    b: TextBuilder
    base: str
    rows: int
    stride: int
    is_complex: bool

    @staticmethod
    def bytes_of(rows: int, stride: int, is_complex: bool) -> int:
        """The scratch memory it takes."""
        return 8 * rows * stride * (2 if is_complex else 1)

    def row(self, number: Value) -> list[str]:
        """The address of a row in each plane."""
        start = self.b.gep(self.base, self.b.mul(number, self.stride), "double")
        if not self.is_complex:
            return [start]
        return [start, self.b.gep(start, self.rows * self.stride, "double")]

    def load(self, row: Sequence[str], column: Value, lanes: int = 1) -> Parts:
        """Elements of a row."""
        kind = llvm_type("f64", lanes)
        return tuple(self.b.load(kind, self.b.gep(plane, column, "double"), 8) for plane in row)

    def store(self, row: Sequence[str], column: Value, value: Parts, lanes: int = 1) -> None:
        """Stores elements of a row."""
        kind = llvm_type("f64", lanes)
        for plane, part in zip(row, value, strict=True):
            self.b.store(kind, part, self.b.gep(plane, column, "double"), 8)


@dataclass(frozen=True, slots=True)
class WideArithmetic:
    """Sums of products in double precision, at any number of lanes."""

    b: TextBuilder
    has_fma: bool

    def op(self, name: str, left: str, right: str, lanes: int = 1) -> str:
        """One instruction."""
        return self.b.op(f"{name} {llvm_type('f64', lanes)} {left}, {right}")

    def negated(self, value: str, lanes: int) -> str:
        """The number with the other sign."""
        return self.b.op(f"fneg {llvm_type('f64', lanes)} {value}")

    def fused(self, x: str, y: str, total: str, lanes: int) -> str:
        """``x y + total``."""
        kind = llvm_type("f64", lanes)
        if not self.has_fma:
            return self.op("fadd", self.op("fmul", x, y, lanes), total, lanes)
        name = f"llvm.fma.{'f64' if lanes == 1 else f'v{lanes}f64'}"
        return self.b.intrinsic(kind, name, (kind, x), (kind, y), (kind, total))

    def add_product(self, total: Parts, x: Parts, y: Parts, lanes: int, *, conjugate: bool = False) -> Parts:
        """``total + x y``, or ``total + x conj(y)``."""
        real = self.fused(x[0], y[0], total[0], lanes)
        if len(x) == 1:
            return (real,)
        imag = self.fused(x[1], y[0], total[1], lanes)
        minus_x = self.negated(x[0] if conjugate else x[1], lanes)
        if conjugate:
            return self.fused(x[1], y[1], real, lanes), self.fused(minus_x, y[1], imag, lanes)
        return self.fused(minus_x, y[1], real, lanes), self.fused(x[0], y[1], imag, lanes)

    def minus(self, x: Parts, y: Parts, lanes: int = 1) -> Parts:
        """``x - y``."""
        return tuple(self.op("fsub", left, right, lanes) for left, right in zip(x, y, strict=True))

    def summed(self, value: Parts, lanes: int) -> Parts:
        """The sum over the lanes, in any order."""
        if lanes == 1:
            return value
        kind, name = llvm_type("f64", lanes), f"llvm.vector.reduce.fadd.v{lanes}f64"
        self.b.declare(f"declare double @{name}(double, {kind})")
        return tuple(
            self.b.op(f"call reassoc double @{name}(double -0.0, {kind} {part})", "sum") for part in value
        )


__all__ = ["Elements", "Parts", "WideArithmetic", "WideMatrix"]
