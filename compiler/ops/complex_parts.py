"""Real arithmetic in which the emission rules on complex numbers are written, and the basic ones.

Quotients, magnitudes and square roots of `complex<f32>` are taken in f64, where nothing overflows on the way; those of
`complex<f64>` are scaled instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from compiler.ir.types import F32, F64, I1, ElementType
from compiler.ops.scalar import ScalarBuilder, ScalarValue

Pair = tuple[ScalarValue, ScalarValue]


class Parts:
    """Real arithmetic in one element type, so that formulas read as formulas."""

    def __init__(self, b: ScalarBuilder, real: ElementType) -> None:
        self.b = b
        self.e = real

    def number(self, value: float) -> ScalarValue:
        """A real constant."""
        return self.b.constant(self.e, value)

    def op(self, name: str, *x: ScalarValue) -> ScalarValue:
        """One `float_op`."""
        return self.b.float_op(self.e, name, *x)

    def fn(self, name: str, *x: ScalarValue) -> ScalarValue:
        """One `math` function."""
        return self.b.math(self.e, name, *x)

    def add(self, x: ScalarValue, y: ScalarValue) -> ScalarValue:
        """X + y."""
        return self.op("add", x, y)

    def sub(self, x: ScalarValue, y: ScalarValue) -> ScalarValue:
        """X - y."""
        return self.op("sub", x, y)

    def mul(self, x: ScalarValue, y: ScalarValue) -> ScalarValue:
        """X * y."""
        return self.op("mul", x, y)

    def div(self, x: ScalarValue, y: ScalarValue) -> ScalarValue:
        """X / y."""
        return self.op("div", x, y)

    def neg(self, x: ScalarValue) -> ScalarValue:
        """-x."""
        return self.op("neg", x)

    def where(self, condition: ScalarValue, x: ScalarValue, y: ScalarValue) -> ScalarValue:
        """`x` where the condition holds, else `y`."""
        return self.b.select(self.e, condition, x, y)

    def test(self, predicate: str, x: ScalarValue, y: ScalarValue) -> ScalarValue:
        """A comparison."""
        return self.b.compare(self.e, predicate, x, y)

    def widened(self, *x: ScalarValue) -> tuple[Parts, list[ScalarValue]]:
        """The values in f64, where f32 ones neither overflow nor lose digits."""
        if self.e is F64:
            return self, list(x)
        return Parts(self.b, F64), [self.b.convert(F32, F64, value) for value in x]

    def narrowed(self, wide: Parts, x: ScalarValue) -> ScalarValue:
        """A value of `wide` in this type again."""
        return x if wide.e is self.e else self.b.convert(F64, F32, x)

    def hypot(self, x: ScalarValue, y: ScalarValue) -> ScalarValue:
        """sqrt(x² + y²) without overflow; infinite when a part is, even beside NaN."""
        wide, (u, v) = self.widened(x, y)
        u, v = wide.op("abs", u), wide.op("abs", v)
        if self.e is F32:
            length = wide.op("sqrt", wide.add(wide.mul(u, u), wide.mul(v, v)))
        else:
            larger = wide.where(wide.test("ogt", u, v), u, v)
            smaller = wide.where(wide.test("ogt", u, v), v, u)
            ratio = wide.div(
                smaller, wide.where(wide.test("oeq", larger, wide.number(0)), wide.number(1), larger)
            )
            length = wide.mul(larger, wide.op("sqrt", wide.add(wide.number(1), wide.mul(ratio, ratio))))
        infinity = wide.number(math.inf)
        length = wide.where(wide.test("oeq", u, infinity), infinity, length)
        length = wide.where(wide.test("oeq", v, infinity), infinity, length)
        return self.narrowed(wide, length)


def multiply(p: Parts, x: Pair, y: Pair) -> Pair:
    """(ac - bd, ad + bc)."""
    (a, b), (c, d) = x, y
    return p.sub(p.mul(a, c), p.mul(b, d)), p.add(p.mul(a, d), p.mul(b, c))


def divide(p: Parts, x: Pair, y: Pair) -> Pair:
    """The quotient, with Annex G's answers where the formula gives NaN for both parts."""
    wide, (a, b, c, d) = p.widened(*x, *y)
    scale = wide.number(1)
    if p.e is F64:
        c_size, d_size = wide.op("abs", c), wide.op("abs", d)
        larger = wide.where(wide.test("ogt", c_size, d_size), c_size, d_size)
        usable = wide.test("olt", larger, wide.number(math.inf))
        usable_scale = wide.where(usable, larger, scale)
        scale = wide.where(wide.test("oeq", larger, wide.number(0)), scale, usable_scale)
    cs, ds = wide.div(c, scale), wide.div(d, scale)
    size = wide.add(wide.mul(cs, cs), wide.mul(ds, ds))
    real = wide.div(wide.div(wide.add(wide.mul(a, cs), wide.mul(b, ds)), size), scale)
    imag = wide.div(wide.div(wide.sub(wide.mul(b, cs), wide.mul(a, ds)), size), scale)
    real, imag = _recover(wide, (a, b), (c, d), (real, imag))
    return p.narrowed(wide, real), p.narrowed(wide, imag)


