"""Elementwise operations whose operands or results have several types: compare, select, clamp, complex, map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler.ir.semantics import OperationError
from compiler.ir.types import C64, C128, F32, F64, I1, ElementType, QuantizedType, TensorType, Type, element
from compiler.ops import complex_functions as plane
from compiler.ops.constraints import (
    compatible,
    merged_shape,
    plain,
    require,
    same_baseline,
    same_shape,
    tensor_result,
)
from compiler.ops.element_arrays import narrow, unsigned_bits, widen
from compiler.ops.elementwise import EVERY, elementwise, infer_same, unquantized
from compiler.ops.elementwise_binary import MAXIMUM_RULE, MINIMUM_RULE, maximum_floats, minimum_floats
from compiler.ops.quantization import quantize
from compiler.ops.record import VARIADIC, Array, Attribute, Evaluation, Operation, Site, Value
from compiler.ops.scalar import ScalarBuilder, ScalarSite, ScalarValue

DIRECTIONS = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}
COMPARE_TYPES = ("SIGNED", "UNSIGNED", "FLOAT", "TOTALORDER")
_EVERYTHING = dict.fromkeys(EVERY, np.equal)


def _infer_compare(site: Site) -> Type:
    operand = infer_same(site)
    assert isinstance(operand, TensorType)
    return operand.with_element(I1)


def _verify_compare(site: Site) -> None:
    kind = site.tensor(0).element.kind
    allowed = {
        "int": ("SIGNED",),
        "uint": ("UNSIGNED",),
        "bool": ("UNSIGNED",),
        "float": ("FLOAT", "TOTALORDER"),
        "complex": ("FLOAT",),
    }.get(kind)
    found = site.attributes.get("compare_type")
    if found is not None and allowed is not None:
        require(
            found in allowed,
            f"(C3) compare_type of {kind} elements must be {' or '.join(allowed)}, not {found}",
        )


def total_order_key(x: Array) -> Array:
    """Integers in the order -NaN < -inf < … < -0 < +0 < … < inf < NaN (IEEE 754, totalOrder)."""
    bits = unsigned_bits(x)
    signed = bits.view(f"i{bits.dtype.itemsize}")
    magnitude = signed & np.iinfo(signed.dtype).max
    return np.asarray(np.where(signed < 0, -magnitude - signed.dtype.type(1), magnitude))


def _compare(evaluation: Evaluation, x: Array, y: Array) -> Array:
    direction = evaluation.attributes["comparison_direction"]
    operand_types = [entry.element for entry in evaluation.operand_types if isinstance(entry, TensorType)]
    with np.errstate(all="ignore"):
        kinds, (x, y) = unquantized(operand_types, (x, y))
        kind = kinds[0]
        if evaluation.attributes.get("compare_type") == "TOTALORDER":
            return np.asarray(DIRECTIONS[direction](total_order_key(x), total_order_key(y)))
        if kind.is_complex and direction not in ("EQ", "NE"):
            return _compare_complex(direction, x, y)
        return np.asarray(DIRECTIONS[direction](widen(x, kind), widen(y, kind)))


def _compare_complex(direction: str, x: Array, y: Array) -> Array:
    first, second = (x, y) if direction.startswith("L") else (y, x)
    found = plane.is_less(first, second)
    return np.asarray(found | (x == y) if direction.endswith("E") else found)


def _compare_rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    e = site.operands[0]
    direction = site.attributes["comparison_direction"]
    name = direction.lower()
    if e.is_complex:
        return _compare_complex_rule(b, e, direction, x)
    if e.is_float and site.attributes.get("compare_type") == "TOTALORDER":
        integer, left = _ordered_bits(b, e, x[0])
        right = _ordered_bits(b, e, x[1])[1]
        return b.compare(integer, name if name in ("eq", "ne") else f"s{name}", left, right)
    if e.is_float:
        return b.compare(e, "une" if name == "ne" else f"o{name}", x[0], x[1])
    if name in ("eq", "ne"):
        return b.compare(e, name, x[0], x[1])
    return b.compare(e, f"{'s' if e.kind == 'int' else 'u'}{name}", x[0], x[1])


def _ordered_bits(b: ScalarBuilder, e: ElementType, x: ScalarValue) -> tuple[ElementType, ScalarValue]:
    integer = element(f"i{e.storage_bytes * 8}")
    bits = b.bitcast(e, integer, x)
    flipped = b.int_op(integer, "xor", bits, b.constant(integer, (1 << (integer.bits - 1)) - 1))
    return integer, b.select(integer, b.compare(integer, "slt", bits, b.constant(integer, 0)), flipped, bits)


def _compare_complex_rule(
    b: ScalarBuilder, e: ElementType, direction: str, x: Sequence[ScalarValue]
) -> ScalarValue:
    real = [b.real(e, value) for value in x]
    imag = [b.imag(e, value) for value in x]
    equal = b.int_op(I1, "and", b.compare(e.real, "oeq", *real), b.compare(e.real, "oeq", *imag))
    if direction == "EQ":
        return equal
    if direction == "NE":
        return b.int_op(I1, "xor", equal, b.constant(I1, True))
    strict = "olt" if direction.startswith("L") else "ogt"
    tied = b.int_op(I1, "and", b.compare(e.real, "oeq", *real), b.compare(e.real, strict, *imag))
    found = b.int_op(I1, "or", b.compare(e.real, strict, *real), tied)
    return b.int_op(I1, "or", found, equal) if direction.endswith("E") else found


def _infer_select(site: Site) -> Type:
    predicate, first, second = site.tensors
    require(predicate.element is I1, f"pred must have i1 elements, but is {predicate}")
    require(
        same_baseline(first.element, second.element) and same_shape(first.shape, second.shape),
        f"(C2) on_true and on_false must have one type, but are {first} and {second}",
    )
    require(
        predicate.rank == 0 or same_shape(predicate.shape, first.shape),
        f"(C1) pred must be a scalar or have the shape of on_true, but is {predicate} beside {first}",
    )
    shape = merged_shape((first, second, predicate) if predicate.rank else (first, second))
    return first if shape == first.shape or shape is None else first.with_shape(shape)


def _select(evaluation: Evaluation, predicate: Array, x: Array, y: Array) -> Array:
    result = evaluation.result
    assert isinstance(result, TensorType)
    if isinstance(result.element, QuantizedType):
        kinds = [entry.element for entry in evaluation.operand_types[1:] if isinstance(entry, TensorType)]
        _, (x, y) = unquantized(kinds, (x, y))
        return quantize(np.asarray(np.where(predicate, x, y)), result.element)
    return np.asarray(np.where(predicate, x, y))


def _select_rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    return b.select(site.result, x[0], x[1], x[2])


def _infer_clamp(site: Site) -> Type:
    low, operand, high = site.tensors
    for number, name, limit in (("(C1)", "min", low), ("(C2)", "max", high)):
        require(
            limit.rank == 0 or same_shape(limit.shape, operand.shape),
            f"{number} {name} must be a scalar or have the operand's shape, but is {limit} beside {operand}",
        )
        require(
            same_baseline(limit.element, operand.element),
            f"(C3) {name} must have the operand's element type, but is {limit} beside {operand}",
        )
    return operand


def _clamp(evaluation: Evaluation, low: Array, x: Array, high: Array) -> Array:
    result = evaluation.result
    assert isinstance(result, TensorType)
    kinds = [entry.element for entry in evaluation.operand_types if isinstance(entry, TensorType)]
    with np.errstate(all="ignore"):
        types, arrays = unquantized(kinds, (low, x, high))
        low, x, high = (widen(array, kind) for array, kind in zip(arrays, types, strict=True))
        if types[0].is_float:
            found = minimum_floats(maximum_floats(x, low), high)
        elif types[0].is_complex:
            found = plane.minimum(plane.maximum(x, low), high)
        else:
            found = np.minimum(np.maximum(x, low), high)
        if isinstance(result.element, QuantizedType):
            return quantize(narrow(found, result.element.expressed), result.element)
        return narrow(found, result.element)


def _clamp_rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    low, value, high = x
    two = ScalarSite((site.operands[1],) * 2, site.result, site.attributes)
    return MINIMUM_RULE(b, two, [MAXIMUM_RULE(b, two, [value, low]), high])


def _infer_complex(site: Site) -> Type:
    parts = infer_same(site)
    assert isinstance(parts, TensorType)
    require(parts.element in (F32, F64), f"operands must have f32 or f64 elements, but are {parts}")
    return parts.with_element(C64 if parts.element is F32 else C128)


def _complex(evaluation: Evaluation, real: Array, imag: Array) -> Array:
    return plane.join(real, imag)


def _complex_rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    return b.complex(site.result, x[0], x[1])


def _infer_map(site: Site) -> Type:
    require(len(site.operands) > 0, "(C2) map needs at least one input")
    shape = merged_shape(site.tensors)
    if shape is None:
        raise OperationError(f"(C1) inputs must have one shape, but are {', '.join(map(str, site.operands))}")
    result = site.called[0].result_type
    if not isinstance(result, TensorType) or result.rank != 0:
        raise OperationError(f"(C4) the computation must return a scalar, but returns {result}")
    return TensorType(result.element, shape)


def _verify_map(site: Site) -> None:
    rank = tensor_result(site).rank
    dimensions = tuple(site.attributes.get("dimensions", range(rank)))
    require(
        dimensions == tuple(range(rank)), f"(C3) dimensions must be all {rank}, in order, not {dimensions}"
    )
    parameters = site.called[0].parameter_types
    require(len(parameters) == len(site.operands), "(C4) the computation must take one scalar for each input")
    for index, (parameter, operand) in enumerate(zip(parameters, site.tensors, strict=True)):
        wanted = TensorType(plain(operand.element), ())
        require(
            compatible(parameter, wanted), f"(C4) parameter #{index} must be {wanted}, but is {parameter}"
        )


def _map(evaluation: Evaluation, *inputs: Array) -> Value:
    whole = evaluation.call_elementwise(0, *inputs)
    if whole is not None:
        return whole
    result = evaluation.result
    assert isinstance(result, TensorType)
    found = np.empty(inputs[0].shape, result.element.dtype)
    for index in np.ndindex(*inputs[0].shape):
        found[index] = evaluation.call(0, *(np.asarray(entry[index]) for entry in inputs))
    return found


def _flops_of_map(site: Site) -> float:
    return float(len(site.called[0]) * tensor_result(site).size)


def _any(opcode: str, arity: int, evaluate: Any, rule: Any, **extra: Any) -> Operation:
    return elementwise(opcode, _EVERYTHING, arity=arity, evaluate=evaluate, scalar=rule, **extra)


OPERATIONS: tuple[Operation, ...] = (
    _any(
        "compare",
        2,
        _compare,
        _compare_rule,
        infer=_infer_compare,
        verify=_verify_compare,
        attributes=(
            Attribute("comparison_direction", "enum", required=True, values=tuple(DIRECTIONS)),
            Attribute("compare_type", "enum", values=COMPARE_TYPES),
        ),
    ),
    _any("select", 3, _select, _select_rule, infer=_infer_select),
    _any("clamp", 3, _clamp, _clamp_rule, infer=_infer_clamp),
    elementwise(
        "complex",
        {"float": np.add},
        arity=2,
        infer=_infer_complex,
        evaluate=_complex,
        scalar=_complex_rule,
    ),
    Operation(
        "map",
        _infer_map,
        _map,
        arity=VARIADIC,
        attributes=(Attribute("dimensions", "i64s"),),
        regions=("to_apply",),
        verify=_verify_map,
        flops=_flops_of_map,
        spec="StableHLO, map",
    ),
)
"""`map` is no elementwise opcode of its own: passes inline its computation instead."""
