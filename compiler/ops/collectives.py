"""Collectives that move values between processes, and which process this is."""

from __future__ import annotations

import numpy as np

from compiler.ir.types import DYNAMIC, UI32, TensorType, Type
from compiler.ops.applied import grouped
from compiler.ops.collective_reductions import (
    CHANNEL,
    DYNAMIC_ROOT,
    GLOBAL_IDS,
    GROUPS,
    collective,
    data_count,
    declared_result,
    index_attribute,
    meet,
    place_in,
    results_of,
    zeros_of,
)
from compiler.ops.constraints import compatible, given_result, require, require_unique
from compiler.ops.process_groups import (
    check_global_ids,
    check_groups,
    exchange_groups,
    own_group,
    reduction_groups,
)
from compiler.ops.record import Array, Attribute, Evaluation, Operation, Site, Value


def _infer_all_gather(site: Site) -> Type:
    require(len(site.operands) > 0, "needs at least one operand")
    dimension = site.attributes["all_gather_dim"]
    groups = site.attributes.get("replica_groups", ())
    found = []
    for index, operand in enumerate(site.tensors):
        require(
            0 <= dimension < operand.rank,
            f"(C1) all_gather_dim must be a dimension of the operand {operand}, but is {dimension}",
        )
        size = operand.shape[dimension]
        require(size != 0, "(C6) the operand must not be empty along all_gather_dim")
        declared = declared_result(site, index)
        if isinstance(declared, TensorType) and declared.rank == operand.rank:
            whole = declared.shape[dimension]
        else:
            count = len(groups[0]) if isinstance(groups, tuple) and groups else 1
            whole = size if size == DYNAMIC else size * count
        require(
            DYNAMIC in (whole, size) or whole % size == 0,
            f"(C6) the result's {whole} along all_gather_dim must be a multiple of the operand's {size}",
        )
        found.append(
            TensorType(operand.element, (*operand.shape[:dimension], whole, *operand.shape[dimension + 1 :]))
        )
    return grouped(found)


def _verify_all_gather(site: Site) -> None:
    check_groups(site, "(C2)")
    check_global_ids(site, "(C5)")


def _all_gather(evaluation: Evaluation, *operands: Array) -> Value:
    groups = reduction_groups(evaluation.devices, evaluation.attributes)
    group, everyone = meet(evaluation, groups, operands)
    members = group or [(evaluation.devices.replica_id, evaluation.devices.partition_id)]
    axis = evaluation.attributes["all_gather_dim"]
    return results_of(
        [np.concatenate([everyone[member][i] for member in members], axis=axis) for i in range(len(operands))]
    )


def _infer_all_to_all(site: Site) -> Type:
    a = site.attributes
    split, concat, count = a["split_dimension"], a["concat_dimension"], a["split_count"]
    require(count > 0, f"(C4) split_count must be positive, but is {count}")
    require(len(site.operands) > 0, "needs at least one operand")
    found = []
    for operand in site.tensors:
        require(
            0 <= split < operand.rank,
            f"(C1) split_dimension must be a dimension of {operand}, but is {split}",
        )
        require(
            0 <= concat < operand.rank,
            f"(C3) concat_dimension must be a dimension of {operand}, but is {concat}",
        )
        shape = list(operand.shape)
        if split != concat:
            if shape[split] != DYNAMIC:
                require(
                    shape[split] % count == 0,
                    f"(C2) the operand's {shape[split]} along split_dimension must be a multiple of split_count {count}",
                )
                shape[split] //= count
            if shape[concat] != DYNAMIC:
                shape[concat] *= count
        else:
            require(
                shape[split] == DYNAMIC or shape[split] % count == 0,
                f"(C2) the operand's {shape[split]} along split_dimension must be a multiple of split_count {count}",
            )
        found.append(TensorType(operand.element, tuple(shape)))
    return grouped(found)


def _verify_all_to_all(site: Site) -> None:
    check_groups(site, "(C5)", size=site.attributes["split_count"])


