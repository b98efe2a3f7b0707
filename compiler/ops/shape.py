"""Operations that move elements without changing them, under static shapes.

broadcast_in_dim, reshape, transpose, pad, concatenate, reverse, copy and bitcast; slices are in `slicing`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.ir.semantics import OperationError
from compiler.ir.types import DYNAMIC, QuantizedType, TensorType, Type
from compiler.ops.constraints import (
    given_result,
    merged_shape,
    require,
    require_in_range,
    require_unique,
    same_baseline,
    same_dimension,
    shape_text,
    tensor_result,
)
from compiler.ops.record import VARIADIC, Array, Attribute, Evaluation, Operation, Site, Trait
from compiler.ops.type_rules import (
    require_broadcast_quantization,
    require_one_bounded_dimension,
    require_reshape_quantization,
    require_same_quantization,
)


def result_shape(evaluation: Evaluation) -> tuple[int, ...]:
    """The static shape that the instruction's type promises."""
    assert isinstance(evaluation.result, TensorType)
    return evaluation.result.shape


def movement(opcode: str, infer: Any, evaluate: Any, *attributes: Attribute, **extra: Any) -> Operation:
    """The record of an operation that only moves elements."""
    traits = frozenset((Trait.DATA_MOVEMENT, *extra.pop("traits", ())))
    spec = extra.pop("spec", f"StableHLO, {opcode}")
    verify = extra.pop("verify", require_same_quantization)
    arity = extra.pop("arity", 1)
    return Operation(
        opcode,
        infer,
        evaluate,
        arity=arity,
        attributes=attributes,
        traits=traits,
        spec=spec,
        verify=verify,
        **extra,
    )


def require_same_elements(site: Site) -> TensorType:
    """The declared result, whose elements must be the operand's. Raises OperationError otherwise."""
    result, operand = given_result(site), site.tensor(0)
    require(
        same_baseline(result.element, operand.element),
        f"(C1) operand and result must have one element type, but are {operand} and {result}",
    )
    return result


def _infer_broadcast(site: Site) -> Type:
    return require_same_elements(site)


def check_broadcast(operand: TensorType, result: TensorType, dimensions: tuple[int, ...]) -> None:
    """The constraints that `broadcast_in_dim` and its dynamic form share. Raises OperationError."""
    require(
        len(dimensions) == operand.rank,
        f"(C2) broadcast_dimensions must name a result dimension for each of the {operand.rank} operand dimensions, "
        f"but is {list(dimensions)}",
    )
    require_in_range(dimensions, result.rank, "(C3) broadcast_dimensions must be dimensions of the result")
    require_unique(dimensions, "(C4) broadcast_dimensions must not repeat")
    for index, dimension in enumerate(dimensions):
        size, wanted = operand.shape[index], result.shape[dimension]
        require(
            size == 1 or same_dimension(size, wanted),
            f"(C5) operand dimension {index} of size {size} must be 1 or match result dimension {dimension} "
            f"of size {wanted}",
        )


def _verify_broadcast(site: Site) -> None:
    operand, result, dimensions = site.tensor(0), tensor_result(site), site.attributes["broadcast_dimensions"]
    check_broadcast(operand, result, dimensions)
    require_broadcast_quantization(operand, result, dimensions)
    require_one_bounded_dimension(result)


