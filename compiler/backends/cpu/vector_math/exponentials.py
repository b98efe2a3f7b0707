"""Functions built on the exponential: exp, expm1, logistic, tanh, sinh, cosh.

All start from ``x = n ln 2 + r`` with ``|r| <= ln(2)/2`` and a polynomial for ``(e^r - 1 - r) / r^2``; `n` comes
out of the low bits of a sum with 1.5 * 2^23 (2^52), which needs no float-to-integer conversion and so has
no undefined case. Coefficients were fitted by Remez exchange in 40-digit arithmetic against the relative
error of the function, then (f32) rounded from the lowest up, refitting the rest after each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from compiler.backends.cpu.vector_math.lanes import Code, Lanes, float_bits

_EXP_F32 = (
    0.4999999403953552,
    0.166665181517601,
    0.04166826233267784,
    0.008368977345526218,
    0.0013821321772411466,
)
_EXPM1_F32 = (
    0.5,
    0.1666666567325592,
    0.04166647791862488,
    0.008333568461239338,
    0.001393372775055468,
    0.00019741858704946935,
)
_EXP_F64 = (
    0.5,
    0.16666666666666677,
    0.041666666666666505,
    0.008333333333321513,
    0.0013888888888963506,
    0.00019841269886477662,
    2.480158717103766e-05,
    2.7557243803728487e-06,
    2.755740329611245e-07,
    2.510919530088071e-08,
    2.0875319875303726e-09,
)
_EXP_SHORT = (
    0.5000000068433118,
    0.1666666585988468,
    0.041666292174186915,
    0.008333498308481714,
    0.001394486848554595,
    0.00019790153252800894,
)
_EXP2_F32 = (
    0.6931471824645996,
    0.24022644758224487,
    0.055503588169813156,
    0.00961883831769228,
    0.0013391353422775865,
    0.00015239657659549266,
)
# log2(e) as a sum of two f32 numbers.
_LOG2_E = (1.4426950216293335, 1.925963033500011e-08)
_TANH_F32 = (
    -0.3333328366279602,
    0.1333148032426834,
    -0.05374246463179588,
    0.020647084340453148,
    -0.005713111720979214,
)
_SINH = (
    0.16666666666666669,
    0.00833333333333297,
    0.00019841269841531202,
    2.755731913037927e-06,
    2.5052126856094766e-08,
    1.605700052085293e-10,
    7.765897596002476e-13,
)
_TANH_F64 = (
    -0.3333333333333333,
    0.13333333333333164,
    -0.05396825396813279,
    0.021869488531783936,
    -0.008863235436753407,
    0.0035921267583637635,
    -0.0014558225022140837,
    0.0005899503112252693,
    -0.00023877466425868847,
    9.576022818253118e-05,
    -3.663956741408323e-05,
    1.1807127632102467e-05,
    -2.2767207191761808e-06,
)


@dataclass(frozen=True, slots=True)
class _Format:
    """What the reduction needs to know of a float type."""

    magic: float
    ln2_high: float
    ln2_low: float
    bias: int
    mantissa: int
    top: float
    """Above it the exponential is infinite; the scaling below gives infinity by itself up to here."""
    bottom: float
    """Below it the exponential rounds to zero."""


_FORMATS = {
    # ln2_high has few enough bits for n * ln2_high to be exact.
    "f32": _Format(1.5 * 2.0**23, 0.693359375, -2.12194440054690583e-4, 127, 23, 89.0, -104.0),
    "f64": _Format(
        1.5 * 2.0**52,
        float.fromhex("0x1.62e42fee00000p-1"),
        1.90821492927058770002e-10,
        1023,
        52,
        710.0,
        -746.0,
    ),
}


def _reduce(code: Code, x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """``n`` (an integer as wide as `x`), ``r`` and what rounding took from ``r``."""
    form = _FORMATS[x.kind]
    shifted = code.fma(x, math.log2(math.e), form.magic)
    count = shifted - form.magic
    exact = code.fma(count, -form.ln2_high, x)
    rest = code.fma(count, -form.ln2_low, exact)
    lost = code.fma(count, -form.ln2_low, exact - rest)
    return shifted.bits() - float_bits(x.kind, form.magic), rest, lost


def power_of_two(exponent: Lanes, kind: str) -> Lanes:
    """``2 ** exponent`` for exponents of normal numbers."""
    form = _FORMATS[kind]
    return ((exponent + form.bias) << form.mantissa).as_float(kind)


def scale_by_power_of_two(value: Lanes, exponent: Lanes) -> Lanes:
    """``value * 2 ** exponent`` in two steps, of which only the second can round, overflow or underflow."""
    half = exponent.arithmetic_shift(1)
    return value * power_of_two(half, value.kind) * power_of_two(exponent - half, value.kind)


def _exponential_near_zero(code: Code, r: Lanes, coefficients: tuple[float, ...]) -> Lanes:
    return code.fma(r * r, code.polynomial(r, coefficients), r) + 1.0


def exponential(code: Code, x: Lanes) -> Lanes:
    """``e ** x``."""
    form = _FORMATS[x.kind]
    exponent, rest, _ = _reduce(code, x.at_most(form.top).at_least(form.bottom))
    near = _exponential_near_zero(code, rest, _EXP_F32 if x.kind == "f32" else _EXP_F64)
    return scale_by_power_of_two(near, exponent)


def exponential_in_range(code: Code, x: Lanes, short: bool = False) -> Lanes:
    """``e ** x`` for `x` whose result is normal; `short` gives 34 correct bits of an f64."""
    coefficients = _EXP_F32 if x.kind == "f32" else _EXP_SHORT if short else _EXP_F64
    exponent, rest, _ = _reduce(code, x)
    return _exponential_near_zero(code, rest, coefficients) * power_of_two(exponent, x.kind)


def power_of_two_in_range(code: Code, x: Lanes, factor: float = 1.0) -> Lanes:
    """``2 ** (x * factor)`` of f32 for results that are normal, right to about 2^-23; of NaN it makes anything."""
    magic = _FORMATS["f32"].magic
    shifted = x + magic if factor == 1.0 else code.fma(x, factor, magic)
    count = shifted - magic
    rest = x - count if factor == 1.0 else code.fma(x, factor, -count)
    near = code.fma(rest, code.polynomial(rest, _EXP2_F32), 1.0)
    # The shift drops the magic number's own bits, which lie above the exponent's.
    return (near.bits() + (shifted.bits() << _FORMATS["f32"].mantissa)).as_float("f32")


def exponential_in_parts(code: Code, x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """``e ** x`` as ``(near + lost) * 2 ** exponent``, for `x` that is not far beyond the range."""
    if x.kind == "f32":
        shifted = code.fma(x, _LOG2_E[0], _FORMATS["f32"].magic)
        count = shifted - _FORMATS["f32"].magic
        rest = code.fma(x, _LOG2_E[1], code.fma(x, _LOG2_E[0], -count))
        polynomial = code.polynomial(rest, _EXP2_F32)
        near = code.fma(rest, polynomial, 1.0)
        exponent = shifted.bits() - float_bits("f32", _FORMATS["f32"].magic)
        return near, code.fma(rest, polynomial, 1.0 - near), exponent
    exponent, rest, lost = _reduce(code, x)
    tail = code.fma(rest * rest, code.polynomial(rest, _EXP_F64), lost)
    above_one = rest + tail
    near = above_one + 1.0
    return near, ((1.0 - near) + above_one) + ((rest - above_one) + tail), exponent


def exponential_minus_one(code: Code, x: Lanes) -> Lanes:
    """``e ** x - 1``: ``2^n (e^r - 1) + (2^n - 1)``, the sum's rounding error carried along."""
    form = _FORMATS[x.kind]
    low = -18.0 if x.kind == "f32" else -38.0
    exponent, rest, lost = _reduce(code, x.at_most(form.top).at_least(low))
    tail = code.fma(rest * rest, code.polynomial(rest, _EXPM1_F32 if x.kind == "f32" else _EXP_F64), lost)
    # Half of 2^n, so that n = bias + 1 has a scale; the doubling at the end is exact or overflows rightly.
    scale = power_of_two(exponent - 1, x.kind)
    offset, scaled = scale - 0.5, scale * rest
    total = offset + scaled
    back = total - offset
    error = (offset - (total - back)) + (scaled - back)
    result = (total + code.fma(scale, tail, error)) * 2.0
    # Keeps -0 and subnormals, which the halving above would round.
    return code.select(x.abs().is_("olt", 2.0**-60), x, result)


