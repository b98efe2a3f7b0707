"""Convolution of plain arrays in one order of dimensions: the arithmetic behind the records in `convolution`.

Windows are views of the padded and dilated input. They become rows of a matrix product, some images at a time so that
the rows stay in a bounded amount of memory; depthwise ones are multiplied and added position by position instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from compiler.ops.record import Array

_ROWS_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class Shape:
    """What a convolution does besides multiplying, one entry for each spatial dimension."""

    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    reversal: tuple[bool, ...]
    feature_groups: int = 1
    batch_groups: int = 1


def spaced(
    x: Array, first: int, padding: tuple[tuple[int, int], ...], dilation: tuple[int, ...], fill: Array
) -> Array:
    """Dimensions from `first` on with elements set apart and edges padded (cut where negative)."""
    shape, source, target = list(x.shape), [slice(None)] * x.ndim, [slice(None)] * x.ndim
    if all(low == 0 and high == 0 for low, high in padding) and all(d == 1 for d in dilation):
        return x
    for index, ((low, high), step) in enumerate(zip(padding, dilation, strict=True)):
        dimension = first + index
        size = x.shape[dimension]
        whole = (0 if size == 0 else (size - 1) * step + 1) + low + high
        shape[dimension] = max(whole, 0)
        # The elements whose place low + i * step lies inside.
        begin = max(0, -(low // step) if low < 0 else 0)
        end = min(size, (shape[dimension] - 1 - low) // step + 1)
        source[dimension] = slice(begin, max(end, begin))
        target[dimension] = slice(low + begin * step, max(low + (end - 1) * step + 1, 0), step)
        if end <= begin:
            target[dimension] = slice(0, 0)
    padded = np.full(shape, fill, x.dtype)
    padded[tuple(target)] = x[tuple(source)]
    return padded


def windows(
    x: Array, first: int, size: tuple[int, ...], strides: tuple[int, ...], dilation: tuple[int, ...]
) -> Array:
    """A view in which dimensions from `first` on count windows, followed by as many that count inside a window."""
    shape, steps, inner = list(x.shape[:first]), list(x.strides[:first]), list(x.strides[first:])
    for index, (window, stride, step) in enumerate(zip(size, strides, dilation, strict=True)):
        span = (window - 1) * step + 1 if window else 0
        length = x.shape[first + index]
        shape.append(0 if length < span or length == 0 else (length - span) // stride + 1)
        steps.append(inner[index] * stride)
    view_shape = (*shape, *size)
    view_steps = (*steps, *(s * d for s, d in zip(inner, dilation, strict=True)))
    if 0 in view_shape:
        return np.zeros(view_shape, x.dtype)
    return as_strided(x, view_shape, view_steps, writeable=False)


def convolve(lhs: Array, rhs: Array, shape: Shape) -> Array:
    """The result in the order batch, feature, spatial.

    Args:
        lhs: batch, feature, spatial; in the accumulator's format.
        rhs: output feature, input feature, spatial.
        shape: strides, padding, dilation, reversal and groups.
    """
    flips = tuple(slice(None, None, -1) if flip else slice(None) for flip in shape.reversal)
    rhs = rhs[(slice(None), slice(None), *flips)]
    lhs = spaced(lhs, 2, shape.padding, shape.lhs_dilation, np.zeros((), lhs.dtype))
    if shape.batch_groups > 1:
        groups = shape.batch_groups
        parts = zip(np.split(lhs, groups, axis=0), np.split(rhs, groups, axis=0), strict=True)
        return np.concatenate([_grouped(x, w, shape, 1) for x, w in parts], axis=1)
    return _grouped(lhs, rhs, shape, shape.feature_groups)


def _grouped(lhs: Array, rhs: Array, shape: Shape, groups: int) -> Array:
    view = windows(lhs, 2, rhs.shape[2:], shape.strides, shape.rhs_dilation)
    spatial = lhs.ndim - 2
    counts, inside = view.shape[2 : 2 + spatial], view.shape[2 + spatial :]
    if groups > 1 and rhs.shape[1] == 1:
        return _depthwise(view, rhs, groups, counts, inside)
    batch, features = view.shape[0], view.shape[1]
    each = features // groups
    outputs = rhs.shape[0] // groups
    terms = each * math.prod(inside)
    kernel = rhs.reshape(groups, outputs, terms)
    total = np.zeros((batch, groups, outputs, math.prod(counts)), lhs.dtype)
    if total.size == 0 or terms == 0:
        return total.reshape(batch, rhs.shape[0], *counts)
    order = (0, 1, 2, *range(3 + spatial, 3 + 2 * spatial), *range(3, 3 + spatial))
    step = max(1, _ROWS_BYTES // max(1, terms * groups * math.prod(counts) * lhs.itemsize))
    for start in range(0, batch, step):
        part = view[start : start + step]
        part = part.reshape(part.shape[0], groups, each, *counts, *inside) if groups > 1 else part[:, None]
        rows = part.transpose(order).reshape(part.shape[0], groups, terms, math.prod(counts))
        np.matmul(kernel, rows, out=total[start : start + step])
    return total.reshape(batch, rhs.shape[0], *counts)


def _depthwise(
    view: Array, rhs: Array, groups: int, counts: tuple[int, ...], inside: tuple[int, ...]
) -> Array:
    """One input feature a group: every position of the window is a multiply-add over whole images."""
    batch = view.shape[0]
    multiplier = rhs.shape[0] // groups
    kernel = rhs.reshape(groups, multiplier, *inside)
    total = np.zeros((batch, groups, multiplier, *counts), view.dtype)
    spread = (1,) * len(counts)
    for place in np.ndindex(*inside):
        image = view[(slice(None), slice(None), *(slice(None),) * len(counts), *place)][:, :, None]
        total += image * kernel[(slice(None), slice(None), *place)].reshape(1, groups, multiplier, *spread)
    return total.reshape(batch, rhs.shape[0], *counts)
