"""Sine, cosine and tangent.

The argument is reduced to ``r`` in [-pi/4, pi/4] and a quadrant. f32 reduces in f64, which leaves ``r`` right to
more than f32's precision up to 2^44; f64 reduces with three parts of pi/2 and keeps ``r`` as a sum of two
numbers up to 2^30. A vector with a larger lane takes the C library's function for those lanes. Coefficients:
Remez exchange, see `exponentials`.
"""

from __future__ import annotations

import math

from compiler.backends.cpu.vector_math.lanes import Code, Lanes

_SIN_F32 = (-0.16666655242443085, 0.008332188241183758, -0.00019518072076607496)
_COS_F32 = (0.04166664555668831, -0.0013887309469282627, 2.4432338250335306e-05)
_SIN_SHORT = (-0.16666666640588232, 0.00833332928053306, -0.00019839304418165906, 2.7180464926207584e-06)
_COS_SHORT = (0.041666666619106826, -0.0013888883467260962, 2.479945155150183e-05, -2.720504639378084e-07)
_SIN_F64 = (
    -0.1666666666666663,
    0.008333333333322005,
    -0.00019841269829495652,
    2.755731358766045e-06,
    -2.505074231292331e-08,
    1.5895904970586424e-10,
)
_COS_F64 = (
    0.041666666666666595,
    -0.0013888888888872895,
    2.4801587288748156e-05,
    -2.755731414861744e-07,
    2.087569657207771e-09,
    -1.13583104763117e-11,
)
# pi/2 as a sum of three doubles.
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
_MAGIC = 1.5 * 2.0**52
_INFINITY = float("inf")


def _sine_near_zero(code: Code, r: Lanes, coefficients: tuple[float, ...]) -> Lanes:
    # The added zero makes the factor +0 where r is -0, so that the result is -0.
    square = r * r
    return code.fma(r, code.fma(square, code.polynomial(square, coefficients), 0.0), r)


def _cosine_near_zero(code: Code, r: Lanes, coefficients: tuple[float, ...]) -> Lanes:
    # What rounding took from 1 - r^2/2 is put back.
    square = r * r
    half = square * 0.5
    lead = 1.0 - half
    tail = code.fma(square * square, code.polynomial(square, coefficients), (1.0 - lead) - half)
    return lead + tail


def _reduce(code: Code, x: Lanes) -> tuple[Lanes, Lanes]:
    """``r`` of an f64 to about 2^-64 and the quadrant (i64, of which the low two bits count)."""
    shifted = code.fma(x, 2 / math.pi, _MAGIC)
    count = shifted - _MAGIC
    rest = code.fma(count, -_HALF_PI[1], code.fma(count, -_HALF_PI[0], x))
    return rest, shifted.bits()


def _reduce_exactly(code: Code, x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """``r`` of an f64 as the sum of two numbers, and the quadrant."""
    shifted = code.fma(x, 2 / math.pi, _MAGIC)
    count = shifted - _MAGIC
    first = code.fma(count, -_HALF_PI[0], x)
    product = count * _HALF_PI[1]
    second = first - product
    back = second - first
    error = (first - (second - back)) - (product + back)
    low = error - code.fma(count, _HALF_PI[1], -product) - count * _HALF_PI[2]
    rest = second + low
    return rest, (second - rest) + low, shifted.bits()


def _sine_exact(code: Code, r: Lanes, low: Lanes) -> Lanes:
    square = r * r
    factor = square * code.polynomial(square, _SIN_F64)
    return r + code.fma(r, factor, low * code.fma(square, -0.5, 1.0))


def _cosine_exact(code: Code, r: Lanes, low: Lanes) -> Lanes:
    square = r * r
    half = square * 0.5
    lead = 1.0 - half
    tail = code.fma(square * square, code.polynomial(square, _COS_F64), -(r * low))
    return lead + (((1.0 - lead) - half) + tail)


def _by_quadrant(code: Code, quadrant: Lanes, sine: Lanes, cosine: Lanes) -> Lanes:
    """What the sine is in a quadrant, given sine and cosine of the reduced argument."""
    width = int(quadrant.kind[1:])
    chosen = code.select((quadrant & 1).is_("eq", 0), sine, cosine)
    return (chosen.bits() ^ ((quadrant & 2) << (width - 2))).as_float(sine.kind)


def _sine_or_cosine(code: Code, x: Lanes, shift: int) -> Lanes:
    """The sine of ``x + shift * pi/2``."""
    name = "libm.cos" if shift else "libm.sin"
    if x.kind == "f32":
        wide = x.to_float("f64")
        rest, quadrant = _reduce(code, wide)
        r = rest.to_float("f32")
        sine, cosine = _sine_near_zero(code, r, _SIN_F32), _cosine_near_zero(code, r, _COS_F32)
        usual = _by_quadrant(code, quadrant.to_int("i32") + shift, sine, cosine)
        return code.rarely(
            _too_large(x, 2.0**44), usual, lambda: code.call(name, "f64", wide).to_float("f32")
        )
    r, low, quadrant = _reduce_exactly(code, x)
    sine, cosine = _sine_exact(code, r, low), _cosine_exact(code, r, low)
    usual = _by_quadrant(code, quadrant + shift, sine, cosine)
    if not shift:
        usual = code.select(x.abs().is_("olt", 2.0**-27), x, usual)
    return code.rarely(_too_large(x, 2.0**30), usual, lambda: code.call(name, "f64", x))


def _too_large(x: Lanes, limit: float) -> Lanes:
    """Finite lanes that the reduction cannot do; of infinities it makes NaN by itself."""
    size = x.abs()
    return size.is_("oge", limit) & size.is_("olt", _INFINITY)


def sine(code: Code, x: Lanes) -> Lanes:
    """The sine."""
    return _sine_or_cosine(code, x, 0)


def cosine(code: Code, x: Lanes) -> Lanes:
    """The cosine."""
    return _sine_or_cosine(code, x, 1)


def tan_wide(code: Code, x: Lanes) -> Lanes:
    """The tangent in f64, good for a result rounded to f32, of arguments that are f32 values."""
    r, quadrant = _reduce(code, x)
    sine, cosine = _sine_near_zero(code, r, _SIN_SHORT), _cosine_near_zero(code, r, _COS_SHORT)
    odd = (quadrant & 1).is_("ne", 0)
    usual = code.select(odd, -cosine, sine) / code.select(odd, sine, cosine)
    return code.rarely(_too_large(x, 2.0**44), usual, lambda: code.call("libm.tan", "f64", x))
