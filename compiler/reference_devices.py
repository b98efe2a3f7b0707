"""Virtual devices of the reference interpreter: one thread a process, meeting at the collectives.

Processes that wait for one another in a circle, or for one that has ended, get an error that says where each of them
stands, instead of waiting for ever.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from compiler.ir.semantics import OperationError
from compiler.ops.record import Value

Result = TypeVar("Result")
Process = tuple[int, int]
"""(replica, partition)."""


class SingleDevice:
    """The grid of one process."""

    num_replicas = 1
    num_partitions = 1
    replica_id = 0
    partition_id = 0

    def exchange(self, key: object, value: Value) -> dict[Process, Value]:
        """Meets nobody but itself."""
        return {(0, 0): value}

    def send(self, channel: object, value: Value) -> None:
        """Has nobody to send to."""
        raise OperationError("send needs more than one process")

    def receive(self, channel: object) -> Value:
        """Has nobody to receive from."""
        raise OperationError("recv needs more than one process")

    def next_infeed(self) -> Value:
        """Has no infeed."""
        raise OperationError("the infeed is empty")


class DeviceGrid:
    """What the processes of one run share: meeting points, channels, the infeed."""

    def __init__(self, num_replicas: int, num_partitions: int, timeout_seconds: float = 60.0) -> None:
        self.num_replicas = num_replicas
        self.num_partitions = num_partitions
        self.timeout_seconds = timeout_seconds
        self.infeed: deque[Value] = deque()
        self._changed = threading.Condition()
        self._meetings: dict[tuple[object, int], dict[Process, Value]] = {}
        self._channels: dict[object, deque[Value]] = {}
        self._waiting: dict[Process, str] = {}
        self._running = num_replicas * num_partitions
        self._failure: str = ""

    @property
    def processes(self) -> list[Process]:
        """All processes, replica-major."""
        return [(r, p) for r in range(self.num_replicas) for p in range(self.num_partitions)]

    def meet(self, process: Process, key: object, turn: int, value: Value) -> dict[Process, Value]:
        """Waits until every process has brought its value to the same point."""
        with self._changed:
            meeting = self._meetings.setdefault((key, turn), {})
            meeting[process] = value
            self._changed.notify_all()
            self._wait(process, f"at {key}", lambda: len(meeting) == self.num_replicas * self.num_partitions)
            return meeting

    def send(self, channel: object, value: Value) -> None:
        """Puts a value into a channel."""
        with self._changed:
            self._channels.setdefault(channel, deque()).append(value)
            self._changed.notify_all()

    def receive(self, process: Process, channel: object) -> Value:
        """Waits for a channel's next value."""
        with self._changed:
            queue = self._channels.setdefault(channel, deque())
            self._wait(process, f"for channel {channel}", lambda: bool(queue))
            return queue.popleft()

    def next_infeed(self) -> Value:
        """The next value fed in."""
        with self._changed:
            if not self.infeed:
                raise OperationError("the infeed is empty")
            return self.infeed.popleft()

    def leave(self, failure: str = "") -> None:
        """A process has ended, perhaps by failing."""
        with self._changed:
            self._running -= 1
            self._failure = self._failure or failure
            self._changed.notify_all()

    def _wait(self, process: Process, what: str, ready: Callable[[], bool]) -> None:
        self._waiting[process] = what
        try:
            while not ready():
                if self._failure:
                    raise OperationError(f"another process failed: {self._failure}")
                if (
                    len(self._waiting) == self._running
                    and not self._changed.wait(0.05)
                    and self._is_stuck(ready)
                ):
                    raise OperationError(f"deadlock: {self._standing()}")
                if len(self._waiting) < self._running and not self._changed.wait(self.timeout_seconds):
                    raise OperationError(f"timed out: {self._standing()}")
        finally:
            self._waiting.pop(process, None)

    def _is_stuck(self, ready: Callable[[], bool]) -> bool:
        complete = any(len(m) == self.num_replicas * self.num_partitions for m in self._open_meetings())
        return not ready() and len(self._waiting) == self._running and not complete

    def _open_meetings(self) -> list[dict[Process, Value]]:
        waiting = set(self._waiting)
        return [m for m in self._meetings.values() if waiting & set(m) and len(m) > len(waiting)]

    def _standing(self) -> str:
        ended = len(self.processes) - self._running
        places = [f"process {r},{p} waits {what}" for (r, p), what in sorted(self._waiting.items())]
        return "; ".join(places + ([f"{ended} have ended"] if ended else []))


class GridDevice:
    """One process of a grid; implements `compiler.ops.record.Devices`, and channels and the infeed beside."""

    def __init__(self, grid: DeviceGrid, process: Process) -> None:
        self._grid = grid
        self._turns: dict[object, int] = {}
        self.num_replicas = grid.num_replicas
        self.num_partitions = grid.num_partitions
        self.replica_id, self.partition_id = process

    def exchange(self, key: object, value: Value) -> dict[Process, Value]:
        """Meets every process at one point; the n-th time for a key meets the others' n-th time."""
        turn = self._turns.get(key, 0)
        self._turns[key] = turn + 1
        return self._grid.meet((self.replica_id, self.partition_id), key, turn, value)

    def send(self, channel: object, value: Value) -> None:
        """Puts a value into a channel."""
        self._grid.send(channel, value)

    def receive(self, channel: object) -> Value:
        """Waits for a channel's next value."""
        return self._grid.receive((self.replica_id, self.partition_id), channel)

    def next_infeed(self) -> Value:
        """The next value fed in."""
        return self._grid.next_infeed()


def run_grid(grid: DeviceGrid, bodies: Sequence[Callable[[Any], Result]]) -> list[Result]:
    """Runs a body for each process, replica-major, each in a thread of its own, and gives their results in order.

    Raises:
        Exception: whatever the first process to fail raised.
    """
    if len(bodies) != len(grid.processes):
        raise OperationError(f"{len(bodies)} programs for {len(grid.processes)} processes")
    results: list[Any] = [None] * len(bodies)
    failures: list[BaseException] = []

    def run(index: int, process: Process) -> None:
        try:
            results[index] = bodies[index](GridDevice(grid, process))
        except BaseException as error:
            failures.append(error)
            grid.leave(str(error) or type(error).__name__)
        else:
            grid.leave()

    threads = [
        threading.Thread(target=run, args=(index, process), daemon=True)
        for index, process in enumerate(grid.processes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results
