"""Slices of static size: slice, dynamic_slice, dynamic_update_slice."""

from __future__ import annotations

from typing import Any

from compiler.ir.types import DYNAMIC, Type
from compiler.ops.constraints import require, require_index, same_baseline
from compiler.ops.record import VARIADIC, Array, Attribute, Evaluation, Operation, Site
from compiler.ops.shape import movement


def _infer_slice(site: Site) -> Type:
    operand = site.tensor(0)
    starts, limits = site.attributes["start_indices"], site.attributes["limit_indices"]
    strides = site.attributes.get("strides", (1,) * len(starts))
    require(
        len(starts) == len(limits) == len(strides) == operand.rank,
        f"(C2) start_indices, limit_indices and strides must have an entry for each of {operand.rank} dimensions",
    )
    shape = []
    for index, (start, limit, stride) in enumerate(zip(starts, limits, strides, strict=True)):
        size = operand.shape[index]
        upper = size if size != DYNAMIC else limit
        require(
            0 <= start <= limit <= upper,
            f"(C3) dimension {index}: start {start} and limit {limit} must be in order within [0, {upper}]",
        )
        require(stride > 0, f"(C4) strides must be positive, but dimension {index} has {stride}")
        shape.append(-(-(limit - start) // stride))
    return operand.with_shape(tuple(shape))


def _slice(evaluation: Evaluation, x: Array) -> Array:
    attributes = evaluation.attributes
    starts, limits = attributes["start_indices"], attributes["limit_indices"]
    strides = attributes.get("strides", (1,) * x.ndim)
    return x[tuple(map(slice, starts, limits, strides))]


def _check_starts(site: Site, first: int, rank: int) -> None:
    starts = site.operands[first:]
    require(
        len(starts) == rank,
        f"start_indices must have an entry for each of {rank} dimensions, but has {len(starts)}",
    )
    for index in range(first, len(site.operands)):
        require_index(site, index)
    require(
        len(set(starts)) <= 1, f"start_indices must have one type, but have {', '.join(map(str, starts))}"
    )


def _infer_dynamic_slice(site: Site) -> Type:
    operand, sizes = site.tensor(0), site.attributes["slice_sizes"]
    _check_starts(site, 1, operand.rank)
    require(
        len(sizes) == operand.rank,
        f"(C4) slice_sizes must have an entry for each of {operand.rank} dimensions, but is {list(sizes)}",
    )
    for index, (size, whole) in enumerate(zip(sizes, operand.shape, strict=True)):
        require(
            size >= 0 and (whole == DYNAMIC or size <= whole),
            f"(C5) slice size {size} of dimension {index} must be within [0, {whole}]",
        )
    return operand.with_shape(tuple(sizes))


def clamped_starts(starts: Any, sizes: tuple[int, ...], shape: tuple[int, ...]) -> list[int]:
    """Start indices moved so that a slice of these sizes lies inside the shape."""
    return [min(max(int(s), 0), whole - size) for s, size, whole in zip(starts, sizes, shape, strict=True)]


def _dynamic_slice(evaluation: Evaluation, x: Array, *starts: Array) -> Array:
    sizes = evaluation.attributes["slice_sizes"]
    begin = clamped_starts(starts, sizes, x.shape)
    return x[tuple(slice(s, s + size) for s, size in zip(begin, sizes, strict=True))]


def _infer_dynamic_update_slice(site: Site) -> Type:
    operand, update = site.tensor(0), site.tensor(1)
    require(
        same_baseline(operand.element, update.element),
        f"(C2) update must have the operand's elements, but is {update} beside {operand}",
    )
    require(
        update.rank == operand.rank,
        f"(C3) update must have the operand's rank, but is {update} beside {operand}",
    )
    _check_starts(site, 2, operand.rank)
    for index, (size, whole) in enumerate(zip(update.shape, operand.shape, strict=True)):
        require(
            DYNAMIC in (size, whole) or size <= whole,
            f"(C6) update dimension {index} of size {size} must not be larger than the operand's {whole}",
        )
    return operand


def _dynamic_update_slice(evaluation: Evaluation, x: Array, update: Array, *starts: Array) -> Array:
    begin = clamped_starts(starts, update.shape, x.shape)
    found = x.copy()
    found[tuple(slice(s, s + size) for s, size in zip(begin, update.shape, strict=True))] = update
    return found


OPERATIONS: tuple[Operation, ...] = (
    movement(
        "slice",
        _infer_slice,
        _slice,
        Attribute("start_indices", "i64s", required=True),
        Attribute("limit_indices", "i64s", required=True),
        Attribute("strides", "i64s"),
    ),
    movement(
        "dynamic_slice",
        _infer_dynamic_slice,
        _dynamic_slice,
        Attribute("slice_sizes", "i64s", required=True),
        arity=VARIADIC,
    ),
    movement("dynamic_update_slice", _infer_dynamic_update_slice, _dynamic_update_slice, arity=VARIADIC),
)
