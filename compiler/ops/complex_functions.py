"""Functions over the complex plane, on NumPy arrays of any complex format.

Infinities and NaN follow C99's Annex G, branch cuts the signs of zeros. Where the textbook formula cancels (`log(1+z)`
near the unit circle, quotients of large numbers), the sums are compensated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def join(real: Array, imag: Array) -> Array:
    """A complex array from its parts, without the arithmetic that would turn infinities into NaN."""
    real, imag = np.broadcast_arrays(real, imag)
    whole = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    whole.real, whole.imag = real, imag
    return whole


def absolute(z: Array) -> Any:
    """The magnitude, without overflow on the way."""
    if z.dtype == np.complex64:
        return np.hypot(z.real.astype(np.float64), z.imag.astype(np.float64))
    return np.hypot(z.real, z.imag)


def sign(z: Array) -> Any:
    """`z / |z|`, 0 at 0, NaN when a part is NaN."""
    size = np.hypot(z.real.astype(np.longdouble), z.imag.astype(np.longdouble))
    safe = np.where(size == 0, size.dtype.type(1), size)
    unit = join(z.real / safe, z.imag / safe)
    unknown = np.isnan(z.real) | np.isnan(z.imag)
    nan = size.dtype.type(np.nan)
    return np.where(unknown, join(np.full(size.shape, nan), np.full(size.shape, nan)), unit)


def multiply(x: Array, y: Array) -> Any:
    """(ac - bd) + (ad + bc)i, each operation rounded."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    return join(a * c - b * d, a * d + b * c)


def divide(x: Array, y: Array) -> Any:
    """The quotient, computed with spare precision and range; zeros and infinities as in C99's Annex G."""
    wide = np.longdouble
    a, b = np.broadcast_arrays(x.real.astype(wide), x.imag.astype(wide))[:2]
    a, b, c, d = np.broadcast_arrays(a, b, y.real.astype(wide), y.imag.astype(wide))
    size = c * c + d * d
    real, imag = (a * c + b * d) / size, (b * c - a * d) / size
    lost = np.isnan(real) & np.isnan(imag)
    if not lost.any():
        return join(real, imag)
    inf = wide(np.inf)

    def unit(part: Array) -> Array:
        return np.copysign(np.isinf(part).astype(wide), part)

    by_zero = lost & (size == 0) & ~(np.isnan(a) & np.isnan(b))
    real = np.where(by_zero, np.copysign(inf, c) * a, real)
    imag = np.where(by_zero, np.copysign(inf, c) * b, imag)
    finite_y = np.isfinite(c) & np.isfinite(d)
    large = lost & ~by_zero & (np.isinf(a) | np.isinf(b)) & finite_y
    real = np.where(large, inf * (unit(a) * c + unit(b) * d), real)
    imag = np.where(large, inf * (unit(b) * c - unit(a) * d), imag)
    small = lost & ~by_zero & (np.isinf(c) | np.isinf(d)) & np.isfinite(a) & np.isfinite(b)
    real = np.where(small, 0 * (a * unit(c) + b * unit(d)), real)
    imag = np.where(small, 0 * (b * unit(c) - a * unit(d)), imag)
    return join(real, imag)


def exponential(z: Array) -> Any:
    """e^z; NaN when the angle is not finite, whatever the real part."""
    return np.where(np.isfinite(z.imag), np.exp(z), z.dtype.type(complex(np.nan, np.nan)))


def exponential_minus_one(z: Array) -> Any:
    """e^z - 1 = expm1(x)cos(y) - 2sin²(y/2) + i e^x sin(y)."""
    x, y = z.real, z.imag
    half = np.sin(y / 2)
    real = np.expm1(x) * np.cos(y) - 2 * half * half
    imag = np.where(y == 0, y, np.exp(x) * np.sin(y))
    return join(np.where(y == 0, np.expm1(x), real), imag)


