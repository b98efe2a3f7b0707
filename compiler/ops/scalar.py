"""Scalar emission: how an elementwise operation becomes target-neutral arithmetic.

A rule is given a builder, the element types and the operand values, and returns the result value. Values are opaque:
the CPU backend's are LLVM vectors of any width, another backend's may be something else. The builder takes care of how
narrow floats are held (bf16, f16 and f8 arithmetic is done in f32 and rounded after each operation) and of complex
numbers being pairs; rules only say what to compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from compiler.ir.program import Attributes
from compiler.ir.types import ElementType

ScalarValue = Any
"""A value of the builder's own making."""


@dataclass(frozen=True, slots=True)
class ScalarSite:
    """One elementwise use: the operands' element types, the result's, and the attributes."""

    operands: Sequence[ElementType]
    result: ElementType
    attributes: Attributes


class ScalarBuilder(Protocol):
    """Arithmetic on element values. `e` is always the element type of the operands.

    Float methods follow IEEE 754 without contraction or flushing. Integer ones wrap. Complex values are taken apart
    with `real`/`imag` and put together with `complex`; no other method takes them, save `select` and `constant`.
    """

    def constant(self, e: ElementType, value: complex) -> ScalarValue:
        """A constant of the type (also complex, boolean)."""
        ...

    def float_op(self, e: ElementType, op: str, *x: ScalarValue) -> ScalarValue:
        """One of `add sub mul div neg abs sqrt floor ceil trunc roundeven round copysign`.

        `round` rounds halves away from zero.
        """
        ...

    def math(self, e: ElementType, op: str, *x: ScalarValue) -> ScalarValue:
        """A transcendental function by its StableHLO or CHLO name (`exponential`, `power`, `erf_inv`, …), or `remainder`."""
        ...

    def int_op(self, e: ElementType, op: str, *x: ScalarValue) -> ScalarValue:
        """One of `add sub mul and or xor shl lshr ashr smin smax umin umax sdiv udiv srem urem ctpop ctlz`.

        Also takes booleans for `and or xor`. Shift amounts must be below the width, divisors not zero and not
        overflowing: rules guard them with `select`.
        """
        ...

    def compare(self, e: ElementType, predicate: str, x: ScalarValue, y: ScalarValue) -> ScalarValue:
        """A boolean. Floats: `oeq une olt ole ogt oge uno ord`; integers and booleans: `eq ne slt sle sgt sge ult ule ugt uge`."""
        ...

    def select(self, e: ElementType, condition: ScalarValue, x: ScalarValue, y: ScalarValue) -> ScalarValue:
        """`x` where the boolean holds, else `y`; any element type."""
        ...

    def convert(self, source: ElementType, target: ElementType, x: ScalarValue) -> ScalarValue:
        """StableHLO's `convert` between any two element types (floats to integers saturate, NaN gives 0)."""
        ...

    def bitcast(self, source: ElementType, target: ElementType, x: ScalarValue) -> ScalarValue:
        """Reinterprets the bits of a type of the same width."""
        ...

    def real(self, e: ElementType, x: ScalarValue) -> ScalarValue:
        """The real part (of type `e.real`)."""
        ...

    def imag(self, e: ElementType, x: ScalarValue) -> ScalarValue:
        """The imaginary part (of type `e.real`)."""
        ...

    def complex(self, e: ElementType, re: ScalarValue, im: ScalarValue) -> ScalarValue:
        """A complex value of type `e` from its parts."""
        ...

    def round_to(self, e: ElementType, x: ScalarValue, exponent_bits: int, mantissa_bits: int) -> ScalarValue:
        """`reduce_precision`."""
        ...


ScalarRule = Callable[[ScalarBuilder, ScalarSite, Sequence[ScalarValue]], ScalarValue]
