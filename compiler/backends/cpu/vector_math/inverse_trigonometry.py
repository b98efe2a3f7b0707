"""atan2, atan, asin, acos of f32, computed in f64.

All of them are the angle of a point: asin(x) that of (sqrt(1 - x^2), x), acos(x) that of (x, sqrt(1 - x^2)).
Coefficients: Remez exchange, see `exponentials`.
"""

from __future__ import annotations

import math

from compiler.backends.cpu.vector_math.lanes import Code, Lanes

_ATAN = (
    -0.33333332235411967,
    0.19999932202251824,
    -0.14284250951081542,
    0.11095203196820279,
    -0.0898879578235355,
    0.07269395620211935,
    -0.0547047084178715,
    0.03470493313637565,
    -0.016471668048073734,
    0.004999407820233838,
    -0.0007113216539379452,
)


def atan2_wide(code: Code, y: Lanes, x: Lanes) -> Lanes:
    """The angle of the point (x, y), by the arc tangent of the smaller over the larger coordinate."""
    height, width = y.abs(), x.abs()
    steep = height.is_("ogt", width)
    smaller, larger = code.select(steep, width, height), code.select(steep, height, width)
    ratio = smaller / larger
    ratio = code.select(larger.is_("oeq", 0.0), 0.0, ratio)
    ratio = code.select(smaller.is_("oeq", float("inf")), 1.0, ratio)
    square = ratio * ratio
    angle = code.fma(ratio * square, code.polynomial(square, _ATAN), ratio)
    angle = code.select(steep, math.pi / 2 - angle, angle)
    angle = code.select(x.bits().is_("slt", 0), math.pi - angle, angle)
    return code.select(x.is_("uno", y), x + y, angle.copy_sign(y))


def atan_wide(code: Code, x: Lanes) -> Lanes:
    """The arc tangent."""
    return atan2_wide(code, x, code.constant("f64", 1.0))


def asin_wide(code: Code, x: Lanes) -> Lanes:
    """The arc sine."""
    return atan2_wide(code, x, ((1.0 - x) * (x + 1.0)).sqrt())


def acos_wide(code: Code, x: Lanes) -> Lanes:
    """The arc cosine."""
    return atan2_wide(code, ((1.0 - x) * (x + 1.0)).sqrt(), x)
