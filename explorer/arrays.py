"""Arrays in files: reading inputs and expected outputs, writing outputs, comparing.

`.npz` files hold `arg0…` or `out0…`. bf16 and f8 come as ml_dtypes arrays or as raw bits (uint16, uint8); sub-byte integers
one value a byte. Nothing is unpickled.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compiler.analysis.values import leaves
from compiler.ir.types import TensorType, Type
from compiler.ops.constraints import same_shape
from explorer.session import UserError

Array = np.ndarray[Any, np.dtype[Any]]


def flat_types(types: Sequence[Type]) -> list[TensorType]:
    """The tensors inside types, tuples flattened."""
    return [leaf for entry in types for _, leaf in leaves(entry)]


def load_arrays(path: str, prefix: str, types: Sequence[Type], *, widened: bool = False) -> list[Array]:
    """Reads `prefix0`, `prefix1`, … as the given types; with `widened` narrow floats may have been stored as f32.

    Raises:
        UserError: when the file is missing or unreadable, an array is missing, or one does not fit its type.
    """
    stored = read_npz(path)
    found = []
    for index, leaf in enumerate(flat_types(types)):
        name = f"{prefix}{index}"
        if name not in stored:
            have = ", ".join(sorted(stored)[:8]) or "nothing"
            raise UserError(f"{path}: there is no {name}; the file holds {have}")
        array = stored[name]
        if widened and array.dtype == np.float32 and leaf.element.is_float and leaf.element.bits < 32:
            array = array.astype(leaf.element.dtype)
        found.append(as_type(array, leaf, f"{path}: {name}"))
    return found


def read_npz(path: str) -> dict[str, Array]:
    """All arrays of an `.npz` file, or of a folder of `.npy` files.

    Raises:
        UserError: when it cannot be read.
    """
    source = Path(path)
    try:
        if source.is_dir():
            return {file.stem: np.load(file, allow_pickle=False) for file in sorted(source.glob("*.npy"))}
        data = np.load(source, allow_pickle=False)
        if isinstance(data, np.ndarray):
            raise UserError(f"{path}: is a single array, not an .npz file")
        with data:
            return {name: data[name] for name in data.files}
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        if "allow_pickle" in reason:
            reason = "it is no archive of arrays, or it holds Python objects, which are never loaded"
        raise UserError(f"{path}: not readable as arrays ({reason})") from None


def as_type(array: Array, wanted: TensorType, where: str) -> Array:
    """The array as the element type of a tensor, raw bits reinterpreted; any size fits a dynamic dimension.

    Raises:
        UserError: when shape or elements do not fit.
    """
    dtype = wanted.element.dtype
    if not same_shape(array.shape, wanted.shape):
        raise UserError(f"{where} has shape {list(array.shape)}, but the model has {wanted} there")
    if array.dtype == dtype:
        return np.asarray(array, order="C")
    if array.dtype.kind in "uV" and array.dtype.itemsize == dtype.itemsize and dtype.kind not in "iub":
        return np.asarray(array, order="C").view(dtype)
    if wanted.element.kind in ("int", "uint") and wanted.element.bits < 8 and array.dtype.kind in "iu":
        return array.astype(dtype)
    if wanted.element.kind == "bool" and array.dtype.kind in "iu":
        return array.astype(bool)
    raise UserError(f"{where} holds {array.dtype} elements, but the model has {wanted} there")


def save_arrays(path: str, prefix: str, arrays: Sequence[Array], *, widen: bool = False) -> None:
    """Writes an `.npz` file, as a whole or not at all. Narrow floats go out as raw bits, or as f32 with `widen`."""
    target = Path(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".npz", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            named: dict[str, Any] = {
                f"{prefix}{i}": _portable(array, widen) for i, array in enumerate(arrays)
            }
            np.savez(stream, **named)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _portable(array: Array, widen: bool) -> Array:
    if array.dtype.kind == "V" or array.dtype.name.startswith(("bfloat", "float8_", "float4_", "float6_")):
        return array.astype(np.float32) if widen else array.view(f"u{array.dtype.itemsize}")
    if array.dtype.name in ("int2", "int4"):
        return array.astype(np.int8)
    if array.dtype.name in ("uint2", "uint4"):
        return array.astype(np.uint8)
    if widen and array.dtype == np.float16:
        return array.astype(np.float32)
    return array


@dataclass(frozen=True)
class Difference:
    """How far two arrays are apart. `ulp` is in units in the last place of the expected value's type."""

    index: int
    equal: bool
    within: bool
    largest_absolute: float
    largest_relative: float
    largest_ulp: float
    place: tuple[int, ...]
    got: str
    wanted: str
    differing: int
    total: int


def compare(index: int, got: Array, wanted: Array, rtol: float, atol: float) -> Difference:
    """Compares one output with its expected value: equal bits (any NaN equals any NaN), or within a tolerance.

    Integers and booleans are within only when equal.
    """
    if got.size == 0:
        return Difference(index, True, True, 0.0, 0.0, 0.0, (), "", "", 0, 0)
    exact = got.dtype.kind in "iub" or got.dtype.name in ("int2", "int4", "uint2", "uint4")
    wide_got, wide_wanted = _wide(got), _wide(wanted)
    with np.errstate(all="ignore"):
        same = (wide_got == wide_wanted) | ((wide_got != wide_got) & (wide_wanted != wide_wanted))
        apart = np.where(same, 0.0, np.abs(wide_got - wide_wanted))
        apart = np.where(np.isnan(apart), np.inf, apart)
        size = np.abs(wide_wanted)
        relative = np.where(same, 0.0, apart / np.where(size == 0, np.nan, size))
        relative = np.where(np.isnan(relative) & ~same, np.inf, relative)
        within = same if exact else same | (apart <= rtol * np.where(np.isfinite(size), size, 0.0) + atol)
    worst = int(np.argmax(apart if not within.all() else np.where(same, -1.0, apart)))
    place = tuple(int(i) for i in np.unravel_index(worst, got.shape)) if got.ndim else ()
    return Difference(
        index,
        bool(same.all()),
        bool(within.all()),
        float(apart.max()),
        float(relative.max()),
        _ulps(got, wanted, apart),
        place,
        str(got[place]),
        str(wanted[place]),
        int((~same).sum()),
        int(got.size),
    )


def _wide(array: Array) -> Array:
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        return array.astype(np.longdouble)
    return array.astype(np.float64)


def _ulps(got: Array, wanted: Array, apart: Array) -> float:
    """The largest distance in units in the last place; exact for floats up to f64."""
    if wanted.dtype.kind in "iubc" or "int" in wanted.dtype.name or apart.max() == 0:
        return 0.0 if apart.max() == 0 else float("nan")
    narrow = wanted.dtype if wanted.dtype.kind == "f" else None
    base = np.abs(wanted.astype(np.float64))
    if narrow is not None:
        unit = np.spacing(base.astype(narrow)).astype(np.float64)
    else:
        import ml_dtypes

        info = ml_dtypes.finfo(wanted.dtype)  # type: ignore[no-untyped-call]
        exponent = np.floor(np.log2(np.maximum(base, float(info.smallest_normal))))
        unit = np.exp2(exponent) * float(info.eps)
    with np.errstate(all="ignore"):
        return float(np.nan_to_num(np.max(apart / unit), nan=np.inf))
