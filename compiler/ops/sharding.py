"""Shardy's operations by their global meaning: constraints change nothing, manual computations run on every device.

`sdy.manual_computation` splits its operands over a mesh's devices by `in_shardings`, runs its computation on each
device, collectives included, and joins the results by `out_shardings`. Source: the Shardy dialect's documentation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from compiler.ir.semantics import OperationError
from compiler.ir.types import TensorType, TupleType, Type
from compiler.ops.constraints import compatible, require
from compiler.ops.record import VARIADIC, Array, Attribute, Evaluation, Operation, Site, Trait, Value

_SHARDING = re.compile(r"<\s*@([\w.$-]+)\s*,\s*\[((?:[^\[\]])*)\][^>]*>")
_DIMENSION = re.compile(r"\{([^{}]*)\}")
_AXIS = re.compile(r'"([^"]*)"(:\(\d+\)\d+)?')
_MESH_AXIS = re.compile(r'"([^"]*)"\s*=\s*(\d+)')


class ShardedEvaluation(Evaluation, Protocol):
    """What manual computations need of the interpreter besides."""

    def module_attribute(self, name: str) -> Any:
        """An attribute of the module, None when it has no such."""
        ...

    def run_on_partitions(self, index: int, arguments: Sequence[Sequence[Value]]) -> list[Value]:
        """Runs a called computation as the processes of 1 × n partitions, each with its own arguments."""
        ...


@dataclass(frozen=True, slots=True)
class Mesh:
    """Named axes with their sizes, major to minor; device numbers count through them in that order."""

    axes: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """Number of devices."""
        return math.prod(size for _, size in self.axes)

    def coordinates(self, device: int) -> dict[str, int]:
        """A device's place along each axis."""
        place = {}
        for name, size in reversed(self.axes):
            device, place[name] = divmod(device, size)
        return place


def parse_mesh(text: str) -> Mesh:
    """A mesh from `<["x"=4, "y"=2]>`. Raises OperationError for device lists, which reorder it."""
    require("device_ids" not in text, f"meshes with device_ids are not supported: {text}")
    return Mesh(tuple((name, int(size)) for name, size in _MESH_AXIS.findall(text)))


def parse_shardings(text: str) -> list[tuple[str, list[list[str]]]]:
    """For each `<@mesh, [{"x"}, {}]>` of a list: the mesh's name, and each dimension's axes, major to minor."""
    found = []
    for mesh, dimensions in _SHARDING.findall(text):
        listed = []
        for inner in _DIMENSION.findall(dimensions):
            axes = _AXIS.findall(inner)
            require(
                all(not part for _, part in axes), f"shardings by parts of axes are not supported: {text}"
            )
            listed.append([name for name, _ in axes])
        found.append((mesh, listed))
    return found


def shard_index(
    shape: Sequence[int], axes: Sequence[Sequence[str]], mesh: Mesh, device: int
) -> tuple[slice, ...]:
    """Which part of an array of a global shape a device holds. Raises OperationError when sizes do not divide."""
    place, sizes = mesh.coordinates(device), dict(mesh.axes)
    parts = []
    for size, names in zip(shape, axes, strict=True):
        count = math.prod(sizes[name] for name in names)
        require(size % count == 0, f"a dimension of {size} cannot be split into {count} equal parts")
        index = 0
        for name in names:
            index = index * sizes[name] + place[name]
        parts.append(slice(index * (size // count), (index + 1) * (size // count)))
    return tuple(parts)


def _manual_shardings(evaluation: ShardedEvaluation, name: str) -> tuple[Mesh | None, list[list[list[str]]]]:
    """The mesh, and each value's axes by dimension, those that are not manual left out."""
    manual = set(re.findall(r'"([^"]*)"', str(evaluation.attributes.get("manual_axes", ""))))
    parsed = parse_shardings(str(evaluation.attributes.get(name, "")))
    if not parsed:
        return None, []
    text = evaluation.module_attribute(f"sdy.mesh.{parsed[0][0]}")
    if text is None:
        raise OperationError(f"mesh @{parsed[0][0]} is not defined")
    axes = [[[a for a in dimension if a in manual] for dimension in dimensions] for _, dimensions in parsed]
    return parse_mesh(str(text)), axes


def _manual_computation(evaluation: ShardedEvaluation, *operands: Array) -> Value:
    mesh, inward = _manual_shardings(evaluation, "in_shardings")
    other, outward = _manual_shardings(evaluation, "out_shardings")
    mesh = mesh or other
    if mesh is None:
        return evaluation.call(0, *operands)
    arguments = [
        [
            np.ascontiguousarray(x[shard_index(x.shape, axes, mesh, device)])
            for x, axes in zip(operands, inward, strict=True)
        ]
        for device in range(mesh.size)
    ]
    made = evaluation.run_on_partitions(0, arguments)
    results = [value if isinstance(value, tuple) else (value,) for value in made]
    single = not isinstance(evaluation.result, TupleType)
    types = (evaluation.result,) if single else evaluation.result.elements  # type: ignore[union-attr]
    whole = tuple(
        _join(kind, [result[index] for result in results], outward[index], mesh)
        for index, kind in enumerate(types)
    )
    return whole[0] if single else whole


def _join(kind: Type, shards: Sequence[Array], axes: Sequence[Sequence[str]], mesh: Mesh) -> Array:
    assert isinstance(kind, TensorType)
    found = np.empty(kind.shape, kind.element.dtype)
    for device, shard in enumerate(shards):
        found[shard_index(kind.shape, axes, mesh, device)] = shard
    return found


def _infer_manual(site: Site) -> Type:
    if site.result is None:
        raise OperationError(
            "the result type of a manual computation must be given: its shardings determine it"
        )
    parameters = len(site.called[0].parameters)
    require(
        parameters == len(site.operands),
        f"the computation must take {len(site.operands)} values, not {parameters}",
    )
    return site.result


def _infer_same(site: Site) -> Type:
    return site.operands[0]


def _verify_same(site: Site) -> None:
    assert site.result is not None
    require(
        compatible(site.operands[0], site.result), f"result must be {site.operands[0]}, but is {site.result}"
    )


def _identity(evaluation: Evaluation, x: Array) -> Array:
    return x


def _constraint(opcode: str) -> Operation:
    return Operation(
        opcode,
        _infer_same,
        _identity,
        arity=1,
        attributes=(Attribute("sharding", "str", required=True),),
        verify=_verify_same,
        traits=frozenset((Trait.DATA_MOVEMENT,)),
        flops=lambda site: 0.0,
        spec=f"Shardy, {opcode}",
    )


OPERATIONS: tuple[Operation, ...] = (
    _constraint("sdy.sharding_constraint"),
    _constraint("sdy.reshard"),
    Operation(
        "sdy.manual_computation",
        _infer_manual,
        _manual_computation,
        arity=VARIADIC,
        attributes=(
            Attribute("in_shardings", "str", required=True),
            Attribute("out_shardings", "str", required=True),
            Attribute("manual_axes", "str"),
        ),
        regions=("body",),
        traits=frozenset((Trait.CONTROL,)),
        spec="Shardy, sdy.manual_computation",
    ),
)
