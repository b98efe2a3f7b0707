"""How elements are computed with in NumPy: widened before an operation, rounded or wrapped once after it.

Narrow floats (f4 to f16, bf16) are computed in f32, sub-byte integers in (u)int8. Transcendental functions are
evaluated in a wider format than their result has (f64 for anything narrower than f64, NumPy's long double for f64) and
rounded once, which makes them correctly rounded in all but the rarest cases. Used by the evaluation rules of all
operation families.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.ir.types import ElementType

Array = np.ndarray[Any, np.dtype[Any]]

_ODD_BITS = np.uint32(1)
_STICKY = 11
"""Low bits of a 64-bit integer that a 53-bit significand cannot hold."""


def is_native_float(element: ElementType) -> bool:
    """True for the formats that NumPy itself computes in without widening (f32 and f64)."""
    return element.is_float and element.bits >= 32


def widen(array: Array, element: ElementType) -> Array:
    """The array in the format that its elements are computed in; values are unchanged."""
    if element.is_float:
        return array if element.bits >= 32 else array.astype(np.float32)
    if element.is_integer and element.bits < 8:
        return array.astype(np.int8 if element.kind == "int" else np.uint8)
    return array


def widen_twice(array: Array, element: ElementType) -> Array:
    """The array in a format with enough spare precision to round a transcendental function's value once."""
    if element.is_float:
        return array.astype(np.float64 if element.bits < 64 else np.longdouble)
    if element.is_complex:
        return array.astype(np.complex128 if element.bits < 128 else np.clongdouble)
    return widen(array, element)


def narrow(array: Any, element: ElementType) -> Array:
    """Brings computed values back to the element type: floats are rounded once, integers wrap."""
    found = np.asarray(array)
    if found.dtype == element.dtype:
        return found
    if element.is_float:
        return round_float(found, element)
    if element.is_integer and element.bits < 8:
        return wrap_narrow(found, element)
    return found.astype(element.dtype)


def round_float(array: Array, element: ElementType) -> Array:
    """Rounds floats of any format to a float type, to nearest even, in one step."""
    if array.dtype == np.longdouble and element.bits < 64:
        array = _round_to_odd_f64(array)
    if array.dtype == np.float64 and element.bits < 32 and element.dtype != np.float16:
        array = _round_to_odd_f32(array)
    return array.astype(element.dtype)


def _round_to_odd_f32(array: Array) -> Array:
    """f64 to f32 with inexact results made odd, so that a second rounding to under 23 bits is the only one.

    Boldo and Melquiond, "When double rounding is odd" (2005).
    """
    near = np.array(array.astype(np.float32))
    back = near.astype(np.float64)
    inexact = (back != array) & ~np.isnan(array)
    toward_zero = np.where(np.abs(back) > np.abs(array), np.nextafter(near, np.float32(0)), near)
    odd = (toward_zero.view(np.uint32) | _ODD_BITS).view(np.float32)
    return np.asarray(np.where(inexact, odd, near))


def _round_to_odd_f64(array: Array) -> Array:
    near = np.array(array.astype(np.float64))
    back = near.astype(np.longdouble)
    inexact = (back != array) & ~np.isnan(array)
    toward_zero = np.where(np.abs(back) > np.abs(array), np.nextafter(near, 0.0), near)
    odd = (toward_zero.view(np.uint64) | np.uint64(1)).view(np.float64)
    return np.asarray(np.where(inexact, odd, near))


def wrap_narrow(array: Array, element: ElementType) -> Array:
    """Wraps integers to two or four bits."""
    mask = (1 << element.bits) - 1
    low = (array.astype(np.int64) & mask).astype(np.int8)
    if element.kind == "int":
        half = np.int8(1 << (element.bits - 1))
        low = (low ^ half) - half
    return low.astype(element.dtype)


def integer_limits(element: ElementType) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    if element.kind == "int":
        return -(1 << (element.bits - 1)), (1 << (element.bits - 1)) - 1
    return 0, (1 << element.bits) - 1


def unsigned_bits(array: Array) -> Array:
    """The bits of whole-byte integers or floats as unsigned integers."""
    return np.ascontiguousarray(array).reshape(array.shape).view(f"u{array.dtype.itemsize}")


def convert_elements(array: Array, source: ElementType, target: ElementType) -> Array:
    """StableHLO's `convert`: floats to integers truncate and saturate (NaN gives 0), everything else rounds once."""
    if source is target:
        return array
    if source.is_complex and not target.is_complex:
        return convert_elements(np.ascontiguousarray(array.real), source.real, target)
    if target.kind == "bool":
        return np.asarray(widen(array, source) != 0)
    if target.is_complex:
        if source.is_complex:
            return array.astype(target.dtype)
        return convert_elements(array, source, target.real).astype(target.dtype)
    if source.is_float and target.is_integer:
        return _truncate(widen(array, source), target)
    if source.is_float:
        return round_float(array.astype(np.float32) if source.bits < 32 else array, target)
    if target.is_float:
        return _integers_to_floats(array, source, target)
    return narrow(widen(array, source), target)


def _truncate(array: Array, target: ElementType) -> Array:
    low, high = integer_limits(target)
    values = np.trunc(array.astype(np.float64))
    above, below = values > float(high), values <= float(low)
    # 2^63 - 1 and 2^64 - 1 are no f64 values: the nearest one is already too large to cast.
    above |= values >= float(high + 1)
    inside = np.where(above | below | np.isnan(values), 0.0, values)
    wide = inside.astype(np.uint64 if target.kind == "uint" and target.bits == 64 else np.int64)
    wide = np.where(above, wide.dtype.type(high), np.where(below, wide.dtype.type(low), wide))
    return wide.astype(np.int8).astype(target.dtype) if target.bits < 8 else wide.astype(target.dtype)


def _integers_to_floats(array: Array, source: ElementType, target: ElementType) -> Array:
    values = widen(array, source)
    if source.bits < 64 or is_native_float(target):
        return round_float(values.astype(target.dtype if is_native_float(target) else np.float64), target)
    # A sticky bit below 53 significant ones keeps the rounding to a narrow format the only one.
    sticky = (values & values.dtype.type((1 << _STICKY) - 1)) != 0
    high = (values >> values.dtype.type(_STICKY)) | sticky.astype(values.dtype)
    large = np.ldexp(high.astype(np.float64), _STICKY)
    is_large = np.abs(values.astype(np.float64)) >= 2.0**53
    return round_float(np.where(is_large, large, values.astype(np.float64)), target)
