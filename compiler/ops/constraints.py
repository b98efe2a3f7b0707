"""Checks that the families' inference and verification rules share.

All raise OperationError with a message that begins with the constraint's number in the StableHLO specification where
it has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compiler.ir.semantics import OperationError
from compiler.ir.types import (
    DYNAMIC,
    AnyElement,
    ElementType,
    QuantizedType,
    TensorType,
    TokenType,
    TupleType,
    Type,
)
from compiler.ops.record import Site


def require(holds: bool, message: str) -> None:
    """Raises OperationError with the message when a constraint does not hold."""
    if not holds:
        raise OperationError(message)


def given_result(site: Site) -> TensorType:
    """The declared result type of an operation whose result its operands do not determine.

    Raises:
        OperationError: when none was declared or it is no tensor.
    """
    if site.result is None:
        raise OperationError(
            f"the result type of {site.opcode} must be given: its operands do not determine it"
        )
    return tensor_result(site)


def tensor_result(site: Site) -> TensorType:
    """The declared result, which must be a tensor."""
    if not isinstance(site.result, TensorType):
        raise OperationError(f"result must be a tensor, but has type {site.result}")
    return site.result


def same_dimension(left: int, right: int) -> bool:
    """True when two sizes can be equal at run time."""
    return left == right or DYNAMIC in (left, right)


def same_shape(left: Sequence[int], right: Sequence[int]) -> bool:
    """True when two shapes can be equal at run time."""
    return left == right or (len(left) == len(right) and all(map(same_dimension, left, right)))


def same_baseline(left: AnyElement, right: AnyElement) -> bool:
    """True when element types agree apart from quantisation scales and zero points (`baseline_element_type`)."""
    if left == right:
        return True
    if isinstance(left, QuantizedType) and isinstance(right, QuantizedType):
        return left.storage is right.storage and left.expressed is right.expressed
    return False


def compatible(left: Type, right: Type) -> bool:
    """True when two types can describe the same value once dynamic sizes are known; layouts do not matter."""
    if left is right:
        return True
    if isinstance(left, TensorType) and isinstance(right, TensorType):
        fits = same_baseline(left.element, right.element) and same_shape(left.shape, right.shape)
        return fits and _within_bounds(left, right) and _within_bounds(right, left)
    if isinstance(left, TupleType) and isinstance(right, TupleType):
        return len(left.elements) == len(right.elements) and all(
            map(compatible, left.elements, right.elements)
        )
    return isinstance(left, TokenType) and isinstance(right, TokenType)


def _within_bounds(bounded: TensorType, other: TensorType) -> bool:
    """False when a static size of the other type is beyond this type's bound."""
    if bounded.bounds is None or len(bounded.bounds) != other.rank:
        return True
    return all(
        DYNAMIC in (bound, size) or size <= bound
        for bound, size in zip(bounded.bounds, other.shape, strict=True)
    )


def merged_shape(types: Iterable[TensorType]) -> tuple[int, ...] | None:
    """The most static shape that all types can have, or None when they contradict each other."""
    merged: tuple[int, ...] | None = None
    for entry in types:
        if merged is None or merged == entry.shape:
            merged = entry.shape
        elif not same_shape(merged, entry.shape):
            return None
        else:
            merged = tuple(a if a != DYNAMIC else b for a, b in zip(merged, entry.shape, strict=True))
    return merged


def shape_text(shape: Sequence[int]) -> str:
    """A shape as messages write it: `2x?x3`."""
    return "x".join("?" if size == DYNAMIC else str(size) for size in shape) or "scalar"


def kind_of(element: AnyElement) -> str:
    """`bool`, `int`, `uint`, `float`, `complex` or `quantized`."""
    return element.kind


def plain(element: AnyElement) -> ElementType:
    """An element type that must not be quantised."""
    if isinstance(element, QuantizedType):
        raise OperationError(f"does not take quantized elements, but has {element.name}")
    return element


def require_in_range(values: Iterable[int], limit: int, constraint: str) -> None:
    """Each value must be a dimension number below `limit`."""
    for value in values:
        require(0 <= value < limit, f"{constraint}, but {value} is not in [0, {limit})")


def require_unique(values: Sequence[int], constraint: str) -> None:
    """No value may occur twice."""
    require(len(set(values)) == len(values), f"{constraint}, but got {list(values)}")


def require_index(site: Site, index: int) -> None:
    """An operand must be a rank-0 integer tensor."""
    found = site.tensor(index)
    require(
        found.rank == 0 and found.element.is_integer,
        f"operand #{index} must be an integer scalar, got {found}",
    )
