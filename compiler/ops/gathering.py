"""Gathers: gather, dynamic_gather, torch_index_select."""

from __future__ import annotations

import numpy as np

from compiler.ir.types import DYNAMIC, TensorType, Type
from compiler.ops.constraints import (
    require,
    require_in_range,
    require_unique,
    same_dimension,
)
from compiler.ops.index_arithmetic import element_indices, index_vectors, signed_indices
from compiler.ops.record import Array, Attribute, Evaluation, Operation, Site, Trait


def require_sorted(values: tuple[int, ...], constraint: str) -> None:
    """Dimension numbers must be in order. Raises OperationError otherwise."""
    require(list(values) == sorted(values), f"{constraint} must be sorted, but is {list(values)}")


def require_no_overlap(first: tuple[int, ...], second: tuple[int, ...], constraint: str) -> None:
    """Two lists of dimensions must not share any, nor repeat one. Raises OperationError otherwise."""
    require_unique(first + second, f"{constraint} must not repeat")


def _dimensions(site: Site) -> tuple[tuple[int, ...], ...]:
    a = site.attributes
    return (
        tuple(a["offset_dims"]),
        tuple(a.get("collapsed_slice_dims", ())),
        tuple(a.get("operand_batching_dims", ())),
        tuple(a.get("start_indices_batching_dims", ())),
        tuple(a["start_index_map"]),
    )


def _check(site: Site, sizes: tuple[int, ...] | None, sizes_count: int) -> tuple[int, ...]:
    """The constraints of both gathers. Gives the batch's shape."""
    operand, starts = site.tensor(0), site.tensor(1)
    offsets, collapsed, batching, starts_batching, start_map = _dimensions(site)
    vector = site.attributes["index_vector_dim"]
    require(
        operand.rank == len(offsets) + len(collapsed) + len(batching),
        f"(C1) the operand's {operand.rank} dimensions must be offset_dims, collapsed_slice_dims and "
        f"operand_batching_dims together, but these are {len(offsets) + len(collapsed) + len(batching)}",
    )
    require(
        0 <= vector <= starts.rank, f"(C2) index_vector_dim must be in [0, {starts.rank}], but is {vector}"
    )
    length = 1 if vector == starts.rank else starts.shape[vector]
    require(
        same_dimension(len(start_map), length),
        f"(C3) start_index_map must have one entry for each of {length} index components, but has {len(start_map)}",
    )
    require_unique(offsets, "(C4) offset_dims must not repeat")
    require_sorted(offsets, "(C4) offset_dims")
    batch = tuple(size for d, size in enumerate(starts.shape) if d != vector)
    require_in_range(offsets, len(batch) + len(offsets), "(C5) offset_dims must be dimensions of the result")
    require_no_overlap(collapsed, batching, "(C6) collapsed_slice_dims and operand_batching_dims")
    require_sorted(collapsed, "(C7) collapsed_slice_dims")
    require_in_range(collapsed, operand.rank, "(C8) collapsed_slice_dims must be dimensions of the operand")
    require_sorted(batching, "(C10) operand_batching_dims")
    require_in_range(batching, operand.rank, "(C11) operand_batching_dims must be dimensions of the operand")
    require_unique(starts_batching, "(C13) start_indices_batching_dims must not repeat")
    require_in_range(
        starts_batching, starts.rank, "(C14) start_indices_batching_dims must be dimensions of the indices"
    )
    require(vector not in starts_batching, "(C15) start_indices_batching_dims must not hold index_vector_dim")
    require(
        len(batching) == len(starts_batching),
        "(C16) operand_batching_dims and start_indices_batching_dims must have one size",
    )
    for left, right in zip(batching, starts_batching, strict=True):
        require(
            same_dimension(operand.shape[left], starts.shape[right]),
            f"(C17) batching dimensions must have one size, but have {operand.shape[left]} and {starts.shape[right]}",
        )
    require_no_overlap(start_map, batching, "(C18) start_index_map and operand_batching_dims")
    require_in_range(start_map, operand.rank, "(C19) start_index_map must be dimensions of the operand")
    require(
        same_dimension(sizes_count, operand.rank),
        f"(C20) slice_sizes must have {operand.rank} entries, but has {sizes_count}",
    )
    if sizes is not None:
        _check_sizes(operand, sizes, collapsed, batching)
    return batch


