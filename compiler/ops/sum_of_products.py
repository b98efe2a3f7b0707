"""How sums of products are computed in NumPy: which format for which elements, and the way back.

Shared by dots and convolutions. Floats narrower than f64 are multiplied and summed in f64 and rounded once; integers
wrap, and go through f64 where that is exact, since NumPy's integer products are slow; booleans are and-ed and or-ed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compiler.ir.types import BF16, F32, AnyElement, ElementType, QuantizedType, TensorType
from compiler.ops.element_arrays import narrow, round_float, widen
from compiler.ops.real_values import real_values, stored
from compiler.ops.record import Array, Evaluation

_EXACT_BITS = 53
_TF32_MANTISSA_BITS = 10
_PLAIN_TERMS = 64
"""Longer complex sums go through a matrix product in double precision: a loop over their terms would take too long."""


def accumulator(left: ElementType, right: ElementType, terms: int) -> np.dtype[Any]:
    """The format that sums of `terms` products are computed in."""
    if left.is_complex or right.is_complex:
        return np.dtype(np.complex128)
    if left.is_float or right.is_float:
        return np.dtype(np.float64)
    if left.kind == "bool" and right.kind == "bool":
        return np.dtype(np.float64)
    needed = left.bits + right.bits + math.ceil(math.log2(max(terms, 1)))
    return np.dtype(np.float64 if needed <= _EXACT_BITS else np.int64)


def spread(array: Array, element: ElementType, dtype: np.dtype[Any]) -> Array:
    """Operand elements in the format of the accumulator; 64-bit integers keep their bits."""
    with np.errstate(all="ignore"):
        return widen(array, element).astype(dtype)


def finished(total: Array, result: ElementType) -> Array:
    """Sums in the result's format: rounded once, or wrapped."""
    with np.errstate(all="ignore"):
        if result.kind == "bool":
            return np.asarray(total != 0)
        if result.is_integer and total.dtype.kind == "f":
            total = total.astype(np.int64)
        return narrow(total, result)


class Factors:
    """Two operands made ready for products, and the way from sums back to the result's elements."""

    def __init__(self, evaluation: Evaluation, lhs: Array, rhs: Array, terms: int) -> None:
        left, right = (entry for entry in evaluation.operand_types[:2] if isinstance(entry, TensorType))
        assert isinstance(evaluation.result, TensorType)
        self.result: AnyElement = evaluation.result.element
        lhs, left_plain = real_values(lhs, left.element)
        rhs, right_plain = real_values(rhs, right.element)
        self.dtype = accumulator(left_plain, right_plain, terms)
        self.lhs = spread(lhs, left_plain, self.dtype)
        self.rhs = spread(rhs, right_plain, self.dtype)

    def finish(self, total: Array) -> Array:
        """The result's elements."""
        if isinstance(self.result, QuantizedType):
            return stored(total, self.result)
        return finished(total, self.result)


def complex_products(left: Array, right: Array, factors: Factors) -> Array:
    """Batched products of complex matrices, term after term in the result's own precision.

    Four real products make one complex one, and their sums cancel: only this plain order gives the same last digits as
    other implementations, where a wider sum would be right but alone with it.
    """
    if left.shape[2] > _PLAIN_TERMS:
        return np.asarray(np.matmul(left, right))
    dtype = factors.result.dtype if factors.result.is_complex else left.dtype
    left, right = left.astype(dtype), right.astype(dtype)
    shape = (left.shape[0], left.shape[1], right.shape[2])
    total = np.zeros(shape, dtype)
    real, imag = total.real, total.imag
    for index in range(left.shape[2]):
        x, y = left[:, :, index, None], right[:, None, index, :]
        real += x.real * y.real - x.imag * y.imag
        imag += x.real * y.imag + x.imag * y.real
    return total


def rounded_to(array: Array, name: str) -> Array:
    """Operands as a dot algorithm sees them: f32 values in `bf16`, `tf32` or another format."""
    if array.dtype.kind != "f":
        return array
    with np.errstate(all="ignore"):
        if name == "tf32":
            return _round_mantissa(round_float(array, F32), _TF32_MANTISSA_BITS).astype(array.dtype)
        if name == "bf16":
            return round_float(array, BF16).astype(array.dtype)
    return array


def _round_mantissa(array: Array, bits: int) -> Array:
    """f32 values rounded to nearest even with fewer mantissa bits; NaN and infinities stay."""
    raw = np.ascontiguousarray(array).view(np.uint32)
    dropped = 23 - bits
    half = np.uint32((1 << (dropped - 1)) - 1)
    odd = (raw >> np.uint32(dropped)) & np.uint32(1)
    rounded = (raw + half + odd) & np.uint32(~((1 << dropped) - 1) & 0xFFFFFFFF)
    return np.asarray(np.where(np.isfinite(array), rounded.view(np.float32), array))
