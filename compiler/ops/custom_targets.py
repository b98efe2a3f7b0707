"""Custom calls that are evaluated without anybody registering them: target name to (evaluation, *operands) -> value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from compiler.ir.semantics import OperationError
from compiler.ir.types import TensorType, TupleType, Type
from compiler.ops.constraints import plain
from compiler.ops.random import generate
from compiler.ops.record import Array, Evaluation, Token, Value
from compiler.ops.shardy_calls import TARGETS as SHARDY_TARGETS
from compiler.ops.sorting import stable_order, top_k
from compiler.ops.window import Window, reduce_windows

Target = Callable[..., Value]
_PLACEHOLDER = re.compile(r"\{(\d+)\}")


def _identity(evaluation: Evaluation, *operands: Value) -> Value:
    """Annotations: the value is the operand's. Changes of shape would need a partitioner."""
    if not isinstance(evaluation.result, TupleType):
        operand, kind = operands[0], evaluation.result
        if isinstance(kind, TensorType) and isinstance(operand, np.ndarray) and operand.shape != kind.shape:
            target = evaluation.attributes["call_target_name"]
            raise OperationError(
                f"{target} changes shape from {list(operand.shape)} to {list(kind.shape)}: "
                "the program is meant for several partitions"
            )
        return operand
    return operands