def logistic(code: Code, x: Lanes) -> Lanes:
    """``1 / (1 + e ** -x)``, by ``e ** -|x|`` so that neither side overflows."""
    form = _FORMATS[x.kind]
    near, lost, exponent = exponential_in_parts(code, (-x.abs()).at_least(form.bottom))
    # The power of two may be subnormal, and the product is rounded once all the same.
    half = exponent.arithmetic_shift(1)
    scale = power_of_two(half, x.kind) * power_of_two(exponent - half, x.kind)
    small = near * scale
    negative = x.is_("olt", 0.0)
    divisor = small + 1.0
    quotient = code.select(negative, small, 1.0) / divisor
    # On the negative side each of the two sums and the division may cost an ULP: what the sums lost is put back.
    lost_above = lost * scale
    lost_below = (1.0 - divisor) + small
    complement = 1.0 - quotient
    change = code.fma(-quotient, lost_below, lost_above * complement)
    return code.select(negative, code.fma(change, complement, quotient), quotient)


def tanh(code: Code, x: Lanes) -> Lanes:
    """A polynomial near zero, ``1 - 2 / (e^2|x| + 1)`` elsewhere."""
    size = x.abs()
    squared = x * x
    inner = code.fma(
        squared * size, code.polynomial(squared, _TANH_F32 if x.kind == "f32" else _TANH_F64), size
    )
    # What is subtracted from 1 may have an error of its own ULP, which is at most half of the result's.
    if x.kind == "f32":
        grown = power_of_two_in_range(code, size.at_most(10.0), 2 * math.log2(math.e))
    else:
        grown = exponential_in_range(code, (size + size).at_most(40.0))
    outer = 1.0 - 2.0 / (grown + 1.0)
    return code.select(size.is_("ult", 0.625), inner, outer).copy_sign(x)


