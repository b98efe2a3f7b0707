"""Result arrays are the caller's alone, whatever views of them it keeps."""

from __future__ import annotations

import numpy as np

from compiler.backends.cpu.result_memory import ResultMemory


def test_memory_in_use_is_never_given_again() -> None:
    memory = ResultMemory((1 << 10, 1 << 5), np.dtype(np.float32))
    first = memory.array()
    part = first[3:4, 2:5]
    del first
    part[...] = 7
    others = [memory.array() for _ in range(5)]
    for other in others:
        assert not np.shares_memory(part, other)
        other[...] = 0
    assert (part == 7).all()


def test_memory_that_was_let_go_is_used_again() -> None:
    memory = ResultMemory((1 << 16,), np.dtype(np.int8))
    first = memory.array()
    place = first.ctypes.data
    del first
    assert memory.array().ctypes.data == place


def test_small_and_empty_results() -> None:
    assert ResultMemory((), np.dtype(np.float64)).array().shape == ()
    assert ResultMemory((0, 3), np.dtype(np.int32)).array().shape == (0, 3)
