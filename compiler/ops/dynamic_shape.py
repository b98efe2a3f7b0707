"""Shape operations whose sizes are operands: gone after shape refinement, evaluated here by the sizes' values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compiler.ir.semantics import OperationError
from compiler.ir.types import DYNAMIC, TensorType, Type
from compiler.ops.constraints import (
    given_result,
    require,
    require_in_range,
    require_unique,
    same_baseline,
    same_dimension,
    same_shape,
    tensor_result,
)
from compiler.ops.record import Array, Attribute, Evaluation, Operation, Site, Trait
from compiler.ops.shape import broadcast, check_broadcast, pad, require_same_elements
from compiler.ops.structure import iota
from compiler.ops.type_rules import require_broadcast_quantization


def _require_sizes(site: Site, index: int, name: str, count: int) -> None:
    """An operand must be a vector with one integer for each of `count` dimensions."""
    found = site.tensor(index)
    require(
        found.rank == 1 and found.element.is_integer and same_dimension(found.shape[0], count),
        f"{name} must hold {count} integers, but is {found}",
    )


def _sizes(values: Array) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def _infer_broadcast(site: Site) -> Type:
    result = require_same_elements(site)
    dimensions = site.attributes["broadcast_dimensions"]
    check_broadcast(site.tensor(0), result, dimensions)
    require_broadcast_quantization(site.tensor(0), result, dimensions)
    _require_sizes(site, 1, "(C7) output_dimensions", result.rank)
    known = (
        *site.attributes.get("known_expanding_dimensions", ()),
        *site.attributes.get("known_nonexpanding_dimensions", ()),
    )
    require_unique(known, "(C8) known expanding and nonexpanding dimensions must not repeat")
    require_in_range(known, site.tensor(0).rank, "(C9) known dimensions must be dimensions of the operand")
    return result


def _broadcast(evaluation: Evaluation, x: Array, sizes: Array) -> Array:
    dimensions, shape = evaluation.attributes["broadcast_dimensions"], _sizes(sizes)
    for index, dimension in enumerate(dimensions):
        if x.shape[index] not in (1, shape[dimension]):
            raise OperationError(
                f"operand dimension {index} of size {x.shape[index]} cannot be broadcast to {shape[dimension]}"
            )
    return broadcast(x, dimensions, shape)


def _infer_reshape(site: Site) -> Type:
    result = require_same_elements(site)
    operand, sizes = site.tensor(0), site.tensor(1)
    _require_sizes(site, 1, "(C4) output_shape", result.rank)
    require(sizes.is_static, f"(C4) output_shape must be static, but is {sizes}")
    if operand.is_static and result.is_static:
        require(operand.size == result.size, f"(C2) {operand} and {result} must have as many elements")
    return result


def _reshape(evaluation: Evaluation, x: Array, sizes: Array) -> Array:
    shape = _sizes(sizes)
    if int(np.prod(shape, dtype=np.int64)) != x.size:
        raise OperationError(f"{x.size} elements cannot be given the shape {list(shape)}")
    return x.reshape(shape)


def _infer_iota(site: Site) -> Type:
    result = given_result(site)
    _require_sizes(site, 0, "(C2) output_shape", result.rank)
    dimension = site.attributes["iota_dimension"]
    require(
        0 <= dimension < result.rank,
        f"(C1) iota_dimension must be one of the result's {result.rank} dimensions, but is {dimension}",
    )
    return result


def _iota(evaluation: Evaluation, sizes: Array) -> Array:
    result = evaluation.result
    assert isinstance(result, TensorType)
    with np.errstate(all="ignore"):
        return iota(result, _sizes(sizes), evaluation.attributes["iota_dimension"])


def _infer_pad(site: Site) -> Type:
    result, operand, value = require_same_elements(site), site.tensor(0), site.tensor(1)
    require(
        same_baseline(value.element, operand.element) and value.rank == 0,
        f"(C1) padding_value must be a scalar of the operand's elements, but is {value}",
    )
    for index, name in ((2, "edge_padding_low"), (3, "edge_padding_high"), (4, "interior_padding")):
        _require_sizes(site, index, f"(C2) {name}", operand.rank)
    require(result.rank == operand.rank, f"(C4) result must have the operand's rank, but is {result}")
    return result


def _pad(evaluation: Evaluation, x: Array, value: Array, low: Array, high: Array, interior: Array) -> Array:
    gaps = _sizes(interior)
    if any(gap < 0 for gap in gaps):
        raise OperationError(f"(C3) interior_padding must not be negative, but is {list(gaps)}")
    return pad(x, value, _sizes(low), _sizes(high), gaps)


def _infer_slice(site: Site) -> Type:
    result, operand = require_same_elements(site), site.tensor(0)
    for index, name in ((1, "start_indices"), (2, "limit_indices"), (3, "strides")):
        _require_sizes(site, index, f"(C2) {name}", operand.rank)
    require(result.rank == operand.rank, f"(C3) result must have the operand's rank, but is {result}")
    return result


def _slice(evaluation: Evaluation, x: Array, starts: Array, limits: Array, strides: Array) -> Array:
    parts = []
    for index, (start, limit, stride) in enumerate(zip(*map(_sizes, (starts, limits, strides)), strict=True)):
        if not 0 <= start <= limit <= x.shape[index] or stride < 1:
            raise OperationError(
                f"dimension {index} of size {x.shape[index]} has no slice [{start}:{limit}:{stride}]"
            )
        parts.append(slice(start, limit, stride))
    return x[tuple(parts)]


def _require_shape(site: Site, operand: int, constraint: str) -> tuple[int, ...] | None:
    """Sizes that are known must be those of the result. Gives them."""
    sizes = site.sizes(operand)
    if sizes is not None:
        result = tensor_result(site)
        require(
            all(size >= 0 for size in sizes) and same_shape(sizes, result.shape),
            f"{constraint} is {list(sizes)}, but the result is {result}",
        )
    return sizes


def _verify_broadcast(site: Site) -> None:
    sizes = _require_shape(site, 1, "(C7) output_dimensions")
    if sizes is not None:
        operand = site.tensor(0)
        for index, dimension in enumerate(site.attributes["broadcast_dimensions"]):
            require(
                operand.shape[index] in (DYNAMIC, 1, sizes[dimension]),
                f"(C5) operand dimension {index} of size {operand.shape[index]} cannot be broadcast to "
                f"{sizes[dimension]}",
            )


def _verify_reshape(site: Site) -> None:
    sizes = _require_shape(site, 1, "(C4) output_shape")
    operand = site.tensor(0)
    if sizes is not None and operand.is_static:
        require(
            math.prod(sizes) == operand.size,
            f"(C2) the {operand.size} elements of {operand} cannot be given the shape {list(sizes)}",
        )


def _verify_iota(site: Site) -> None:
    _require_shape(site, 0, "output_shape")


def _verify_pad(site: Site) -> None:
    low, high, interior = site.sizes(2), site.sizes(3), site.sizes(4)
    if interior is not None:
        require(min(interior, default=0) >= 0, f"(C3) interior_padding is negative: {list(interior)}")
    if low is None or high is None or interior is None:
        return
    operand, result = site.tensor(0), tensor_result(site)
    for dimension, size in enumerate(operand.shape):
        if size == DYNAMIC:
            continue
        padded = low[dimension] + size + max(size - 1, 0) * interior[dimension] + high[dimension]
        require(
            padded >= 0 and same_dimension(padded, result.shape[dimension]),
            f"(C4) dimension {dimension} has size {padded} when it is padded, but the result is {result}",
        )


def _verify_slice(site: Site) -> None:
    starts, limits, strides = site.sizes(1), site.sizes(2), site.sizes(3)
    if starts is None or limits is None or strides is None:
        return
    operand, result = site.tensor(0), tensor_result(site)
    for index, (start, limit, stride) in enumerate(zip(starts, limits, strides, strict=True)):
        size = operand.shape[index]
        require(
            0 <= start <= limit and (size == DYNAMIC or limit <= size) and stride > 0,
            f"dimension {index} of {operand} has no slice [{start}:{limit}:{stride}]",
        )
        taken = -((start - limit) // stride)
        require(
            same_dimension(taken, result.shape[index]),
            f"slice [{start}:{limit}:{stride}] of dimension {index} has size {taken}, but the result is {result}",
        )


def _dynamic(
    opcode: str,
    infer: Any,
    evaluate: Any,
    verify: Any,
    operands: int,
    first_size: int,
    *attributes: Attribute,
) -> Operation:
    return Operation(
        opcode,
        infer,
        evaluate,
        arity=operands,
        attributes=attributes,
        verify=verify,
        size_operands=tuple(range(first_size, operands)),
        traits=frozenset((Trait.DYNAMIC_SHAPE, Trait.DATA_MOVEMENT)),
        spec=f"StableHLO, {opcode}",
    )


OPERATIONS: tuple[Operation, ...] = (
    _dynamic(
        "dynamic_broadcast_in_dim",
        _infer_broadcast,
        _broadcast,
        _verify_broadcast,
        2,
        1,
        Attribute("broadcast_dimensions", "i64s", required=True),
        Attribute("known_expanding_dimensions", "i64s"),
        Attribute("known_nonexpanding_dimensions", "i64s"),
    ),
    _dynamic("dynamic_reshape", _infer_reshape, _reshape, _verify_reshape, 2, 1),
    _dynamic(
        "dynamic_iota",
        _infer_iota,
        _iota,
        _verify_iota,
        1,
        0,
        Attribute("iota_dimension", "i64", required=True),
    ),
    _dynamic("dynamic_pad", _infer_pad, _pad, _verify_pad, 5, 2),
    _dynamic("real_dynamic_slice", _infer_slice, _slice, _verify_slice, 4, 1),
)
