"""Pretty forms of single operations as text, for those that the dialects' own printers write so.

Reads the same table of keys as the parser (`pretty_forms.KEYS`). What is not here is written in generic form. Operations with
regions are the printer's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

from compiler.frontend.mlir.attribute_text import (
    call_defaults,
    convolution_numbers,
    dense,
    dictionary,
    quote,
    rest,
    symbol,
)
from compiler.frontend.mlir.dialect_text import DIALECT_WRITERS
from compiler.frontend.mlir.pretty_forms import KEYS
from compiler.ir.program import Instruction
from compiler.ir.types import FutureType, TupleType, Type

SAME_TYPE = frozenset(
    [
        "abs",
        "add",
        "and",
        "atan2",
        "cbrt",
        "ceil",
        "cholesky",
        "clamp",
        "convert",
        "cosine",
        "count_leading_zeros",
        "divide",
        "exponential",
        "exponential_minus_one",
        "floor",
        "is_finite",
        "imag",
        "log",
        "log_plus_one",
        "logistic",
        "maximum",
        "minimum",
        "multiply",
        "negate",
        "not",
        "or",
        "popcnt",
        "power",
        "real",
        "reduce_precision",
        "remainder",
        "round_nearest_afz",
        "round_nearest_even",
        "rsqrt",
        "shift_left",
        "shift_right_arithmetic",
        "shift_right_logical",
        "sign",
        "sine",
        "sqrt",
        "subtract",
        "tan",
        "tanh",
        "xor",
    ]
)
"""Written with one type when operands and result all have it, else with a function type."""
_FUNCTION_TYPE = frozenset(
    [
        "bitcast_convert",
        "dynamic_pad",
        "dynamic_reshape",
        "dynamic_update_slice",
        "real_dynamic_slice",
        "reshape",
        "uniform_dequantize",
        "uniform_quantize",
    ]
)
_CHLO = frozenset(
    f"chlo.{name}"
    for name in [
        "acos",
        "acosh",
        "asin",
        "asin_acos_kernel",
        "asinh",
        "atan",
        "atanh",
        "bessel_i1e",
        "conj",
        "cosh",
        "digamma",
        "erf",
        "erf_inv",
        "erfc",
        "is_inf",
        "is_neg_inf",
        "is_pos_inf",
        "lgamma",
        "next_after",
        "polygamma",
        "sinh",
        "square",
        "tan",
        "zeta",
    ]
)
"""`chlo.erf %0 : type -> type`."""

Names = Sequence[str]
Types = Sequence[Type]
Writer = Callable[[Instruction, Names, Types], str]


def full_name(opcode: str) -> str:
    """An operation's name with its dialect; what only HLO has is in a dialect called `hlo`."""
    if "." in opcode:
        return opcode
    return (
        f"hlo.{opcode}" if opcode in HLO_ONLY else "func.call" if opcode == "call" else f"stablehlo.{opcode}"
    )


HLO_ONLY = frozenset({"fusion", "copy", "bitcast"})


def function_type(operands: Types, results: Types) -> str:
    """`(a, b) -> c`."""
    shown = str(results[0]) if len(results) == 1 else "(" + ", ".join(map(str, results)) + ")"
    return f"({', '.join(map(str, operands))}) -> {shown}"


def writer_of(opcode: str) -> Writer | None:
    """The function that writes an operation's pretty form (from its name on); None when it has only the generic one."""
    found = _WRITERS.get(opcode) or DIALECT_WRITERS.get(opcode)
    if found is not None:
        return found
    if opcode in SAME_TYPE:
        return _same_type
    if opcode in _CHLO:
        return _chlo
    if opcode in _FUNCTION_TYPE or f"stablehlo.{opcode}" in KEYS:
        return _keys
    return None


def results_of(i: Instruction) -> Types:
    """Result types: the elements of a tuple (a future is one value)."""
    return i.type.elements if is_many(i.type) else (i.type,)


def is_many(kind: Type) -> TypeGuard[TupleType]:
    """True for a tuple that stands for several results or none; one result is never wrapped, so a tuple of one is a value."""
    return isinstance(kind, TupleType) and len(kind.elements) != 1 and not isinstance(kind, FutureType)


