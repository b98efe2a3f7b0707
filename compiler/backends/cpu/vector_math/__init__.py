"""Transcendental functions and conversions as LLVM IR text, for any vector width.

The emitters of the CPU backend ask for functions by operation, element type and number of lanes, call them
by `function_name`, and add the texts of `closure` (and their `declarations`) to the module they build.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from compiler.backends.cpu.vector_math.conversions import define_conversion, held_kind
from compiler.backends.cpu.vector_math.elementary import BODIES, elementary_function, operand_count
from compiler.backends.cpu.vector_math.lanes import Key, MathFunction, function_name
from compiler.backends.cpu.vector_math.library_calls import library_function

__all__ = [
    "SUPPORTED",
    "Key",
    "MathFunction",
    "closure",
    "define",
    "define_conversion",
    "function_name",
    "held_kind",
    "operand_count",
]

SUPPORTED: frozenset[tuple[str, str]] = frozenset(BODIES)
"""The elementary functions: pairs of operation and element type."""


@lru_cache(maxsize=1024)
def define(op: str, element: str, lanes: int) -> MathFunction:
    """The function that computes `op` on `lanes` values of type `element`.

    Conversions have the operation ``convert`` and the element ``source.target``, such as ``f32.f8E4M3FN``.

    Raises:
        KeyError: there is no such function (see `SUPPORTED`).
    """
    key = (op, element, lanes)
    if op == "convert":
        source, _, target = element.partition(".")
        return define_conversion(source, target, lanes)
    if op.startswith("libm."):
        return library_function(key)
    return elementary_function(key)


def closure(needed: Iterable[Key]) -> list[MathFunction]:
    """The functions of `needed` and all they call, each once, callees before callers."""
    done: dict[Key, MathFunction] = {}

    def visit(key: Key) -> None:
        if key not in done:
            function = define(*key)
            for callee in function.requires:
                visit(callee)
            done[key] = function

    for key in needed:
        visit(key)
    return list(done.values())