def _grown_and_shrunk(code: Code, size: Lanes) -> tuple[Lanes, Lanes, Lanes, Lanes]:
    """``near``, ``lost`` and ``shrunk`` such that ``e^±size = (near + lost or shrunk) * 2 ** exponent``, with the exponent."""
    near, lost, exponent = exponential_in_parts(code, size.at_most(720.0))
    # Beyond 2^200 the other exponential no longer matters, and its scale must stay a normal number.
    limited = code.select(exponent.is_("sgt", 200), 200, exponent)
    return near, lost, power_of_two(-(limited + limited), "f64") / near, exponent


def sinh_of_f64(code: Code, x: Lanes) -> Lanes:
    """``(e^x - e^-x) / 2``; a polynomial up to 1, where the difference would cancel."""
    size = x.abs()
    square = size * size
    inner = code.fma(size * square, code.polynomial(square, _SINH), size)
    near, lost, shrunk, exponent = _grown_and_shrunk(code, size)
    outer = scale_by_power_of_two(near + (lost - shrunk), exponent - 1)
    return code.select(size.is_("olt", 1.0), inner, outer).copy_sign(x)


def cosh_of_f64(code: Code, x: Lanes) -> Lanes:
    """``(e^x + e^-x) / 2``."""
    near, lost, shrunk, exponent = _grown_and_shrunk(code, x.abs())
    return scale_by_power_of_two(near + (lost + shrunk), exponent - 1)


def sinh_wide(code: Code, x: Lanes) -> Lanes:
    """``sinh`` in f64, good for a result rounded to f32."""
    size = x.abs()
    grown = exponential_in_range(code, size.at_most(100.0))
    result = (grown - 1.0 / grown) * 0.5
    return code.select(size.is_("olt", 2.0**-13), size, result).copy_sign(x)


def cosh_wide(code: Code, x: Lanes) -> Lanes:
    """``cosh`` in f64, good for a result rounded to f32."""
    grown = exponential_in_range(code, x.abs().at_most(100.0))
    return (grown + 1.0 / grown) * 0.5
