"""Operations over sliding windows: reduce_window and select_and_scatter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.ir.types import DYNAMIC, I1, TensorType, TupleType, Type
from compiler.ops.applied import (
    as_tuple,
    check_reducer,
    grouped,
    promoted,
    scalar_results,
)
from compiler.ops.constraints import compatible, require, same_shape, tensor_result
from compiler.ops.convolution import dilated, window_count
from compiler.ops.convolution_arithmetic import spaced
from compiler.ops.element_arrays import narrow, widen
from compiler.ops.folding import Folder
from compiler.ops.record import VARIADIC, Array, Attribute, Evaluation, Operation, Site, Value
from compiler.ops.reduction import check_inits, common_shape, halves, require_scalars
from compiler.ops.updating import update_in_order

_SMALL_WINDOW = 4
_PLAIN_TERMS = 32


def _window_attributes(site: Site, rank: int, names: Sequence[tuple[str, str, str]]) -> None:
    """Each of the attributes has one positive entry for each dimension."""
    for size_number, value_number, name in names:
        values = site.attributes.get(name, (1,) * rank)
        require(len(values) == rank, f"{size_number} {name} must have {rank} entries, but has {len(values)}")
        require(all(v > 0 for v in values), f"{value_number} {name} must be positive, but is {list(values)}")


def _check_padding(site: Site, rank: int, constraint: str) -> tuple[tuple[int, int], ...]:
    padding = site.attributes.get("padding", ((0, 0),) * rank)
    shaped = len(padding) == rank and all(isinstance(entry, tuple) and len(entry) == 2 for entry in padding)
    require(
        shaped, f"{constraint} padding must have a pair for each of {rank} dimensions, but has {len(padding)}"
    )
    return tuple(padding)


def _windowed(
    shape: Sequence[int], attributes: Any, padding: Sequence[tuple[int, int]], rank: int
) -> tuple[int, ...]:
    """How many windows there are along each dimension."""
    sizes = attributes["window_dimensions"]
    strides = attributes.get("window_strides", (1,) * rank)
    base = attributes.get("base_dilations", (1,) * rank)
    inner = attributes.get("window_dilations", (1,) * rank)
    found = []
    for d, size in enumerate(shape):
        if size == DYNAMIC:
            found.append(DYNAMIC)
            continue
        whole = max(dilated(size, base[d]) + sum(padding[d]), 0)
        found.append(window_count(whole, dilated(sizes[d], inner[d]), strides[d]))
    return tuple(found)


def _infer_reduce_window(site: Site) -> Type:
    inputs, inits = halves(site)
    shape = common_shape(inputs, "(C2)")
    rank = len(shape)
    _window_attributes(
        site,
        rank,
        (
            ("(C4)", "(C5)", "window_dimensions"),
            ("(C6)", "(C7)", "window_strides"),
            ("(C8)", "(C9)", "base_dilations"),
            ("(C10)", "(C11)", "window_dilations"),
        ),
    )
    padding = _check_padding(site, rank, "(C12)")
    found = scalar_results(site.called[0], len(inputs), "(C13)", site.attributes["window_dimensions"])
    check_inits(inits, found, "(C3)")
    result = _windowed(shape, site.attributes, padding, rank)
    return grouped([TensorType(entry.element, result) for entry in found])


def _verify_reduce_window(site: Site) -> None:
    inputs, inits = halves(site)
    check_reducer(site, inputs, inits, "(C13)", "(C3)", site.attributes["window_dimensions"])


@dataclass(frozen=True, slots=True)
class Window:
    """Size, strides, dilation of the base and of the window, and padding, one entry for each dimension."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    base_dilations: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]


def _reduce_window(evaluation: Evaluation, *operands: Array) -> Value:
    a, count = evaluation.attributes, len(operands) // 2
    arrays = promoted(evaluation, operands, evaluation.operand_types)
    ones = (1,) * arrays[0].ndim
    window = Window(
        tuple(a["window_dimensions"]),
        tuple(a.get("window_strides", ones)),
        tuple(a.get("base_dilations", ones)),
        tuple(a.get("window_dilations", ones)),
        tuple((int(low), int(high)) for low, high in a.get("padding", ((0, 0),) * len(ones))),
    )
    found = reduce_windows(evaluation, arrays[:count], arrays[count:], window)
    return found[0] if count == 1 else found


