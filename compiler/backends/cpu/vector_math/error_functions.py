"""The error function, its complement and its inverse.

f32: erf in f32, erfc and erf_inv through f64. f64: erf and erfc are the C library's, and erf_inv starts from a
polynomial of the logarithm of ``1 - x^2`` (after M. Giles, "Approximating the erfinv function") and corrects
it with one step of Halley's iteration. Coefficients: Remez exchange, see `exponentials`.
"""

from __future__ import annotations

import math

from compiler.backends.cpu.vector_math.exponentials import exponential_in_range
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
_LOG_ERFC = (
    -0.0003205949324183166,
    -1.1271721124649048,
    -0.6380103826522827,
    -0.1032208725810051,
    0.0218915157020092,
    -0.002960753161460161,
    0.00018768978770822287,
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
_TAIL = (
    2.832976798433737,
    1.0016752741256338,
    0.009445551936317149,
    -0.007643717100419586,
    0.005684667582078665,
    -0.0035595767826585457,
    0.0014871546058211076,
    -0.00014640950478023634,
    -0.00029399612482541247,
    0.00020341443506361625,
    -2.930227862268154e-05,
    -2.6173826093975373e-05,
    1.011234130551786e-05,
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


def erf(code: Code, x: Lanes) -> Lanes:
    """The error function of f32: a polynomial up to 1, ``1 - e^polynomial`` beyond."""
    size = x.abs()
    inner = code.fma(size, code.polynomial(size * size, _ERF), size)
    limited = size.at_most(3.93)
    outer = 1.0 - exponential_in_range(code, code.polynomial(limited, _LOG_ERFC))
    return code.select(size.is_("olt", 1.0), inner, outer).copy_sign(x)


def erfc_wide(code: Code, x: Lanes) -> Lanes:
    """``1 - erf(x)`` in f64, good for a result rounded to f32.

    ``e^(x^2) erfc(x) (1 + 2x)`` hardly varies over x >= 0, and is a polynomial of (x - 2) / (x + 2).
    """
    size = x.abs().at_most(10.1)
    mapped = (size - 2.0) / (size + 2.0)
    shape = code.polynomial(mapped, _SCALED_ERFC) / code.fma(size, 2.0, 1.0)
    upper = shape * exponential_in_range(code, -(size * size), short=True)
    return code.select(x.is_("olt", 0.0), 2.0 - upper, upper)


def _erf_inv_start(code: Code, x: Lanes, tail: tuple[float, ...], centre: float) -> Lanes:
    weight = -log_of_normal(code, (1.0 - x) * (x + 1.0))
    inner = code.polynomial(weight - 2.5, _CENTRAL)
    # The larger of the weight and 5, so that no lane takes the root of a negative number.
    outer = code.polynomial(weight.at_least(5.0).sqrt() - centre, tail)
    return x * code.select(weight.is_("olt", 5.0), inner, outer)


def _erf_inv_special(code: Code, x: Lanes, result: Lanes) -> Lanes:
    size = x.abs()
    infinite = code.constant("f64", _INFINITY).copy_sign(x)
    result = code.select(size.is_("oeq", 1.0), infinite, result)
    result = code.select(size.is_("ogt", 1.0), _NAN, result)
    return code.select(x.is_nan(), x, result)


def erf_inv_wide(code: Code, x: Lanes) -> Lanes:
    """The inverse of erf in f64, good for a result rounded to f32, of arguments that are f32 values."""
    return _erf_inv_special(code, x, _erf_inv_start(code, x, _TAIL, 3.0))


def erf_inv(code: Code, x: Lanes) -> Lanes:
    """The inverse of erf in f64."""
    size = x.abs()
    start = _erf_inv_start(code, size, _FAR, 4.0)
    # Near one, what is left of it says more than the value itself.
    near_one = size.is_("ogt", 0.5)
    forward = code.call("libm.erf", "f64", start) - size
    backward = (1.0 - size) - code.call("libm.erfc", "f64", start)
    slope = exponential_in_range(code, -(start * start)) * (2.0 / math.sqrt(math.pi))
    step = code.select(near_one, backward, forward) / slope
    result = start - step / code.fma(start, step, 1.0)
    # The residual of a tiny argument is lost in rounding; there the slope is constant.
    result = code.select(size.is_("olt", 2.0**-30), size * (math.sqrt(math.pi) / 2), result)
    return _erf_inv_special(code, x, result.copy_sign(x))
