"""Constants: a typed array that may be a splat.

A splat of any size costs one element until somebody needs the array. Literals are values: they compare by their
bits (so NaN equals NaN of the same bits and -0.0 differs from +0.0) and hash by a digest.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from compiler.ir.types import TensorType

Array = np.ndarray[Any, np.dtype[Any]]


class Literal:
    """A constant of a static tensor type. `array` is read-only and has the type's shape and dtype."""

    __slots__ = ("_digest", "array", "is_splat", "type")

    type: TensorType
    array: Array
    is_splat: bool

    def __init__(self, tensor_type: TensorType, array: Array) -> None:
        """Takes an array of the type's dtype: of its shape, or 0-dimensional for a splat.

        Raises:
            ValueError: when shape or dtype do not fit.
        """
        if array.dtype != tensor_type.element.dtype:
            raise ValueError(f"literal of {tensor_type} given {array.dtype} elements")
        if array.shape == tensor_type.shape:
            self.is_splat = array.ndim == 0 or (array.size > 0 and not any(array.strides))
        elif array.ndim == 0:
            array = np.broadcast_to(array, tensor_type.shape)
            self.is_splat = True
        else:
            raise ValueError(f"literal of {tensor_type} given shape {array.shape}")
        if array.flags.writeable:
            array = array.view()
            array.flags.writeable = False
        self.type = tensor_type
        self.array = array
        self._digest: bytes | None = None

    @property
    def splat_value(self) -> np.generic | None:
        """The one element of a splat, else None."""
        if not self.is_splat or self.array.size == 0:
            return None
        value = self.array[(0,) * self.array.ndim]
        assert isinstance(value, np.generic)
        return value

    @property
    def digest(self) -> bytes:
        """A digest of type and bits (splats and their dense twins agree only if both are stored as splats)."""
        if self._digest is None:
            hasher = hashlib.blake2b(str(self.type).encode(), digest_size=16)
            if self.is_splat and self.array.size:
                hasher.update(b"splat")
                hasher.update(np.asarray(self.splat_value).tobytes())
            else:
                hasher.update(np.ascontiguousarray(self.array).tobytes())
            self._digest = hasher.digest()
        return self._digest

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Literal) and self.digest == other.digest)

    def __hash__(self) -> int:
        return int.from_bytes(self.digest[:8], "little")

    def __repr__(self) -> str:
        shown = self.splat_value if self.is_splat else f"{self.array.size} elements"
        return f"Literal({self.type}, {shown})"


def canonical(literal: Literal) -> Literal:
    """The same constant, stored as a splat when all its elements have equal bits."""
    if literal.is_splat or literal.array.size == 0:
        return literal
    flat = np.ascontiguousarray(literal.array).reshape(-1)
    raw = flat.view(np.uint8).reshape(flat.size, -1)
    if bool((raw == raw[0]).all()):
        return Literal(literal.type, flat[:1].reshape(()))
    return literal