def reduce_windows(
    evaluation: Evaluation, inputs: Sequence[Array], inits: Sequence[Array], window: Window
) -> tuple[Array, ...]:
    """The first called computation over every window of the inputs, padded with the initial values."""
    require_scalars(evaluation.called[0])
    padded = [
        spaced(x, 0, window.padding, window.base_dilations, init)
        for x, init in zip(inputs, inits, strict=True)
    ]
    rank = inputs[0].ndim
    spans = [dilated(size, step) for size, step in zip(window.size, window.dilations, strict=True)]
    shape = tuple(window_count(padded[0].shape[d], spans[d], window.strides[d]) for d in range(rank))
    if 0 in shape:
        return tuple(np.zeros(shape, x.dtype) for x in padded)
    folder = Folder(evaluation)
    is_short = math.prod(window.size) <= _PLAIN_TERMS
    if is_short and folder.opcode == "add" and folder.element.kind in ("float", "complex"):
        return (_plain_sums(folder, padded[0], inits[0], window, shape),)
    values = folder.enter(padded)
    # Inner dimensions first: their runs are neighbours in the window's own order.
    for d in reversed(range(rank)):
        values = _slide(folder, values, d, window.size[d], window.strides[d], window.dilations[d], shape[d])
    start = folder.enter([np.broadcast_to(init, shape) for init in inits])
    return folder.leave(folder.join(start, values))


def _plain_sums(folder: Folder, x: Array, init: Array, window: Window, shape: tuple[int, ...]) -> Array:
    """Sums of small windows in plain order, in f32 or wider: they differ from a loop's only where rounding does."""
    element = folder.element
    values = widen(x, element)
    with np.errstate(all="ignore"):
        total = np.broadcast_to(widen(np.asarray(init), element), shape)
        for place in np.ndindex(*window.size):
            corner = [k * step for k, step in zip(place, window.dilations, strict=True)]
            part = tuple(
                slice(first, first + (count - 1) * stride + 1, stride)
                for first, count, stride in zip(corner, shape, window.strides, strict=True)
            )
            total = total + values[part]
        return narrow(total, element)


def _slide(
    folder: Folder, values: Sequence[Array], d: int, size: int, stride: int, dilation: int, count: int
) -> tuple[Array, ...]:
    """Joins the elements of every window along one dimension; large windows from runs of doubling length."""
    before = (slice(None),) * d

    def part(arrays: Sequence[Array], first: int, step: int, length: int) -> list[Array]:
        places = (*before, slice(first, first + (length - 1) * step + 1, step))
        return [x[places] for x in arrays]

    if size <= _SMALL_WINDOW:
        total = tuple(part(values, 0, stride, count))
        for k in range(1, size):
            total = folder.join(total, part(values, k * dilation, stride, count))
        return total
    result: tuple[Array, ...] | None = None
    runs, length, offset = tuple(values), 1, 0
    while True:
        if size & length:
            piece = part(runs, offset * dilation, stride, count)
            result = tuple(piece) if result is None else folder.join(result, piece)
            offset += length
        length *= 2
        if length > size:
            assert result is not None
            return result
        shift = length // 2 * dilation
        reach = runs[0].shape[d] - shift
        runs = folder.join(part(runs, 0, 1, reach), part(runs, shift, 1, reach))


def _flops_of_window(site: Site) -> float:
    result = site.result.elements[0] if isinstance(site.result, TupleType) else site.result
    assert isinstance(result, TensorType)
    body = site.called[0]
    work = max(1, len(body) - len(body.parameters))
    return float(result.size * (math.prod(site.attributes["window_dimensions"]) - 1) * work)


# ---- select_and_scatter ------------------------------------------------------------------------------------------


def _infer_select(site: Site) -> Type:
    operand, source, init = site.tensors
    rank = operand.rank
    names = (("(C4)", "(C5)", "window_dimensions"), ("(C6)", "(C7)", "window_strides"))
    _window_attributes(site, rank, names)
    padding = _check_padding(site, rank, "(C8)")
    require(init.rank == 0, f"(C3) the initial value must be a scalar, but is {init}")
    windows = _windowed(operand.shape, site.attributes, padding, rank)
    require(
        same_shape(source.shape, windows),
        f"(C2) source must have one element for each window, {list(windows)}, but is {source}",
    )
    (found,) = scalar_results(site.called[1], 1, "(C10)")
    return TensorType(found.element, operand.shape)


