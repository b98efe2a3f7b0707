"""The logarithm of the gamma function (the C library's) and its derivative, digamma."""

from __future__ import annotations

import math

from compiler.backends.cpu.vector_math.lanes import Code, Lanes
from compiler.backends.cpu.vector_math.logarithms import log_of_normal

# B(2k) / 2k of the asymptotic expansion of digamma (Abramowitz and Stegun 6.3.18).
_ASYMPTOTIC = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_SHIFT = 10


def digamma(code: Code, x: Lanes) -> Lanes:
    """The derivative of ``log gamma``, in f64; NaN at zero and the negative integers.

    Below 1/2 by reflection, then by recurrence up to arguments where the asymptotic expansion holds.
    """
    reflected = x.is_("olt", 0.5)
    argument = code.select(reflected, 1.0 - x, x)
    sum_of_steps = code.constant("f64", 0.0)
    for _ in range(_SHIFT):
        low = argument.is_("olt", float(_SHIFT))
        sum_of_steps = code.select(low, sum_of_steps + 1.0 / argument, sum_of_steps)
        argument = code.select(low, argument + 1.0, argument)
    inverse = 1.0 / argument
    square = inverse * inverse
    series = code.fma(inverse, 0.5, square * code.polynomial(square, _ASYMPTOTIC))
    result = log_of_normal(code, argument) - series - sum_of_steps
    fraction = (x - x.unary("roundeven")) * math.pi
    cotangent = code.call("cosine", "f64", fraction) / code.call("sine", "f64", fraction)
    result = code.select(reflected, result - cotangent * math.pi, result)
    pole = x.is_("ole", 0.0) & x.unary("trunc").is_("oeq", x)
    result = code.select(x.is_("oeq", float("inf")), x, result)
    return code.select(pole, float("nan"), code.select(x.is_nan(), x, result))
