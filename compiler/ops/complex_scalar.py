"""Emission rules of elementwise operations on complex numbers, by real and imaginary parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from compiler.ir.types import I1
from compiler.ops.complex_inverse import INVERSES
from compiler.ops.complex_parts import Function, Pair, Parts, divide, multiply, square_root
from compiler.ops.scalar import ScalarBuilder, ScalarRule, ScalarSite, ScalarValue


def _exponential(p: Parts, x: Pair) -> Pair:
    real, imag = x
    # Halving the exponent keeps it finite where e^x itself overflows but its product with a small sine does not.
    half = p.fn("exponential", p.mul(real, p.number(0.5)))
    sine, cosine = p.fn("sine", imag), p.fn("cosine", imag)
    is_real = p.test("oeq", imag, p.number(0))
    return (
        p.where(is_real, p.fn("exponential", real), p.mul(p.mul(half, cosine), half)),
        p.where(is_real, imag, p.mul(p.mul(half, sine), half)),
    )


def _exponential_minus_one(p: Parts, x: Pair) -> Pair:
    real, imag = x
    grown = p.fn("exponential_minus_one", real)
    half = p.fn("sine", p.mul(imag, p.number(0.5)))
    drop = p.mul(p.number(2), p.mul(half, half))
    is_real = p.test("oeq", imag, p.number(0))
    whole = p.sub(p.mul(grown, p.fn("cosine", imag)), drop)
    turned = p.mul(p.fn("exponential", real), p.fn("sine", imag))
    return p.where(is_real, grown, whole), p.where(is_real, imag, turned)


def _log_size(p: Parts, real: ScalarValue, imag: ScalarValue) -> ScalarValue:
    """log|z|, as log1p(|z|² - 1)/2 near the unit circle; complex<f32> in f64, where the squares are exact."""
    wide, (a, b) = p.widened(real, imag)
    a, b = wide.op("abs", a), wide.op("abs", b)
    larger = wide.where(wide.test("ogt", a, b), a, b)
    smaller = wide.where(wide.test("ogt", a, b), b, a)
    excess = wide.add(
        wide.mul(wide.sub(larger, wide.number(1)), wide.add(larger, wide.number(1))),
        wide.mul(smaller, smaller),
    )
    near = wide.b.int_op(
        I1, "and", wide.test("ogt", larger, wide.number(0.5)), wide.test("olt", larger, wide.number(1.5))
    )
    fine = wide.mul(wide.number(0.5), wide.fn("log_plus_one", excess))
    coarse = wide.fn("log", wide.hypot(a, b))
    return p.narrowed(wide, wide.where(near, fine, coarse))


def _log(p: Parts, x: Pair) -> Pair:
    return _log_size(p, *x), p.fn("atan2", x[1], x[0])


def _log_plus_one(p: Parts, x: Pair) -> Pair:
    real, imag = x
    wide, (a, b) = p.widened(real, imag)
    shifted = wide.add(a, wide.number(1))
    excess = wide.add(wide.mul(a, wide.add(wide.number(2), a)), wide.mul(b, b))
    small = wide.b.int_op(
        I1,
        "and",
        wide.test("olt", wide.op("abs", a), wide.number(4)),
        wide.test("olt", wide.op("abs", b), wide.number(4)),
    )
    fine = wide.mul(wide.number(0.5), wide.fn("log_plus_one", excess))
    size = wide.where(small, fine, wide.fn("log", wide.hypot(shifted, b)))
    return p.narrowed(wide, size), p.narrowed(wide, wide.fn("atan2", b, shifted))


def _rsqrt(p: Parts, x: Pair) -> Pair:
    return divide(p, (p.number(1), p.number(0)), square_root(p, x))


def _cbrt(p: Parts, x: Pair) -> Pair:
    return _power(p, x, (p.number(1 / 3), p.number(0)))


def _power(p: Parts, x: Pair, y: Pair) -> Pair:
    zero, one = p.number(0), p.number(1)
    general = _exponential(p, multiply(p, y, _log(p, x)))
    x_zero = p.b.int_op(I1, "and", p.test("oeq", x[0], zero), p.test("oeq", x[1], zero))
    y_zero = p.b.int_op(I1, "and", p.test("oeq", y[0], zero), p.test("oeq", y[1], zero))
    at_zero = p.where(p.test("ogt", y[0], zero), zero, p.number(math.nan))
    real = p.where(y_zero, one, p.where(x_zero, at_zero, general[0]))
    return real, p.where(y_zero, zero, p.where(x_zero, at_zero, general[1]))


def _times_hyperbolic(p: Parts, name: str, factor: ScalarValue, y: ScalarValue) -> ScalarValue:
    """Factor * cosh(y) or factor * sinh(y), finite wherever the product is, and 0 for a factor of 0."""
    size = p.op("abs", y)
    half = p.fn("exponential", p.mul(size, p.number(0.5)))
    lead = half if name == "cosh" else p.op("copysign", half, y)
    large = p.mul(p.mul(factor, p.mul(lead, p.number(0.5))), half)
    found = p.where(p.test("ogt", size, p.number(20)), large, p.mul(factor, p.fn(name, y)))
    unsigned = p.test("oeq", factor, p.number(0))
    zero = factor if name == "cosh" else p.mul(factor, p.op("copysign", p.number(1), y))
    return p.where(p.b.int_op(I1, "and", unsigned, p.test("ord", y, y)), zero, found)


def _sine(p: Parts, x: Pair) -> Pair:
    real, imag = x
    return (
        _times_hyperbolic(p, "cosh", p.fn("sine", real), imag),
        _times_hyperbolic(p, "sinh", p.fn("cosine", real), imag),
    )


def _cosine(p: Parts, x: Pair) -> Pair:
    real, imag = x
    return (
        _times_hyperbolic(p, "cosh", p.fn("cosine", real), imag),
        p.neg(_times_hyperbolic(p, "sinh", p.fn("sine", real), imag)),
    )


def _sinh(p: Parts, x: Pair) -> Pair:
    imag, real = _sine(p, (x[1], x[0]))
    return real, imag


def _cosh(p: Parts, x: Pair) -> Pair:
    real, imag = x
    return (
        _times_hyperbolic(p, "cosh", p.fn("cosine", imag), real),
        _times_hyperbolic(p, "sinh", p.fn("sine", imag), real),
    )


def _tanh(p: Parts, x: Pair) -> Pair:
    """Kahan, "Branch cuts for complex elementary functions" (1987): t = tan y, s = sinh x, ρ = √(1+s²)."""
    real, imag = x
    one = p.number(1)
    t, s = p.fn("tan", imag), p.fn("sinh", real)
    beta = p.add(one, p.mul(t, t))
    rho = p.op("sqrt", p.add(one, p.mul(s, s)))
    below = p.add(one, p.mul(beta, p.mul(s, s)))
    near = p.div(p.mul(p.mul(beta, rho), s), below), p.div(t, below)
    far = p.test("ogt", p.op("abs", real), p.number(15))
    # Beyond, tanh x is 1 to the last digit, and 4 sin y cos y e^(-2|x|) is what is left of the imaginary part.
    decay = p.fn("exponential", p.mul(p.number(-2), p.op("abs", real)))
    rest = p.mul(p.mul(p.number(4), p.mul(p.fn("sine", imag), p.fn("cosine", imag))), decay)
    decayed = p.test("oeq", decay, p.number(0))
    rest = p.where(decayed, p.op("copysign", p.number(0), imag), rest)
    return p.where(far, p.op("copysign", one, real), near[0]), p.where(far, rest, near[1])


def _tan(p: Parts, x: Pair) -> Pair:
    real, imag = _tanh(p, (p.neg(x[1]), x[0]))
    return imag, p.neg(real)


def _logistic(p: Parts, x: Pair) -> Pair:
    real, imag = _exponential(p, (p.neg(x[0]), p.neg(x[1])))
    return divide(p, (p.number(1), p.number(0)), (p.add(p.number(1), real), imag))


def _square(p: Parts, x: Pair) -> Pair:
    real, imag = x
    product = p.mul(real, imag)
    return p.mul(p.sub(real, imag), p.add(real, imag)), p.add(product, product)


def _sign(p: Parts, x: Pair) -> Pair:
    size = p.hypot(*x)
    is_zero = p.test("oeq", size, p.number(0))
    safe = p.where(is_zero, p.number(1), size)
    unknown = p.test("uno", x[0], x[1])
    nan = p.number(math.nan)
    return p.where(unknown, nan, p.div(x[0], safe)), p.where(unknown, nan, p.div(x[1], safe))


def _atan2(p: Parts, y: Pair, x: Pair) -> Pair:
    turned = p.sub(x[0], y[1]), p.add(x[1], y[0])
    xx, yy = multiply(p, x, x), multiply(p, y, y)
    size = square_root(p, (p.add(xx[0], yy[0]), p.add(xx[1], yy[1])))
    real, imag = _log(p, divide(p, turned, size))
    return imag, p.neg(real)


def _extreme(predicate: str) -> Callable[[Parts, list[Pair]], Pair]:
    """Lexicographic maximum or minimum; NaN wins, the first operand's first."""

    def emit(p: Parts, operands: list[Pair]) -> Pair:
        x, y = operands
        tied = p.b.int_op(I1, "and", p.test("oeq", x[0], y[0]), p.test(predicate, x[1], y[1]))
        second = p.b.int_op(I1, "or", p.test(predicate, x[0], y[0]), tied)
        second = p.b.int_op(I1, "or", second, p.test("uno", y[0], y[1]))
        first = p.test("uno", x[0], x[1])
        return (
            p.where(first, x[0], p.where(second, y[0], x[0])),
            p.where(first, x[1], p.where(second, y[1], x[1])),
        )

    return emit


