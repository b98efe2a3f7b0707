"""Collectives that reduce: all_reduce, reduce_scatter, collective_reduce, and what all collectives share.

Evaluation meets all processes of the grid; each takes what its own group brought.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.ir.types import DYNAMIC, TensorType, TupleType, Type, element
from compiler.ops.applied import as_tuple, check_reducer, grouped, promoted, scalar_results
from compiler.ops.constraints import require, same_dimension
from compiler.ops.folding import Folder
from compiler.ops.process_groups import (
    Process,
    channel_id,
    check_global_ids,
    check_groups,
    own_group,
    reduction_groups,
)
from compiler.ops.record import (
    VARIADIC,
    Array,
    Attribute,
    Evaluate,
    Evaluation,
    Infer,
    Operation,
    Site,
    Trait,
    Value,
    Verify,
)


def meet(
    evaluation: Evaluation, groups: Sequence[list[Process]], value: Value
) -> tuple[list[Process] | None, dict[Process, tuple[Array, ...]]]:
    """Brings this process's values; gives its group and everyone's values."""
    devices = evaluation.devices
    group = own_group(devices, groups)
    key = f"{evaluation.opcode} on channel {channel_id(evaluation.attributes)}"
    return group, {process: as_tuple(brought) for process, brought in devices.exchange(key, value).items()}


def results_of(found: Sequence[Array]) -> Value:
    """One value alone, or several as a tuple."""
    return found[0] if len(found) == 1 else tuple(found)


def place_in(evaluation: Evaluation, group: list[Process]) -> int:
    """This process's position in its group."""
    return group.index((evaluation.devices.replica_id, evaluation.devices.partition_id))


def zeros_of(operands: Sequence[Array]) -> Value:
    """What a process gets that nobody sends to."""
    return results_of([np.zeros_like(operand) for operand in operands])


def _reduced_types(site: Site, constraint: str) -> list[TensorType]:
    (found,) = scalar_results(site.called[0], 1, constraint)
    return [TensorType(found.element, operand.shape) for operand in site.tensors]


def _check_body(site: Site, operands: Sequence[TensorType], constraint: str) -> None:
    for operand in operands:
        check_reducer(site, (operand,), (operand,), constraint, constraint)


def _infer_all_reduce(site: Site) -> Type:
    require(len(site.operands) > 0, "needs at least one operand")
    return grouped(_reduced_types(site, "(C5)"))


def _verify_all_reduce(site: Site) -> None:
    is_global = bool(site.attributes.get("use_global_device_ids"))
    check_groups(site, "(C1)", may_be_empty=not is_global, may_be_padded=True)
    check_global_ids(site, "(C4)")
    _check_body(site, site.tensors, "(C5)")


def _total(evaluation: Evaluation, brought: Sequence[Array], kind: Type) -> Array:
    """The group's arrays joined in order by the called computation."""
    folder = Folder(evaluation)
    arrays = promoted(evaluation, brought, [kind] * len(brought))
    stacked = folder.enter([np.stack(arrays)])
    return folder.leave(folder.fold(stacked))[0]


def _all_reduce(evaluation: Evaluation, *operands: Array) -> Value:
    groups = reduction_groups(evaluation.devices, evaluation.attributes)
    group, everyone = meet(evaluation, groups, operands)
    members = group or [(evaluation.devices.replica_id, evaluation.devices.partition_id)]
    kinds = evaluation.operand_types
    return results_of(
        [
            _total(evaluation, [everyone[member][index] for member in members], kinds[index])
            for index in range(len(operands))
        ]
    )


def _infer_reduce_scatter(site: Site) -> Type:
    operands = site.tensors
    require(len(operands) > 0, "needs at least one operand")
    dimension = site.attributes["scatter_dimension"]
    groups = site.attributes.get("replica_groups", ())
    kinds = _reduced_types(site, "(C7)")
    found: list[TensorType] = []
    for index, kind in enumerate(kinds):
        require(
            0 <= dimension < kind.rank,
            f"(C2) scatter_dimension must be a dimension of the operand {kind}, but is {dimension}",
        )
        declared = declared_result(site, index)
        size = kind.shape[dimension]
        count = len(groups[0]) if isinstance(groups, tuple) and groups and isinstance(groups[0], tuple) else 0
        if isinstance(declared, TensorType) and declared.rank == kind.rank:
            part = declared.shape[dimension]
        else:
            part = size if size == DYNAMIC or not count else size // count
        require(part != 0, "(C8) the result must not be empty along scatter_dimension")
        require(size != 0, "(C8) the operand must not be empty along scatter_dimension")
        require(
            DYNAMIC in (part, size) or size % part == 0,
            f"(C8) the operand's {size} along scatter_dimension must be a multiple of the result's {part}",
        )
        found.append(TensorType(kind.element, (*kind.shape[:dimension], part, *kind.shape[dimension + 1 :])))
    return grouped(found)


