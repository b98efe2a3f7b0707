"""Emission of the inverse trigonometric and hyperbolic functions over the complex plane.

W. Kahan, "Branch cuts for complex elementary functions" (1987). `complex<f32>` is computed in f64, where no
intermediate overflows; for `complex<f64>` the asymptotic forms take over long before one would.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from compiler.ir.types import I1
from compiler.ops.complex_parts import Function, Pair, Parts, square_root
from compiler.ops.scalar import ScalarValue

_FAR = 1e100
"""Beyond this size 1 is nothing beside z², by far."""


def _roots(p: Parts, z: Pair) -> tuple[Pair, Pair]:
    """√(1 - z) and √(1 + z)."""
    real, imag = z
    one = p.number(1)
    below = square_root(p, (p.sub(one, real), p.neg(imag)))
    return below, square_root(p, (p.add(one, real), imag))


def _is_far(p: Parts, z: Pair) -> ScalarValue:
    limit = p.number(_FAR)
    sizes = [p.test("ogt", p.op("abs", part), limit) for part in z]
    return p.b.int_op(I1, "or", *sizes)


def _log_twice(p: Parts, z: Pair) -> ScalarValue:
    """log(2|z|) of large numbers."""
    scale = p.number(2.0**-10)
    size = p.hypot(p.mul(z[0], scale), p.mul(z[1], scale))
    return p.add(p.fn("log", size), p.number(11 * math.log(2)))


def _asin(p: Parts, z: Pair) -> Pair:
    real, imag = z
    (a, b), (c, d) = _roots(p, z)
    near_real = p.fn("atan2", real, p.sub(p.mul(a, c), p.mul(b, d)))
    near_imag = p.fn("asinh", p.sub(p.mul(a, d), p.mul(b, c)))
    far = _is_far(p, z)
    far_real = p.fn("atan2", real, p.op("abs", imag))
    far_imag = p.op("copysign", _log_twice(p, z), imag)
    imag_found = p.op("copysign", p.where(far, far_imag, near_imag), imag)
    return p.where(far, far_real, near_real), imag_found


def _acos(p: Parts, z: Pair) -> Pair:
    real, imag = z
    (a, b), (c, d) = _roots(p, z)
    near_real = p.mul(p.number(2), p.fn("atan2", a, c))
    near_imag = p.fn("asinh", p.sub(p.mul(c, b), p.mul(d, a)))
    far = _is_far(p, z)
    far_real = p.fn("atan2", p.op("abs", imag), real)
    imag_size = p.where(far, _log_twice(p, z), near_imag)
    return p.where(far, far_real, near_real), p.op("copysign", imag_size, p.neg(imag))


def _acosh(p: Parts, z: Pair) -> Pair:
    real, imag = _acos(p, z)
    return p.op("abs", imag), p.op("copysign", real, z[1])


def _asinh(p: Parts, z: Pair) -> Pair:
    imag, real = _asin(p, (z[1], z[0]))
    return real, imag


def _atanh(p: Parts, z: Pair) -> Pair:
    real, imag = z
    one, size = p.number(1), p.op("abs", real)
    below = p.sub(one, size)
    near = p.add(p.mul(below, below), p.mul(imag, imag))
    quarter = p.mul(p.number(0.25), p.fn("log_plus_one", p.div(p.mul(p.number(4), size), near)))
    across = p.sub(p.mul(below, p.add(one, size)), p.mul(imag, imag))
    turn = p.mul(p.number(0.5), p.fn("atan2", p.add(imag, imag), across))
    far = _is_far(p, z)
    scale = p.number(2.0**-512)
    length = p.hypot(p.mul(real, scale), p.mul(imag, scale))
    far_real = p.mul(p.div(p.div(p.mul(size, scale), length), length), scale)
    infinite = p.test("oeq", length, p.number(math.inf))
    far_real = p.where(infinite, p.number(0), far_real)
    found = p.op("copysign", p.where(far, far_real, quarter), real)
    right_angle = p.op("copysign", p.number(math.pi / 2), imag)
    return found, p.where(far, right_angle, turn)


def _atan(p: Parts, z: Pair) -> Pair:
    imag, real = _atanh(p, (z[1], z[0]))
    return real, imag


def _in_double(function: Callable[[Parts, Pair], Pair]) -> Function:
    def emit(p: Parts, x: list[Pair]) -> Pair:
        wide, parts = p.widened(*x[0])
        real, imag = function(wide, (parts[0], parts[1]))
        return p.narrowed(wide, real), p.narrowed(wide, imag)

    return emit


INVERSES: dict[str, Function] = {
    "chlo.asin": _in_double(_asin),
    "chlo.acos": _in_double(_acos),
    "chlo.acosh": _in_double(_acosh),
    "chlo.asinh": _in_double(_asinh),
    "chlo.atan": _in_double(_atan),
    "chlo.atanh": _in_double(_atanh),
}
"""By opcode."""
