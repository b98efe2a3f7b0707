"""Runs a list of stages over a module, and owns the discipline that passes must not.

Timing, snapshots, verification, the truth of "changed", observers, refusing a rewrite or a decision, stopping early
and skipping a stage: all here. Stands between `compiler.pipeline` (which stages) and `compiler.driver` (one compile).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from compiler.decisions.log import Decider, Decision
from compiler.ir.editor import Editor
from compiler.ir.program import Module
from compiler.ir.rewrite import Rewrite
from compiler.ir.semantics import OperationError, Semantics
from compiler.passes.base import Pass, PassContext

FAULTS_OF_A_PASS = (
    OperationError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    NotImplementedError,
    TypeError,
    ValueError,
)
"""What a broken pass raises; a cancelled compile, an exhausted machine and a closed pipe are none of its doing."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One line of the pipeline: a pass at a place, under an id of its own, and the reason why it stands there."""

    id: str
    make: Pass
    why: str
    required: bool = False
    """Without it no code can be made; disabling it is an error."""


@dataclass(frozen=True, slots=True)
class StageOutcome:
    """What a stage did. `before` and `after` are the same object when nothing changed."""

    id: str
    pass_name: str
    why: str
    before: Module
    after: Module
    rewrites: tuple[Rewrite, ...]
    decisions: tuple[Decision, ...]
    refused: int
    seconds: float
    skipped: str = ""
    """Why it did not run, if it did not."""

    @property
    def changed(self) -> bool:
        """True when the program after differs from the one before."""
        return self.before is not self.after


class Observer(Protocol):
    """Hears of a compile as it goes on. Called on the compiling thread; must be quick."""

    def compile_started(self, module: Module, stages: Sequence[Stage]) -> None:
        """The stages that will run, and the module as it was read."""
        ...

    def stage_started(self, index: int, stage: Stage) -> None:
        """A stage begins."""
        ...

    def stage_finished(self, index: int, outcome: StageOutcome) -> None:
        """A stage is over."""
        ...


class Silent:
    """An observer that does nothing."""

    def compile_started(self, module: Module, stages: Sequence[Stage]) -> None:
        """Ignores it."""

    def stage_started(self, index: int, stage: Stage) -> None:
        """Ignores it."""

    def stage_finished(self, index: int, outcome: StageOutcome) -> None:
        """Ignores it."""


@dataclass(frozen=True, slots=True)
class Restraint:
    """What bisection holds back. Rewrites and decisions of a stage are counted together, as events, in order.

    `stop_before` ends the pipeline ahead of a stage (required ones still run when `run_required`). `event_limits`
    allow only the first N events of a stage. `refuse` names single rewrites or decisions by id.
    """

    stop_before: str = ""
    skip: frozenset[str] = frozenset()
    event_limits: tuple[tuple[str, int], ...] = ()
    refuse: frozenset[str] = frozenset()
    run_required: bool = True

    @property
    def is_empty(self) -> bool:
        """True when nothing is held back."""
        return self == Restraint()


class StageFailure(Exception):
    """A pass raised, or left an invalid program. `stage` names it; the cause is chained."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(f"stage {stage}: {message}")
        self.stage = stage


class EventGate:
    """Counts the events of the present stage and answers whether the next may happen."""

    def __init__(self, restraint: Restraint) -> None:
        self.stage = ""
        self.count = 0
        self.refused = 0
        self._limits = dict(restraint.event_limits)
        self._refuse = restraint.refuse

    def begin(self, stage: str) -> None:
        """A new stage: counting starts anew."""
        self.stage, self.count, self.refused = stage, 0, 0

    def __call__(self, identity: str) -> bool:
        """Asked by the editor and the decider for each event."""
        limit = self._limits.get(self.stage)
        if identity in self._refuse or (limit is not None and self.count >= limit):
            self.refused += 1
            return False
        self.count += 1
        return True


@contextmanager
def _without_cycle_collection() -> Iterator[None]:
    """Holds Python's cycle collector back: programs have no cycles, and recordings keep millions of objects it would visit."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@dataclass
class PassManager:
    """Runs stages. `verify_each` checks the whole module after every stage that changed it."""

    semantics: Semantics
    stages: Sequence[Stage]
    observer: Observer = field(default_factory=Silent)
    restraint: Restraint = field(default_factory=Restraint)
    verify: Callable[[Module, Semantics], None] | None = None
    keep_rewrites: bool = True

    def run(self, module: Module, context: PassContext, gate: EventGate) -> Module:
        """Runs every stage in turn and returns the final module.

        Raises:
            StageFailure: when a pass fails or leaves an invalid program.
        """
        rewrites: list[Rewrite] = []
        restrained = not self.restraint.is_empty
        editor = Editor(
            module,
            self.semantics,
            gate=gate if restrained else None,
            listener=rewrites.append if self.keep_rewrites else None,
        )
        with _without_cycle_collection():
            self._run_all(editor, context, gate, rewrites)
        return editor.snapshot()

    def _run_all(
        self, editor: Editor, context: PassContext, gate: EventGate, rewrites: list[Rewrite]
    ) -> None:
        stopped = False
        for index, stage in enumerate(self.stages):
            context.check_cancelled()
            stopped = stopped or stage.id == self.restraint.stop_before
            reason = self._skip_reason(stage, stopped, context)
            self.observer.stage_started(index, stage)
            outcome = self._run_stage(editor, stage, context, gate, rewrites, reason)
            self.observer.stage_finished(index, outcome)

    def _skip_reason(self, stage: Stage, stopped: bool, context: PassContext) -> str:
        if stage.required and self.restraint.run_required:
            return ""
        if stopped:
            return f"stopped before {self.restraint.stop_before}"
        if stage.id in self.restraint.skip or stage.id in context.options.get("disable", ()):
            return "disabled"
        return ""

    def _run_stage(
        self,
        editor: Editor,
        stage: Stage,
        context: PassContext,
        gate: EventGate,
        rewrites: list[Rewrite],
        skip: str,
    ) -> StageOutcome:
        before = editor.snapshot()
        rewrites.clear()
        gate.begin(stage.id)
        editor.begin_stage(stage.id)
        context.decider.stage = stage.id
        first_decision = len(context.decider.log)
        started = time.perf_counter()
        if not skip:
            self._guarded(stage, lambda: stage.make.run(editor, context))
        after = editor.snapshot()
        seconds = time.perf_counter() - started
        if self.verify is not None and after is not before:
            verify = self.verify
            self._guarded(stage, lambda: verify(after, self.semantics))
        return StageOutcome(
            stage.id,
            stage.make.name,
            stage.why,
            before,
            after,
            tuple(rewrites),
            tuple(context.decider.log[first_decision:]),
            gate.refused,
            seconds,
            skip,
        )

    @staticmethod
    def _guarded(stage: Stage, action: Callable[[], None]) -> None:
        try:
            action()
        except FAULTS_OF_A_PASS as error:
            raise StageFailure(stage.id, f"{type(error).__name__}: {error}") from error


def new_gate_and_decider(restraint: Restraint, overrides: dict[str, str]) -> tuple[EventGate, Decider]:
    """The gate that counts both rewrites and decisions, and the decider that asks it."""
    gate = EventGate(restraint)
    return gate, Decider(overrides, gate=None if restraint.is_empty else gate)
