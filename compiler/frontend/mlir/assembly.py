"""Pretty forms of operations: how each dialect writes its operations when it does not use the generic form.

Most StableHLO operations follow one scheme, `op operands, key = value, … : types`, read by `default_pretty` with the table
of keys below. The rest have a function of their own in `PRETTY`. The printer uses the same table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from compiler.frontend.mlir.tree import Block, Operation, Raw, Word
from compiler.ir.program import Attributes
from compiler.ir.types import ELEMENTS, ElementType, TensorType, Type

if TYPE_CHECKING:
    from compiler.frontend.mlir.reader import Reader

KEYS: dict[str, dict[str, str]] = {
    "stablehlo.broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "stablehlo.dynamic_broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "stablehlo.transpose": {"dims": "permutation"},
    "stablehlo.reverse": {"dims": "dimensions"},
    "stablehlo.concatenate": {"dim": "dimension"},
    "stablehlo.iota": {"dim": "iota_dimension"},
    "stablehlo.dynamic_iota": {"dim": "iota_dimension"},
    "stablehlo.get_dimension_size": {"dim": "dimension"},
    "stablehlo.set_dimension_size": {"dim": "dimension"},
    "stablehlo.pad": {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"},
    "stablehlo.dynamic_slice": {"sizes": "slice_sizes"},
    "stablehlo.reduce_precision": {"format": "format"},
    "stablehlo.fft": {"type": "fft_type", "length": "fft_length"},
    "stablehlo.rng": {"distribution": "rng_distribution"},
    "stablehlo.rng_bit_generator": {"algorithm": "rng_algorithm"},
    "stablehlo.dot_general": {
        "batching_dims": "batching_dims",
        "contracting_dims": "contracting_dims",
        "precision": "precision_config",
        "algorithm": "algorithm",
    },
    "stablehlo.dot": {"precision": "precision_config"},
    "chlo.constant_like": {"value": "value"},
}
"""What each key of a pretty form is called in the operation's attributes."""


def default_pretty(r: Reader, op: Operation) -> None:
    """`op %a, %b, key = value {attributes} : types`; words among the operands are positional attributes."""
    while r.tokens[r.at] not in (":", "{", ""):
        token = r.tokens[r.at]
        if token[0] == "%":
            op.operands.append(r.take())
        elif token.startswith("dense<"):
            op.attributes["value"] = r.attribute()
        elif r.tokens[r.at + 1] == "=":
            name = KEYS.get(op.name, {}).get(token, token)
            r.at += 2
            op.attributes[name] = _key_value(r)
        else:
            r.fail(f"unexpected '{token[:40]}' in {op.name}")
        if not r.accept(","):
            break
    r.attribute_dictionary(op)
    if op.name.startswith("check.") and r.tokens[r.at] != ":":
        op.operand_types = op.operand_types or [UNKNOWN] * len(op.operands)
        return
    signature(r, op)


def _key_value(r: Reader) -> Any:
    """A value; `[1] x [0]` gives a pair; `<…>` is taken as text."""
    if r.tokens[r.at] == "<":
        r.at += 1
        return Attributes(r._record())
    if r.tokens[r.at].lstrip("-")[:1].isdigit():
        return r.bare_number()
    if r.tokens[r.at] in ("true", "false"):
        return r.take() == "true"
    first = r.attribute()
    if r.tokens[r.at] == "x" and isinstance(first, tuple):
        r.at += 1
        return first, r.attribute()
    return first


def signature(r: Reader, op: Operation) -> None:
    """`: (types) -> types`, `: types -> types`, or `: types` where results have the operands' types."""
    if not r.accept(":"):
        if op.operands:
            r.fail("expected ':' and the types")
        return
    if r.tokens[r.at] == "(":
        r.function_type(op)
    else:
        types = [r.type()]
        while r.accept(","):
            types.append(r.type())
        op.operand_types = types
        if r.accept("->"):
            op.result_types = r.types_or_one()
        else:
            _spread(op)
    if len(op.operand_types) != len(op.operands):
        r.fail(
            f"{op.name} has {len(op.operands)} operands, but its type lists {len(op.operand_types)}",
            op.offset,
        )