def _all_to_all(evaluation: Evaluation, *operands: Array) -> Value:
    a = evaluation.attributes
    group, everyone = meet(evaluation, exchange_groups(evaluation.devices, a), operands)
    if group is None:
        return zeros_of(operands)
    place = place_in(evaluation, group)
    found = []
    for index in range(len(operands)):
        parts = [
            np.split(everyone[member][index], a["split_count"], axis=a["split_dimension"])[place]
            for member in group
        ]
        found.append(np.concatenate(parts, axis=a["concat_dimension"]))
    return results_of(found)


def _infer_same(site: Site) -> Type:
    require(len(site.operands) > 0, "needs at least one operand")
    return grouped(site.tensors)


def _verify_permute(site: Site) -> None:
    pairs = site.attributes["source_target_pairs"]
    require(
        all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs),
        "(C1) source_target_pairs must be a list of pairs",
    )
    require_unique([source for source, _ in pairs], "(C2) sources must not repeat")
    require_unique([target for _, target in pairs], "(C3) targets must not repeat")
    for pair in pairs:
        require(min(pair) >= 0, f"(C4) {list(pair)} has no replica ids")


def _permute(evaluation: Evaluation, *operands: Array) -> Value:
    devices = evaluation.devices
    groups = exchange_groups(devices, evaluation.attributes, "source_target_pairs")
    if not evaluation.attributes["source_target_pairs"]:
        groups = []
    _, everyone = meet(evaluation, [], operands)
    own_group(devices, groups)
    own = (devices.replica_id, devices.partition_id)
    for source, target in groups:
        if target == own:
            return results_of(everyone[source])
    return zeros_of(operands)


def _infer_broadcast(site: Site) -> Type:
    return grouped(site.tensors[: data_count(site, "collective_broadcast")])


def _verify_broadcast(site: Site) -> None:
    check_groups(site, "(C1)", may_be_padded=True, is_complete=False)


def _broadcast(evaluation: Evaluation, *operands: Array) -> Value:
    group, everyone = meet(evaluation, exchange_groups(evaluation.devices, evaluation.attributes), operands)
    is_dynamic = bool(evaluation.attributes.get("has_dynamic_root"))
    data = operands[:-1] if is_dynamic else operands
    if group is None:
        return zeros_of(data)
    roots = [int(root) for root in operands[-1]] if is_dynamic else [0] * len(data)
    return results_of([everyone[group[root]][index] for index, root in enumerate(roots)])


# ---- ids ---------------------------------------------------------------------------------------------------------


def _infer_id(site: Site) -> Type:
    found = TensorType(UI32, ())
    if site.result is not None:
        require(compatible(given_result(site), found), f"the result must be {found}, but is {site.result}")
    return found


def _replica_id(evaluation: Evaluation) -> Array:
    return np.asarray(evaluation.devices.replica_id, np.uint32)


def _partition_id(evaluation: Evaluation) -> Array:
    return np.asarray(evaluation.devices.partition_id, np.uint32)


OPERATIONS: tuple[Operation, ...] = (
    collective(
        "all_gather",
        _infer_all_gather,
        _all_gather,
        _verify_all_gather,
        index_attribute("all_gather_dim"),
        GROUPS,
        CHANNEL,
        GLOBAL_IDS,
    ),
    collective(
        "all_to_all",
        _infer_all_to_all,
        _all_to_all,
        _verify_all_to_all,
        index_attribute("split_dimension"),
        index_attribute("concat_dimension"),
        index_attribute("split_count"),
        GROUPS,
        CHANNEL,
    ),
    collective(
        "collective_permute",
        _infer_same,
        _permute,
        _verify_permute,
        Attribute("source_target_pairs", "pairs", required=True),
        CHANNEL,
    ),
    collective(
        "collective_broadcast", _infer_broadcast, _broadcast, _verify_broadcast, GROUPS, CHANNEL, DYNAMIC_ROOT
    ),
    Operation("replica_id", _infer_id, _replica_id, arity=0, spec="StableHLO, replica_id"),
    Operation("partition_id", _infer_id, _partition_id, arity=0, spec="StableHLO, partition_id"),
)