def _same_type(i: Instruction, names: Names, types: Types) -> str:
    if all(kind == i.type for kind in types):
        kind = str(i.type)
    else:
        kind = function_type(types, results_of(i))
    return f"{full_name(i.opcode)} {', '.join(names)}{rest(i)} : {kind}"


def _chlo(i: Instruction, names: Names, types: Types) -> str:
    return f"{i.opcode} {', '.join(names)}{rest(i)} : {', '.join(map(str, types))} -> {i.type}"


def _keys(i: Instruction, names: Names, types: Types) -> str:
    full = full_name(i.opcode)
    keys = KEYS.get(full, {})
    parts = list(names)
    for key, name in keys.items():
        if name in i.attributes:
            value = i.attributes[name]
            parts.append(f"{key} = {quote(value) if name == 'einsum_config' else _bare(value)}")
    return f"{full} {', '.join(parts)}{rest(i, *keys.values())} : {function_type(types, results_of(i))}"


def _bare(value: Any) -> str:
    """A value as pretty forms write it, without its type."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_bare, value)) + "]"
    return str(value)


def _one_type(i: Instruction, names: Names, types: Types) -> str:
    """`iota dim = 0 : type`, `reverse %a, dims = [0] : type`, `partition_id : type`: the result's type alone."""
    full = full_name(i.opcode)
    keys = KEYS.get(full, {})
    parts = [*names, *(f"{key} = {_bare(i.attributes[name])}" for key, name in keys.items())]
    shown = f" {', '.join(parts)}" if parts else ""
    return f"{full}{shown}{rest(i, *keys.values())} : {i.type}"


def _constant(i: Instruction, names: Names, types: Types) -> str:
    literal = i.literal
    return f"stablehlo.constant{rest(i, 'value')} {dense(literal)} : {literal.type}"


def _select(i: Instruction, names: Names, types: Types) -> str:
    short = types[1] == types[2] == i.type
    kind = f"{types[0]}, {i.type}" if short else function_type(types, (i.type,))
    return f"stablehlo.select {', '.join(names)}{rest(i)} : {kind}"


def _compare(i: Instruction, names: Names, types: Types) -> str:
    a = i.attributes
    kind = f", {a['compare_type']}" if "compare_type" in a else ""
    shown = rest(i, "comparison_direction", "compare_type")
    return (
        f"stablehlo.compare {a['comparison_direction']}, {', '.join(names)}{kind}{shown} : "
        f"{function_type(types, (i.type,))}"
    )


def _slice(i: Instruction, names: Names, types: Types) -> str:
    a = i.attributes
    rows = zip(a["start_indices"], a["limit_indices"], a["strides"], strict=True)
    ranges = ", ".join(f"{s}:{e}" if t == 1 else f"{s}:{e}:{t}" for s, e, t in rows)
    shown = rest(i, "start_indices", "limit_indices", "strides")
    return f"stablehlo.slice {names[0]} [{ranges}]{shown} : {function_type(types, (i.type,))}"


def _cholesky(i: Instruction, names: Names, types: Types) -> str:
    lower = _bare(i.attributes["lower"])
    return f"stablehlo.cholesky {names[0]}, lower = {lower}{rest(i, 'lower')} : {i.type}"


def _reduce_precision(i: Instruction, names: Names, types: Types) -> str:
    a = i.attributes
    form = f"e{a['exponent_bits']}m{a['mantissa_bits']}"
    return f"stablehlo.reduce_precision {names[0]}, format = {form}{rest(i, 'exponent_bits', 'mantissa_bits')} : {i.type}"


def _dot_general(i: Instruction, names: Names, types: Types) -> str:
    a = i.attributes
    parts = list(names)
    shown = ["precision_config", "algorithm"]
    for key, name in (("batching_dims", "batching"), ("contracting_dims", "contracting")):
        left, right = f"lhs_{name}_dimensions", f"rhs_{name}_dimensions"
        shown += [left, right]
        if a.get(left) or a.get(right) or name == "contracting":
            parts.append(f"{key} = {_bare(a.get(left, ()))} x {_bare(a.get(right, ()))}")
    parts += _precision(i)
    if "algorithm" in a:
        parts.append(
            f"algorithm = <{', '.join(f'{key} = {_bare(value)}' for key, value in a['algorithm'].items())}>"
        )
    return (
        f"stablehlo.dot_general {', '.join(parts)}{rest(i, *shown)} : {function_type(types, results_of(i))}"
    )


