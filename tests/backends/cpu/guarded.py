"""Runs kernels on memory that ends where their buffers end.

Each buffer lies between two pages that may not be touched, either at the very end or at the very start of
what is accessible, so a kernel that reads or writes one byte outside ends the process.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from compiler.backends.cpu.jit import Library
from compiler.backends.cpu.kernel_code import KernelCode

Array = npt.NDArray[Any]
Side = Literal["start", "end"]

_PAGE = mmap.PAGESIZE


class GuardedMemory:
    """Memory for one array between two forbidden pages; a known pattern fills what is left between."""

    def __init__(self, size: int, side: Side) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        inner = max(1, -(-size // _PAGE)) * _PAGE
        self._map = mmap.mmap(-1, inner + 2 * _PAGE)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._protect(self._base, 0)
        self._protect(self._base + _PAGE + inner, 0)
        whole = (ctypes.c_ubyte * inner).from_address(self._base + _PAGE)
        self._whole: Array = np.ctypeslib.as_array(whole)
        self._whole[:] = 0xA5
        start = 0 if side == "start" else inner - size
        self.bytes: Array = self._whole[start : start + size]
        self._rest = np.ones(inner, bool)
        self._rest[start : start + size] = False

    def _protect(self, address: int, rights: int) -> None:
        if self._libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(_PAGE), rights):
            raise OSError(ctypes.get_errno(), "mprotect")

    def intact(self) -> bool:
        """Whether the bytes around the array are as they were."""
        return bool((self._whole[self._rest] == 0xA5).all())

    def __del__(self) -> None:
        self._protect(self._base, 3)
        self._protect(self._base + len(self._map) - _PAGE, 3)


def run_kernel(
    library: Library,
    code: KernelCode,
    arrays: Sequence[Array],
    side: Side = "end",
    ranges: int = 1,
) -> list[Array]:
    """Runs all tasks of a kernel on guarded copies of `arrays` (and scratch); returns the arrays afterwards.

    Args:
        library: where the kernel is loaded.
        code: the kernel.
        arrays: operands and results.
        side: which end of the accessible memory the buffers touch.
        ranges: into how many calls the tasks are split; later ranges are run first.
    """
    memories = [GuardedMemory(array.nbytes, side) for array in arrays]
    for memory, array in zip(memories, arrays, strict=True):
        memory.bytes[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    memories.append(GuardedMemory(code.scratch_bytes, "start"))
    # Not a number, so that anything read before it is written shows.
    memories[-1].bytes[:] = 0xFF
    pointers = (ctypes.c_void_p * len(memories))(*[memory.bytes.ctypes.data for memory in memories])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        library.address(code.name)
    )
    bounds = [code.tasks * step // ranges for step in range(ranges + 1)]
    for begin, end in reversed(list(pairwise(bounds))):
        function(ctypes.addressof(pointers), begin, end)
    assert all(memory.intact() for memory in memories)
    return [
        memory.bytes.view(array.dtype).reshape(array.shape).copy()
        for memory, array in zip(memories, arrays, strict=False)
    ]
