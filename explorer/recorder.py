"""Turns a running compile into a trace: an observer that appends frozen records.

`trace` may be read at any time from any thread: it is replaced as a whole, never changed. `on_progress` is called on
the compiling thread after each stage with the trace so far; screens post it on as one message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.backends.base import KernelRecord
from compiler.ir.program import Module
from compiler.pass_manager import Stage, StageOutcome
from explorer.trace import CodeRecord, StageRecord, Trace

Progress = Callable[[Trace], None]


class Recorder:
    """An `Observer` that records everything. See the module's docstring."""

    def __init__(self, trace: Trace, on_progress: Progress | None = None) -> None:
        self.trace = trace
        self._on_progress = on_progress
        self._stages: list[StageRecord] = []
        self._pending: list[str] = []

    def compile_started(self, module: Module, stages: Sequence[Stage]) -> None:
        """Notes the stages to come."""
        self._pending = [stage.id for stage in stages]
        self._publish(pending=tuple(self._pending))

    def stage_started(self, index: int, stage: Stage) -> None:
        """Marks the stage as the running one."""
        self.trace = self.trace.having(running=stage.id)

    def stage_finished(self, index: int, outcome: StageOutcome) -> None:
        """Appends the stage's record."""
        self._stages.append(
            StageRecord(
                index,
                outcome.id,
                outcome.pass_name,
                outcome.why,
                outcome.before,
                outcome.after,
                outcome.rewrites,
                outcome.decisions,
                outcome.seconds,
                outcome.refused,
                outcome.skipped,
            )
        )
        self._publish(stages=tuple(self._stages), pending=tuple(self._pending[index + 1 :]), running="")

    def code_made(self, backend: str, kernels: Sequence[KernelRecord], seconds: float) -> None:
        """Appends what the backend made."""
        self._publish(code=CodeRecord(backend, tuple(kernels), seconds))

    def finish(self, **changes: object) -> Trace:
        """Marks the recording as complete (or ended by `error=`), and returns it."""
        self._publish(finished=True, running="", **changes)
        return self.trace

    def _publish(self, **changes: object) -> None:
        self.trace = self.trace.having(**changes)
        if self._on_progress is not None:
            self._on_progress(self.trace)