def _check_sizes(
    operand: TensorType, sizes: tuple[int, ...], collapsed: tuple[int, ...], batching: tuple[int, ...]
) -> None:
    for dimension in collapsed:
        require(
            sizes[dimension] <= 1, f"(C9) slice_sizes of collapsed dimension {dimension} must be at most 1"
        )
    for dimension in batching:
        require(
            sizes[dimension] <= 1, f"(C12) slice_sizes of batching dimension {dimension} must be at most 1"
        )
    for dimension, size in enumerate(sizes):
        limit = operand.shape[dimension]
        require(
            size >= 0 and (limit == DYNAMIC or size <= limit),
            f"(C21) slice_sizes must be in [0, {limit}] at dimension {dimension}, but is {size}",
        )


def _result(site: Site, batch: tuple[int, ...], sizes: tuple[int, ...]) -> TensorType:
    offsets, collapsed, batching, _, _ = _dimensions(site)
    kept = [size for d, size in enumerate(sizes) if d not in collapsed and d not in batching]
    rank = len(batch) + len(offsets)
    rest = iter(batch)
    inside = dict(zip(offsets, kept, strict=True))
    shape = tuple(inside[d] if d in inside else next(rest) for d in range(rank))
    return TensorType(site.tensor(0).element, shape)


def _infer_gather(site: Site) -> Type:
    sizes = tuple(site.attributes["slice_sizes"])
    return _result(site, _check(site, sizes, len(sizes)), sizes)


def _infer_dynamic(site: Site) -> Type:
    sizes = site.tensor(2)
    require(
        sizes.rank == 1 and sizes.element.is_integer,
        f"slice_sizes must be a vector of integers, but is {sizes}",
    )
    batch = _check(site, None, sizes.shape[0])
    return _result(site, batch, (DYNAMIC,) * site.tensor(0).rank)


def _verify_dynamic(site: Site) -> None:
    sizes = site.sizes(2)
    if sizes is not None:
        collapsed = tuple(site.attributes.get("collapsed_slice_dims", ()))
        batching = tuple(site.attributes.get("operand_batching_dims", ()))
        _check_sizes(site.tensor(0), sizes, collapsed, batching)


def gathered(evaluation: Evaluation, operand: Array, indices: Array, sizes: tuple[int, ...]) -> Array:
    """Slices of the operand at clamped starts, laid out as the dimension numbers say."""
    a = evaluation.attributes
    vector = a["index_vector_dim"]
    offsets, collapsed = tuple(a["offset_dims"]), tuple(a.get("collapsed_slice_dims", ()))
    batching = tuple(a.get("operand_batching_dims", ()))
    starts = index_vectors(indices, vector)
    start_map = tuple(a["start_index_map"])
    limits = np.array([operand.shape[d] - sizes[d] for d in start_map], np.int64)
    starts = np.clip(starts, 0, limits) if len(start_map) else starts
    # Batch dimensions count without the index vector's own dimension.
    places = [d - (d > vector) for d in a.get("start_indices_batching_dims", ())]
    window = [(d, sizes[d]) for d in range(operand.ndim) if d not in collapsed and d not in batching]
    found = element_indices(starts, start_map, list(zip(batching, places, strict=True)), window, operand.ndim)
    shape = starts.shape[:-1] + tuple(size for _, size in window)
    if 0 in shape or any(sizes[d] == 0 for d in (*collapsed, *batching)):
        values = np.zeros(shape, operand.dtype)
    else:
        values = np.broadcast_to(operand[tuple(found)] if operand.ndim else operand, shape)
    batch_rank = starts.ndim - 1
    rest = iter(range(batch_rank))
    order = [batch_rank + offsets.index(d) if d in offsets else next(rest) for d in range(len(shape))]
    return np.ascontiguousarray(values.transpose(order)).reshape([shape[d] for d in order])


