"""Which function computes which operation on which element type, and its definition as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from compiler.backends.cpu.vector_math import (
    error_functions,
    exponentials,
    gamma_functions,
    inverse_trigonometry,
    logarithms,
    powers,
    trigonometry,
)
from compiler.backends.cpu.vector_math.lanes import Code, Key, Lanes, MathFunction

Body: TypeAlias = Callable[..., Lanes]
"""Takes the code and the operands, gives the result."""

_ATTRIBUTES = "nounwind willreturn memory(none)"
_INLINED = 50
"""The longest function, in instructions, that is inlined where it is called."""


def _wide(body: Body) -> Body:
    """A function of f32 that computes in f64."""

    def widened(code: Code, *operands: Lanes) -> Lanes:
        return body(code, *(operand.to_float("f64") for operand in operands)).to_float("f32")

    return widened


def _library(symbol: str) -> Body:
    """The C library's function of f64."""

    def called(code: Code, *operands: Lanes) -> Lanes:
        return code.call(f"libm.{symbol}", "f64", *operands)

    return called


_BOTH: dict[str, Body] = {
    "exponential": exponentials.exponential,
    "exponential_minus_one": exponentials.exponential_minus_one,
    "logistic": exponentials.logistic,
    "tanh": exponentials.tanh,
    "log": logarithms.log,
    "log_plus_one": logarithms.log_plus_one,
    "sine": trigonometry.sine,
    "cosine": trigonometry.cosine,
    "sqrt": powers.sqrt,
    "rsqrt": powers.rsqrt,
    "remainder": powers.remainder,
}
_F32: dict[str, Body] = {
    "erf": error_functions.erf_of_f32,
    "erfc": _wide(error_functions.erfc_wide),
    "erf_inv": error_functions.erf_inv_of_f32,
    "tan": _wide(trigonometry.tan_wide),
    "asin": _wide(inverse_trigonometry.asin_wide),
    "acos": _wide(inverse_trigonometry.acos_wide),
    "atan": _wide(inverse_trigonometry.atan_wide),
    "atan2": _wide(inverse_trigonometry.atan2_wide),
    "sinh": _wide(exponentials.sinh_wide),
    "cosh": _wide(exponentials.cosh_wide),
    "asinh": _wide(logarithms.asinh_wide),
    "acosh": _wide(logarithms.acosh_wide),
    "atanh": _wide(logarithms.atanh_wide),
    "cbrt": _wide(powers.cbrt_of_f64),
    "power": powers.power_of_f32,
    "lgamma": _wide(_library("lgamma")),
    "digamma": _wide(gamma_functions.digamma),
}
_F64: dict[str, Body] = {
    "erf": error_functions.erf_of_f64,
    "erfc": error_functions.erfc_of_f64,
    "erf_inv": error_functions.erf_inv_of_f64,
    "atan": inverse_trigonometry.atan_of_f64,
    "atan2": inverse_trigonometry.atan2_of_f64,
    "sinh": exponentials.sinh_of_f64,
    "cosh": exponentials.cosh_of_f64,
    "cbrt": powers.cbrt_of_f64,
    "power": _library("pow"),
    "digamma": gamma_functions.digamma,
    **{name: _library(name) for name in ("tan", "asin", "acos", "asinh", "acosh", "atanh", "lgamma")},
}
BODIES: dict[tuple[str, str], Body] = {
    **{(op, element): body for op, body in _BOTH.items() for element in ("f32", "f64")},
    **{(op, "f32"): body for op, body in _F32.items()},
    **{(op, "f64"): body for op, body in _F64.items()},
}
"""The functions by operation and element type."""

_BINARY = frozenset(("power", "atan2", "remainder"))


def operand_count(op: str) -> int:
    """How many operands an operation takes."""
    return 2 if op in _BINARY else 1


def elementary_function(key: Key) -> MathFunction:
    """The definition of one function. Raises KeyError for what is not in `BODIES`."""
    op, element, lanes = key
    body = BODIES[op, element]
    code = Code(lanes)
    operands = [code.parameter(element, name) for name in ("x", "y")[: operand_count(op)]]
    result = body(code, *operands)
    # Calls cost 10 to 25 % of a short function's time; inlining a second use of a longer one costs the compiler
    # one to five milliseconds.
    short = element == "f32" and code.straight and code.instructions <= _INLINED
    return code.function(key, operands, result, ("alwaysinline " if short else "") + _ATTRIBUTES)