def _verify_select(site: Site) -> None:
    operand, source, init = site.tensors
    select = site.called[0]
    scalar = TensorType(operand.element, ())
    require(
        len(select.parameters) == 2, f"(C9) select must take 2 scalars, but takes {len(select.parameters)}"
    )
    for index, parameter in enumerate(select.parameter_types):
        require(
            compatible(parameter, scalar),
            f"(C9) parameter #{index} of select must be {scalar}, but is {parameter}",
        )
    require(
        compatible(select.result_type, TensorType(I1, ())),
        f"(C9) select must return an i1 scalar, but returns {select.result_type}",
    )
    scatter = Site(site.opcode, site.operands, site.attributes, site.called[1:], site.result)
    check_reducer(scatter, (source,), (init,), "(C10)", "(C3)")
    check_reducer(scatter, (operand,), (init,), "(C10)", "(C11)")
    tensor_result(site)


def _select_and_scatter(evaluation: Evaluation, operand: Array, source: Array, init: Array) -> Value:
    rank = operand.ndim
    folder = Folder(evaluation, 1)
    element = folder.kinds[0]
    target = np.array(np.broadcast_to(init, operand.shape).astype(element.dtype)).reshape(-1)
    if source.size:
        places = _selected(evaluation, operand, source.shape, rank).reshape(-1)
        inside = places >= 0
        values = source.astype(element.dtype).reshape(-1)[inside]
        update_in_order(evaluation, 1, [target], places[inside], [values])
    return target.reshape(operand.shape)


def _selected(evaluation: Evaluation, operand: Array, windows: tuple[int, ...], rank: int) -> Array:
    """For each window the flat index of the element that `select` prefers; padding is never chosen (-1 if all is)."""
    a = evaluation.attributes
    strides = a.get("window_strides", (1,) * rank)
    padding = a.get("padding", ((0, 0),) * rank)
    best = np.full(windows, -1, np.int64)
    value = np.zeros(windows, operand.dtype)
    corners = [np.arange(count) * strides[d] - padding[d][0] for d, count in enumerate(windows)]
    flat_operand = operand.reshape(-1)
    for offset in np.ndindex(*a["window_dimensions"]):
        flat, inside = np.zeros((1,) * rank, np.int64), np.ones((1,) * rank, np.bool_)
        for d in range(rank):
            position = (corners[d] + offset[d]).reshape([-1 if k == d else 1 for k in range(rank)])
            inside = inside & (position >= 0) & (position < operand.shape[d])
            flat = flat * operand.shape[d] + np.clip(position, 0, max(operand.shape[d] - 1, 0))
        flat, inside = np.broadcast_to(flat, windows), np.broadcast_to(inside, windows)
        candidate = flat_operand[flat]
        first = best < 0
        keep = _prefers(evaluation, value, candidate)
        chosen = inside & (first | ~keep)
        best = np.where(chosen, flat, best)
        value = np.where(chosen, candidate, value)
    return best


def _prefers(evaluation: Evaluation, left: Array, right: Array) -> Array:
    whole = evaluation.call_elementwise(0, left, right)
    if whole is not None:
        return as_tuple(whole)[0]
    found = np.empty(left.shape, np.bool_)
    for place in np.ndindex(*left.shape):
        found[place] = evaluation.call(0, np.asarray(left[place]), np.asarray(right[place]))
    return found


def _flops_of_select(site: Site) -> float:
    source = site.tensor(1)
    return float(source.size * math.prod(site.attributes["window_dimensions"]))


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "reduce_window",
        _infer_reduce_window,
        _reduce_window,
        arity=VARIADIC,
        attributes=(
            Attribute("window_dimensions", "i64s", required=True),
            Attribute("window_strides", "i64s"),
            Attribute("base_dilations", "i64s"),
            Attribute("window_dilations", "i64s"),
            Attribute("padding", "pairs"),
        ),
        regions=("to_apply",),
        verify=_verify_reduce_window,
        flops=_flops_of_window,
        spec="StableHLO, reduce_window",
    ),
    Operation(
        "select_and_scatter",
        _infer_select,
        _select_and_scatter,
        arity=3,
        attributes=(
            Attribute("window_dimensions", "i64s", required=True),
            Attribute("window_strides", "i64s"),
            Attribute("padding", "pairs"),
        ),
        regions=("select", "scatter"),
        verify=_verify_select,
        flops=_flops_of_select,
        spec="StableHLO, select_and_scatter",
    ),
)