def log(z: Array) -> Any:
    """The principal logarithm."""
    return np.log(z)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    whole = a + b
    part = whole - a
    return whole, (a - (whole - part)) + (b - part)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    digits = np.finfo(a.dtype).nmant + 1
    factor = a.dtype.type(2 ** ((digits + 1) // 2) + 1)

    def split(x: Array) -> tuple[Array, Array]:
        scaled = factor * x
        high = scaled - (scaled - x)
        return high, x - high

    (ah, al), (bh, bl) = split(a), split(b)
    product = a * b
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def log_plus_one(z: Array) -> Any:
    """log(1 + z); the real part is log1p(x² + 2x + y²)/2 with a compensated sum where that is small."""
    x, y = z.real, z.imag
    imag = np.arctan2(y, x + 1)
    far = np.log(np.hypot(x + 1, y))
    near = (np.abs(x) < 4) & (np.abs(y) < 4)
    u, v = np.where(near, x, 0), np.where(near, y, 0)
    xx, xx_low = _two_product(u, u)
    yy, yy_low = _two_product(v, v)
    first, first_low = _two_sum(2 * u, xx)
    second, second_low = _two_sum(first, yy)
    excess = second + (first_low + second_low + xx_low + yy_low)
    small = np.where((u == 0) & (v == 0), u, np.log1p(excess) / 2)
    # Far below 1 the squares vanish beside 2x, and underflow must not take x with them.
    real = np.where(near, np.where((v == 0) & (u > -1), np.log1p(u), small), far)
    return join(real, imag)


def logistic(z: Array) -> Any:
    """1 / (1 + e^-z)."""
    return divide(np.ones_like(z), 1 + np.exp(-z))


def sine(z: Array) -> Any:
    """Sin z."""
    return np.sin(z)


def cosine(z: Array) -> Any:
    """Cos z."""
    return np.cos(z)


def tan(z: Array) -> Any:
    """Tan z."""
    return np.tan(z)


def tanh(z: Array) -> Any:
    """Tanh z."""
    return np.tanh(z)


def sqrt(z: Array) -> Any:
    """The principal square root."""
    return np.sqrt(z.astype(np.complex128) if z.dtype == np.complex64 else z.astype(np.clongdouble))


def rsqrt(z: Array) -> Any:
    """1 / sqrt(z)."""
    return divide(np.ones_like(z), np.sqrt(z))


def cbrt(z: Array) -> Any:
    """The principal cube root z^(1/3)."""
    return power(z, np.full((), z.dtype.type(1) / z.dtype.type(3), z.dtype))


def power(x: Array, y: Array) -> Any:
    """e^(y log x); 1 when y is 0, and 0 when x is 0 and the real part of y is positive."""
    x, y = np.broadcast_arrays(x, y)
    general = np.exp(y * np.log(np.where(x == 0, x.dtype.type(1), x)))
    at_zero = np.where(y.real > 0, x.dtype.type(0), x.dtype.type(complex(np.nan, np.nan)))
    found = np.where(x == 0, at_zero, general)
    return np.where(y == 0, x.dtype.type(1), found)


def is_less(x: Array, y: Array) -> Any:
    """Lexicographic order of (real, imaginary)."""
    return (x.real < y.real) | ((x.real == y.real) & (x.imag < y.imag))


def maximum(x: Array, y: Array) -> Any:
    """The lexicographically larger; NaN wins."""
    return _pick(x, y, is_less(x, y))


def minimum(x: Array, y: Array) -> Any:
    """The lexicographically smaller; NaN wins."""
    return _pick(x, y, is_less(y, x))


def _pick(x: Array, y: Array, second: Array) -> Any:
    found = np.where(second, y, x)
    return np.where(np.isnan(x), x, np.where(np.isnan(y), y, found))


def atan2(y: Array, x: Array) -> Any:
    """The angle of (x, y) continued to the complex plane: -i log((x + iy) / sqrt(x² + y²))."""
    turned = join(x.real - y.imag, x.imag + y.real)
    size = np.sqrt(multiply(x, x) + multiply(y, y))
    angle = np.log(divide(turned, size))
    return join(angle.imag, -angle.real)


def asin(z: Array) -> Any:
    """The principal arc sine."""
    return np.arcsin(z)


def acos(z: Array) -> Any:
    """The principal arc cosine."""
    return np.arccos(z)


def acosh(z: Array) -> Any:
    """The principal inverse hyperbolic cosine, the arc cosine turned by a right angle."""
    return np.arccosh(z)


def asinh(z: Array) -> Any:
    """The principal inverse hyperbolic sine."""
    return np.arcsinh(z)


def atan(z: Array) -> Any:
    """The principal arc tangent."""
    return np.arctan(z)


def atanh(z: Array) -> Any:
    """The principal inverse hyperbolic tangent."""
    return np.arctanh(z)
