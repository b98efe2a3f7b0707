"""Programs of several processes in one: an executable for each virtual device, meeting at the collectives.

A module that asks for several replicas or partitions, and holds collective operations or per-device shards, is compiled
once for each process and run with one thread a process. Every process is given the same (global) arrays; the results are
the first process's. Modules whose shardings are annotations alone mean the same on one device, and run on one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compiler.backends.base import Executable, KernelRecord, KernelTime
from compiler.ir.program import Module
from compiler.ops import OPERATIONS
from compiler.ops.record import Devices, Trait, Value
from compiler.ops.sharding import parse_mesh
from compiler.ops.shardy_calls import TARGETS as SHARDY_TARGETS
from compiler.reference_devices import DeviceGrid, GridDevice, SingleDevice, run_grid

Array = np.ndarray[Any, np.dtype[Any]]
SHARD_TARGETS = frozenset({"SPMDFullToShardShape", "SPMDShardToFullShape", *SHARDY_TARGETS})


def grid_of(module: Module) -> tuple[int, int]:
    """Replicas and partitions that a module must be run on; (1, 1) when one device gives its meaning."""
    replicas = int(module.attributes.get("mhlo.num_replicas", 1) or 1)
    partitions = int(module.attributes.get("mhlo.num_partitions", 1) or 1)
    if partitions == 1 and _is_split(module):
        partitions = max(
            (
                parse_mesh(str(mesh)).size
                for key, mesh in module.attributes.items()
                if key.startswith("sdy.mesh.")
            ),
            default=1,
        )
    if replicas * partitions == 1 or not _is_per_device(module):
        return 1, 1
    return replicas, partitions


def _is_split(module: Module) -> bool:
    """True when Shardy's custom calls split values over a mesh (HLO text need not tell the number of partitions then)."""
    return any(
        i.attributes.get("call_target_name") in SHARDY_TARGETS
        for c in module.computations.values()
        for i in c
    )


def _is_per_device(module: Module) -> bool:
    manual: set[str] = set()
    for computation in reversed(list(module.computations.values())):
        for instruction in computation:
            if instruction.opcode == "sdy.manual_computation" or computation.name in manual:
                manual.update(instruction.called)
    for computation in module.computations.values():
        for instruction in computation:
            if instruction.attributes.get("call_target_name") in SHARD_TARGETS:
                return True
            record = OPERATIONS.get(instruction.opcode)
            if record and Trait.COLLECTIVE in record.traits and computation.name not in manual:
                return True
    return False


class DeviceSlot:
    """The place of one process, given its device anew for every run; implements `compiler.ops.record.Devices`."""

    def __init__(self) -> None:
        self.device: Any = SingleDevice()

    @property
    def num_replicas(self) -> int:
        """Of the present run's grid."""
        return int(self.device.num_replicas)

    @property
    def num_partitions(self) -> int:
        """Of the present run's grid."""
        return int(self.device.num_partitions)

    @property
    def replica_id(self) -> int:
        """Of this process."""
        return int(self.device.replica_id)

    @property
    def partition_id(self) -> int:
        """Of this process."""
        return int(self.device.partition_id)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.device, name)

    def exchange(self, key: object, value: Value) -> dict[tuple[int, int], Value]:
        """Meets every process at one point."""
        found: dict[tuple[int, int], Value] = self.device.exchange(key, value)
        return found


class GridExecutable:
    """One executable a process; implements `compiler.backends.base.Executable`."""

    def __init__(self, grid: tuple[int, int], make: Callable[[Devices], Executable]) -> None:
        self._grid = grid
        self._slots = [DeviceSlot() for _ in range(grid[0] * grid[1])]
        self._programs = [make(slot) for slot in self._slots]

    @property
    def kernels(self) -> tuple[KernelRecord, ...]:
        """Those of one process: all run the same program."""
        return self._programs[0].kernels

    def kernel_form(self, name: str, form: str) -> str:
        """See the protocol."""
        return self._programs[0].kernel_form(name, form)

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """Runs every process on the same arrays; the first one's results.

        Raises:
            BackendError, OperationError: what the first process to fail raised, a deadlock included.
        """
        return self._each(lambda program: program.run(arguments))

    def profile(self, arguments: Sequence[Array]) -> list[KernelTime]:
        """The first process's times, the others running beside it."""
        return self._each(lambda program: program.profile(arguments))

    def _each(self, body: Callable[[Executable], list[Any]]) -> list[Any]:
        def process(slot: DeviceSlot, program: Executable) -> Callable[[GridDevice], list[Any]]:
            def run(device: GridDevice) -> list[Any]:
                slot.device = device
                return body(program)

            return run

        bodies = [process(slot, program) for slot, program in zip(self._slots, self._programs, strict=True)]
        return run_grid(DeviceGrid(*self._grid), bodies)[0]

    def close(self) -> None:
        """Closes every process's program."""
        for program in self._programs:
            program.close()
