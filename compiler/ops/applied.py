"""The little computations that reduce, scatter, sort and the collectives apply: their signatures, and what they do.

A body is recognised by its shape, never by its name: `root = op(parameter, parameter)` for one of the operations that
NumPy has a fast path for. Everything else is run by the evaluation, on whole arrays where it can be.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.ir.program import Computation
from compiler.ir.types import AnyElement, ElementType, QuantizedType, TensorType, TupleType, Type
from compiler.ops.constraints import compatible, plain, require, same_dimension
from compiler.ops.element_arrays import convert_elements
from compiler.ops.record import Array, Evaluation, Site, Value

BINARY = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor"})
"""Commutative operations with a fast path."""


def binary_opcode(computation: Computation) -> str | None:
    """The operation of BINARY that a computation of two parameters applies to them, or None."""
    root = computation.root_instruction
    if root.opcode not in BINARY or len(computation.parameters) != 2:
        return None
    return root.opcode if sorted(root.operands) == sorted(computation.parameters) else None


def returned_parameter(computation: Computation) -> int | None:
    """The index of the parameter that a computation returns unchanged, or None."""
    root = computation.root_instruction
    return root.attributes["index"] if root.opcode == "parameter" else None


def outputs(result: Type) -> tuple[Type, ...]:
    """The types of a computation's results."""
    return result.elements if isinstance(result, TupleType) else (result,)


def grouped(types: Sequence[Type]) -> Type:
    """One type alone, or several as a tuple."""
    return types[0] if len(types) == 1 else TupleType(tuple(types))


def as_tuple(value: Value | None) -> tuple[Array, ...]:
    """The arrays that a computation returned."""
    assert value is not None
    return value if isinstance(value, tuple) else (value,)


def scalar_results(
    computation: Computation, count: int, constraint: str, allowed: Sequence[int] = ()
) -> tuple[TensorType, ...]:
    """The result types of an applied computation: `count` scalars. Raises OperationError otherwise.

    `allowed` are dimensions that old programs' computations may have some of, in order.
    """
    found = outputs(computation.result_type)
    require(
        count > 1 or not isinstance(computation.result_type, TupleType) or len(found) != 1,
        f"{constraint} the computation must return a scalar, but returns {computation.result_type}",
    )
    require(
        len(found) == count,
        f"{constraint} the computation must return {count} scalar{'s' * (count != 1)}, but returns {len(found)}",
    )
    for entry in found:
        require(
            isinstance(entry, TensorType) and _is_subsequence(entry.shape, allowed),
            f"{constraint} the computation must return scalars, but returns {entry}",
        )
    return tuple(entry for entry in found if isinstance(entry, TensorType))


def _is_subsequence(shape: Sequence[int], allowed: Sequence[int]) -> bool:
    rest = iter(allowed)
    return all(any(same_dimension(size, other) for other in rest) for size in shape)


def is_promotable(source: AnyElement, target: AnyElement) -> bool:
    """The specification's `is_promotable`: the same kind of number, at least as wide."""
    if isinstance(source, QuantizedType) and isinstance(target, QuantizedType):
        return source.expressed is target.expressed and source.bits <= target.bits
    same_kind = source.kind == target.kind or (source.is_integer and target.is_integer)
    return same_kind and source.bits <= target.bits


def check_reducer(
    site: Site,
    inputs: Sequence[TensorType],
    inits: Sequence[TensorType],
    constraint: str,
    promoted: str,
    allowed: Sequence[int] = (),
) -> tuple[TensorType, ...]:
    """Checks the body of a reduction: 2N scalars to N scalars, wide enough for inputs and initial values.

    `allowed` as in `scalar_results`.

    Returns:
        The scalar types that the body returns.
    """
    body = site.called[0]
    count = len(inputs)
    found = scalar_results(body, count, constraint, allowed)
    require(
        len(body.parameters) == 2 * count,
        f"{constraint} the computation must take {2 * count} scalars, but takes {len(body.parameters)}",
    )
    for index, parameter in enumerate(body.parameter_types):
        wanted = found[index % count]
        require(
            compatible(parameter, wanted),
            f"{constraint} parameter #{index} of the computation is {parameter}, but its result is {wanted}",
        )
    for entries, what in ((inputs, "input"), (inits, "initial value")):
        for index, (entry, result) in enumerate(zip(entries, found, strict=True)):
            require(
                is_promotable(entry.element, result.element),
                f"{promoted} {what} #{index} of {entry.element.name} cannot be promoted to the computation's "
                f"{result.element.name}",
            )
    return found


def promoted(evaluation: Evaluation, arrays: Sequence[Array], types: Sequence[Type]) -> list[Array]:
    """Operands in the element types that the first called computation works in."""
    wanted = outputs(evaluation.called[0].result_type)
    found: list[Array] = []
    for index, (array, kind) in enumerate(zip(arrays, types, strict=True)):
        target = wanted[index % len(wanted)]
        assert isinstance(kind, TensorType) and isinstance(target, TensorType)
        if kind.element == target.element or isinstance(kind.element, QuantizedType):
            found.append(array)
        else:
            found.append(convert_elements(array, plain(kind.element), plain(target.element)))
    return found


def combine(
    evaluation: Evaluation, left: Sequence[Array], right: Sequence[Array], index: int = 0
) -> tuple[Array, ...]:
    """The called computation applied to arrays of one shape, element by element if need be."""
    whole = evaluation.call_elementwise(index, *left, *right)
    if whole is not None:
        return as_tuple(whole)
    kinds = outputs(evaluation.called[index].result_type)
    made = tuple(np.empty(left[0].shape, element_of(kind).dtype) for kind in kinds)
    for place in np.ndindex(*left[0].shape):
        arguments = [np.asarray(array[place]) for array in (*left, *right)]
        for target, value in zip(made, as_tuple(evaluation.call(index, *arguments)), strict=True):
            target[place] = value
    return made


def element_of(kind: Type) -> ElementType | QuantizedType:
    """The element type of a tensor."""
    assert isinstance(kind, TensorType)
    return kind.element
