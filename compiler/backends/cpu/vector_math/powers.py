"""Roots and powers: sqrt, rsqrt, cbrt, power, and the remainder of a division."""

from __future__ import annotations

from compiler.backends.cpu.vector_math.exponentials import exponential_in_range
from compiler.backends.cpu.vector_math.lanes import Code, Lanes
from compiler.backends.cpu.vector_math.logarithms import log_of_normal

_INFINITY = float("inf")
_NAN = float("nan")
_CBRT = (
    1.0000000171602883,
    -0.3333333981351601,
    0.22220399825403123,
    -0.1728113491097854,
    0.14689258043018624,
    -0.1279687951422963,
)


def sqrt(code: Code, x: Lanes) -> Lanes:
    """The correctly rounded square root."""
    return x.sqrt()


def rsqrt(code: Code, x: Lanes) -> Lanes:
    """``1 / sqrt(x)``."""
    return 1.0 / x.sqrt()


def cbrt_of_f64(code: Code, x: Lanes) -> Lanes:
    """The cube root.

    A third of the exponent's bits gives 5 bits, a polynomial in the relative error 22, and, these rounded
    so that their square is exact, one step of Halley's iteration the rest.
    """
    size = x.abs()
    tiny = size.is_("olt", 2.0**-1022)
    scaled = code.select(tiny, size * 2.0**54, size)
    high = (scaled.bits() >> 32).to_int("i32")
    third = code.emit(f"udiv {high.type} {high.name}, {code.constant('i32', 3).name}", "i32")
    guess = ((third + 715094163).to_int("i64") << 32).as_float("f64")
    error = code.fma(guess * guess, guess / scaled, -1.0)
    better = guess * code.polynomial(error, _CBRT)
    better = ((better.bits() + (1 << 30)) & ~((1 << 31) - 1)).as_float("f64")
    quotient = scaled / (better * better)
    root = code.fma(better, (quotient - better) / (better + better + quotient), better)
    root = code.select(tiny, root * 2.0**-18, root).copy_sign(x)
    return code.select(size.is_("ogt", 0.0) & size.is_("olt", _INFINITY), root, x)


def power_of_f32(code: Code, base: Lanes, exponent: Lanes) -> Lanes:
    """``base ** exponent`` by way of f64; special cases as C's pow."""
    size = base.abs()
    scaled_log = exponent.to_float("f64") * log_of_normal(code, size.to_float("f64"), short=True)
    wide = exponential_in_range(code, scaled_log.at_most(89.0).at_least(-105.0), short=True)
    result = wide.to_float("f32")
    edge = size.is_("oeq", 0.0) | size.is_("oeq", _INFINITY)
    vanishes = size.is_("oeq", 0.0) ^ exponent.is_("olt", 0.0)
    result = code.select(edge, code.select(vanishes, code.constant("f32", 0.0), _INFINITY), result)
    integral = exponent.unary("trunc").is_("oeq", exponent)
    half = exponent * 0.5
    odd = integral & half.unary("trunc").is_("une", half)
    sign = code.select(odd, base.bits(), 0) & -(1 << 31)
    result = (result.bits() | sign).as_float("f32")
    result = code.select(base.is_("olt", 0.0) & base.is_("ogt", -_INFINITY) & ~integral, _NAN, result)
    result = code.select(base.is_("uno", exponent), base + exponent, result)
    to_one = (size.is_("oeq", 1.0) & exponent.abs().is_("oeq", _INFINITY)) | base.is_("oeq", 1.0)
    return code.select(exponent.is_("oeq", 0.0) | to_one, 1.0, result)


def remainder(code: Code, x: Lanes, y: Lanes) -> Lanes:
    """C's fmod, exact: the sign of `x`, less than `y`.

    Where the quotient fits the significand it is at most one too large, so that a fused multiply-add gives
    the remainder, or the remainder less `y`, exactly. Other lanes take the C library's fmod.
    """
    size, step = x.abs(), y.abs()
    quotient = size / step
    whole = quotient.unary("trunc")
    rest = code.fma(-whole, step, size)
    rest = code.select(rest.is_("olt", 0.0), rest + step, rest)
    rest = code.select(step.is_("oeq", _INFINITY) & size.is_("olt", _INFINITY), size, rest)
    large = quotient.is_("oge", 2.0**22 if x.kind == "f32" else 2.0**51)
    slow = large & size.is_("olt", _INFINITY) & step.is_("ogt", 0.0)
    return code.rarely(
        slow,
        rest.copy_sign(x),
        lambda: code.call("libm.fmod", "f64", x.to_float("f64"), y.to_float("f64")).to_float(x.kind),
    )