def _spread(op: Operation) -> None:
    """The short forms: one type for everything, or what the operation's own rule makes of the list."""
    types = op.operand_types
    if op.name == "stablehlo.select":
        op.operand_types = [types[0], types[-1], types[-1]] if len(types) == 2 else types
        op.result_types = [types[-1]]
    elif op.name in ("stablehlo.optimization_barrier", "sdy.sharding_constraint"):
        op.result_types = list(types)
    elif op.name in NO_RESULTS or op.name.startswith("check."):
        op.operand_types = types * len(op.operands) if len(types) == 1 else types
        op.result_types = []
    elif op.name in TOKEN_RESULT or not op.operands:
        op.operand_types = [types[0]] * len(op.operands)
        op.result_types = [types[-1]]
    elif len(types) == 1:
        op.operand_types = [_part(op, types[0])] * len(op.operands)
        op.result_types = types
    else:
        op.result_types = [types[-1]]


UNKNOWN = TensorType(ELEMENTS["i1"], ())
"""Stands for the type of an operand that a check does not write; the importer knows the operand's own."""
NO_RESULTS = frozenset({"stablehlo.return", "func.return", "return", "sdy.return"})
TOKEN_RESULT = frozenset({"stablehlo.after_all", "stablehlo.create_token"})


def _part(op: Operation, kind: Type) -> Type:
    """The operands' type where only one is written: the result's, or its parts' for `complex`."""
    if (
        op.name == "stablehlo.complex"
        and isinstance(kind, TensorType)
        and isinstance(kind.element, ElementType)
    ):
        return kind.with_element(kind.element.real)
    return kind


def constant(r: Reader, op: Operation) -> None:
    """`constant {attributes} dense<…> : type`."""
    r.attribute_dictionary(op)
    value = r.attribute()
    op.attributes["value"] = value
    if not hasattr(value, "type"):
        r.fail("expected a dense constant", op.offset)
    if r.accept("->") or r.accept(":"):
        op.result_types = [r.type()]
    else:
        op.result_types = [value.type]


def compare(r: Reader, op: Operation) -> None:
    """`compare LT, %a, %b, SIGNED : types`."""
    op.attributes["comparison_direction"] = r.word()
    r.expect(",")
    op.operands.append(r.value())
    r.expect(",")
    op.operands.append(r.value())
    if r.accept(","):
        op.attributes["compare_type"] = r.word()
    r.attribute_dictionary(op)
    signature(r, op)


def slice_(r: Reader, op: Operation) -> None:
    """`slice %a [0:4, 0:32:2] : types`."""
    op.operands.append(r.value())
    r.expect("[")
    starts, limits, strides = [], [], []
    while not r.accept("]"):
        starts.append(r.integer())
        r.expect(":")
        limits.append(r.integer())
        strides.append(r.integer() if r.accept(":") else 1)
        r.accept(",")
    op.attributes.update(start_indices=tuple(starts), limit_indices=tuple(limits), strides=tuple(strides))
    r.attribute_dictionary(op)
    signature(r, op)


def reduce(r: Reader, op: Operation) -> None:
    """`reduce(%a init: %b), … applies op across dimensions = […]` or with a `reducer` region."""
    inputs, inits = [], []
    while r.accept("("):
        inputs.append(r.value())
        r.expect("init")
        r.expect(":")
        inits.append(r.value())
        r.expect(")")
        r.accept(",")
    op.operands = inputs + inits
    applied = r.take() if r.accept("applies") else ""
    if r.accept("across"):
        r.expect("dimensions")
        r.expect("=")
        op.attributes["dimensions"] = r.attribute()
    r.attribute_dictionary(op)
    r.expect(":")
    r.function_type(op)
    if applied:
        op.attributes["applies"] = Word(applied)
        return
    r.expect("reducer")
    groups = []
    while r.accept("("):
        groups.append(r._until(")", r.argument))
    block = r.region()
    firsts = [group[0] for group in groups if len(group) == 2]
    seconds = [group[1] for group in groups if len(group) == 2]
    block.arguments = firsts + seconds
    op.regions = [block]


def scan(r: Reader, op: Operation) -> None:
    """`chlo.scan(%inputs) inits(%inits) dimension = 0 attributes {…} { region } : types`."""
    r.expect("(")
    inputs = r._until(")", r.value)
    r.expect("inits")
    r.expect("(")
    op.operands = inputs + r._until(")", r.value)
    r.expect("dimension")
    r.expect("=")
    op.attributes["dimension"] = r.integer()
    op.attributes["input_count"] = len(inputs)
    if r.accept("attributes"):
        r.attribute_dictionary(op)
    op.regions = [r.region()]
    signature(r, op)


