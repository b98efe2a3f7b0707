"""sort by any comparator, and the order that `chlo.top_k` shares with it.

Comparators that compare one input's elements by `<` or `>` are handed to NumPy's stable sorts. Any other is asked about
whole arrays at once: runs of doubling length are merged, each element finding its place in the other run by bisection.
What no comparison of pairs can order consistently (NaN under a plain `<` inside a larger comparator) is left to a sort
that asks for one pair at a time.
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import NamedTuple

import numpy as np

from compiler.ir.program import Computation
from compiler.ir.types import I1, ElementType, TensorType, Type
from compiler.ops.applied import as_tuple, element_of, grouped
from compiler.ops.constraints import compatible, merged_shape, require
from compiler.ops.element_arrays import widen
from compiler.ops.elementwise_other import total_order_key
from compiler.ops.record import VARIADIC, Array, Attribute, Evaluation, Operation, Site, Value


def _infer(site: Site) -> Type:
    require(len(site.operands) > 0, "(C1) sort needs at least one input")
    shape = merged_shape(site.tensors)
    require(
        shape is not None, f"(C3) inputs must have one shape, but are {', '.join(map(str, site.operands))}"
    )
    assert shape is not None
    return grouped([TensorType(entry.element, shape) for entry in site.tensors])


def _verify(site: Site) -> None:
    rank = site.tensor(0).rank
    dimension = site.attributes.get("dimension", -1)
    require(
        0 <= dimension < max(rank, 1) or dimension == -1,
        f"(C4) dimension must be in [{-rank}, {rank}), but is {dimension}",
    )
    comparator = site.called[0]
    types = [TensorType(entry.element, ()) for entry in site.tensors for _ in range(2)]
    require(
        len(comparator.parameters) == len(types),
        f"(C5) the comparator must take {len(types)} scalars, but takes {len(comparator.parameters)}",
    )
    for index, (parameter, wanted) in enumerate(zip(comparator.parameter_types, types, strict=True)):
        require(
            compatible(parameter, wanted),
            f"(C5) comparator's parameter #{index} must be {wanted}, but is {parameter}",
        )
    require(
        compatible(comparator.result_type, TensorType(I1, ())),
        f"(C5) the comparator must return an i1 scalar, but returns {comparator.result_type}",
    )


class Key(NamedTuple):
    """What a simple comparator compares: which input, in which direction, and how floats are ordered."""

    input: int
    is_descending: bool
    is_total: bool
    zeros_equal: bool = False
    """Both zeros are one key, and all NaN another, before they are compared."""


def comparator_key(comparator: Computation) -> Key | None:
    """Recognises `compare(a, b)` of one input's elements, perhaps with zeros and NaN made alike first."""
    root = comparator.root_instruction
    if root.opcode != "compare" or root.attributes["comparison_direction"] not in ("LT", "GT"):
        return None
    left, right = (_source(comparator, name) for name in root.operands)
    if left is None or right is None or left[1] != right[1]:
        return None
    first, second = left[0], right[0]
    if first == second or first // 2 != second // 2:
        return None
    is_descending = (root.attributes["comparison_direction"] == "GT") != (first > second)
    is_total = root.attributes.get("compare_type") == "TOTALORDER"
    if left[1] and not is_total:
        return None
    return Key(first // 2, is_descending, is_total, left[1])


def _source(comparator: Computation, name: str) -> tuple[int, bool] | None:
    """The parameter that a comparator's operand is, and whether zeros and NaN were made alike."""
    instruction = comparator[name]
    if instruction.opcode == "parameter":
        return instruction.attributes["index"], False
    # select(x != x, NaN, select(x == 0, 0, x))
    if instruction.opcode != "select":
        return None
    condition, nan, inner = (comparator[operand] for operand in instruction.operands)
    if nan.opcode != "constant" or inner.opcode != "select" or not np.isnan(_number(nan)):
        return None
    is_zero, zero, parameter = (comparator[operand] for operand in inner.operands)
    if parameter.opcode != "parameter" or zero.opcode != "constant" or _number(zero) != 0:
        return None
    if not _compares(comparator, condition.name, "NE", parameter.name, None):
        return None
    if not _compares(comparator, is_zero.name, "EQ", parameter.name, 0.0):
        return None
    return parameter.attributes["index"], True


def _number(constant: object) -> float:
    literal = constant.literal  # type: ignore[attr-defined]
    return float(literal.array.reshape(-1)[0]) if literal.array.dtype.kind != "c" else float("inf")


def _compares(
    comparator: Computation, name: str, direction: str, parameter: str, constant: float | None
) -> bool:
    """True for `compare(parameter, constant)`, or of a parameter with itself where no constant is given."""
    found = comparator[name]
    if found.opcode != "compare" or found.attributes["comparison_direction"] != direction:
        return False
    first, second = found.operands
    if constant is None:
        return first == second == parameter
    other = comparator[second]
    return first == parameter and other.opcode == "constant" and _number(other) == constant


def stable_order(values: Array, element: ElementType, *, is_descending: bool, is_total: bool) -> Array:
    """Indices that sort along the last dimension, equal elements in their old order.

    `is_total` orders floats -NaN < -inf < … < -0 < +0 < … < inf < NaN; otherwise both zeros are equal and NaN come last.
    """
    if element.is_float and is_total:
        keys = total_order_key(values)
    else:
        keys = widen(values, element)
    if is_descending:
        keys = -keys if keys.dtype.kind == "f" else ~keys
    return np.argsort(keys, axis=-1, kind="stable")


def _fast_order(evaluation: Evaluation, key: Key, columns: list[Array]) -> Array | None:
    element = element_of(evaluation.operand_types[key.input])
    if not isinstance(element, ElementType) or element.is_complex:
        return None
    values = columns[key.input]
    if key.zeros_equal:
        with np.errstate(all="ignore"):
            values = np.where(values == 0, np.zeros((), values.dtype), values)
            values = np.where(values != values, np.full((), np.nan).astype(values.dtype), values)
    return stable_order(values, element, is_descending=key.is_descending, is_total=key.is_total)


def _is_before(evaluation: Evaluation, left: list[Array], right: list[Array]) -> Array:
    """The comparator on rows of elements, one answer for each pair."""
    arguments = [array for pair in zip(left, right, strict=True) for array in pair]
    whole = evaluation.call_elementwise(0, *arguments)
    if whole is not None:
        return as_tuple(whole)[0]
    found = np.empty(left[0].shape, np.bool_)
    for place in np.ndindex(*left[0].shape):
        found[place] = evaluation.call(0, *(np.asarray(array[place]) for array in arguments))
    return found


def _merged_order(evaluation: Evaluation, columns: list[Array]) -> Array | None:
    """Indices that sort each row by merging runs; None when the comparator contradicts itself."""
    rows, count = columns[0].shape
    order = np.broadcast_to(np.arange(count), (rows, count)).copy()
    row = np.arange(rows)[:, None]
    position = np.arange(count)[None, :]
    width = 1
    while width < count:
        run = position // width
        own_start, is_left = run * width, run % 2 == 0
        other_start = np.where(is_left, own_start + width, own_start - width)
        other_size = np.clip(np.minimum(other_start + width, count) - other_start, 0, width)
        current = [column[row, order] for column in columns]
        low = np.zeros((rows, count), np.int64)
        high = np.broadcast_to(other_size, (rows, count)).copy()
        while (open_ := low < high).any():
            middle = (low + high) // 2
            probe = np.clip(other_start + middle, 0, count - 1)
            other = [column[row, probe] for column in current]
            # A left element goes after right ones that are before it; a right one after left ones it is not before.
            other_first = np.where(
                is_left, _is_before(evaluation, other, current), ~_is_before(evaluation, current, other)
            )
            low = np.where(open_ & other_first, middle + 1, low)
            high = np.where(open_ & ~other_first, middle, high)
        target = np.where(is_left, position, position - width) + low
        merged = np.full((rows, count), -1, np.int64)
        merged[row, target] = order
        if (merged < 0).any():
            return None
        order, width = merged, width * 2
    return order


def _pairwise_order(evaluation: Evaluation, columns: list[Array]) -> Array:
    """Indices by a sort that asks for one pair at a time, whatever the comparator answers."""
    rows, count = columns[0].shape
    order = np.empty((rows, count), np.int64)
    for r in range(rows):

        def compare(a: int, b: int, r: int = r) -> int:
            def before(x: int, y: int) -> bool:
                pair = [np.asarray(column[r, k]) for column in columns for k in (x, y)]
                return bool(evaluation.call(0, *pair))

            return -1 if before(a, b) else int(before(b, a))

        order[r] = sorted(range(count), key=cmp_to_key(compare))
    return order


def _sort(evaluation: Evaluation, *inputs: Array) -> Value:
    rank = inputs[0].ndim
    if rank == 0 or inputs[0].size == 0:
        return inputs[0] if len(inputs) == 1 else inputs
    dimension = evaluation.attributes.get("dimension", -1) % rank
    moved = [np.moveaxis(array, dimension, -1) for array in inputs]
    shape = moved[0].shape
    columns = [array.reshape(-1, shape[-1]) for array in moved]
    key = comparator_key(evaluation.called[0])
    order = _fast_order(evaluation, key, columns) if key is not None else None
    if order is None:
        order = _merged_order(evaluation, columns)
    if order is None:
        order = _pairwise_order(evaluation, columns)
    rows = np.arange(columns[0].shape[0])[:, None]
    found = tuple(np.moveaxis(column[rows, order].reshape(shape), -1, dimension) for column in columns)
    return found[0] if len(found) == 1 else found


def top_k(values: Array, element: ElementType, k: int) -> tuple[Array, Array]:
    """The k largest along the last dimension, largest first, and their places (i32); equal ones in their old order.

    Floats are ordered totally, so that NaN is larger than infinity and +0 than -0.
    """
    order = stable_order(values, element, is_descending=True, is_total=True)[..., :k]
    return np.take_along_axis(values, order, axis=-1), order.astype(np.int32)


def _flops(site: Site) -> float:
    operand = site.tensor(0)
    length = operand.shape[site.attributes.get("dimension", -1)] if operand.rank else 1
    return float(operand.size * max(length - 1, 0).bit_length() * max(1, len(site.called[0])))


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "sort",
        _infer,
        _sort,
        arity=VARIADIC,
        attributes=(Attribute("dimension", "i64", -1), Attribute("is_stable", "bool", False)),
        regions=("comparator",),
        verify=_verify,
        flops=_flops,
        spec="StableHLO, sort",
    ),
)
