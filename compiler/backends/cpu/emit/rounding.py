"""`reduce_precision` on registers: rounds the bits of a float as if through another format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.ir.types import F32, ElementType, element

if TYPE_CHECKING:
    from compiler.backends.cpu.emit.scalar_builder import CpuScalarBuilder

_FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}


def round_to(s: CpuScalarBuilder, e: ElementType, x: str, exponent_bits: int, mantissa_bits: int) -> str:
    """Nearest even; overflow gives infinity, underflow a signed zero (StableHLO specification, `reduce_precision`)."""
    if e.name not in _FORMATS:
        # The narrower formats are rounded in f32, which holds their values, and once more into their own.
        rounded = round_to(s, F32, x, exponent_bits, mantissa_bits)
        return str(s.convert(F32, e, rounded))
    exponents, mantissas = _FORMATS[e.name]
    bits = element(f"ui{e.bits}")

    def number(value: int) -> str:
        return str(s.constant(bits, value))

    def op(name: str, left: str, right: str) -> str:
        return str(s.int_op(bits, name, left, right))

    raw = str(s.bitcast(e, bits, x))
    sign_bit = 1 << (e.bits - 1)
    sign, size = op("and", raw, number(sign_bit)), op("and", raw, number(sign_bit - 1))
    infinity = ((1 << exponents) - 1) << mantissas
    is_nan = s.compare(bits, "ugt", size, number(infinity))
    if mantissa_bits < mantissas:
        drop = mantissas - mantissa_bits
        last = op("and", op("lshr", size, number(drop)), number(1))
        size = op("add", op("add", size, number((1 << (drop - 1)) - 1)), last)
        size = op("and", size, number(((1 << e.bits) - 1) & ~((1 << drop) - 1)))
    if exponent_bits < exponents:
        bias, reduced = (1 << (exponents - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = op("and", size, number(infinity))
        over = s.compare(bits, "ugt", exponent, number((bias + reduced) << mantissas))
        under = s.compare(bits, "ule", exponent, number((bias - reduced) << mantissas))
        size = str(s.select(bits, under, number(0), size))
        size = str(s.select(bits, over, number(infinity), size))
    found = str(s.bitcast(bits, e, op("or", sign, size)))
    quiet = x if mantissa_bits > 0 else str(s.constant(e, float("nan")))
    return str(s.select(e, is_nan, quiet, found))
