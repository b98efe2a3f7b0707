"""The CPU's arithmetic on element values: what the operations' scalar rules are given.

Works at any number of lanes on values in register form. Floats narrower than f32 are computed in f32 and rounded after
each operation; sub-byte integers are computed in 8 bits and wrapped after each. No fast-math flag is ever set, and
nothing used here traps or yields poison for values that rules may pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from compiler.backends.cpu.emit.registers import (
    Held,
    Registers,
    computed,
    float_text,
    register_kind,
    register_type,
    splat_text,
)
from compiler.backends.cpu.emit.rounding import round_to
from compiler.backends.cpu.text_builder import TextBuilder, llvm_type
from compiler.backends.cpu.vector_math import SUPPORTED
from compiler.ir.types import I8, UI8, ElementType

_FLOAT_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_FLOAT_INTRINSICS = {
    "abs": "fabs",
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "roundeven": "roundeven",
    "round": "round",
    "copysign": "copysign",
}
_ROUNDING = frozenset(("add", "sub", "mul", "div", "sqrt"))
"""Operations whose f32 result may not be a value of the narrower type."""
_INT_INSTRUCTIONS = frozenset(
    ("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "sdiv", "udiv", "srem", "urem")
)
_INT_INTRINSICS = frozenset(("smin", "smax", "umin", "umax"))
_SIGNED = frozenset(("ashr", "smin", "smax", "sdiv", "srem"))
_BITWISE = frozenset(("lshr", "umin", "umax", "udiv", "urem", "ctpop", "ctlz"))
"""Operations on the bits of a sub-byte integer, not on the extended value."""


@dataclass
class CpuScalarBuilder:
    """Implements `compiler.ops.scalar.ScalarBuilder` at `lanes` lanes."""

    registers: Registers
    lanes: int

    @property
    def b(self) -> TextBuilder:
        """The function under construction."""
        return self.registers.b

    def _kind(self, e: ElementType) -> str:
        return register_type(e, self.lanes)

    def _suffix(self, e: ElementType) -> str:
        kind = register_kind(e)
        return kind if self.lanes == 1 else f"v{self.lanes}{kind}"

    def _integer(self, kind: str, value: int) -> str:
        return splat_text(kind, str(value), self.lanes)

    def constant(self, e: ElementType, value: complex) -> Held:
        """A constant of the type."""
        kind = register_kind(e)
        if e.is_complex:
            number = complex(value)
            return (
                splat_text(kind, float_text(kind, number.real), self.lanes),
                splat_text(kind, float_text(kind, number.imag), self.lanes),
            )
        if isinstance(value, complex):
            value = value.real
        if e.kind == "bool":
            return splat_text("i1", "true" if value else "false", self.lanes)
        if e.is_integer:
            number_of_bits = int(kind[1:])
            wrapped = int(value) & ((1 << e.bits) - 1)
            if e.kind == "int" and wrapped >> (e.bits - 1):
                wrapped -= 1 << e.bits
            return self._integer(kind, wrapped if e.bits < number_of_bits else wrapped & ((1 << e.bits) - 1))
        number = float(value)
        if e.bits < 64 and not math.isinf(number):
            # (Infinity stays what it is, for comparisons with a type that has none.)
            number = float(e.dtype.type(number))
        return splat_text(kind, float_text(kind, number), self.lanes)

    def float_op(self, e: ElementType, op: str, *x: Held) -> Held:
        """See the protocol."""
        kind = self._kind(e)
        if op in _FLOAT_BINARY:
            result = self.b.op(f"{_FLOAT_BINARY[op]} {kind} {x[0]}, {x[1]}")
        elif op == "neg":
            result = self.b.op(f"fneg {kind} {x[0]}")
        else:
            name = f"llvm.{_FLOAT_INTRINSICS[op]}.{self._suffix(e)}"
            result = self.b.intrinsic(kind, name, *((kind, str(value)) for value in x))
        return self._rounded(e, result) if op in _ROUNDING else result

    def _rounded(self, e: ElementType, value: str) -> str:
        """The nearest value of a narrow type, still in f32."""
        if e.bits >= 32:
            return value
        bits = self.registers.convert_call("f32", e.name, self.lanes, value)
        return self.registers.convert_call(e.name, "f32", self.lanes, bits)

    def math(self, e: ElementType, op: str, *x: Held) -> Held:
        """See the protocol."""
        wide = computed(e)
        if (op, wide.name) not in SUPPORTED:
            raise KeyError(f"no vector function for {op} of {wide.name}")
        kind = self._kind(e)
        result = self.registers.call(op, wide.name, self.lanes, kind, *(f"{kind} {value}" for value in x))
        return self._rounded(e, result)

    def int_op(self, e: ElementType, op: str, *x: Held) -> Held:
        """See the protocol."""
        kind = self._kind(e)
        narrow = e.is_integer and e.bits < 8
        values = [self._prepared(e, op, str(value)) if narrow else str(value) for value in x]
        if op in _INT_INSTRUCTIONS:
            result = self.b.op(f"{op} {kind} {values[0]}, {values[1]}")
        elif op in _INT_INTRINSICS:
            name = f"llvm.{op}.{self._suffix(e)}"
            result = self.b.intrinsic(kind, name, *((kind, value) for value in values))
        elif op == "ctpop":
            result = self.b.intrinsic(kind, f"llvm.ctpop.{self._suffix(e)}", (kind, values[0]))
        elif op == "ctlz":
            name = f"llvm.ctlz.{self._suffix(e)}"
            self.b.declare(f"declare {kind} @{name}({kind}, i1)")
            result = self.b.call(kind, name, f"{kind} {values[0]}", "i1 false")
            if narrow:
                result = self.b.op(f"sub {kind} {result}, {self._integer('i8', 8 - e.bits)}")
        else:
            raise KeyError(f"no integer operation {op}")
        return self._wrapped(e, result) if narrow else result

    def _prepared(self, e: ElementType, op: str, value: str) -> str:
        """A sub-byte integer as an operation in 8 bits needs it: without, or with, its sign's extension."""
        if op in _BITWISE:
            return self._bits(e, value)
        return (
            self.registers.extended(e.bits, self.lanes, value)
            if op in _SIGNED and e.kind == "uint"
            else value
        )

    def _bits(self, e: ElementType, value: str) -> str:
        """The bits of a sub-byte integer, without its sign's extension."""
        if e.kind == "uint":
            return value
        return self.b.op(f"and {self._kind(e)} {value}, {self._integer('i8', (1 << e.bits) - 1)}")

    def _wrapped(self, e: ElementType, value: str) -> str:
        """A value of 8 bits brought into the range of a sub-byte integer."""
        kind = self._kind(e)
        if e.kind == "uint":
            return self.b.op(f"and {kind} {value}, {self._integer('i8', (1 << e.bits) - 1)}")
        return self.registers.extended(e.bits, self.lanes, value)

    def compare(self, e: ElementType, predicate: str, x: Held, y: Held) -> Held:
        """See the protocol."""
        op = "fcmp" if e.is_float else "icmp"
        return self.b.op(f"{op} {predicate} {self._kind(e)} {x}, {y}", "flag")

    def select(self, e: ElementType, condition: Held, x: Held, y: Held) -> Held:
        """See the protocol."""
        if isinstance(x, tuple) and isinstance(y, tuple):
            return (self._select(e, condition, x[0], y[0]), self._select(e, condition, x[1], y[1]))
        return self._select(e, condition, str(x), str(y))

    def _select(self, e: ElementType, condition: Held, x: str, y: str) -> str:
        kind = self._kind(e)
        return self.b.op(f"select {llvm_type('i1', self.lanes)} {condition}, {kind} {x}, {kind} {y}")

    def convert(self, source: ElementType, target: ElementType, x: Held) -> Held:
        """See the protocol."""
        if source is target:
            return x
        if source.is_complex:
            assert isinstance(x, tuple)
            if not target.is_complex:
                return self.convert(source.real, target, x[0])
            return (
                str(self.convert(source.real, target.real, x[0])),
                str(self.convert(source.real, target.real, x[1])),
            )
        if target.is_complex:
            return (str(self.convert(source, target.real, x)), str(self.constant(target.real, 0.0)))
        return self._convert_real(source, target, str(x))

    def _convert_real(self, source: ElementType, target: ElementType, x: str) -> str:
        if source.is_float or target.is_float:
            # Narrow floats are f32 in registers; their functions take bits.
            start = computed(source).name if source.is_float else source.name
            if target.is_float and target.bits < 32:
                bits = self.registers.convert_call(start, target.name, self.lanes, x)
                return self.registers.convert_call(target.name, "f32", self.lanes, bits)
            return self.registers.convert_call(start, target.name, self.lanes, x)
        kind, wanted = self._kind(source), self._kind(target)
        if target.kind == "bool":
            return self.b.op(f"icmp ne {kind} {x}, {self._integer(register_kind(source), 0)}", "flag")
        here, there = int(register_kind(source)[1:]), int(register_kind(target)[1:])
        if there > here:
            x = self.b.op(f"{'sext' if source.kind == 'int' else 'zext'} {kind} {x} to {wanted}")
        elif there < here:
            x = self.b.op(f"trunc {kind} {x} to {wanted}")
        return (
            self._wrapped(target, x)
            if (target.bits < 8 and target.bits != source.bits) or _resigned(source, target)
            else x
        )

    def bitcast(self, source: ElementType, target: ElementType, x: Held) -> Held:
        """See the protocol."""
        if source is target or source.is_complex:
            return x
        return self._from_bits(target, self._to_bits(source, str(x)))

    def _to_bits(self, e: ElementType, x: str) -> str:
        kind = self._kind(e)
        if not e.is_float:
            return x
        if e.bits < 32:
            return self.registers.convert_call("f32", e.name, self.lanes, x)
        return self.b.op(f"bitcast {kind} {x} to {llvm_type(f'i{e.bits}', self.lanes)}")

    def _from_bits(self, e: ElementType, bits: str) -> str:
        if e.is_integer and e.bits < 8:
            return self._wrapped(e, bits)
        if not e.is_float:
            return bits
        if e.bits < 32:
            if e.bits < 8:
                mask = self._integer("i8", (1 << e.bits) - 1)
                bits = self.b.op(f"and {llvm_type('i8', self.lanes)} {bits}, {mask}")
            return self.registers.convert_call(e.name, "f32", self.lanes, bits)
        return self.b.op(f"bitcast {llvm_type(f'i{e.bits}', self.lanes)} {bits} to {self._kind(e)}")

    def real(self, e: ElementType, x: Held) -> Held:
        """See the protocol."""
        return x[0] if isinstance(x, tuple) else x

    def imag(self, e: ElementType, x: Held) -> Held:
        """See the protocol."""
        return x[1] if isinstance(x, tuple) else self.constant(e, 0.0)

    def complex(self, e: ElementType, re: Held, im: Held) -> Held:
        """See the protocol."""
        return (str(re), str(im))

    def round_to(self, e: ElementType, x: Held, exponent_bits: int, mantissa_bits: int) -> Held:
        """See the protocol."""
        return round_to(self, e, str(x), exponent_bits, mantissa_bits)


def _resigned(source: ElementType, target: ElementType) -> bool:
    """Whether a sub-byte integer keeps its width but changes how it is extended."""
    return target.bits < 8 and target.kind != source.kind


__all__ = ["I8", "UI8", "CpuScalarBuilder"]
