"""Discrete Fourier transforms of one to three dimensions.

They are computed in the elements' own precision, dimension after dimension and scaled in the order of XLA's CPU library:
the last digits come out the same so.
"""

from __future__ import annotations

import math

import numpy as np

from compiler.ir.types import C64, C128, DYNAMIC, F32, F64, TensorType, Type
from compiler.ops.constraints import require, same_dimension
from compiler.ops.record import Array, Attribute, Evaluation, Operation, Site

_TYPES = ("FFT", "IFFT", "RFFT", "IRFFT")
_COMPLEX_OF = {F32: C64, F64: C128}


def _infer(site: Site) -> Type:
    operand = site.tensor(0)
    kind, length = site.attributes["fft_type"], tuple(site.attributes["fft_length"])
    require(1 <= len(length) <= 3, f"(C3) fft_length must have 1 to 3 entries, but has {len(length)}")
    require(
        len(length) <= operand.rank,
        f"(C1) the operand needs at least {len(length)} dimensions, but is {operand}",
    )
    require(all(size >= 0 for size in length), f"(C3) fft_length must not be negative, but is {list(length)}")
    element, shape = operand.element, list(operand.shape)
    rank = len(length)
    if kind == "RFFT":
        require(element in (F32, F64), f"(C2) RFFT takes f32 or f64 elements, but got {operand}")
    else:
        require(element in (C64, C128), f"(C2) {kind} takes complex elements, but got {operand}")
    checked = range(rank - 1) if kind == "IRFFT" else range(rank)
    for index in checked:
        require(
            same_dimension(shape[operand.rank - rank + index], length[index]),
            f"(C4) the operand's dimensions must agree with fft_length {list(length)}, but it is {operand}",
        )
    last = length[-1] // 2 + 1
    if kind == "RFFT":
        shape[-1] = last if length[-1] else 0
        return TensorType(_COMPLEX_OF[element], tuple(shape))  # type: ignore[index]
    if kind == "IRFFT":
        require(
            same_dimension(shape[-1], last) or (length[-1] == 0 and shape[-1] == 0),
            f"(C5) the operand's last dimension must be {last} for fft_length {list(length)}, but it is {operand}",
        )
        shape[-1] = length[-1]
        return TensorType(F32 if element is C64 else F64, tuple(shape))
    return TensorType(element, tuple(shape))


def _fft(evaluation: Evaluation, x: Array) -> Array:
    kind, length = evaluation.attributes["fft_type"], tuple(evaluation.attributes["fft_length"])
    result = evaluation.result
    assert isinstance(result, TensorType)
    if 0 in result.shape or x.size == 0:
        return np.zeros(result.shape, result.element.dtype)
    axes = tuple(range(x.ndim - len(length), x.ndim))
    with np.errstate(all="ignore"):
        found = _transformed(x, kind, length, axes)
    return np.asarray(found).astype(result.element.dtype)


def _transformed(x: Array, kind: str, length: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    # SciPy takes a while to import, and few programs transform anything.
    from scipy import fft as transforms

    if kind == "IRFFT":
        return np.asarray(transforms.irfftn(x, s=length, axes=axes))
    if kind == "RFFT":
        found = transforms.rfft(x, axis=axes[-1])
        axes = axes[:-1]
    else:
        found = x
    for axis in axes if kind == "RFFT" else reversed(axes):
        found = (
            transforms.ifft(found, axis=axis, norm="forward")
            if kind == "IFFT"
            else transforms.fft(found, axis=axis)
        )
        if kind == "IFFT" and axis == axes[-1]:
            found = found * found.real.dtype.type(1 / math.prod(length))
    return np.asarray(found)


def _flops(site: Site) -> float:
    operand, length = site.tensor(0), tuple(site.attributes["fft_length"])
    points = math.prod(length)
    if DYNAMIC in operand.shape or points < 2:
        return 0.0
    batch = operand.size // max(math.prod(operand.shape[operand.rank - len(length) :]), 1)
    return float(5 * batch * points * math.log2(points))


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "fft",
        _infer,
        _fft,
        arity=1,
        attributes=(
            Attribute("fft_type", "enum", required=True, values=_TYPES),
            Attribute("fft_length", "i64s", required=True),
        ),
        flops=_flops,
        spec="StableHLO, fft",
    ),
)
