"""The memory plan explained: how much, when the most is live, what that is, and from which lines of the user's.

Reads the plan of a trace and the program it was made for; the views print what this returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compiler.analysis.plan import BufferPlan, Lifetime, ValueKey
from compiler.analysis.values import leaves
from compiler.ir.location import source_line
from compiler.ir.program import Module
from explorer.trace import Trace


@dataclass(frozen=True)
class Buffer:
    """One buffer of the plan: the value that it was made for, its size in bytes, and the steps it is live at."""

    computation: str
    instruction: str
    path: tuple[int, ...]
    type: str
    kind: str
    offset: int
    bytes: int
    first: int
    last: int
    last_reader: str
    shared: tuple[str, ...]
    """Other instructions whose values live in it."""
    source: str
    note: str


@dataclass(frozen=True)
class MemoryReport:
    """Sizes in bytes, the peak's step (-1: no temporaries), and the buffers live there, the largest first."""

    arena_bytes: int
    lower_bound: int
    parameter_bytes: int
    result_bytes: int
    constant_bytes: int
    strategy: str
    steps: tuple[tuple[str, str], ...]
    live_bytes: tuple[int, ...]
    peak_step: int
    peak_bytes: int
    at_peak: tuple[Buffer, ...]
    buffers: tuple[Buffer, ...]


def memory_report(trace: Trace) -> MemoryReport | None:
    """The report; None when the recording has no plan."""
    plan = trace.plan
    if plan is None:
        return None
    buffers = tuple(_buffers(plan, trace.final))
    live = plan.live_bytes
    peak = max(range(len(live)), key=lambda step: live[step]) if max(live, default=0) > 0 else -1
    at_peak = [b for b in buffers if b.kind == "arena" and b.first <= peak <= b.last]
    return MemoryReport(
        plan.arena_bytes,
        plan.lower_bound,
        plan.parameter_bytes,
        plan.result_bytes,
        plan.constant_bytes,
        plan.strategy,
        plan.steps,
        live,
        peak,
        live[peak] if peak >= 0 else 0,
        tuple(sorted(at_peak, key=lambda buffer: (-buffer.bytes, buffer.first))),
        buffers,
    )


def _buffers(plan: BufferPlan, module: Module) -> Iterator[Buffer]:
    readers = _steps_by_number(plan)
    for lifetime in plan.lifetimes:
        key = lifetime.values[0]
        computation, name, path = key
        instruction = module.instruction(computation, name)
        line = source_line(instruction.location)
        yield Buffer(
            computation,
            name,
            path,
            _type(module, key),
            lifetime.slot.kind,
            lifetime.slot.offset,
            lifetime.slot.size,
            lifetime.first,
            lifetime.last,
            readers.get(lifetime.last, "the caller"),
            _others(lifetime),
            str(line) if line is not None else "",
            lifetime.note,
        )


def _steps_by_number(plan: BufferPlan) -> dict[int, str]:
    return {number: name for number, (_, name) in enumerate(plan.steps)}


def _type(module: Module, key: ValueKey) -> str:
    computation, name, path = key
    for found, leaf in leaves(module.instruction(computation, name).type):
        if found == path:
            return str(leaf)
    return ""


def _others(lifetime: Lifetime) -> tuple[str, ...]:
    own = lifetime.values[0][1]
    return tuple(dict.fromkeys(name for _, name, _ in lifetime.values if name != own))
