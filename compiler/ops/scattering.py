"""scatter: updates put into operands at indices, element by element, by any computation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from compiler.ir.types import DYNAMIC, TensorType, Type
from compiler.ops.applied import check_reducer, grouped, promoted, scalar_results
from compiler.ops.constraints import merged_shape, require, require_in_range, require_unique, same_dimension
from compiler.ops.gathering import require_no_overlap, require_sorted
from compiler.ops.index_arithmetic import element_indices, index_vectors
from compiler.ops.record import VARIADIC, Array, Attribute, Evaluation, Operation, Site, Value
from compiler.ops.updating import update_in_order


def _split(site: Site) -> tuple[tuple[TensorType, ...], TensorType, tuple[TensorType, ...]]:
    tensors = site.tensors
    require(
        len(tensors) >= 3 and len(tensors) % 2 == 1,
        "needs as many updates as inputs, and indices between them",
    )
    count = len(tensors) // 2
    return tensors[:count], tensors[count], tensors[count + 1 :]


def _dimensions(site: Site) -> tuple[tuple[int, ...], ...]:
    a = site.attributes
    return (
        tuple(a["update_window_dims"]),
        tuple(a["inserted_window_dims"]),
        tuple(a.get("input_batching_dims", ())),
        tuple(a.get("scatter_indices_batching_dims", ())),
        tuple(a["scatter_dims_to_operand_dims"]),
    )


def _infer(site: Site) -> Type:
    inputs, _, _ = _split(site)
    shape = merged_shape(inputs)
    require(shape is not None, f"(C1) inputs must have one shape, but are {', '.join(map(str, inputs))}")
    assert shape is not None
    found = scalar_results(site.called[0], len(inputs), "(C23)")
    return grouped([TensorType(entry.element, shape) for entry in found])


def _verify(site: Site) -> None:
    inputs, indices, updates = _split(site)
    operand, update = inputs[0], updates[0]
    windows, inserted, batching, indices_batching, scattered = _dimensions(site)
    vector = site.attributes["index_vector_dim"]
    require(indices.element.is_integer, f"scatter_indices must hold integers, but is {indices}")
    require(
        operand.rank == len(windows) + len(inserted) + len(batching),
        f"(C2) the input's {operand.rank} dimensions must be update_window_dims, inserted_window_dims and "
        f"input_batching_dims together, but these are {len(windows) + len(inserted) + len(batching)}",
    )
    require(merged_shape(updates) is not None, "(C3) updates must have one shape")
    require(
        0 <= vector <= indices.rank, f"(C22) index_vector_dim must be in [0, {indices.rank}], but is {vector}"
    )
    rank = indices.rank - (vector < indices.rank) + len(windows)
    require(update.rank == rank, f"(C4) updates must have {rank} dimensions, but have {update.rank}")
    require_unique(windows, "(C7) update_window_dims must not repeat")
    require_sorted(windows, "(C7) update_window_dims")
    require_in_range(windows, update.rank, "(C8) update_window_dims must be dimensions of the updates")
    require_no_overlap(inserted, batching, "(C9) inserted_window_dims and input_batching_dims")
    require_sorted(inserted, "(C10) inserted_window_dims")
    require_in_range(inserted, operand.rank, "(C11) inserted_window_dims must be dimensions of the inputs")
    require_sorted(batching, "(C12) input_batching_dims")
    require_in_range(batching, operand.rank, "(C13) input_batching_dims must be dimensions of the inputs")
    require_unique(indices_batching, "(C14) scatter_indices_batching_dims must not repeat")
    require_in_range(
        indices_batching,
        indices.rank,
        "(C15) scatter_indices_batching_dims must be dimensions of the indices",
    )
    require(
        vector not in indices_batching, "(C16) scatter_indices_batching_dims must not hold index_vector_dim"
    )
    require(
        len(batching) == len(indices_batching),
        "(C17) input_batching_dims and scatter_indices_batching_dims must have one size",
    )
    for left, right in zip(batching, indices_batching, strict=True):
        require(
            same_dimension(operand.shape[left], indices.shape[right]),
            f"(C18) batching dimensions must have one size, but have {operand.shape[left]} and {indices.shape[right]}",
        )
    length = 1 if vector == indices.rank else indices.shape[vector]
    require(
        same_dimension(len(scattered), length),
        f"(C19) scatter_dims_to_operand_dims must have an entry for each of {length} index components, but has "
        f"{len(scattered)}",
    )
    require_no_overlap(scattered, batching, "(C20) scatter_dims_to_operand_dims and input_batching_dims")
    require_in_range(
        scattered, operand.rank, "(C21) scatter_dims_to_operand_dims must be dimensions of the inputs"
    )
    _check_sizes(site)
    check_reducer(site, inputs, updates, "(C23)", "(C6)")


def _check_sizes(site: Site) -> None:
    inputs, indices, updates = _split(site)
    windows, inserted, batching, _, _ = _dimensions(site)
    vector = site.attributes["index_vector_dim"]
    kept = [size for d, size in enumerate(inputs[0].shape) if d not in inserted and d not in batching]
    batch = iter(size for d, size in enumerate(indices.shape) if d != vector)
    for dimension, size in enumerate(updates[0].shape):
        if dimension in windows:
            limit = kept[windows.index(dimension)]
            require(
                DYNAMIC in (size, limit) or size <= limit,
                f"(C4) updates dimension {dimension} of size {size} must not exceed the input's {limit}",
            )
        else:
            wanted = next(batch)
            require(
                same_dimension(size, wanted),
                f"(C4) updates dimension {dimension} must have the indices' size {wanted}, but has {size}",
            )


def _places(evaluation: Evaluation, shape: tuple[int, ...], indices: Array, update: Array) -> Array:
    """For each update element, in order, its place in the flattened input, or -1 where that is out of bounds."""
    a = evaluation.attributes
    vector, windows = a["index_vector_dim"], tuple(a["update_window_dims"])
    inserted, batching = tuple(a["inserted_window_dims"]), tuple(a.get("input_batching_dims", ()))
    starts = index_vectors(indices, vector)
    batch_places = [d - (d > vector) for d in a.get("scatter_indices_batching_dims", ())]
    kept = [d for d in range(len(shape)) if d not in inserted and d not in batching]
    window = [(d, update.shape[place]) for d, place in zip(kept, windows, strict=True)]
    found = element_indices(
        starts,
        tuple(a["scatter_dims_to_operand_dims"]),
        list(zip(batching, batch_places, strict=True)),
        window,
        len(shape),
    )
    batch_rank = starts.ndim - 1
    whole = starts.shape[:-1] + tuple(size for _, size in window)
    flat, inside = np.zeros((1,) * len(whole), np.int64), np.ones((1,) * len(whole), np.bool_)
    for position, size in zip(found, shape, strict=True):
        inside = inside & (position >= 0) & (position < size)
        flat = flat * size + np.clip(position, 0, max(size - 1, 0))
    flat = np.broadcast_to(np.where(inside, flat, -1), whole)
    rest = iter(range(batch_rank))
    order = [batch_rank + windows.index(d) if d in windows else next(rest) for d in range(len(whole))]
    return flat.transpose(order).reshape(-1)


def _scatter(evaluation: Evaluation, *operands: Array) -> Value:
    count = len(operands) // 2
    inputs, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    types = evaluation.operand_types
    wide = promoted(evaluation, inputs, types[:count])
    values = promoted(evaluation, updates, types[count + 1 :])
    shape = inputs[0].shape
    targets = [np.array(array).reshape(-1) for array in wide]
    if math.prod(updates[0].shape):
        places = _places(evaluation, shape, indices, updates[0])
        _update(evaluation, targets, places, values)
    results = tuple(target.reshape(shape) for target in targets)
    return results[0] if count == 1 else results


def _update(evaluation: Evaluation, targets: Sequence[Array], places: Array, values: Sequence[Array]) -> None:
    flat = [array.reshape(-1) for array in values]
    inside = places >= 0
    if not inside.all():
        places, flat = places[inside], [array[inside] for array in flat]
    update_in_order(evaluation, 0, targets, places, flat)


def _flops(site: Site) -> float:
    body = site.called[0]
    return float(site.tensors[-1].size * (len(body) - len(body.parameters)))


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "scatter",
        _infer,
        _scatter,
        arity=VARIADIC,
        attributes=(
            Attribute("update_window_dims", "i64s", required=True),
            Attribute("inserted_window_dims", "i64s", required=True),
            Attribute("input_batching_dims", "i64s", ()),
            Attribute("scatter_indices_batching_dims", "i64s", ()),
            Attribute("scatter_dims_to_operand_dims", "i64s", required=True),
            Attribute("index_vector_dim", "i64", required=True),
            Attribute("indices_are_sorted", "bool", False),
            Attribute("unique_indices", "bool", False),
        ),
        regions=("update_computation",),
        verify=_verify,
        flops=_flops,
        spec="StableHLO, scatter",
    ),
)
