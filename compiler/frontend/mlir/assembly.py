"""Pretty forms of single operations, and the table of all forms that do not follow the common scheme."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from compiler.frontend.mlir.pretty_forms import default_pretty, signature
from compiler.frontend.mlir.region_forms import function, module, reduce, return_, scan, sdy_manual, while_
from compiler.frontend.mlir.tree import Operation, Raw

if TYPE_CHECKING:
    from compiler.frontend.mlir.reader import Reader


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


def convolution(r: Reader, op: Operation) -> None:
    """`convolution(%a, %b) dim_numbers = …, window = {…} {…} : types`."""
    r.expect("(")
    op.operands = r.until(")", r.value)
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
    op.operands = r.until(")", r.value)
    r.attribute_dictionary(op)
    signature(r, op)


def call(r: Reader, op: Operation) -> None:
    """`call @f(%a, …) : types`."""
    op.name = "func.call"
    op.attributes["callee"] = r.symbol()
    r.expect("(")
    op.operands = r.until(")", r.value)
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
    if len(op.operand_types) != len(op.operands):
        count = len(op.operand_types)
        r.fail(f"{op.name} has {len(op.operands)} operands, but its type has {count} elements", op.offset)


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
        if form[:1] != "e" or not (
            exponent.isdigit() and mantissa.isdigit() and len(exponent + mantissa) < 10
        ):
            r.fail(f"'{form[:40]}' is no format such as e5m10", op.offset)
        op.attributes.update(exponent_bits=int(exponent), mantissa_bits=int(mantissa))


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
    "chlo.constant": constant,
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
