"""Folding arrays along dimensions with a binary computation: the arithmetic behind reduce and its relatives.

Sums and products of narrow floats run in f64 (complex ones in complex128) and are rounded once; maxima and minima
propagate NaN and order -0 below +0; any other body is applied to whole arrays in a balanced tree that keeps the order of
the elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler.ir.types import ElementType, QuantizedType, TensorType
from compiler.ops.applied import binary_opcode, combine, outputs
from compiler.ops.element_arrays import narrow, widen
from compiler.ops.record import Array, Evaluation

_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


class Folder:
    """A binary computation in the format that its arithmetic is done in.

    Values are tuples of arrays of one shape, one array for each value the computation carries; `enter` takes them from
    the computation's element types into the working format and `leave` back.
    """

    def __init__(self, evaluation: Evaluation, index: int = 0) -> None:
        self.evaluation = evaluation
        self.index = index
        body = evaluation.called[index]
        self.kinds = [kind.element for kind in outputs(body.result_type) if isinstance(kind, TensorType)]
        first = self.kinds[0]
        opcode = binary_opcode(body)
        if isinstance(first, QuantizedType) or (
            first.is_complex and opcode in ("maximum", "minimum", "multiply")
        ):
            opcode = None
        if opcode in ("and", "or", "xor") and not (first.is_integer or first.kind == "bool"):
            opcode = None
        if opcode in ("add", "multiply") and first.kind == "bool":
            opcode = "or" if opcode == "add" else "and"
        self.opcode = opcode
        self.ufunc = _UFUNCS[opcode] if opcode else None

    @property
    def element(self) -> ElementType:
        """The first value's element type; not quantised where there is a fast path."""
        assert isinstance(self.kinds[0], ElementType)
        return self.kinds[0]

    def enter(self, values: Sequence[Array]) -> tuple[Array, ...]:
        """Values in the working format."""
        if self.ufunc is None:
            return tuple(values)
        array = widen(values[0], self.element)
        if self.opcode in ("add", "multiply"):
            if self.element.is_float:
                array = array.astype(np.float64)
            elif self.element.is_complex:
                array = array.astype(np.complex128)
        return (array,)

    def leave(self, values: Sequence[Array]) -> tuple[Array, ...]:
        """Values in the computation's element types."""
        if self.ufunc is None:
            return tuple(values)
        with np.errstate(all="ignore"):
            return (narrow(values[0], self.element),)

    def join(self, left: Sequence[Array], right: Sequence[Array]) -> tuple[Array, ...]:
        """The computation on values of one shape."""
        if self.ufunc is None:
            return combine(self.evaluation, left, right, self.index)
        x, y = left[0], right[0]
        with np.errstate(all="ignore"):
            found = self.ufunc(x, y)
            if x.dtype.kind == "f" and self.opcode in ("maximum", "minimum"):
                zero = (x == 0) & (y == 0)
                if zero.any():
                    sign = (
                        np.signbit(x) & np.signbit(y)
                        if self.opcode == "maximum"
                        else np.signbit(x) | np.signbit(y)
                    )
                    found = np.where(zero, np.copysign(found.dtype.type(0), np.where(sign, -1.0, 1.0)), found)
        return (np.asarray(found, x.dtype),)

    def fold(self, values: Sequence[Array]) -> tuple[Array, ...]:
        """All elements along the first dimension, which must not be empty, joined into one."""
        if self.ufunc is None:
            return self._tree(values)
        array = values[0]
        with np.errstate(all="ignore"):
            found = self._reduced(array)
        return (np.asarray(found, array.dtype),)

    def _reduced(self, array: Array) -> Any:
        assert self.ufunc is not None
        if self.opcode == "add" and array.dtype.kind == "f":
            # NumPy's own neutral element, +0, would make +0 of a sum of nothing but -0.
            return self.ufunc.reduce(array, axis=0, initial=-0.0)
        found = self.ufunc.reduce(array, axis=0)
        if array.dtype.kind != "f" or self.opcode not in ("maximum", "minimum"):
            return found
        is_zero = found == 0
        if not np.any(is_zero):
            return found
        wanted = self.opcode == "minimum"
        present = ((array == 0) & (np.signbit(array) == wanted)).any(axis=0)
        sign = np.where(present == wanted, -1.0, 1.0)
        return np.where(is_zero, np.copysign(array.dtype.type(0), sign), found)

    def _tree(self, values: Sequence[Array]) -> tuple[Array, ...]:
        level = tuple(values)
        while (count := level[0].shape[0]) > 1:
            even = count - count % 2
            joined = self.join([x[0:even:2] for x in level], [x[1:even:2] for x in level])
            if count % 2:
                joined = tuple(np.concatenate([a, x[-1:]]) for a, x in zip(joined, level, strict=True))
            level = joined
        return tuple(x[0] for x in level)


def reduce_leading(folder: Folder, values: Sequence[Array], inits: Sequence[Array]) -> tuple[Array, ...]:
    """Folds arrays along their first dimension and joins the initial values, once. Gives the body's element types."""
    shape = values[0].shape[1:]
    start = folder.enter([np.broadcast_to(init, shape) for init in inits])
    if values[0].shape[0] == 0:
        return folder.leave(start)
    folded = folder.fold(folder.enter(values))
    return folder.leave(folder.join(start, folded))


def dimensions_first(array: Array, dimensions: Sequence[int]) -> Array:
    """The array with some dimensions flattened into the first one, the others after it in order."""
    rest = [d for d in range(array.ndim) if d not in dimensions]
    count = math.prod(array.shape[d] for d in dimensions)
    moved = array.transpose(*dimensions, *rest)
    return moved.reshape(count, *(array.shape[d] for d in rest))
