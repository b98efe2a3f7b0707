"""Operations between processes, and which process this is.

Evaluation meets all processes of the grid at each collective; each takes what its own group brought.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.ir.types import DYNAMIC, UI32, TensorType, Type, element
from compiler.ops.applied import as_tuple, check_reducer, grouped, promoted, scalar_results
from compiler.ops.constraints import (
    compatible,
    given_result,
    require,
    require_unique,
    same_dimension,
)
from compiler.ops.folding import Folder
from compiler.ops.process_groups import (
    channel_id,
    check_global_ids,
    check_groups,
    exchange_groups,
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

Process = tuple[int, int]


def _meet(
    evaluation: Evaluation, groups: Sequence[list[Process]], value: Value
) -> tuple[list[Process] | None, dict[Process, tuple[Array, ...]]]:
    """Brings this process's values; gives its group and everyone's values."""
    devices = evaluation.devices
    group = own_group(devices, groups)
    key = f"{evaluation.opcode} on channel {channel_id(evaluation.attributes)}"
    return group, {process: as_tuple(brought) for process, brought in devices.exchange(key, value).items()}


def _results(found: Sequence[Array]) -> Value:
    return found[0] if len(found) == 1 else tuple(found)


def _place(evaluation: Evaluation, group: list[Process]) -> int:
    return group.index((evaluation.devices.replica_id, evaluation.devices.partition_id))


def _zeros(operands: Sequence[Array]) -> Value:
    return _results([np.zeros_like(operand) for operand in operands])


# ---- reductions --------------------------------------------------------------------------------------------------


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
    group, everyone = _meet(evaluation, groups, operands)
    members = group or [(evaluation.devices.replica_id, evaluation.devices.partition_id)]
    kinds = evaluation.operand_types
    return _results(
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
        declared = _declared(site, index)
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


def _declared(site: Site, index: int) -> Type | None:
    if site.result is None:
        return None
    elements = getattr(site.result, "elements", (site.result,))
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
        return _results(whole)
    dimension = evaluation.attributes["scatter_dimension"]
    place = _place(evaluation, group)
    return _results([np.split(array, len(group), axis=dimension)[place] for array in whole])


def _roots(site: Site, name: str) -> int:
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
    count = _roots(site, "collective_reduce")
    return grouped(_reduced_types(site, "(C5)")[:count])


def _verify_collective_reduce(site: Site) -> None:
    check_groups(site, "(C1)", may_be_padded=True)
    check_global_ids(site, "(C4)")
    _check_body(site, site.tensors[: _roots(site, "collective_reduce")], "(C5)")


def _collective_reduce(evaluation: Evaluation, *operands: Array) -> Value:
    is_dynamic = bool(evaluation.attributes.get("has_dynamic_root"))
    data = operands[:-1] if is_dynamic else operands
    totals = as_tuple(_all_reduce(evaluation, *data))
    group = own_group(evaluation.devices, reduction_groups(evaluation.devices, evaluation.attributes))
    place = _place(evaluation, group) if group is not None else -1
    roots = [int(root) for root in operands[-1]] if is_dynamic else [0] * len(data)
    return _results(
        [total if place == root else np.zeros_like(total) for total, root in zip(totals, roots, strict=True)]
    )


# ---- moves -------------------------------------------------------------------------------------------------------


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
        declared = _declared(site, index)
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
    group, everyone = _meet(evaluation, groups, operands)
    members = group or [(evaluation.devices.replica_id, evaluation.devices.partition_id)]
    axis = evaluation.attributes["all_gather_dim"]
    return _results(
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
    group, everyone = _meet(evaluation, exchange_groups(evaluation.devices, a), operands)
    if group is None:
        return _zeros(operands)
    place = _place(evaluation, group)
    found = []
    for index in range(len(operands)):
        parts = [
            np.split(everyone[member][index], a["split_count"], axis=a["split_dimension"])[place]
            for member in group
        ]
        found.append(np.concatenate(parts, axis=a["concat_dimension"]))
    return _results(found)


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
    _, everyone = _meet(evaluation, [], operands)
    own_group(devices, groups)
    own = (devices.replica_id, devices.partition_id)
    for source, target in groups:
        if target == own:
            return _results(everyone[source])
    return _zeros(operands)


def _infer_broadcast(site: Site) -> Type:
    return grouped(site.tensors[: _roots(site, "collective_broadcast")])


def _verify_broadcast(site: Site) -> None:
    check_groups(site, "(C1)", may_be_padded=True, is_complete=False)


def _broadcast(evaluation: Evaluation, *operands: Array) -> Value:
    group, everyone = _meet(evaluation, exchange_groups(evaluation.devices, evaluation.attributes), operands)
    is_dynamic = bool(evaluation.attributes.get("has_dynamic_root"))
    data = operands[:-1] if is_dynamic else operands
    if group is None:
        return _zeros(data)
    roots = [int(root) for root in operands[-1]] if is_dynamic else [0] * len(data)
    return _results([everyone[group[root]][index] for index, root in enumerate(roots)])


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


_COLLECTIVE = frozenset((Trait.COLLECTIVE, Trait.SIDE_EFFECT))
_GROUPS = Attribute("replica_groups", "any", required=True)
_CHANNEL = Attribute("channel_handle", "record")
_GLOBAL = Attribute("use_global_device_ids", "bool", False)
_ROOT = Attribute("has_dynamic_root", "bool", False)


def _collective(
    opcode: str, infer: Infer, evaluate: Evaluate, verify: Verify, *attributes: Attribute, body: bool = False
) -> Operation:
    return Operation(
        opcode,
        infer,
        evaluate,
        arity=VARIADIC,
        attributes=attributes,
        regions=("to_apply",) if body else (),
        verify=verify,
        traits=_COLLECTIVE,
        spec=f"StableHLO, {opcode}",
    )


def _index(name: str) -> Attribute:
    return Attribute(name, "i64", required=True)


OPERATIONS: tuple[Operation, ...] = (
    _collective(
        "all_reduce",
        _infer_all_reduce,
        _all_reduce,
        _verify_all_reduce,
        _GROUPS,
        _CHANNEL,
        _GLOBAL,
        body=True,
    ),
    _collective(
        "reduce_scatter",
        _infer_reduce_scatter,
        _reduce_scatter,
        _verify_reduce_scatter,
        _index("scatter_dimension"),
        _GROUPS,
        _CHANNEL,
        _GLOBAL,
        body=True,
    ),
    _collective(
        "collective_reduce",
        _infer_collective_reduce,
        _collective_reduce,
        _verify_collective_reduce,
        _GROUPS,
        _CHANNEL,
        _GLOBAL,
        _ROOT,
        body=True,
    ),
    _collective(
        "all_gather",
        _infer_all_gather,
        _all_gather,
        _verify_all_gather,
        _index("all_gather_dim"),
        _GROUPS,
        _CHANNEL,
        _GLOBAL,
    ),
    _collective(
        "all_to_all",
        _infer_all_to_all,
        _all_to_all,
        _verify_all_to_all,
        _index("split_dimension"),
        _index("concat_dimension"),
        _index("split_count"),
        _GROUPS,
        _CHANNEL,
    ),
    _collective(
        "collective_permute",
        _infer_same,
        _permute,
        _verify_permute,
        Attribute("source_target_pairs", "pairs", required=True),
        _CHANNEL,
    ),
    _collective(
        "collective_broadcast", _infer_broadcast, _broadcast, _verify_broadcast, _GROUPS, _CHANNEL, _ROOT
    ),
    Operation("replica_id", _infer_id, _replica_id, arity=0, spec="StableHLO, replica_id"),
    Operation("partition_id", _infer_id, _partition_id, arity=0, spec="StableHLO, partition_id"),
)
