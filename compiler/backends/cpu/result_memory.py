"""Memory for results, used again once the caller has let go of it.

A large array fresh from the system costs a page fault every 4 KB, which for a kernel that only streams through memory is
most of its time. Memory is handed out again only when nothing refers to it any more.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_SMALL = 1 << 16
"""Below this the allocator keeps memory itself."""
_KEPT = 3
_OWN_REFERENCES = 3
"""The list here, the loop variable, and the argument of `getrefcount`."""


class ResultMemory:
    """Makes the arrays of one result: always as good as new, seldom new."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._shape, self._dtype = shape, dtype
        self._bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self._kept: list[Array] = []

    def array(self) -> Array:
        """An array that nobody else holds, its elements undefined."""
        if self._bytes < _SMALL or not hasattr(sys, "getrefcount"):
            return np.empty(self._shape, self._dtype)
        for memory in self._kept:
            if sys.getrefcount(memory) == _OWN_REFERENCES:
                return memory.view(self._dtype).reshape(self._shape)
        memory = np.empty(self._bytes, np.uint8)
        if len(self._kept) < _KEPT:
            self._kept.append(memory)
        return memory.view(self._dtype).reshape(self._shape)
