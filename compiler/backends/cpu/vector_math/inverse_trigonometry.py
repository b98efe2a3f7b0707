"""atan2 and atan, and asin and acos of f32, all computed in f64.

All of them are the angle of a point: asin(x) that of (sqrt(1 - x^2), x), acos(x) that of (x, sqrt(1 - x^2)).
Coefficients: Remez exchange, see `exponentials`.
"""

from __future__ import annotations

from compiler.backends.cpu.vector_math.lanes import Code, Lanes

_ATAN_SHORT = (
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


_ATAN = (
    -0.3333333333333329,
    0.19999999999991272,
    -0.14285714285074627,
    0.11111111087389997,
    -0.0909090856182662,
    0.07692299864289111,
    -0.06666584862507154,
    0.058817224571281274,
    -0.05259460237975832,
    0.047450117899234284,
    -0.042866075611227954,
    0.03821436782909796,
    -0.03279215814438878,
    0.02615992515647666,
    -0.018622089923150897,
    0.011323435014153074,
    -0.005615562684328843,
    0.0021528434081543374,
    -0.0005932280074786261,
    0.0001039251154709316,
    -8.657935373650205e-06,
)
# pi/2 and pi as sums of two doubles.
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_PI = (3.141592653589793, 1.2246467991473532e-16)


def atan2_of_f64(code: Code, y: Lanes, x: Lanes) -> Lanes:
    """The angle of the point (x, y)."""
    return _angle(code, y, x, _ATAN)


def _angle(code: Code, y: Lanes, x: Lanes, coefficients: tuple[float, ...]) -> Lanes:
    """By the arc tangent of the smaller over the larger coordinate, to or from a multiple of pi/2."""
    height, width = y.abs(), x.abs()
    steep = height.is_("ogt", width)
    left = x.bits().is_("slt", 0)
    smaller, larger = code.select(steep, width, height), code.select(steep, height, width)
    ratio = smaller / larger
    ratio = code.select(larger.is_("oeq", 0.0), 0.0, ratio)
    ratio = code.select(smaller.is_("oeq", float("inf")), 1.0, ratio)
    square = ratio * ratio
    angle = code.fma(ratio * square, code.polynomial(square, coefficients), ratio)
    angle = code.select(steep ^ left, -angle, angle)
    start, rest = (
        code.select(steep, _HALF_PI[part], code.select(left, code.constant("f64", _PI[part]), 0.0))
        for part in (0, 1)
    )
    return code.select(x.is_("uno", y), x + y, (start + (angle + rest)).copy_sign(y))


def atan_of_f64(code: Code, x: Lanes) -> Lanes:
    """The arc tangent."""
    return atan2_of_f64(code, x, code.constant("f64", 1.0))


def atan2_wide(code: Code, y: Lanes, x: Lanes) -> Lanes:
    """The angle of the point (x, y) in f64, good for a result rounded to f32."""
    return _angle(code, y, x, _ATAN_SHORT)


def atan_wide(code: Code, x: Lanes) -> Lanes:
    """The arc tangent."""
    return atan2_wide(code, x, code.constant("f64", 1.0))


def asin_wide(code: Code, x: Lanes) -> Lanes:
    """The arc sine."""
    return atan2_wide(code, x, ((1.0 - x) * (x + 1.0)).sqrt())


def acos_wide(code: Code, x: Lanes) -> Lanes:
    """The arc cosine."""
    return atan2_wide(code, ((1.0 - x) * (x + 1.0)).sqrt(), x)
