"""Random arguments for a program, the same for the same seed on every machine.

Used wherever no inputs are given: `run --seed`, comparisons, bisection, reduction. Floats are near-normal with a few
larger ones, integers small, predicates mixed; what an argument's use requires (indices in range, say) is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler.ir.types import DYNAMIC, ElementType, QuantizedType, TensorType, TupleType, Type
from compiler.ops.element_arrays import integer_limits, round_float

Array = np.ndarray[Any, np.dtype[Any]]

_SMALL = 8
"""Integers are drawn from about this many values around (signed) or above (unsigned) zero."""


def random_inputs(types: Sequence[Type], seed: int) -> list[Array]:
    """Arrays for the leaves of parameter types, in order; each argument has a stream of its own.

    Raises:
        ValueError: for a type with a dynamic size.
    """
    leaves = [leaf for kind in types for leaf in _leaves(kind)]
    return [random_array(leaf, seed, index) for index, leaf in enumerate(leaves)]


def random_array(kind: TensorType, seed: int, stream: int = 0) -> Array:
    """One random array of a static tensor type. Raises ValueError when the type has a dynamic size."""
    if DYNAMIC in kind.shape:
        raise ValueError(f"no random values for {kind}: give its sizes")
    generator = np.random.Generator(np.random.PCG64([seed, stream]))
    if isinstance(kind.element, QuantizedType):
        low, high = kind.element.storage_min, kind.element.storage_max
        return _integers(generator, kind.element.storage, kind.shape, low, high)
    return _plain(generator, kind.element, kind.shape)


def _leaves(kind: Type) -> list[TensorType]:
    if isinstance(kind, TupleType):
        return [leaf for entry in kind.elements for leaf in _leaves(entry)]
    return [kind] if isinstance(kind, TensorType) else []


def _plain(generator: np.random.Generator, element: ElementType, shape: tuple[int, ...]) -> Array:
    if element.kind == "bool":
        return generator.integers(0, 2, shape).astype(np.bool_)
    if element.is_integer:
        lowest, highest = integer_limits(element)
        return _integers(generator, element, shape, max(lowest, -_SMALL // 2), min(highest, _SMALL - 1))
    if element.is_complex:
        found = np.empty(shape, element.dtype)
        found.real, found.imag = _normal(generator, shape), _normal(generator, shape)
        return found
    with np.errstate(all="ignore"):
        return round_float(_normal(generator, shape), element)


def _integers(
    generator: np.random.Generator, element: ElementType, shape: tuple[int, ...], low: int, high: int
) -> Array:
    drawn = generator.integers(low, high, shape, dtype=np.int64, endpoint=True)
    narrow = np.int8 if element.kind == "int" else np.uint8
    return np.asarray(drawn).astype(narrow if element.bits < 8 else element.dtype).astype(element.dtype)


def _normal(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Sums of uniform draws: near enough to normal, and exact in f64 on every machine."""
    return np.asarray(sum(generator.random(shape) for _ in range(4)), np.float64) * 2.0 - 4.0
