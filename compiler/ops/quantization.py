"""Quantised values as real numbers and back (StableHLO specification, "Quantization").

`expressed = (stored - zero_point) * scale`; the way back rounds to nearest even and clamps to the storage range.
Elementwise operations on quantised tensors are evaluated as dequantise, operate, quantise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.ir.types import F64, QuantizedType
from compiler.ops.element_arrays import convert_elements, narrow, widen

Array = np.ndarray[Any, np.dtype[Any]]


def _along_axis(values: Array, quantized: QuantizedType, rank: int) -> Array:
    if quantized.axis is None:
        return values.reshape(())
    shape = [1] * rank
    shape[quantized.axis] = -1
    return values.reshape(shape)


def dequantize(stored: Array, quantized: QuantizedType) -> Array:
    """The real values that stored integers stand for, in the expressed type, rounded after each step as it computes."""
    expressed = quantized.expressed
    zero = _along_axis(np.array(quantized.zero_points, np.int64), quantized, stored.ndim)
    scale = _along_axis(np.array(quantized.scales, np.float64), quantized, stored.ndim)
    offset = (
        stored.astype(np.int8).astype(np.int64) if quantized.storage.bits < 8 else stored.astype(np.int64)
    )
    if quantized.storage.bits < 8 and quantized.storage.kind == "uint":
        offset = stored.astype(np.uint8).astype(np.int64)
    difference = widen(narrow((offset - zero).astype(np.float64), expressed), expressed)
    return narrow(difference * widen(narrow(scale, expressed), expressed), expressed)


def quantize(values: Array, quantized: QuantizedType) -> Array:
    """The stored integers nearest to real values of the expressed type, clamped to the storage range."""
    expressed = quantized.expressed
    zero = _along_axis(np.array(quantized.zero_points, np.int64), quantized, values.ndim)
    scale = _along_axis(np.array(quantized.scales, np.float64), quantized, values.ndim)
    with np.errstate(all="ignore"):
        ratio = widen(values, expressed) / widen(narrow(scale, expressed), expressed)
        shifted = np.rint(widen(narrow(ratio, expressed), expressed)).astype(np.float64) + zero
        limited = np.clip(shifted, quantized.storage_min, quantized.storage_max)
        return convert_elements(np.asarray(limited), F64, quantized.storage)


def requantize(stored: Array, source: QuantizedType, target: QuantizedType) -> Array:
    """Stored integers of one quantised type as those of another."""
    if source == target:
        return stored
    return quantize(dequantize(stored, source), target)