def _gather(evaluation: Evaluation, operand: Array, indices: Array) -> Array:
    return gathered(evaluation, operand, indices, tuple(evaluation.attributes["slice_sizes"]))


def _dynamic_gather(evaluation: Evaluation, operand: Array, indices: Array, sizes: Array) -> Array:
    return gathered(evaluation, operand, indices, tuple(int(size) for size in sizes))


# ---- torch_index_select ------------------------------------------------------------------------------------------


def _select_dimensions(site: Site) -> tuple[int, int]:
    operand, index = site.tensor(0), site.tensor(1)
    dim, batch = site.attributes["dim"], site.attributes.get("batch_dims", 0)
    dim = dim + operand.rank if dim < 0 else dim
    batch = batch + index.rank if batch < 0 else batch
    require(
        0 <= dim < operand.rank, f"dim must be a dimension of the operand, but is {site.attributes['dim']}"
    )
    require(
        0 <= batch <= min(dim, index.rank),
        f"batch_dims must not exceed dim and the rank of the index, but is {site.attributes.get('batch_dims', 0)}",
    )
    return dim, batch


def _infer_index_select(site: Site) -> Type:
    dim, batch = _select_dimensions(site)
    operand, index = site.tensor(0), site.tensor(1)
    require(index.element.is_integer, f"index must hold integers, but is {index}")
    for d in range(batch):
        require(same_dimension(operand.shape[d], index.shape[d]), f"batch dimension {d} must have one size")
    return TensorType(operand.element, operand.shape[:dim] + index.shape[batch:] + operand.shape[dim + 1 :])


def _index_select(evaluation: Evaluation, operand: Array, index: Array) -> Array:
    dim, batch = evaluation.attributes["dim"], evaluation.attributes.get("batch_dims", 0)
    dim = dim + operand.ndim if dim < 0 else dim
    batch = batch + index.ndim if batch < 0 else batch
    places = np.clip(signed_indices(index), 0, max(operand.shape[dim] - 1, 0))
    if batch == 0:
        return np.take(operand, places, axis=dim)
    shape = operand.shape[:dim] + index.shape[batch:] + operand.shape[dim + 1 :]
    made = np.empty(shape, operand.dtype)
    for place in np.ndindex(*operand.shape[:batch]):
        made[place] = np.take(operand[place], places[place], axis=dim - batch)
    return made


_DIMENSION_NUMBERS = (
    Attribute("offset_dims", "i64s", required=True),
    Attribute("collapsed_slice_dims", "i64s", ()),
    Attribute("operand_batching_dims", "i64s", ()),
    Attribute("start_indices_batching_dims", "i64s", ()),
    Attribute("start_index_map", "i64s", required=True),
    Attribute("index_vector_dim", "i64", required=True),
    Attribute("indices_are_sorted", "bool", False),
)
_MOVES = frozenset((Trait.DATA_MOVEMENT,))

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "gather",
        _infer_gather,
        _gather,
        arity=2,
        attributes=(*_DIMENSION_NUMBERS, Attribute("slice_sizes", "i64s", required=True)),
        traits=_MOVES,
        spec="StableHLO, gather",
    ),
    Operation(
        "dynamic_gather",
        _infer_dynamic,
        _dynamic_gather,
        arity=3,
        attributes=_DIMENSION_NUMBERS,
        verify=_verify_dynamic,
        size_operands=(2,),
        traits=_MOVES | {Trait.DYNAMIC_SHAPE},
        spec="StableHLO, dynamic_gather",
    ),
    Operation(
        "torch_index_select",
        _infer_index_select,
        _index_select,
        arity=2,
        attributes=(Attribute("dim", "i64", required=True), Attribute("batch_dims", "i64", 0)),
        traits=_MOVES,
        spec="StableHLO, torch_index_select",
    ),
)
