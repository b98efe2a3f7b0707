"""Shardy's manual computations as HLO text has them: a call between two custom calls that split global values and join local ones.

They are evaluated on a grid of processes, each of which is given global values, takes its own part and meets the others where the
parts are joined.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from compiler.ir.semantics import OperationError
from compiler.ir.types import TensorType, TupleType, Type
from compiler.ops.record import Array, Evaluation, Value
from compiler.ops.sharding import Mesh, ShardedEvaluation, parse_mesh, parse_shardings, shard_index

GLOBAL_TO_LOCAL, LOCAL_TO_GLOBAL = "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"
_AXIS = re.compile(r'"([^"]*)"')


def _shardings(evaluation: Evaluation, name: str) -> tuple[Mesh, list[list[list[str]]]]:
    """The mesh, and for each value the manual axes of each dimension."""
    framework: Any = evaluation.attributes.get("mhlo.frontend_attributes")
    found = framework if isinstance(framework, Mapping) else {}
    manual = set(_AXIS.findall(str(found.get("xla.sdy.manual_axes", ""))))
    parsed = parse_shardings(str(found.get(f"xla.sdy.{name}", "")))
    target = evaluation.attributes["call_target_name"]
    if not parsed:
        raise OperationError(f"{target} needs xla.sdy.{name} to be evaluated")
    text = cast(ShardedEvaluation, evaluation).module_attribute(f"sdy.mesh.{parsed[0][0]}")
    if text is None:
        raise OperationError(f"mesh @{parsed[0][0]} is not defined")
    mesh = parse_mesh(str(text))
    if mesh.size != evaluation.devices.num_partitions:
        raise OperationError(
            f"{target} is meant for {mesh.size} partitions, not {evaluation.devices.num_partitions}"
        )
    return mesh, [[[a for a in axes if a in manual] for axes in dimensions] for _, dimensions in parsed]


def _single_or_tuple(kind: Type, found: list[Array]) -> Value:
    return tuple(found) if isinstance(kind, TupleType) else found[0]


def _global_to_local(evaluation: Evaluation, *operands: Array) -> Value:
    """Each operand's part that this process holds."""
    if not operands:
        return ()
    mesh, axes = _shardings(evaluation, "in_shardings")
    device = evaluation.devices.partition_id
    parts = [
        np.ascontiguousarray(x[shard_index(x.shape, dimensions, mesh, device)])
        for x, dimensions in zip(operands, axes, strict=True)
    ]
    return _single_or_tuple(evaluation.result, parts)


def _local_to_global(evaluation: Evaluation, *operands: Array) -> Value:
    """Everybody's parts put together."""
    if not operands:
        return ()
    mesh, axes = _shardings(evaluation, "out_shardings")
    everyone = evaluation.devices.exchange(LOCAL_TO_GLOBAL, operands)
    kinds = evaluation.result.elements if isinstance(evaluation.result, TupleType) else (evaluation.result,)
    found = []
    for index, kind in enumerate(kinds):
        assert isinstance(kind, TensorType)
        whole = np.empty(kind.shape, kind.element.dtype)
        for (_, partition), parts in everyone.items():
            assert isinstance(parts, tuple)
            whole[shard_index(kind.shape, axes[index], mesh, partition)] = parts[index]
        found.append(whole)
    return _single_or_tuple(evaluation.result, found)


TARGETS = {GLOBAL_TO_LOCAL: _global_to_local, LOCAL_TO_GLOBAL: _local_to_global}
