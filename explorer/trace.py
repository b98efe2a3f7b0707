"""The recording of a compile: frozen records that every view and report reads.

Our compiler is one producer (`explorer.recorder`), a directory of XLA dumps is another. A trace is complete in itself:
it can be saved to one file and opened elsewhere, without the compiler having run there and without the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from compiler.analysis.plan import BufferPlan
from compiler.backends.base import KernelRecord, KernelTime
from compiler.decisions.log import Decision
from compiler.ir.program import Module
from compiler.ir.rewrite import Rewrite


@dataclass(frozen=True)
class StageRecord:
    """One stage: the program before and after (the same object when unchanged), what was done, and how long it took."""

    index: int
    id: str
    pass_name: str
    why: str
    before: Module
    after: Module
    rewrites: tuple[Rewrite, ...] = ()
    decisions: tuple[Decision, ...] = ()
    seconds: float = 0.0
    refused: int = 0
    skipped: str = ""

    @property
    def changed(self) -> bool:
        """True when the program after differs from the one before."""
        return self.before is not self.after

    @cached_property
    def instructions_before(self) -> int:
        """Instructions in the module before."""
        return self.before.instruction_count

    @cached_property
    def instructions_after(self) -> int:
        """Instructions in the module after."""
        return self.after.instruction_count


@dataclass(frozen=True)
class CodeRecord:
    """What the backend made: kernels and their text forms, and the time it took."""

    backend: str
    kernels: tuple[KernelRecord, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Trace:
    """A whole recording, or, while the compile goes on, what there is so far (`finished` False).

    `pending` are the ids of stages still to come; `error` says why the compile ended early; `sources` holds the text
    of source files (the model's own text included, under its file name) as far as it was kept.
    """

    model: str
    input: Module
    stages: tuple[StageRecord, ...] = ()
    plan: BufferPlan | None = None
    code: CodeRecord | None = None
    profile: tuple[KernelTime, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)
    unmatched_overrides: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    running: str = ""
    finished: bool = False
    error: str = ""
    producer: str = "xla-explore"
    sources: Mapping[str, str] = field(default_factory=dict)
    positions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Line and column of each input instruction in the model's text."""

    @property
    def final(self) -> Module:
        """The last program there is."""
        return self.stages[-1].after if self.stages else self.input

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions of all stages, in order."""
        return tuple(decision for stage in self.stages for decision in stage.decisions)

    def stage(self, identity: str) -> StageRecord:
        """A stage by its id or its number. Raises KeyError when there is none such."""
        for record in self.stages:
            if record.id == identity or str(record.index) == identity:
                return record
        raise KeyError(identity)

    def having(self, **changes: object) -> Trace:
        """A copy with some fields replaced."""
        return replace(self, **changes)  # type: ignore[arg-type]
