"""How long fuzzing may take, and what one case may use: seconds by a timer, memory by the process's limit."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

_PAGE = resource.getpagesize()


class TooSlow(BaseException):
    """A case ran past its time. No `Exception`, so that nothing under test can take it for its own."""


def seconds() -> float:
    """The time that `make fuzz` gives; 0 in an ordinary test run, which has a fixed number of cases."""
    return float(os.environ.get("XLA_EXPLORE_FUZZ_SECONDS", "0") or 0)


def seeds(short: int, share: float = 1.0) -> Iterator[int]:
    """Seeds of the cases to try: the first `short` ones, or fresh ones until a share of the time is over.

    `XLA_EXPLORE_FUZZ_SEED` says where fresh ones begin (default: the clock), so that a run can be repeated.
    """
    limit = seconds() * share
    if not limit:
        yield from range(short)
        return
    seed = int(os.environ.get("XLA_EXPLORE_FUZZ_SEED", "0") or 0) or int(time.time()) * 1000
    ends = time.monotonic() + limit
    while time.monotonic() < ends:
        yield seed
        seed += 1


@contextmanager
def bounded(limit_seconds: float, limit_bytes: int) -> Iterator[None]:
    """Runs a block with a time limit (TooSlow) and no more new memory than so much (MemoryError)."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow(f"took longer than {limit_seconds:g} s")

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE if Path("/proc/self").exists() else 0
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit_seconds)
    if used:
        resource.setrlimit(resource.RLIMIT_AS, (used + limit_bytes, hard))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
