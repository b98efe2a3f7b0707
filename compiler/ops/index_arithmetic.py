"""Indices as gather, scatter and their relatives use them: signed 64-bit numbers, put at their dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.ops.record import Array

_LARGEST = np.iinfo(np.int64).max


def signed_indices(array: Array) -> Array:
    """Indices of any integer type as int64; unsigned ones beyond it become the largest, which is out of bounds."""
    if array.dtype == np.uint64:
        return np.minimum(array, np.uint64(_LARGEST)).astype(np.int64)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    name = array.dtype.name
    return array.astype(np.uint8 if name.startswith("uint") else np.int8).astype(np.int64)


def index_vectors(indices: Array, vector_dimension: int) -> Array:
    """Index vectors along the last dimension; scalar indices get a dimension of size 1."""
    found = signed_indices(indices)
    if vector_dimension == found.ndim:
        return found[..., None]
    return np.moveaxis(found, vector_dimension, -1)


def along(values: Array, place: int, rank: int) -> Array:
    """A vector as an array of some rank that varies along one dimension."""
    shape = [1] * rank
    shape[place] = -1
    return values.reshape(shape)


def element_indices(
    starts: Array,
    start_map: Sequence[int],
    batching: Sequence[tuple[int, int]],
    window: Sequence[tuple[int, int]],
    rank: int,
) -> list[Array]:
    """For each operand dimension the index of every element touched, as arrays that broadcast together.

    The common shape is that of the index vectors (the batch) followed by the window dimensions in order.

    Args:
        starts: index vectors along the last dimension, int64.
        start_map: operand dimension of each entry of an index vector.
        batching: pairs of operand dimension and batch dimension whose indices are equal.
        window: pairs of operand dimension and size, in the order of the window dimensions.
        rank: number of operand dimensions.
    """
    batch_rank = starts.ndim - 1
    total = batch_rank + len(window)
    zero = np.zeros((1,) * total, np.int64)
    found = [zero] * rank
    for position, dimension in enumerate(start_map):
        start = starts[..., position]
        found[dimension] = start.reshape(start.shape + (1,) * len(window))
    for dimension, batch_dimension in batching:
        count = np.arange(starts.shape[batch_dimension], dtype=np.int64)
        found[dimension] = found[dimension] + along(count, batch_dimension, total)
    for position, (dimension, size) in enumerate(window):
        if size > 1:
            found[dimension] = found[dimension] + along(
                np.arange(size, dtype=np.int64), batch_rank + position, total
            )
    return found
