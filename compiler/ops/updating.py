"""Updates of single elements at repeated places, in order: the arithmetic behind scatter and select_and_scatter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.ir.types import QuantizedType
from compiler.ops.applied import binary_opcode, combine, element_of, outputs, returned_parameter
from compiler.ops.elementwise_other import total_order_key
from compiler.ops.record import Array, Evaluation

_IN_PLACE: dict[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_INTEGER_ONLY: dict[str, np.ufunc] = {"maximum": np.maximum, "minimum": np.minimum}


def update_in_order(
    evaluation: Evaluation, index: int, targets: Sequence[Array], places: Array, values: Sequence[Array]
) -> None:
    """Does `target[place] = computation(target[place], value)` for each place in order, for all targets together.

    Args:
        evaluation: whose called computation `index` is applied.
        index: which one.
        targets: flat arrays, changed in place.
        places: where each value goes; may repeat, all in bounds.
        values: flat arrays of the places' length.
    """
    if not places.size:
        return
    body = evaluation.called[index]
    returned = returned_parameter(body)
    if returned is not None and len(targets) == 1:
        if returned == 1:
            last = _last_of_each(places)
            targets[0][places[last]] = values[0][last]
        return
    if len(targets) == 1 and _is_extreme_of_floats(evaluation, index):
        _extremes(_INTEGER_ONLY[str(binary_opcode(body))], targets[0], places, values[0])
        return
    ufunc = _native(evaluation, index, targets[0]) if len(targets) == 1 else None
    with np.errstate(all="ignore"):
        if ufunc is not None:
            ufunc.at(targets[0], places, values[0])
        else:
            _rounds(evaluation, index, targets, places, values)


def _is_extreme_of_floats(evaluation: Evaluation, index: int) -> bool:
    body = evaluation.called[index]
    element = element_of(outputs(body.result_type)[0])
    return element.is_float and element.bits >= 8 and binary_opcode(body) in _INTEGER_ONLY


def _extremes(ufunc: np.ufunc, target: Array, places: Array, values: Array) -> None:
    """Maxima or minima of floats, by integers in their total order; NaN is made to win."""
    winner = np.inf if ufunc is np.maximum else -np.inf
    keys = _winning_keys(target, winner)
    ufunc.at(keys, places, _winning_keys(values, winner))
    lowest = np.iinfo(keys.dtype).min
    target[:] = np.where(keys < 0, (-keys - 1) | lowest, keys).astype(keys.dtype).view(target.dtype)


def _winning_keys(array: Array, winner: float) -> Array:
    keys = total_order_key(array)
    limits = np.iinfo(keys.dtype)
    return np.array(
        np.where(np.isnan(array.astype(np.float64)), limits.max if winner > 0 else limits.min, keys)
    )


def _native(evaluation: Evaluation, index: int, target: Array) -> np.ufunc | None:
    """NumPy's own in-place update, where its arithmetic is the computation's."""
    body = evaluation.called[index]
    opcode, element = binary_opcode(body), element_of(outputs(body.result_type)[0])
    if opcode is None or isinstance(element, QuantizedType) or target.dtype.kind not in "biufc":
        return None
    if target.dtype.kind in "biu":
        if target.dtype.kind == "b":
            opcode = {"add": "or", "multiply": "and"}.get(opcode, opcode)
        return _IN_PLACE.get(opcode) or _INTEGER_ONLY.get(opcode)
    is_exact = opcode == "add" or (opcode == "multiply" and target.dtype.kind == "f")
    return _IN_PLACE[opcode] if is_exact and target.dtype != np.float16 else None


def _last_of_each(places: Array) -> Array:
    """Positions of the last occurrence of each place."""
    reverse = places[::-1]
    _, first = np.unique(reverse, return_index=True)
    return np.asarray(len(places) - 1 - first)


def _rounds(
    evaluation: Evaluation, index: int, targets: Sequence[Array], places: Array, values: Sequence[Array]
) -> None:
    """The n-th update of every place at once, for n = 0, 1, …: all places of a round differ."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    lengths = np.diff(np.append(starts, len(ordered)))
    by_length = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[by_length], lengths[by_length]
    for turn in range(int(lengths[0])):
        active = int(np.searchsorted(-lengths, -turn, side="left"))
        chosen = order[starts[:active] + turn]
        place = places[chosen]
        made = combine(evaluation, [t[place] for t in targets], [v[chosen] for v in values], index)
        for target, new in zip(targets, made, strict=True):
            target[place] = new