def _recover(p: Parts, x: Pair, y: Pair, found: Pair) -> Pair:
    (a, b), (c, d), (real, imag) = x, y, found
    zero, infinity = p.number(0), p.number(math.inf)

    def is_infinite(value: ScalarValue) -> ScalarValue:
        return p.test("oeq", p.op("abs", value), infinity)

    def unit(value: ScalarValue) -> ScalarValue:
        return p.op("copysign", p.where(is_infinite(value), p.number(1), zero), value)

    def choose(condition: ScalarValue, new: Pair, old: Pair) -> Pair:
        return p.where(condition, new[0], old[0]), p.where(condition, new[1], old[1])

    def both(left: ScalarValue, right: ScalarValue) -> ScalarValue:
        return p.b.int_op(I1, "and", left, right)

    def either(left: ScalarValue, right: ScalarValue) -> ScalarValue:
        return p.b.int_op(I1, "or", left, right)

    lost = both(p.test("uno", real, real), p.test("uno", imag, imag))
    y_zero = both(p.test("oeq", c, zero), p.test("oeq", d, zero))
    y_finite = both(p.test("olt", p.op("abs", c), infinity), p.test("olt", p.op("abs", d), infinity))
    x_finite = both(p.test("olt", p.op("abs", a), infinity), p.test("olt", p.op("abs", b), infinity))
    pole = p.op("copysign", infinity, c)
    answer = choose(both(lost, y_zero), (p.mul(pole, a), p.mul(pole, b)), (real, imag))
    ua, ub, uc, ud = unit(a), unit(b), unit(c), unit(d)
    large = p.add(p.mul(ua, c), p.mul(ub, d)), p.sub(p.mul(ub, c), p.mul(ua, d))
    grown = p.mul(infinity, large[0]), p.mul(infinity, large[1])
    x_infinite = either(is_infinite(a), is_infinite(b))
    not_zero = either(p.test("une", c, zero), p.test("une", d, zero))
    answer = choose(both(both(lost, not_zero), both(x_infinite, y_finite)), grown, answer)
    small = p.add(p.mul(a, uc), p.mul(b, ud)), p.sub(p.mul(b, uc), p.mul(a, ud))
    shrunk = p.mul(zero, small[0]), p.mul(zero, small[1])
    y_infinite = either(is_infinite(c), is_infinite(d))
    return choose(both(lost, both(y_infinite, x_finite)), shrunk, answer)


def square_root(p: Parts, x: Pair) -> Pair:
    """The principal square root, with C99's answers at the infinities."""
    wide, (a, b) = p.widened(*x)
    size = wide.op("abs", a)
    scale = wide.number(1)
    if p.e is wide.e:
        # |z| would overflow beyond a quarter of the range, and lose digits among the subnormals.
        big = wide.test("ogt", wide.op("abs", wide.hypot(a, b)), wide.number(1e300))
        tiny = wide.test("olt", wide.hypot(a, b), wide.number(1e-300))
        shrink = wide.where(
            big, wide.number(2.0**-4), wide.where(tiny, wide.number(2.0**108), wide.number(1))
        )
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


Function = Callable[[Parts, list[Pair]], Pair | list[ScalarValue]]
"""A function over the plane by parts; a real result is a list of one value."""