def _tiles(evaluation: Evaluation, full: tuple[int, ...], shard: tuple[int, ...]) -> tuple[int, ...]:
    """Along how many tiles each dimension is split, when all partitions together hold the whole, in order.

    Raises:
        OperationError: for shards that only some of the partitions hold, whose order the call does not tell.
    """
    counts = tuple(whole // part if part else 1 for whole, part in zip(full, shard, strict=True))
    partitions = evaluation.devices.num_partitions
    sharding = str(evaluation.attributes.get("mhlo.sharding", ""))
    if math.prod(counts) != partitions or "T(" in sharding or "last_tile" in sharding:
        target = evaluation.attributes["call_target_name"]
        raise OperationError(
            f"{target} between {list(full)} and {list(shard)} cannot be evaluated on {partitions} "
            f"partition{'s' * (partitions != 1)}: the program is meant for several partitions"
        )
    return counts


def _full_to_shard(evaluation: Evaluation, x: Array) -> Value:
    """This partition's part of a value that every partition holds whole."""
    kind = evaluation.result
    assert isinstance(kind, TensorType)
    if x.shape == kind.shape:
        return x
    counts = _tiles(evaluation, x.shape, kind.shape)
    place = np.unravel_index(evaluation.devices.partition_id, counts)
    return x[tuple(slice(int(p) * n, (int(p) + 1) * n) for p, n in zip(place, kind.shape, strict=True))]


def _shard_to_full(evaluation: Evaluation, x: Array) -> Value:
    """The whole value from every partition's part."""
    kind = evaluation.result
    assert isinstance(kind, TensorType)
    if x.shape == kind.shape:
        return x
    counts = _tiles(evaluation, kind.shape, x.shape)
    parts = evaluation.devices.exchange("SPMDShardToFullShape", x)
    whole = np.empty(kind.shape, x.dtype)
    for place in np.ndindex(*counts):
        number = int(np.ravel_multi_index(place, counts))
        part = parts[evaluation.devices.replica_id, number]
        whole[tuple(slice(p * n, (p + 1) * n) for p, n in zip(place, x.shape, strict=True))] = part
    return whole


def _shape_assertion(evaluation: Evaluation, holds: Array, *values: Array) -> Value:
    """Fails with its message unless the first operand holds; `{n}` in the message is the n-th value."""
    if not bool(holds):
        message = str(evaluation.attributes.get("error_message", "a shape assertion does not hold"))
        shown = _PLACEHOLDER.sub(
            lambda m: str(values[int(m[1])]) if int(m[1]) < len(values) else m[0], message
        )
        raise OperationError(shown)
    return _nothing(evaluation.result)


def _nothing(kind: Type) -> Value:
    """The value of a call that yields no data."""
    return tuple(_nothing(entry) for entry in kind.elements) if isinstance(kind, TupleType) else Token()


def _create_buffer(evaluation: Evaluation) -> Value:
    """A buffer whose contents nobody has written yet: zeros here."""
    assert isinstance(evaluation.result, TensorType)
    return np.zeros(evaluation.result.shape, evaluation.result.element.dtype)


def _settings(evaluation: Evaluation) -> Mapping[str, Any]:
    found: Any = evaluation.attributes.get("mhlo.attributes", {})
    return found if isinstance(found, Mapping) else {}


def _mhlo_topk(evaluation: Evaluation, values: Array) -> Value:
    """`mhlo.topk` as frameworks export it: the k largest (or smallest) along the last dimension, and where."""
    settings = _settings(evaluation)
    kind = evaluation.operand_types[0]
    assert isinstance(kind, TensorType)
    element, k = plain(kind.element), int(settings.get("k", 1))
    if settings.get("largest", True):
        return top_k(values, element, k)
    order = stable_order(values, element, is_descending=False, is_total=True)[..., :k]
    return np.take_along_axis(values, order, axis=-1), order.astype(np.int32)


def _xla_topk(evaluation: Evaluation, values: Array) -> Value:
    """XLA's own `TopK`, which it makes of sorts: the k largest along the last dimension, k being the result's size there."""
    kind, result = evaluation.operand_types[0], evaluation.result
    first = result.elements[0] if isinstance(result, TupleType) and result.elements else result
    if not isinstance(kind, TensorType) or not isinstance(first, TensorType) or not first.rank:
        raise OperationError(f"TopK must yield values and their places, not {result}")
    return top_k(values, plain(kind.element), first.shape[-1])


def _dynamic_top_k(evaluation: Evaluation, values: Array, k: Array) -> Value:
    """`stablehlo.dynamic_top_k`: k is an operand."""
    kind = evaluation.operand_types[0]
    assert isinstance(kind, TensorType)
    return top_k(values, plain(kind.element), int(k))


def _dynamic_generator(evaluation: Evaluation, state: Array, sizes: Array) -> Value:
    """`stablehlo.dynamic_rng_bit_generator`: the output's shape is an operand."""
    assert isinstance(evaluation.result, TupleType)
    output = evaluation.result.elements[1]
    assert isinstance(output, TensorType)
    algorithm = str(evaluation.attributes.get("rng_algorithm", "DEFAULT")).rsplit(" ", 1)[-1].rstrip(">")
    return generate(state, algorithm, output.with_shape(tuple(int(size) for size in sizes)))


def _dynamic_reduce_window(evaluation: Evaluation, *operands: Array) -> Value:
    """`stablehlo.dynamic_reduce_window`: inputs, initial values, then the window's attributes as operands."""
    count = (len(operands) - 5) // 2
    size, strides, base, inner, padding = (array.astype(np.int64) for array in operands[-5:])
    window = Window(
        tuple(int(v) for v in size),
        tuple(int(v) for v in strides),
        tuple(int(v) for v in base),
        tuple(int(v) for v in inner),
        tuple((int(low), int(high)) for low, high in padding.reshape(-1, 2)),
    )
    found = reduce_windows(evaluation, operands[:count], operands[count : 2 * count], window)
    return found if isinstance(evaluation.result, TupleType) else found[0]


IDENTITIES = (
    "Sharding",
    "annotate_device_placement",
    "Pin",
    "Unpin",
    "LayoutConstraint",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.Sharding",
)

TARGETS: Mapping[str, Target] = {
    **dict.fromkeys(IDENTITIES, _identity),
    "SPMDFullToShardShape": _full_to_shard,
    "SPMDShardToFullShape": _shard_to_full,
    **SHARDY_TARGETS,
    "TopK": _xla_topk,
    "CreateBuffer": _create_buffer,
    "shape_assertion": _shape_assertion,
    "mhlo.topk": _mhlo_topk,
    "stablehlo.dynamic_top_k": _dynamic_top_k,
    "stablehlo.dynamic_rng_bit_generator": _dynamic_generator,
    "stablehlo.dynamic_reduce_window": _dynamic_reduce_window,
}
