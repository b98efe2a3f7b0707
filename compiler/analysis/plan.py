"""The memory plan: where every value lives while the program runs.

Made by buffer assignment from the scheduled module; the backends place values by it and the explorer explains it.
A tuple has no buffer of its own: each of its leaves lives somewhere, addressed by a path of tuple indices. A `while`
state, its body's parameter, its body's result and its own result share their leaves' places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ValueKey = tuple[str, str, tuple[int, ...]]
"""(computation, instruction, path into its tuple type); the path is empty for a tensor."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in memory.

    `kind` is one of:

    - `parameter`: the caller's buffer of entry parameter leaf number `index` (leaves flattened in order);
    - `result`: the buffer the caller gives for result leaf number `index`;
    - `constant`: constant number `index` of the plan, read-only;
    - `arena`: `offset` bytes into the one temporary arena.
    """

    kind: str
    index: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Lifetime:
    """One logical buffer: the values that share it, its place, and the schedule steps between which it is live.

    Steps number the instructions of all computations in one flattened schedule, the bodies of loops inline where they
    are called; `first` is the step that defines it and `last` the last that reads it (inclusive).
    """

    values: tuple[ValueKey, ...]
    slot: Slot
    first: int
    last: int
    note: str = ""
    """Why it shares or could not share a place, in words."""


@dataclass(frozen=True, slots=True)
class BufferPlan:
    """The whole plan. `arena_bytes` is the peak of the temporaries as placed, `lower_bound` the schedule's own."""

    slots: Mapping[ValueKey, Slot]
    constants: tuple[tuple[str, str], ...]
    """(computation, instruction) of each constant that needs memory, by slot index."""
    lifetimes: tuple[Lifetime, ...]
    steps: tuple[tuple[str, str], ...]
    """(computation, instruction) at each step of the flattened schedule."""
    arena_bytes: int
    lower_bound: int
    parameter_bytes: int
    result_bytes: int
    constant_bytes: int
    live_bytes: tuple[int, ...] = ()
    """Temporary bytes live at each step."""
    strategy: str = ""

    def slot(self, computation: str, instruction: str, path: tuple[int, ...] = ()) -> Slot:
        """The place of a value. Raises KeyError for values that have none (tuples, tokens)."""
        return self.slots[(computation, instruction, path)]
