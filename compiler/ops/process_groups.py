"""Which processes a collective brings together (StableHLO specification, "Process grouping").

Processes are pairs (replica, partition). Replica groups list replica ids, partition ids or flattened ids, depending on the
channel and on `use_global_device_ids`; entries of -1 only pad.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compiler.ir.semantics import OperationError
from compiler.ops.constraints import require
from compiler.ops.record import Devices, Site

Process = tuple[int, int]
Groups = tuple[tuple[int, ...], ...]


def channel_id(attributes: Mapping[str, Any]) -> int:
    """The channel's number; 0 when there is none."""
    handle = attributes.get("channel_handle")
    if isinstance(handle, Mapping):
        return int(handle.get("handle", 0))
    return int(handle) if handle is not None else int(attributes.get("channel_id", 0) or 0)


def channel_type(attributes: Mapping[str, Any]) -> int | None:
    """The channel's type (1 between devices, 2 device to host, 3 host to device); None when there is none."""
    handle = attributes.get("channel_handle")
    return int(handle.get("type", 0)) if isinstance(handle, Mapping) else None


def groups_of(attributes: Mapping[str, Any], name: str = "replica_groups") -> Groups:
    """The listed groups without padding. Raises OperationError for a form that is not a list of lists."""
    value = attributes.get(name, ())
    if isinstance(value, str):
        raise OperationError(f"{name} over mesh axes ({value}) cannot be evaluated; give lists of ids")
    return tuple(tuple(int(member) for member in row if int(member) >= 0) for row in value)


def check_groups(
    site: Site,
    constraint: str,
    *,
    may_be_empty: bool = False,
    may_be_padded: bool = False,
    size: int | None = None,
    is_complete: bool = True,
) -> None:
    """Checks replica groups: lists of different ids, none missing. Raises OperationError otherwise."""
    value: Any = site.attributes.get("replica_groups", ())
    if isinstance(value, str):
        return
    require(
        all(isinstance(row, tuple) and all(isinstance(member, int) for member in row) for row in value),
        f"{constraint} replica_groups must be a list of lists",
    )
    require(
        may_be_empty or (len(value) > 0 and all(len(row) > 0 for row in value)),
        f"{constraint} replica_groups must not be empty",
    )
    members = [member for row in value for member in row]
    for member in members:
        require(member >= 0 or (may_be_padded and member == -1), f"{constraint} {member} is no replica id")
    real = [member for member in members if member >= 0]
    seen: set[int] = set()
    for member in real:
        require(
            member not in seen, f"{constraint} replica id {member} must not occur twice in replica_groups"
        )
        seen.add(member)
    if is_complete:
        for member in range(len(real)):
            require(member in seen, f"{constraint} replica id {member} must occur in replica_groups")
    if size is not None:
        for row in value:
            require(
                len(row) == size,
                f"{constraint} each of replica_groups must have {size} members, not {len(row)}",
            )


def check_global_ids(site: Site, constraint: str) -> None:
    """Global device ids need a channel. Raises OperationError without one."""
    if site.attributes.get("use_global_device_ids"):
        number = channel_id(site.attributes)
        require(
            number > 0,
            f"{constraint} with use_global_device_ids the channel must be positive, but is {number}",
        )


def cross_replica(devices: Devices, groups: Groups) -> list[list[Process]]:
    """Groups of replicas, once for each partition."""
    whole = groups or (tuple(range(devices.num_replicas)),)
    return [[(replica, p) for replica in group] for group in whole for p in range(devices.num_partitions)]


def cross_partition(devices: Devices, groups: Groups) -> list[list[Process]]:
    """Groups of partitions, once for each replica."""
    whole = groups or (tuple(range(devices.num_partitions)),)
    return [[(r, partition) for partition in group] for group in whole for r in range(devices.num_replicas)]


def cross_replica_and_partition(devices: Devices, groups: Groups) -> list[list[Process]]:
    """Groups of replicas with all their partitions."""
    whole = groups or (tuple(range(devices.num_replicas)),)
    return [[(replica, p) for p in range(devices.num_partitions) for replica in group] for group in whole]


def flattened_ids(devices: Devices, groups: Groups) -> list[list[Process]]:
    """Groups of processes by number, counted through the partitions of each replica."""
    whole = groups or (tuple(range(devices.num_replicas * devices.num_partitions)),)
    return [[divmod(number, devices.num_partitions) for number in group] for group in whole]


def reduction_groups(devices: Devices, attributes: Mapping[str, Any]) -> list[list[Process]]:
    """The groups of all_reduce, all_gather, reduce_scatter and collective_reduce."""
    groups = groups_of(attributes)
    if channel_id(attributes) <= 0:
        return cross_replica(devices, groups)
    if attributes.get("use_global_device_ids"):
        return flattened_ids(devices, groups)
    return cross_replica_and_partition(devices, groups)


def exchange_groups(
    devices: Devices, attributes: Mapping[str, Any], name: str = "replica_groups"
) -> list[list[Process]]:
    """The groups of all_to_all, collective_permute and collective_broadcast."""
    groups = groups_of(attributes, name)
    if channel_id(attributes) <= 0:
        return cross_replica(devices, groups)
    return cross_partition(devices, groups)


def own_group(devices: Devices, groups: Sequence[list[Process]]) -> list[Process] | None:
    """The group that this process is in, if any. Raises OperationError for members that do not exist."""
    for group in groups:
        for replica, partition in group:
            if replica >= devices.num_replicas or partition >= devices.num_partitions:
                raise OperationError(
                    f"process ({replica}, {partition}) does not exist among {devices.num_replicas} replicas of "
                    f"{devices.num_partitions} partitions"
                )
    own = (devices.replica_id, devices.partition_id)
    return next((group for group in groups if own in group), None)