def declared_result(site: Site, index: int) -> Type | None:
    """The declared type of one result, if there is one."""
    if site.result is None:
        return None
    elements = site.result.elements if isinstance(site.result, TupleType) else (site.result,)
    return elements[index] if index < len(elements) else None


def _verify_reduce_scatter(site: Site) -> None:
    check_groups(site, "(C3)")
    check_global_ids(site, "(C6)")
    _check_body(site, site.tensors, "(C7)")


def _reduce_scatter(evaluation: Evaluation, *operands: Array) -> Value:
    whole = as_tuple(_all_reduce(evaluation, *operands))
    groups = reduction_groups(evaluation.devices, evaluation.attributes)
    group = own_group(evaluation.devices, groups)
    if group is None:
        return results_of(whole)
    dimension = evaluation.attributes["scatter_dimension"]
    place = place_in(evaluation, group)
    return results_of([np.split(array, len(group), axis=dimension)[place] for array in whole])


def data_count(site: Site, name: str) -> int:
    """How many operands are data; the others say which process is the root."""
    operands = site.tensors
    if not site.attributes.get("has_dynamic_root"):
        require(len(operands) > 0, f"{name} needs at least one operand")
        return len(operands)
    require(len(operands) >= 2, f"{name} with has_dynamic_root needs data and a root")
    root = operands[-1]
    require(
        root.rank == 1 and root.element is element("i32"),
        f"the last operand of {name} with has_dynamic_root must be an i32 vector, but is {root}",
    )
    require(
        same_dimension(root.shape[0], len(operands) - 1),
        f"the last operand of {name} with has_dynamic_root must have an element for each of the data operands "
        f"({len(operands) - 1}), but has {root.shape[0]}",
    )
    return len(operands) - 1


def _infer_collective_reduce(site: Site) -> Type:
    count = data_count(site, "collective_reduce")
    return grouped(_reduced_types(site, "(C5)")[:count])


def _verify_collective_reduce(site: Site) -> None:
    check_groups(site, "(C1)", may_be_padded=True)
    check_global_ids(site, "(C4)")
    _check_body(site, site.tensors[: data_count(site, "collective_reduce")], "(C5)")


def _collective_reduce(evaluation: Evaluation, *operands: Array) -> Value:
    is_dynamic = bool(evaluation.attributes.get("has_dynamic_root"))
    data = operands[:-1] if is_dynamic else operands
    totals = as_tuple(_all_reduce(evaluation, *data))
    group = own_group(evaluation.devices, reduction_groups(evaluation.devices, evaluation.attributes))
    place = place_in(evaluation, group) if group is not None else -1
    roots = [int(root) for root in operands[-1]] if is_dynamic else [0] * len(data)
    return results_of(
        [total if place == root else np.zeros_like(total) for total, root in zip(totals, roots, strict=True)]
    )


COLLECTIVE_TRAITS = frozenset((Trait.COLLECTIVE, Trait.SIDE_EFFECT))
GROUPS = Attribute("replica_groups", "any", required=True)
CHANNEL = Attribute("channel_handle", "record")
GLOBAL_IDS = Attribute("use_global_device_ids", "bool", False)
DYNAMIC_ROOT = Attribute("has_dynamic_root", "bool", False)


def collective(
    opcode: str, infer: Infer, evaluate: Evaluate, verify: Verify, *attributes: Attribute, body: bool = False
) -> Operation:
    """The record of a collective; `body` tells that it applies a computation."""
    return Operation(
        opcode,
        infer,
        evaluate,
        arity=VARIADIC,
        attributes=attributes,
        regions=("to_apply",) if body else (),
        verify=verify,
        traits=COLLECTIVE_TRAITS,
        spec=f"StableHLO, {opcode}",
    )


def index_attribute(name: str) -> Attribute:
    """A required dimension number or count."""
    return Attribute(name, "i64", required=True)


OPERATIONS: tuple[Operation, ...] = (
    collective(
        "all_reduce",
        _infer_all_reduce,
        _all_reduce,
        _verify_all_reduce,
        GROUPS,
        CHANNEL,
        GLOBAL_IDS,
        body=True,
    ),
    collective(
        "reduce_scatter",
        _infer_reduce_scatter,
        _reduce_scatter,
        _verify_reduce_scatter,
        index_attribute("scatter_dimension"),
        GROUPS,
        CHANNEL,
        GLOBAL_IDS,
        body=True,
    ),
    collective(
        "collective_reduce",
        _infer_collective_reduce,
        _collective_reduce,
        _verify_collective_reduce,
        GROUPS,
        CHANNEL,
        GLOBAL_IDS,
        DYNAMIC_ROOT,
        body=True,
    ),
)
