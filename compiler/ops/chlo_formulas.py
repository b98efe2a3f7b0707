"""Scalar rules of CHLO's functions that no vector library has: zeta, polygamma, bessel_i1e.

All are computed in f64 and rounded once to the element type. Sources: the Euler-Maclaurin formula (NIST DLMF 2.10 and
25.11) for zeta; Chebyshev expansions of I1, fitted with 30 digits, for bessel_i1e.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from compiler.ir.types import F64, I1
from compiler.ops.complex_parts import Parts
from compiler.ops.scalar import ScalarBuilder, ScalarRule, ScalarSite, ScalarValue

_TERMS = 10
"""Terms summed before the Euler-Maclaurin formula takes over."""
_BERNOULLI = (
    0.08333333333333333,
    -0.001388888888888889,
    3.306878306878307e-05,
    -8.267195767195768e-07,
    2.08767569878681e-08,
    -5.284190138687493e-10,
    1.3382536530684679e-11,
    -3.3896802963225827e-13,
    8.586062056277845e-15,
    -2.174868698558062e-16,
    5.5090028283602295e-18,
    -1.3954464685812522e-19,
)
"""B(2j) / (2j)!"""

_NEAR = (
    0.12629359322181682,
    -0.17641651835783406,
    0.1026436586898471,
    -0.05294598120809499,
    0.024726449030626516,
    -0.010564084894626197,
    0.004156422944312888,
    -0.0015135724506312532,
    0.0005122859561685758,
    -0.00016176081582589674,
    4.781565107550054e-05,
    -1.3273163656039436e-05,
    3.4702513081376785e-06,
    -8.568720264695455e-07,
    2.0032947535521353e-07,
    -4.445059128796328e-08,
    9.381537386495773e-09,
    -1.8872497517228294e-09,
    3.625590281552117e-10,
    -6.663489723502027e-11,
    1.1736186298890901e-11,
    -1.9839743977649436e-12,
    3.223793365945575e-13,
    -5.042185504727912e-14,
    7.600684294735406e-15,
    -1.1055969477353862e-15,
    1.5536319577362033e-16,
    -2.1114212143581555e-17,
    2.777914112761021e-18,
    -3.541581772543892e-19,
)
_FAR = (
    0.38928811750914005,
    -0.009761097491361469,
    -0.00011058893876262371,
    -3.882564808877691e-06,
    -2.512236237870209e-07,
    -2.6314688468895196e-08,
    -3.835380385964237e-09,
    -5.589743462196584e-10,
    -1.8974958123505413e-11,
    3.2526035830154884e-11,
    1.4125807436613782e-11,
    2.035628544147091e-12,
    -7.198551776245929e-13,
    -4.083551111092226e-13,
    -2.1015418427714147e-14,
    4.272440016711245e-14,
    1.042027698408835e-14,
    -3.8144030723496664e-15,
    -1.880354775466536e-15,
    3.3082023066437917e-16,
    2.962629001586656e-16,
    -3.209525791047637e-17,
    -4.650305709445139e-17,
    4.4143468924757085e-18,
    7.517313219219077e-18,
    -9.314316495301025e-19,
    -1.2422544417439116e-18,
)


def _in_double(formula: Callable[..., ScalarValue]) -> ScalarRule:
    def rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
        e = site.operands[0]
        wide = [value if e is F64 else b.convert(e, F64, value) for value in x]
        found = formula(Parts(b, F64), *wide)
        return found if e is F64 else b.convert(F64, e, found)

    return rule


def _zeta(p: Parts, x: ScalarValue, q: ScalarValue) -> ScalarValue:
    """ζ(x, q) = Σ (q+k)^-x + a^(1-x)/(x-1) + a^-x/2 + Σ B(2j)/(2j)! x(x+1)…(x+2j-2) a^(-x-2j+1), a = q + terms."""
    one = p.number(1)
    minus_x = p.neg(x)
    total = p.number(0)
    base = q
    for _ in range(_TERMS):
        total = p.add(total, p.fn("power", base, minus_x))
        base = p.add(base, one)
    power = p.fn("power", base, minus_x)
    tail = p.add(p.div(base, p.sub(x, one)), p.number(0.5))
    inverse_square = p.div(one, p.mul(base, base))
    factor = p.div(x, base)
    for index, coefficient in enumerate(_BERNOULLI):
        tail = p.add(tail, p.mul(p.number(coefficient), factor))
        grown = p.mul(p.add(x, p.number(2 * index + 1)), p.add(x, p.number(2 * index + 2)))
        factor = p.mul(p.mul(factor, grown), inverse_square)
    # A large x makes the terms vanish before their factors overflow.
    rest = p.where(p.test("oeq", power, p.number(0)), p.number(0), p.mul(power, tail))
    return _zeta_edges(p, x, q, p.add(total, rest))


def _zeta_edges(p: Parts, x: ScalarValue, q: ScalarValue, found: ScalarValue) -> ScalarValue:
    one, zero = p.number(1), p.number(0)
    nan, infinity = p.number(math.nan), p.number(math.inf)
    not_positive = p.test("ole", q, zero)
    fraction = p.test("une", x, p.op("floor", x))
    found = p.where(p.b.int_op(I1, "and", not_positive, fraction), nan, found)
    pole = p.b.int_op(I1, "and", not_positive, p.test("oeq", q, p.op("floor", q)))
    found = p.where(pole, infinity, found)
    found = p.where(p.test("oeq", x, one), infinity, p.where(p.test("olt", x, one), nan, found))
    return p.where(p.test("uno", x, q), nan, found)


def _polygamma(p: Parts, n: ScalarValue, x: ScalarValue) -> ScalarValue:
    """(-1)^(n+1) n! ζ(n+1, x)."""
    one, zero = p.number(1), p.number(0)
    order = p.add(n, one)
    half = p.mul(order, p.number(0.5))
    is_odd = p.test("une", half, p.op("floor", half))
    size = p.mul(p.fn("exponential", p.fn("lgamma", order)), _zeta(p, order, x))
    found = p.where(is_odd, p.neg(size), size)
    found = p.where(p.test("oeq", n, zero), p.fn("digamma", x), found)
    valid = p.b.int_op(I1, "and", p.test("oge", n, zero), p.test("oeq", n, p.op("floor", n)))
    return p.where(valid, found, p.number(math.nan))


def _chebyshev(p: Parts, coefficients: Sequence[float], t: ScalarValue) -> ScalarValue:
    """Σ c(k) T(k)(t) by Clenshaw's recurrence."""
    twice = p.add(t, t)
    first = second = p.number(0)
    for coefficient in reversed(coefficients[1:]):
        first, second = p.add(p.sub(p.mul(twice, first), second), p.number(coefficient)), first
    return p.add(p.sub(p.mul(t, first), second), p.number(coefficients[0]))


def _bessel_i1e(p: Parts, x: ScalarValue) -> ScalarValue:
    size = p.op("abs", x)
    near = p.mul(_chebyshev(p, _NEAR, p.sub(p.mul(size, p.number(0.25)), p.number(1))), size)
    safe = p.where(p.test("ogt", size, p.number(8)), size, p.number(8))
    far = p.div(_chebyshev(p, _FAR, p.sub(p.div(p.number(16), safe), p.number(1))), p.op("sqrt", safe))
    found = p.op("copysign", p.where(p.test("ole", size, p.number(8)), near, far), x)
    return p.where(p.test("uno", x, x), x, found)


zeta: ScalarRule = _in_double(_zeta)
"""Hurwitz' zeta function of (x, q), for q above -10."""
polygamma: ScalarRule = _in_double(_polygamma)
"""The n-th derivative of digamma at x, for (n, x)."""
bessel_i1e: ScalarRule = _in_double(_bessel_i1e)
"""The exponentially scaled modified Bessel function of order 1."""
