"""Pretty forms of operations of other dialects than StableHLO: checks, the interpreter's own, Shardy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.frontend.mlir.attribute_text import dense, float_text, rest
from compiler.ir.program import Instruction
from compiler.ir.types import Type

Names = Sequence[str]
Types = Sequence[Type]


def _check_constant(i: Instruction, names: Names, types: Types) -> str:
    literal = i.attributes["value"]
    return f"{i.opcode} {names[0]}, {dense(literal)} : {literal.type}{rest(i, 'value')}"


def _check_pair(i: Instruction, names: Names, types: Types) -> str:
    extra = ""
    if "tolerance" in i.attributes:
        extra = f", tolerance = {float_text(float(i.attributes['tolerance']))}"
    return f"{i.opcode} {', '.join(names)}{extra}{rest(i, 'tolerance')} : {types[0]}"


def _check_close(i: Instruction, names: Names, types: Types) -> str:
    keys = ("max_ulp_difference", "min_ulp_difference")
    parts = [*names, *(f"{key} = {i.attributes[key]}" for key in keys if key in i.attributes)]
    return f"{i.opcode} {', '.join(parts)}{rest(i, *keys)} : {', '.join(map(str, types))}"


def _interpreter_print(i: Instruction, names: Names, types: Types) -> str:
    return f"{i.opcode} {names[0]}{rest(i)} : {types[0]}"


def _sharding_constraint(i: Instruction, names: Names, types: Types) -> str:
    return f"{i.opcode} {names[0]} {i.attributes['sharding']}{rest(i, 'sharding')} : {i.type}"


DIALECT_WRITERS: dict[str, Callable[[Instruction, Names, Types], str]] = {
    "check.expect_almost_eq": _check_pair,
    "check.expect_almost_eq_const": _check_constant,
    "check.expect_close": _check_close,
    "check.expect_eq": _check_pair,
    "check.expect_eq_const": _check_constant,
    "interpreter.print": _interpreter_print,
    "sdy.sharding_constraint": _sharding_constraint,
}
