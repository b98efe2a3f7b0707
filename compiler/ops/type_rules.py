"""What must hold of operand and result types themselves, whatever the operation: quantisation and bounds.

Verification asks these of every instruction; types that are neither quantised nor bounded cost nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import ml_dtypes

from compiler.ir.types import DYNAMIC, QuantizedType, TensorType, Type
from compiler.ops.constraints import require
from compiler.ops.record import Site

PER_AXIS_OPERATIONS = frozenset(
    [
        "add",
        "bitcast",
        "broadcast_in_dim",
        "bitcast_convert",
        "call",
        "case",
        "composite",
        "constant",
        "convolution",
        "copy",
        "custom_call",
        "dot",
        "dot_general",
        "dynamic_broadcast_in_dim",
        "dynamic_conv",
        "dynamic_reshape",
        "fusion",
        "get_dimension_size",
        "get_tuple_element",
        "if",
        "optimization_barrier",
        "outfeed",
        "parameter",
        "reshape",
        "send",
        "transpose",
        "tuple",
        "uniform_dequantize",
        "uniform_quantize",
        "while",
    ]
)
"""Operations whose operands may be quantised along an axis; all others take one scale for a tensor."""


def check_types(site: Site) -> None:
    """Checks the types of one use of an operation. Raises OperationError."""
    for index, operand in enumerate(site.operands):
        _check(operand, f"operand #{index}")
        if _axis(operand) is not None and site.opcode not in PER_AXIS_OPERATIONS:
            require(False, f"operand #{index} must not be quantized along an axis, but is {operand}")
    if site.result is not None:
        _check(site.result, "result")
    accuracy = site.attributes.get("result_accuracy")
    if accuracy is not None:
        _check_accuracy(str(accuracy))


def require_one_bounded_dimension(result: TensorType) -> None:
    """A result shape that no operand tells must be static, or dynamic in one bounded dimension."""
    dynamic = [d for d, size in enumerate(result.shape) if size == DYNAMIC]
    if not dynamic:
        return
    bounds = result.bounds or (DYNAMIC,) * result.rank
    require(
        len(dynamic) == 1 and bounds[dynamic[0]] != DYNAMIC,
        f"result must be static or have a single bounded dimension, but is {result}",
    )


def require_same_quantization(site: Site) -> None:
    """Elements that are only moved keep their scales and zero points."""
    operand, result = site.operands[0], site.result
    assert isinstance(operand, TensorType) and isinstance(result, TensorType)
    if isinstance(operand.element, QuantizedType):
        require(
            operand.element == result.element,
            f"(C1) operand and result must have one scale and zero point, but are {operand} and {result}",
        )


def require_broadcast_quantization(
    operand: TensorType, result: TensorType, dimensions: Sequence[int]
) -> None:
    """(C6) of `broadcast_in_dim`: the quantised axis goes along, and a single scale is repeated."""
    source, target = operand.element, result.element
    if not isinstance(source, QuantizedType) or not isinstance(target, QuantizedType):
        return
    if source.axis is None or target.axis is None:
        require(
            source == target,
            f"(C1) operand and result must be quantized alike, but are {operand} and {result}",
        )
        return
    require(
        dimensions[source.axis] == target.axis,
        f"(C6) the quantized axis {source.axis} becomes dimension {dimensions[source.axis]}, not {target.axis}",
    )
    if operand.shape[source.axis] == 1:
        is_repeated = set(target.scales) == set(source.scales) and set(target.zero_points) == set(
            source.zero_points
        )
        require(is_repeated, f"(C6) each scale and zero point of {result} must be the operand's, {operand}")


def require_one_quantized_axis(site: Site) -> None:
    """(C5) to (C7) of `add`: operands quantised along an axis go along the result's."""
    target = _axis(site.result) if site.result is not None else None
    for index, operand in enumerate(site.operands):
        axis = _axis(operand)
        require(
            axis is None or axis == target,
            f"({'C6' if index == 0 else 'C7'}) operand #{index} is quantized along dimension {axis}, "
            f"but the result is {site.result}",
        )


def require_reshape_quantization(operand: TensorType, result: TensorType) -> None:
    """(C3) of `reshape`: the quantised axis keeps its size and its place among the elements."""
    source, target = operand.element, result.element
    if not isinstance(source, QuantizedType) or not isinstance(target, QuantizedType):
        return
    if source.axis is None or target.axis is None:
        require(
            source == target,
            f"(C1) operand and result must be quantized alike, but are {operand} and {result}",
        )
        return
    size, other = operand.shape[source.axis], result.shape[target.axis]
    require(size == other, f"(C3) the quantized axis has size {size} in {operand}, but {other} in {result}")
    before, after = math.prod(operand.shape[: source.axis]), math.prod(result.shape[: target.axis])
    require(
        before == after,
        f"(C3) {before} slices lie before the quantized axis of {operand}, {after} in {result}",
    )


def _axis(kind: Type) -> int | None:
    if isinstance(kind, TensorType) and isinstance(kind.element, QuantizedType):
        return kind.element.axis
    return None


def _check_accuracy(text: str) -> None:
    """Tolerances say something only in the mode TOLERANCE."""
    named = re.search(r"\b(DEFAULT|HIGHEST)\b", text)
    if named is None:
        return
    for name, value in re.findall(r"\b(atol|rtol|ulps)\W+(-?[\d.]+(?:[eE][-+]?\d+)?)", text):
        require(
            float(value) == 0,
            f"result_accuracy of mode {named[1]} takes no tolerances, but {name} is {value}",
        )


def _check(kind: Type, name: str) -> None:
    if not isinstance(kind, TensorType):
        return
    if kind.bounds is not None:
        _check_bounds(kind, name)
    if isinstance(kind.element, QuantizedType):
        _check_quantized(kind, kind.element, name)


def _check_bounds(kind: TensorType, name: str) -> None:
    assert kind.bounds is not None
    require(
        len(kind.bounds) == kind.rank,
        f"{name} has {len(kind.bounds)} bounds for {kind.rank} dimensions: {kind}",
    )
    for dimension, (size, bound) in enumerate(zip(kind.shape, kind.bounds, strict=True)):
        require(
            size == DYNAMIC or bound == DYNAMIC,
            f"{name} has a bound for the static dimension {dimension}: {kind}",
        )


def _check_quantized(kind: TensorType, element: QuantizedType, name: str) -> None:
    limits: Any = ml_dtypes.finfo(element.expressed.dtype)  # type: ignore[no-untyped-call]
    for scale in element.scales:
        inside = float(limits.smallest_normal) <= scale <= float(limits.max)
        require(
            inside, f"{name} has the scale {scale:g}, which {element.expressed.name} does not hold: {kind}"
        )
    for zero in element.zero_points:
        inside = element.storage_min <= zero <= element.storage_max
        require(inside, f"{name} has the zero point {zero}, which its storage does not hold: {kind}")
    if element.axis is None:
        return
    require(
        0 <= element.axis < kind.rank, f"{name} is quantized along dimension {element.axis}, but is {kind}"
    )
    size = kind.shape[element.axis]
    require(
        size in (DYNAMIC, len(element.scales)),
        f"{name} has {len(element.scales)} scales for {size} slices of dimension {element.axis}: {kind}",
    )