def broadcast(x: Array, dimensions: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """Repeats `x` along the dimensions that it lacks or has in size 1; a view where nothing need be copied."""
    order = sorted(range(x.ndim), key=dimensions.__getitem__)
    expanded = [1] * len(shape)
    for index, dimension in enumerate(dimensions):
        expanded[dimension] = x.shape[index]
    return np.broadcast_to(x.transpose(order).reshape(expanded), shape)


def _broadcast(evaluation: Evaluation, x: Array) -> Array:
    shape = result_shape(evaluation)
    return broadcast(x, evaluation.attributes["broadcast_dimensions"], shape)


def _verify_reshape(site: Site) -> None:
    operand, result = site.tensor(0), tensor_result(site)
    require_reshape_quantization(operand, result)
    require_one_bounded_dimension(result)
    if operand.is_static and result.is_static:
        require(
            operand.size == result.size,
            f"(C2) operand and result must have as many elements, but {operand} has {operand.size} "
            f"and {result} has {result.size}",
        )


def _reshape(evaluation: Evaluation, x: Array) -> Array:
    return x.reshape(result_shape(evaluation))


def _infer_transpose(site: Site) -> Type:
    operand = site.tensor(0)
    permutation = site.attributes["permutation"]
    require(
        sorted(permutation) == list(range(operand.rank)),
        f"(C2) permutation must reorder the {operand.rank} operand dimensions, but is {list(permutation)}",
    )
    bounds = operand.bounds and tuple(operand.bounds[d] for d in permutation)
    element = operand.element
    if isinstance(element, QuantizedType) and element.axis is not None:
        axis = permutation.index(element.axis)
        element = QuantizedType(
            element.storage,
            element.expressed,
            element.scales,
            element.zero_points,
            element.storage_min,
            element.storage_max,
            axis,
        )
    return TensorType(element, tuple(operand.shape[d] for d in permutation), None, bounds)


def _verify_transpose(site: Site) -> None:
    inferred, result = _infer_transpose(site), tensor_result(site)
    assert isinstance(inferred, TensorType)
    require(
        inferred.element == result.element,
        f"(C4) scales, zero points and axis must go along: result must be {inferred}, but is {result}",
    )


def _transpose(evaluation: Evaluation, x: Array) -> Array:
    return x.transpose(evaluation.attributes["permutation"])


def _infer_pad(site: Site) -> Type:
    operand, value = site.tensor(0), site.tensor(1)
    low, high = site.attributes["edge_padding_low"], site.attributes["edge_padding_high"]
    interior = site.attributes.get("interior_padding", (0,) * len(low))
    require(
        same_baseline(operand.element, value.element) and value.rank == 0,
        f"(C1) padding_value must be a scalar of the operand's elements, but is {value} beside {operand}",
    )
    require(
        len(low) == len(high) == len(interior) == operand.rank,
        f"(C2) each padding must have an entry for each of {operand.rank} dimensions",
    )
    shape = []
    for index, size in enumerate(operand.shape):
        require(interior[index] >= 0, f"(C3) interior_padding must not be negative, but is {list(interior)}")
        if size == DYNAMIC:
            shape.append(DYNAMIC)
            continue
        padded = size + low[index] + max(size - 1, 0) * interior[index] + high[index]
        require(padded >= 0, f"(C4) dimension {index} of {operand} would have the negative size {padded}")
        shape.append(padded)
    return operand.with_shape(tuple(shape))


def pad(x: Array, value: Array, low: Any, high: Any, interior: Any) -> Array:
    """Pads at the edges (negative amounts cut) and between elements."""
    spread = [size + max(size - 1, 0) * gap for size, gap in zip(x.shape, interior, strict=True)]
    shape = tuple(size + a + b for size, a, b in zip(spread, low, high, strict=True))
    found = np.full(shape, value, x.dtype)
    source, target = [], []
    for size, gap, start, room in zip(x.shape, interior, low, shape, strict=True):
        step = gap + 1
        first = max(0, -(start // step)) if start < 0 else 0
        last = min(size, (room - start + step - 1) // step)
        count = max(0, last - first)
        source.append(slice(first, first + count))
        at = start + first * step
        target.append(slice(at, at + count * step if count else at, step))
    if all(part.stop > part.start for part in source):
        found[tuple(target)] = x[tuple(source)]
    return found


def _pad(evaluation: Evaluation, x: Array, value: Array) -> Array:
    attributes = evaluation.attributes
    interior = attributes.get("interior_padding", (0,) * x.ndim)
    return pad(x, value, attributes["edge_padding_low"], attributes["edge_padding_high"], interior)


def _infer_concatenate(site: Site) -> Type:
    require(len(site.operands) > 0, "(C3) concatenate needs at least one input")
    dimension = site.attributes["dimension"]
    inputs = site.tensors
    first = inputs[0]
    require(
        0 <= dimension < first.rank,
        f"(C4) dimension must be one of the inputs' {first.rank} dimensions, but is {dimension}",
    )
    total = 0
    others = []
    for entry in inputs:
        require(
            same_baseline(entry.element, first.element) and entry.rank == first.rank,
            f"(C1) inputs must have one element type and rank, but are {', '.join(map(str, inputs))}",
        )
        size = entry.shape[dimension]
        total = DYNAMIC if DYNAMIC in (total, size) else total + size
        others.append(entry.with_shape((*entry.shape[:dimension], 0, *entry.shape[dimension + 1 :])))
    rest = merged_shape(others)
    if rest is None:
        listed = ", ".join(shape_text(entry.shape) for entry in inputs)
        raise OperationError(
            f"(C2) inputs may differ in dimension {dimension} alone, but have shapes {listed}"
        )
    return first.with_shape((*rest[:dimension], total, *rest[dimension + 1 :]))


def _concatenate(evaluation: Evaluation, *inputs: Array) -> Array:
    return np.concatenate(inputs, axis=evaluation.attributes["dimension"])


def _infer_reverse(site: Site) -> Type:
    operand = site.tensor(0)
    dimensions = site.attributes["dimensions"]
    require_unique(dimensions, "(C2) dimensions must not repeat")
    require_in_range(dimensions, operand.rank, "(C3) dimensions must be dimensions of the operand")
    return operand


def _reverse(evaluation: Evaluation, x: Array) -> Array:
    return np.flip(x, evaluation.attributes["dimensions"])


def _infer_operand(site: Site) -> Type:
    return site.operands[0]


def _identity(evaluation: Evaluation, x: Any) -> Any:
    return x


def _infer_bitcast(site: Site) -> Type:
    result = require_same_elements(site)
    operand = site.tensor(0)
    require(operand.size == result.size, f"{operand} has other elements than {result}")
    return result


def _bitcast(evaluation: Evaluation, x: Array) -> Array:
    """Reads the operand's buffer, in its layout's order, as the result's."""
    operand, result = evaluation.operand_types[0], evaluation.result
    assert isinstance(operand, TensorType) and isinstance(result, TensorType)
    physical = x.transpose(operand.minor_to_major[::-1]).reshape(-1)
    major_to_minor = result.minor_to_major[::-1]
    stored = physical.reshape(tuple(result.shape[d] for d in major_to_minor))
    return stored.transpose(tuple(np.argsort(major_to_minor)) if major_to_minor else ())


_LOW = Attribute("edge_padding_low", "i64s", required=True)
_HIGH = Attribute("edge_padding_high", "i64s", required=True)

OPERATIONS: tuple[Operation, ...] = (
    movement(
        "broadcast_in_dim",
        _infer_broadcast,
        _broadcast,
        Attribute("broadcast_dimensions", "i64s", required=True),
        verify=_verify_broadcast,
        hlo="broadcast",
    ),
    movement("reshape", require_same_elements, _reshape, verify=_verify_reshape),
    movement(
        "transpose",
        _infer_transpose,
        _transpose,
        Attribute("permutation", "i64s", required=True),
        verify=_verify_transpose,
    ),
    movement("pad", _infer_pad, _pad, _LOW, _HIGH, Attribute("interior_padding", "i64s"), arity=2),
    movement(
        "concatenate",
        _infer_concatenate,
        _concatenate,
        Attribute("dimension", "i64", required=True),
        arity=VARIADIC,
    ),
    movement("reverse", _infer_reverse, _reverse, Attribute("dimensions", "i64s", required=True)),
    movement("copy", _infer_operand, _identity, traits=(Trait.HLO_ONLY,), spec="HLO, copy"),
    movement("bitcast", _infer_bitcast, _bitcast, traits=(Trait.HLO_ONLY,), spec="HLO, bitcast"),
)