def _one(function: Callable[[Parts, Pair], Pair]) -> Function:
    return lambda p, x: function(p, x[0])


FUNCTIONS: dict[str, Function] = {
    "abs": lambda p, x: [p.hypot(*x[0])],
    "negate": lambda p, x: (p.neg(x[0][0]), p.neg(x[0][1])),
    "sign": _one(_sign),
    "add": lambda p, x: (p.add(x[0][0], x[1][0]), p.add(x[0][1], x[1][1])),
    "subtract": lambda p, x: (p.sub(x[0][0], x[1][0]), p.sub(x[0][1], x[1][1])),
    "multiply": lambda p, x: multiply(p, x[0], x[1]),
    "divide": lambda p, x: divide(p, x[0], x[1]),
    "maximum": _extreme("olt"),
    "minimum": _extreme("ogt"),
    "power": lambda p, x: _power(p, x[0], x[1]),
    "atan2": lambda p, x: _atan2(p, x[0], x[1]),
    "exponential": _one(_exponential),
    "exponential_minus_one": _one(_exponential_minus_one),
    "log": _one(_log),
    "log_plus_one": _one(_log_plus_one),
    "sqrt": _one(square_root),
    "rsqrt": _one(_rsqrt),
    "cbrt": _one(_cbrt),
    "sine": _one(_sine),
    "cosine": _one(_cosine),
    "tan": _one(_tan),
    "tanh": _one(_tanh),
    "logistic": _one(_logistic),
    "chlo.cosh": _one(_cosh),
    "chlo.sinh": _one(_sinh),
    "chlo.tan": _one(_tan),
    **INVERSES,
    "chlo.conj": lambda p, x: (x[0][0], p.neg(x[0][1])),
    "chlo.square": lambda p, x: _square(p, x[0]),
}
"""By opcode: from the operands' parts to the result's, or to a one-element list of a real result."""


def rule(opcode: str) -> ScalarRule:
    """The scalar rule of an operation on complex operands. Raises KeyError when it has none."""
    function = FUNCTIONS[opcode]

    def emit(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
        e = site.operands[0]
        parts = Parts(b, e.real)
        found = function(parts, [(b.real(e, value), b.imag(e, value)) for value in x])
        return found[0] if isinstance(found, list) else b.complex(e, *found)

    return emit
