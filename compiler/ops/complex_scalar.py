"""Emission rules of elementwise operations on complex numbers, by real and imaginary parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from compiler.ir.types import I1
from compiler.ops.complex_parts import Pair, Parts, divide, multiply
from compiler.ops.scalar import ScalarBuilder, ScalarRule, ScalarSite, ScalarValue

Function = Callable[[Parts, list[Pair]], Pair | list[ScalarValue]]


def _exponential(p: Parts, x: Pair) -> Pair:
    real, imag = x
    # Halving the exponent keeps e^x finite where e^x itself overflows but its product with a small sine does not.
    half = p.fn("exponential", p.mul(real, p.number(0.5)))
    sine, cosine = p.fn("sine", imag), p.fn("cosine", imag)
    zero = p.number(0)
    is_real = p.test("oeq", imag, zero)
    vanishes = p.test("oeq", real, p.number(-math.inf))
    finite = p.test("ord", p.op("sub", imag, imag), zero)
    safe_sine = p.where(p.b.int_op(I1, "or", finite, _not(p, vanishes)), sine, zero)
    safe_cosine = p.where(p.b.int_op(I1, "or", finite, _not(p, vanishes)), cosine, zero)
    # Only beside an infinite real part does an unknown angle leave the real part infinite.
    infinite = p.b.int_op(I1, "and", p.test("oeq", real, p.number(math.inf)), _not(p, finite))
    found = p.mul(p.mul(half, safe_cosine), half)
    return (
        p.where(infinite, real, p.where(is_real, p.fn("exponential", real), found)),
        p.where(is_real, imag, p.mul(p.mul(half, safe_sine), half)),
    )


def _not(p: Parts, x: ScalarValue) -> ScalarValue:
    return p.b.int_op(I1, "xor", x, p.b.constant(I1, True))


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
        wide.mul(wide.sub(larger, wide.number(1)), wide.add(larger, wide.number(1))), wide.mul(smaller, smaller)
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


def _sqrt(p: Parts, x: Pair) -> Pair:
    wide, (a, b) = p.widened(*x)
    size = wide.op("abs", a)
    scale = wide.number(1)
    if p.e is wide.e:
        # |z| would overflow beyond a quarter of the range, and lose digits among the subnormals.
        big = wide.test("ogt", wide.op("abs", wide.hypot(a, b)), wide.number(1e300))
        tiny = wide.test("olt", wide.hypot(a, b), wide.number(1e-300))
        shrink = wide.where(big, wide.number(2.0**-4), wide.where(tiny, wide.number(2.0**108), wide.number(1)))
        scale = wide.where(big, wide.number(4), wide.where(tiny, wide.number(2.0**-54), wide.number(1)))
        a, b = wide.mul(a, shrink), wide.mul(b, shrink)
        size = wide.op("abs", a)
    zero = wide.number(0)
    root = wide.op("sqrt", wide.mul(wide.add(size, wide.hypot(a, b)), wide.number(0.5)))
    other = wide.div(wide.op("abs", b), wide.add(root, root))
    other = wide.where(wide.test("oeq", root, zero), zero, other)
    is_right = wide.test("oge", a, zero)
    real = wide.mul(wide.where(is_right, root, other), scale)
    imag = wide.op("copysign", wide.mul(wide.where(is_right, other, root), scale), b)
    infinity = wide.number(math.inf)
    b_infinite = wide.test("oeq", wide.op("abs", b), infinity)
    a_positive = wide.test("oeq", a, infinity)
    a_negative = wide.test("oeq", a, wide.number(-math.inf))
    known = wide.test("ord", b, b)
    real = wide.where(a_positive, infinity, wide.where(a_negative, wide.where(known, zero, b), real))
    imag = wide.where(a_positive, wide.where(known, wide.op("copysign", zero, b), b), imag)
    imag = wide.where(a_negative, wide.op("copysign", infinity, b), imag)
    real, imag = wide.where(b_infinite, infinity, real), wide.where(b_infinite, b, imag)
    return p.narrowed(wide, real), p.narrowed(wide, imag)


def _rsqrt(p: Parts, x: Pair) -> Pair:
    return divide(p, (p.number(1), p.number(0)), _sqrt(p, x))


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


def _sine(p: Parts, x: Pair) -> Pair:
    real, imag = x
    return (
        p.mul(p.fn("sine", real), p.fn("cosh", imag)),
        p.mul(p.fn("cosine", real), p.fn("sinh", imag)),
    )


def _cosine(p: Parts, x: Pair) -> Pair:
    real, imag = x
    return (
        p.mul(p.fn("cosine", real), p.fn("cosh", imag)),
        p.neg(p.mul(p.fn("sine", real), p.fn("sinh", imag))),
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
    size = _sqrt(p, (p.add(xx[0], yy[0]), p.add(xx[1], yy[1])))
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
    "sqrt": _one(_sqrt),
    "rsqrt": _one(_rsqrt),
    "cbrt": _one(_cbrt),
    "sine": _one(_sine),
    "cosine": _one(_cosine),
    "tan": _one(_tan),
    "tanh": _one(_tanh),
    "logistic": _one(_logistic),
    "chlo.conj": lambda p, x: (x[0][0], p.neg(x[0][1])),
    "chlo.square": lambda p, x: multiply(p, x[0], x[0]),
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