def _precision(i: Instruction) -> list[str]:
    given = i.attributes.get("precision_config")
    return [f"precision = {_bare(tuple(given))}"] if given else []


def _dot(i: Instruction, names: Names, types: Types) -> str:
    parts = [*names, *_precision(i)]
    return f"stablehlo.dot {', '.join(parts)}{rest(i, 'precision_config')} : {function_type(types, results_of(i))}"


def _convolution(i: Instruction, names: Names, types: Types) -> str:
    a = i.attributes
    window = ", ".join(
        f"{key} = {_bare(a[name])}"
        for key, name in (
            ("stride", "window_strides"),
            ("pad", "padding"),
            ("lhs_dilate", "lhs_dilation"),
            ("rhs_dilate", "rhs_dilation"),
            ("reverse", "window_reversal"),
        )
    )
    hidden = [name for name in a if name.startswith(("input_", "kernel_", "output_"))]
    hidden += ["window_strides", "padding", "lhs_dilation", "rhs_dilation", "window_reversal"]
    return (
        f"stablehlo.convolution({', '.join(names)}) dim_numbers = {convolution_numbers(a)}, window = {{{window}}}"
        f"{rest(i, *hidden)} : {function_type(types, results_of(i))}"
    )


def _custom_call(i: Instruction, names: Names, types: Types) -> str:
    hidden = ["call_target_name", *call_defaults(i.attributes)]
    target = symbol(str(i.attributes["call_target_name"]))
    return f"stablehlo.custom_call {target}({', '.join(names)}){rest(i, *hidden)} : {function_type(types, results_of(i))}"


def _composite(i: Instruction, names: Names, types: Types) -> str:
    a = i.attributes
    entries = {key: value for key, value in a.items() if key != "name" and value not in (0, {})}
    entries["decomposition"] = i.called[0]
    shown = f" {', '.join(names)}" if names else ""
    return (
        f"stablehlo.composite {quote(str(a['name']))}{shown} {{{dictionary(entries)}}} : "
        f"{function_type(types, results_of(i))}"
    )


def _call(i: Instruction, names: Names, types: Types) -> str:
    return f"func.call {symbol(i.called[0])}({', '.join(names)}){rest(i)} : {function_type(types, results_of(i))}"


def _tuple(i: Instruction, names: Names, types: Types) -> str:
    shown = f" {', '.join(names)}" if names else ""
    return f"stablehlo.tuple{shown}{rest(i)} : {i.type}"


def _get_tuple_element(i: Instruction, names: Names, types: Types) -> str:
    shown = rest(i, "index")
    return f"stablehlo.get_tuple_element {names[0]}[{i.attributes['index']}]{shown} : {function_type(types, (i.type,))}"


def _top_k(i: Instruction, names: Names, types: Types) -> str:
    results = "(" + ", ".join(map(str, results_of(i))) + ")"
    return f"chlo.top_k({names[0]}, k = {i.attributes['k']}){rest(i, 'k')} : {types[0]} -> {results}"


def _tokens(i: Instruction, names: Names, types: Types) -> str:
    shown = f" {', '.join(names)}" if names else ""
    return f"{full_name(i.opcode)}{shown}{rest(i)} : {i.type}"


_WRITERS: dict[str, Writer] = {
    "after_all": _tokens,
    "call": _call,
    "chlo.top_k": _top_k,
    "cholesky": _cholesky,
    "compare": _compare,
    "complex": _one_type,
    "composite": _composite,
    "constant": _constant,
    "convolution": _convolution,
    "create_token": _one_type,
    "custom_call": _custom_call,
    "dot": _dot,
    "dot_general": _dot_general,
    "get_tuple_element": _get_tuple_element,
    "iota": _one_type,
    "partition_id": _one_type,
    "reduce_precision": _reduce_precision,
    "replica_id": _one_type,
    "reverse": _one_type,
    "select": _select,
    "slice": _slice,
    "tuple": _tuple,
}
