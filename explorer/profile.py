"""Where the time of a run goes: each kernel's time, bytes and arithmetic, against what this machine can do.

The program runs a few times with a clock around each kernel; the fastest run counts. A kernel's floor is what its bytes and
its arithmetic would take at the machine's measured limits, and the time lost is what it takes beyond that. Limits are
measured by compiled code of our own, in the same process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.backends.base import Executable, KernelRecord
from compiler.options import CompileOptions
from explorer.trace import Trace

Array = np.ndarray[Any, np.dtype[Any]]

_COPY = """func.func @main(%x: tensor<16777216xf32>) -> tensor<16777216xf32> {
  %0 = stablehlo.negate %x : tensor<16777216xf32>
  return %0 : tensor<16777216xf32>
}"""
_PRODUCT = """func.func @main(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
}"""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the machine does at best, with as many threads as the profiled program: bytes and FLOPs a second."""

    bytes_per_second: float
    flops_per_second: float


@dataclass(frozen=True, slots=True)
class Line:
    """One kernel. Times in seconds over the whole run; `lost` is the time beyond the floor."""

    kernel: KernelRecord
    calls: int
    seconds: float
    floor: float
    decisions: tuple[str, ...]

    @property
    def lost(self) -> float:
        """Seconds that a kernel at the machine's limits would not have taken."""
        return max(self.seconds - self.floor, 0.0)

    @property
    def bytes_per_second(self) -> float:
        """Bytes read and written a second."""
        moved = (self.kernel.bytes_read + self.kernel.bytes_written) * self.calls
        return moved / self.seconds if self.seconds else 0.0

    @property
    def flops_per_second(self) -> float:
        """Arithmetic a second."""
        return self.kernel.flops * self.calls / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Profile:
    """A profiled run; `lines` are worst first (by time lost), `seconds` is a whole run without clocks."""

    lines: tuple[Line, ...]
    limits: Limits
    seconds: float

    @property
    def in_kernels(self) -> float:
        """Seconds of all kernels together."""
        return sum(line.seconds for line in self.lines)


def profile(
    trace: Trace,
    executable: Executable,
    arguments: Sequence[Array],
    limits: Limits,
    *,
    runs: int = 5,
    check_cancelled: Callable[[], None] = lambda: None,
) -> Profile:
    """Runs a program `runs` times with clocks and as often without, and keeps each one's fastest."""
    whole = []
    best: dict[str, tuple[int, int]] = {}
    executable.run(arguments)
    for _ in range(max(runs, 1)):
        check_cancelled()
        started = time.perf_counter()
        executable.run(arguments)
        whole.append(time.perf_counter() - started)
        for entry in executable.profile(arguments):
            known = best.get(entry.kernel)
            if known is None or entry.nanoseconds < known[0]:
                best[entry.kernel] = (entry.nanoseconds, entry.calls)
    by_subject = _decisions_by_name(trace)
    lines = [
        _line(kernel, best[kernel.name], limits, by_subject)
        for kernel in executable.kernels
        if kernel.name in best
    ]
    lines.sort(key=lambda line: -line.lost)
    return Profile(tuple(lines), limits, min(whole))


def _line(
    kernel: KernelRecord, measured: tuple[int, int], limits: Limits, by_name: dict[str, list[str]]
) -> Line:
    nanoseconds, calls = measured
    moved = (kernel.bytes_read + kernel.bytes_written) * calls
    floor = max(moved / limits.bytes_per_second, kernel.flops * calls / limits.flops_per_second)
    ids = dict.fromkeys(found for _, name in kernel.instructions for found in by_name.get(name, ()))
    return Line(kernel, calls, nanoseconds * 1e-9, floor, tuple(ids))


def _decisions_by_name(trace: Trace) -> dict[str, list[str]]:
    """Ids of the decisions that are about an instruction, by its name (both ends of an edge)."""
    found: dict[str, list[str]] = {}
    for decision in trace.decisions:
        subject = decision.subject.partition("/")[2] or decision.subject
        for name in subject.split("->"):
            found.setdefault(name, []).append(decision.id)
    return found


def measure_limits(threads: int = 0) -> Limits:
    """Measures memory bandwidth (a copy of 64 MB) and f32 arithmetic (a product of 512³) with code of our own."""
    from compiler.driver import compile_module
    from compiler.frontend.mlir import parse

    options = CompileOptions(threads=threads, keep_rewrites=False)
    copy = compile_module(parse(_COPY).module, options).executable
    product = compile_module(parse(_PRODUCT).module, options).executable
    try:
        array = np.ones(1 << 24, np.float32)
        square = np.ones((512, 512), np.float32)
        moved = _fastest(lambda: copy.run([array]), 6)
        multiplied = _fastest(lambda: product.run([square, square]), 12)
    finally:
        copy.close()
        product.close()
    return Limits(2.0 * array.nbytes / moved, 2.0 * 512**3 / multiplied)


def _fastest(action: Callable[[], object], runs: int) -> float:
    action()
    best = float("inf")
    for _ in range(runs):
        started = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - started)
    return best
