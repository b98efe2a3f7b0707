"""The error function, its complement and its inverse.

f32: erf and erf_inv in f32, erfc through f64. In f64, erf_inv starts from a
polynomial of the logarithm of ``1 - x^2`` (after M. Giles, "Approximating the erfinv function") and corrects
it with one step of Halley's iteration. Coefficients: Remez exchange, see `exponentials`.
"""

from __future__ import annotations

import math

from compiler.backends.cpu.vector_math.exponentials import (
    exponential_in_parts,
    exponential_in_range,
    power_of_two_in_range,
    scale_by_power_of_two,
)
from compiler.backends.cpu.vector_math.lanes import Code, Lanes
from compiler.backends.cpu.vector_math.logarithms import log_of_normal

_INFINITY = float("inf")
_NAN = float("nan")
_ERF = (
    0.12837916612625122,
    -0.3761262893676758,
    0.11283618211746216,
    -0.026855124160647392,
    0.005190725903958082,
    -0.000803065428044647,
    7.919901690911502e-05,
)
_LOG2_ERFC = (
    -0.0004625207220669836,
    -1.6261656284332275,
    -0.9204543828964233,
    -0.14891627430915833,
    0.0315827950835228,
    -0.0042714644223451614,
    0.0002707783423829824,
)
_SCALED_ERFC = (
    1.2769783817967102,
    -0.09276382859225073,
    -0.16603042927959125,
    0.16405135750060082,
    -0.054219304851909254,
    -0.00803468615593205,
    0.00871683576001286,
    0.0012721971485638729,
    -0.001434390190202599,
    -0.00044509627949183036,
    0.00016744572966355438,
    0.00011632728192884535,
    1.7731724341141117e-05,
)
_ERF_F64 = (
    0.1283791670955126,
    -0.37612638903183754,
    0.1128379167095512,
    -0.026866170645129868,
    0.005223977625423609,
    -0.0008548327021955926,
    0.00012055332903808763,
    -1.4925647594397373e-05,
    1.6462045978746048e-06,
    -1.636464952888257e-07,
    1.4792469453107219e-08,
    -1.21649675634089e-09,
    8.710461937312833e-11,
    -4.233124650461926e-12,
)
_SCALED_ERFC_F64 = (
    1.2769783815525286,
    -0.0927638265857457,
    -0.1660303976152687,
    0.16405128003338523,
    -0.054220000993337326,
    -0.00803401507924624,
    0.008722653911277384,
    0.0012713388821634175,
    -0.0014568144594889977,
    -0.00045433959441150044,
    0.0002063714511079477,
    0.00015102808071381136,
    -1.530369993170189e-06,
    -3.6360561337866825e-05,
    -1.3438818184372467e-05,
    3.485743098238681e-06,
    5.176524988025811e-06,
    1.999365976638121e-06,
    -8.141560493565203e-07,
    -1.4493006136288176e-06,
    8.856682044130938e-08,
    4.773929027987239e-07,
    -1.2686855067914946e-07,
)
_CENTRAL = (
    1.5014093511463855,
    0.24664027674027114,
    -0.004177318237869268,
    -0.0012527079276959405,
    0.0002182514751272394,
    -4.996029826649563e-06,
    -3.4176945150998648e-06,
    4.787016929359413e-07,
    1.3874309587152898e-08,
    -1.086384321331961e-08,
    8.062067314482109e-10,
    1.2359551924129155e-10,
    -1.9767927553854753e-11,
)
_TAIL_F32 = (
    1.8329768180847168,
    1.0016752481460571,
    0.009444954805076122,
    -0.00764299463480711,
    0.005689701531082392,
    -0.0035660555586218834,
    0.0014704216737300158,
    -0.00012161650374764577,
    -0.0002726995444390923,
    0.00016127550043165684,
    -3.1255953217623755e-05,
)
_CENTRAL_F32 = (
    0.5014093518257141,
    0.24664029479026794,
    -0.00417732959613204,
    -0.001252756454050541,
    0.00021827095770277083,
    -4.955970325681847e-06,
    -3.4295337627554545e-06,
    4.647250193556829e-07,
    1.712234265482948e-08,
    -8.694361675054552e-09,
    3.93598181824828e-10,
)
_FAR = (
    3.839783868922064,
    1.009492680090203,
    0.00125797331226986,
    -0.0008644872897912426,
    0.000328514338697535,
    -0.00012859830175794627,
    4.4922714638286334e-05,
    -2.0796828891996848e-05,
    2.5213519579803882e-05,
    -1.5630842067588893e-05,
    1.538994334508261e-06,
    1.5998785293342272e-06,
    -3.9801419381405755e-07,
)


def erf_of_f32(code: Code, x: Lanes) -> Lanes:
    """The error function of f32: a polynomial up to 1, ``1 - 2^polynomial`` beyond."""
    size = x.abs()
    inner = code.fma(size, code.polynomial(size * size, _ERF), size)
    limited = size.at_most(3.93)
    outer = 1.0 - power_of_two_in_range(code, code.polynomial(limited, _LOG2_ERFC))
    return code.select(size.is_("ult", 1.0), inner, outer).copy_sign(x)


