"""Functions built on the logarithm: log, log1p, and (through f64) asinh, acosh, atanh of f32.

The argument is split as ``2^e m`` with m in [sqrt(1/2), sqrt(2)). f32 takes a polynomial in ``m - 1``; f64 the
series of ``2 atanh(s)`` with ``s = (m - 1) / (m + 1)``, as fdlibm does. Coefficients: Remez exchange, see
`exponentials`.
"""

from __future__ import annotations

from compiler.backends.cpu.vector_math.exponentials import power_of_two
from compiler.backends.cpu.vector_math.lanes import Code, Lanes, float_bits

_LOG_F32 = (
    0.3333331346511841,
    -0.2500002086162567,
    0.2000206857919693,
    -0.16667327284812927,
    0.14219969511032104,
    -0.12417508661746979,
    0.11897272616624832,
    -0.11609317362308502,
    0.06646367907524109,
)
_LOG_F64 = (
    0.6666666666666735,
    0.3999999999940937,
    0.2857142874368399,
    0.22222198429121953,
    0.1818357235170913,
    0.15313832164974822,
    0.1479825943330167,
)
_LOG_SHORT = (
    0.6666666667586876,
    0.3999999559604264,
    0.2857211215527672,
    0.22176053315079403,
    0.1958623673189702,
)

_INFINITY = float("inf")
_NAN = float("nan")
_LN2 = {
    "f32": (0.693359375, -2.12194440054690583e-4),
    "f64": (float.fromhex("0x1.62e42fee00000p-1"), 1.90821492927058770002e-10),
}
_MANTISSA = {"f32": 23, "f64": 52}
_SMALLEST_NORMAL = {"f32": 2.0**-126, "f64": 2.0**-1022}


def _split(code: Code, x: Lanes) -> tuple[Lanes, Lanes]:
    """The exponent (an integer) and the significand in [sqrt(1/2), sqrt(2)) of positive normal numbers."""
    bits = x.bits()
    mantissa = _MANTISSA[x.kind]
    exponent = (bits - float_bits(x.kind, 0.5**0.5)).arithmetic_shift(mantissa)
    return exponent, (bits - (exponent << mantissa)).as_float(x.kind)


def _near_one(code: Code, fraction: Lanes, exponent: Lanes, low: Lanes | None, short: bool) -> Lanes:
    """``log(1 + fraction + low) + exponent * ln 2``."""
    kind = fraction.kind
    high_ln2, low_ln2 = _LN2[kind]
    count = exponent.from_signed(kind)
    squared = fraction * fraction
    small = count * low_ln2 if low is None else code.fma(count, low_ln2, low)
    if kind == "f32":
        cubic = squared * fraction * code.polynomial(fraction, _LOG_F32)
        tail = code.fma(squared, -0.5, cubic + small)
    else:
        ratio = fraction / (fraction + 2.0)
        square = ratio * ratio
        series = square * code.polynomial(square, _LOG_SHORT if short else _LOG_F64)
        half = squared * 0.5
        tail = code.fma(ratio, half + series, small) - half
    return code.fma(count, high_ln2, fraction + tail)


def _special(code: Code, x: Lanes, argument: Lanes, result: Lanes) -> Lanes:
    """The ends of the domain: `x` goes through if the `argument` of the logarithm is infinite or NaN."""
    result = code.select(argument.is_("olt", _INFINITY), result, x)
    result = code.select(argument.is_("oeq", 0.0), -_INFINITY, result)
    return code.select(argument.is_("olt", 0.0), _NAN, result)


def log_of_normal(code: Code, x: Lanes, short: bool = False) -> Lanes:
    """``log x`` of positive normal numbers; `short` gives about 40 bits of an f64."""
    exponent, significand = _split(code, x)
    return _near_one(code, significand - 1.0, exponent, None, short)


def log(code: Code, x: Lanes) -> Lanes:
    """The natural logarithm."""
    mantissa = _MANTISSA[x.kind]
    tiny = x.is_("olt", _SMALLEST_NORMAL[x.kind])
    exponent, significand = _split(code, code.select(tiny, x * 2.0**mantissa, x))
    exponent = code.select(tiny, exponent - mantissa, exponent)
    result = _near_one(code, significand - 1.0, exponent, None, short=False)
    return _special(code, x, x, result)


def log_plus_one(code: Code, x: Lanes) -> Lanes:
    """``log(1 + x)``, what rounding took from ``1 + x`` put back."""
    total = x + 1.0
    back = total - 1.0
    lost = (1.0 - (total - back)) + (x - back)
    exponent, significand = _split(code, total)
    # Beyond 2^60 what was lost no longer matters, and its scale must stay a normal number.
    limited = code.select(exponent.is_("sgt", 60), 60, exponent)
    fraction = significand - 1.0
    # What was lost counts divided by 1 + fraction, here to second order.
    low = lost * power_of_two(-limited, x.kind) * code.fma(fraction, fraction - 1.0, 1.0)
    result = _near_one(code, fraction, exponent, low, short=False)
    result = _special(code, x, total, result)
    return code.select(x.abs().is_("olt", 2.0**-60), x, result)


def asinh_wide(code: Code, x: Lanes) -> Lanes:
    """``asinh`` in f64, good for a result rounded to f32."""
    size = x.abs()
    result = log_of_normal(code, size + code.fma(size, size, 1.0).sqrt())
    result = code.select(size.is_("olt", 2.0**-13), size, result)
    return code.select(size.is_("olt", _INFINITY), result, size).copy_sign(x)


def acosh_wide(code: Code, x: Lanes) -> Lanes:
    """``acosh`` in f64, good for a result rounded to f32."""
    result = log_of_normal(code, x + ((x - 1.0) * (x + 1.0)).sqrt())
    result = code.select(x.is_("oeq", _INFINITY), x, result)
    return code.select(x.is_("oge", 1.0), result, _NAN)


def atanh_wide(code: Code, x: Lanes) -> Lanes:
    """``atanh`` in f64, good for a result rounded to f32."""
    size = x.abs()
    result = log_of_normal(code, (size + 1.0) / (1.0 - size)) * 0.5
    result = code.select(size.is_("olt", 2.0**-13), size, result)
    result = code.select(size.is_("oeq", 1.0), _INFINITY, result)
    result = code.select(size.is_("ogt", 1.0), _NAN, result)
    return code.select(x.is_nan(), x, result.copy_sign(x))