def while_(r: Reader, op: Operation) -> None:
    """`while(%iterArg = %init, …) : types cond { … } do { … }`."""
    r.expect("(")
    names = []
    while not r.accept(")"):
        names.append(r.value())
        r.expect("=")
        op.operands.append(r.value())
        r.accept(",")
    if r.accept(":"):
        op.operand_types = [r.type()]
        while r.accept(","):
            op.operand_types.append(r.type())
    op.result_types = list(op.operand_types)
    located = r.trailing_location()
    if r.accept("attributes"):
        r.attribute_dictionary(op)
    r.expect("cond")
    condition = r.region()
    r.expect("do")
    body = r.region()
    arguments = [(name, kind, None) for name, kind in zip(names, op.operand_types, strict=False)]
    condition.arguments, body.arguments = list(arguments), list(arguments)
    op.regions = [condition, body]
    op.location = located


def convolution(r: Reader, op: Operation) -> None:
    """`convolution(%a, %b) dim_numbers = …, window = {…} {…} : types`."""
    r.expect("(")
    op.operands = r._until(")", r.value)
    if r.accept("dim_numbers"):
        r.expect("=")
        op.attributes["dimension_numbers"] = Raw(_dim_numbers(r))
        r.accept(",")
    if r.accept("window"):
        r.expect("=")
        r.expect("{")
        names = {
            "stride": "window_strides",
            "pad": "padding",
            "lhs_dilate": "lhs_dilation",
            "rhs_dilate": "rhs_dilation",
            "reverse": "window_reversal",
        }
        for key, value in r.dictionary().items():
            op.attributes[names.get(key, key)] = value
    r.attribute_dictionary(op)
    signature(r, op)


def _dim_numbers(r: Reader) -> str:
    start = r.offsets[r.at]
    r.balanced()
    r.expect("x")
    r.balanced()
    r.expect("->")
    r.balanced()
    return r.text[start : r.offsets[r.at - 1] + 1]


def custom_call(r: Reader, op: Operation) -> None:
    """`custom_call @target(%a, …) {…} : types`."""
    op.attributes["call_target_name"] = str(r.symbol())
    r.expect("(")
    op.operands = r._until(")", r.value)
    r.attribute_dictionary(op)
    signature(r, op)


def call(r: Reader, op: Operation) -> None:
    """`call @f(%a, …) : types`."""
    op.name = "func.call"
    op.attributes["callee"] = r.symbol()
    r.expect("(")
    op.operands = r._until(")", r.value)
    r.attribute_dictionary(op)
    signature(r, op)


def composite(r: Reader, op: Operation) -> None:
    """`composite "name" %a, … {…} : types`."""
    op.attributes["name"] = r.attribute()
    default_pretty(r, op)


def get_tuple_element(r: Reader, op: Operation) -> None:
    """`get_tuple_element %a[1] : types`."""
    op.operands.append(r.value())
    r.expect("[")
    op.attributes["index"] = r.integer()
    r.expect("]")
    r.attribute_dictionary(op)
    signature(r, op)


def tuple_(r: Reader, op: Operation) -> None:
    """`tuple %a, %b : tuple<…>`."""
    while r.tokens[r.at][:1] == "%":
        op.operands.append(r.take())
        r.accept(",")
    r.attribute_dictionary(op)
    r.expect(":")
    kind = r.type()
    op.result_types = [kind]
    op.operand_types = list(getattr(kind, "elements", ()))


def top_k(r: Reader, op: Operation) -> None:
    """`chlo.top_k(%a, k = 5) : types`."""
    r.expect("(")
    op.operands.append(r.value())
    while r.accept(","):
        name = r.take()
        r.expect("=")
        op.attributes[name] = r.attribute()
    r.expect(")")
    r.attribute_dictionary(op)
    signature(r, op)


def reduce_precision(r: Reader, op: Operation) -> None:
    """`reduce_precision %a, format = e5m10 : type`."""
    default_pretty(r, op)
    form = str(op.attributes.pop("format", ""))
    if form:
        exponent, _, mantissa = form[1:].partition("m")
        op.attributes.update(exponent_bits=int(exponent), mantissa_bits=int(mantissa))


def module(r: Reader, op: Operation) -> None:
    """`module @name attributes {…} { … }`."""
    op.name = "builtin.module"
    if r.tokens[r.at][:1] == "@":
        op.attributes["sym_name"] = str(r.symbol())
    if r.accept("attributes"):
        r.attribute_dictionary(op)
    r.expect("{")
    block = Block()
    while not r.accept("}"):
        if not r._alias_definition():
            block.operations.append(r.operation())
    op.regions = [block]