def _erfc_above_half(code: Code, size: Lanes) -> Lanes:
    """Computes erfc of f64 from 1/2 as `erfc_wide` does; what each rounding loses is gathered and added once."""
    doubled = code.fma(size, 2.0, 1.0)
    lost_doubled = code.fma(size, 2.0, 1.0 - doubled)
    shape = code.polynomial((size - 2.0) / (size + 2.0), _SCALED_ERFC_F64)
    inverse = 1.0 / doubled
    quotient = shape * inverse
    lost_quotient = code.fma(-quotient, doubled, shape) * inverse
    square = size * size
    lost_square = code.fma(size, size, -square)
    near, lost_near, exponent = exponential_in_parts(code, -square)
    product = near * quotient
    low = code.fma(near, quotient, -product) + near * lost_quotient + quotient * lost_near
    low = code.fma(product, -code.fma(lost_doubled, inverse, lost_square), low)
    return scale_by_power_of_two(product + low, exponent)


def erfc_of_f64(code: Code, x: Lanes) -> Lanes:
    """``1 - erf(x)``."""
    size = x.abs()
    inner = 1.0 - code.fma(x, code.polynomial(x * x, _ERF_F64), x)
    upper = _erfc_above_half(code, size.at_most(27.5))
    outer = code.select(x.is_("olt", 0.0), 2.0 - upper, upper)
    return code.select(size.is_("olt", 0.5), inner, outer)


def erf_of_f64(code: Code, x: Lanes) -> Lanes:
    """The error function: a polynomial up to 1, ``1 - erfc`` beyond."""
    size = x.abs()
    inner = code.fma(size, code.polynomial(size * size, _ERF_F64), size)
    outer = 1.0 - _erfc_above_half(code, size.at_most(6.0))
    return code.select(size.is_("olt", 1.0), inner, outer).copy_sign(x)


def erfc_wide(code: Code, x: Lanes) -> Lanes:
    """``1 - erf(x)`` in f64, good for a result rounded to f32.

    ``e^(x^2) erfc(x) (1 + 2x)`` hardly varies over x >= 0, and is a polynomial of (x - 2) / (x + 2).
    """
    size = x.abs().at_most(10.1)
    above, doubled = size + 2.0, code.fma(size, 2.0, 1.0)
    inverse = 1.0 / (above * doubled)
    mapped = (size - 2.0) * doubled * inverse
    shape = code.polynomial(mapped, _SCALED_ERFC) * above * inverse
    upper = shape * exponential_in_range(code, -(size * size), short=True)
    return code.select(x.is_("olt", 0.0), 2.0 - upper, upper)


def _erf_inv_start(code: Code, x: Lanes) -> Lanes:
    """The inverse of erf: in f32 to the last bits, in f64 to about 24."""
    narrow = x.kind == "f32"
    complement = code.fma(-x, x, 1.0) if narrow else (1.0 - x) * (x + 1.0)
    weight = -log_of_normal(code, complement)
    inner = code.polynomial(weight - 2.5, _CENTRAL_F32 if narrow else _CENTRAL)
    # The larger of the weight and 5, so that no lane takes the root of a negative number.
    root = weight.at_least(5.0).sqrt()
    outer = code.polynomial(root - 3.0, _TAIL_F32) if narrow else code.polynomial(root - 4.0, _FAR)
    factor = code.select(weight.is_("olt", 5.0), inner, outer)
    # The f32 polynomials give the factor less one, which leaves its rounding errors below the last place.
    return code.fma(x, factor, x).copy_sign(x) if narrow else x * factor


def _erf_inv_special(code: Code, x: Lanes, result: Lanes) -> Lanes:
    size = x.abs()
    infinite = code.constant(x.kind, _INFINITY).copy_sign(x)
    result = code.select(size.is_("oeq", 1.0), infinite, result)
    result = code.select(size.is_("ogt", 1.0), _NAN, result)
    return code.select(x.is_nan(), x, result)


def erf_inv_of_f32(code: Code, x: Lanes) -> Lanes:
    """The inverse of erf.

    An error in the logarithm of ``1 - x^2`` counts less than half as much in the result, so f32 will do.
    """
    return _erf_inv_special(code, x, _erf_inv_start(code, x))


def erf_inv_of_f64(code: Code, x: Lanes) -> Lanes:
    """The inverse of erf in f64."""
    size = x.abs()
    start = _erf_inv_start(code, size)
    # Near one, what is left of it says more than the value itself.
    near_one = size.is_("ogt", 0.5)
    forward = code.call("erf", "f64", start) - size
    backward = (1.0 - size) - code.call("erfc", "f64", start)
    slope = exponential_in_range(code, -(start * start)) * (2.0 / math.sqrt(math.pi))
    step = code.select(near_one, backward, forward) / slope
    result = start - step / code.fma(start, step, 1.0)
    # The residual of a tiny argument is lost in rounding; there the slope is constant.
    result = code.select(size.is_("olt", 2.0**-30), size * (math.sqrt(math.pi) / 2), result)
    return _erf_inv_special(code, x, result.copy_sign(x))
