"""Where an array's elements are, quickly: asking NumPy takes a microsecond an array, as long as many a kernel.

An array object holds the address of its elements in a fixed place. The place is looked for once, on an array whose
address NumPy tells; where it is not found, NumPy is asked each time.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_PLACES = (16, 24, 32, 40)
"""Where the address may be, in bytes from the start of the object: behind a reference count and a type."""


def _ask(array: Array) -> int:
    return int(array.ctypes.data)


@cache
def _place() -> int | None:
    if sys.implementation.name != "cpython":
        return None
    probes: list[Array] = [np.arange(3), np.zeros((2, 5), np.int8)[1:], np.float64(3) + np.zeros(7)]
    for place in _PLACES:
        if all(ctypes.c_size_t.from_address(id(probe) + place).value == _ask(probe) for probe in probes):
            return place
    return None


def address_reader() -> Callable[[Array], int]:
    """A function from an array (exactly `ndarray` or a subclass that adds nothing before it) to its address."""
    place = _place()
    if place is None:
        return _ask
    read = ctypes.c_size_t.from_address

    def address(array: Array) -> int:
        return read(id(array) + place).value

    return address