def function(r: Reader, op: Operation) -> None:
    """`func.func public @name(%a: type {…}) -> (type {…}) attributes {…} { … }`."""
    op.name = "func.func"
    if r.tokens[r.at] in ("public", "private", "nested"):
        op.attributes["sym_visibility"] = r.take()
    op.attributes["sym_name"] = str(r.symbol())
    block = Block()
    argument_attributes = []
    r.expect("(")
    while not r.accept(")"):
        if r.tokens[r.at][:1] == "%":
            name = r.value()
            r.expect(":")
        else:
            name = ""
        kind = r.type()
        argument_attributes.append(r.dictionary() if r.accept("{") else {})
        block.arguments.append((name, kind, r.trailing_location()))
        r.accept(",")
    result_attributes = []
    if r.accept("->"):
        if r.accept("("):
            while not r.accept(")"):
                op.result_types.append(r.type())
                result_attributes.append(r.dictionary() if r.accept("{") else {})
                r.accept(",")
        else:
            op.result_types.append(r.type())
            result_attributes.append({})
    op.attributes["arg_attrs"] = argument_attributes
    op.attributes["res_attrs"] = result_attributes
    if r.accept("attributes"):
        r.attribute_dictionary(op)
    if r.tokens[r.at] == "{":
        body = r.region()
        block.operations = body.operations
        op.regions = [block]


def return_(r: Reader, op: Operation) -> None:
    """`return %a, … : types`."""
    while r.tokens[r.at][:1] == "%":
        op.operands.append(r.take())
        r.accept(",")
    r.attribute_dictionary(op)
    if r.accept(":"):
        op.operand_types = [r.type()]
        while r.accept(","):
            op.operand_types.append(r.type())


def all_types(r: Reader, op: Operation) -> None:
    """`optimization_barrier %a, %b : type, type`, results of the same types."""
    while r.tokens[r.at][:1] == "%":
        op.operands.append(r.take())
        r.accept(",")
    r.attribute_dictionary(op)
    signature(r, op)


def sdy_mesh(r: Reader, op: Operation) -> None:
    """`sdy.mesh @name = <["x"=4]>`."""
    op.attributes["sym_name"] = str(r.symbol())
    r.expect("=")
    op.attributes["mesh"] = Raw(r.balanced())
    r.attribute_dictionary(op)


def sdy_constraint(r: Reader, op: Operation) -> None:
    """`sdy.sharding_constraint %a <@mesh, […]> : type`."""
    op.operands.append(r.value())
    op.attributes["sharding"] = Raw(r.balanced())
    r.attribute_dictionary(op)
    signature(r, op)


def sdy_manual(r: Reader, op: Operation) -> None:
    """`sdy.manual_computation(%a) in_shardings=[…] out_shardings=[…] manual_axes={…} (%arg: type) {…} : types`."""
    r.expect("(")
    op.operands = r._until(")", r.value)
    while r.tokens[r.at] in ("in_shardings", "out_shardings", "manual_axes"):
        name = r.take()
        r.expect("=")
        op.attributes[name] = Raw(r.balanced())
    r.expect("(")
    arguments = r._until(")", r.argument)
    block = r.region()
    block.arguments = arguments
    op.regions = [block]
    signature(r, op)


PRETTY: dict[str, Callable[[Reader, Operation], None]] = {
    "module": module,
    "builtin.module": module,
    "func.func": function,
    "func": function,
    "func.call": call,
    "call": call,
    "func.return": return_,
    "return": return_,
    "stablehlo.return": return_,
    "sdy.return": return_,
    "stablehlo.constant": constant,
    "arith.constant": constant,
    "chlo.scan": scan,
    "stablehlo.compare": compare,
    "stablehlo.slice": slice_,
    "stablehlo.reduce": reduce,
    "stablehlo.while": while_,
    "stablehlo.convolution": convolution,
    "stablehlo.custom_call": custom_call,
    "stablehlo.composite": composite,
    "stablehlo.get_tuple_element": get_tuple_element,
    "stablehlo.tuple": tuple_,
    "stablehlo.reduce_precision": reduce_precision,
    "stablehlo.optimization_barrier": all_types,
    "chlo.top_k": top_k,
    "sdy.mesh": sdy_mesh,
    "sdy.sharding_constraint": sdy_constraint,
    "sdy.manual_computation": sdy_manual,
}
