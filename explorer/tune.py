"""Tries the alternatives to decisions behind the worst kernels, and keeps those that measurably pay.

Greedy: the kernel that loses most first, its decisions one by one, each legal alternative compiled and run in turn with the
best program so far (A B A B …). An alternative wins when the middle of the pairwise ratios is below `threshold`, twice
over, and its outputs are within tolerance; it then stays for the rest of the search.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import numpy as np

from compiler.backends.base import BackendError
from compiler.decisions.log import Decision, IllegalOverride
from compiler.pass_manager import StageFailure
from explorer.case import BAD, Expected
from explorer.profile import Limits, Profile, profile
from explorer.session import Recording, Session, record

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Trial:
    """One alternative tried. `ratio` is its time over the best program's so far; None when it could not be run."""

    decision: str
    choice: str
    kernel: str
    ratio: float | None
    won: bool
    remark: str = ""


@dataclass(frozen=True)
class Tuning:
    """What the search found. `ratio` compares the tuned program with the first one, measured in turn at the end."""

    trials: tuple[Trial, ...]
    overrides: dict[str, str]
    ratio: float


@dataclass
class Tuner:
    """One search within a time budget in seconds."""

    session: Session
    inputs: Sequence[Array]
    limits: Limits
    budget: float = 30.0
    threshold: float = 0.97
    pairs: int = 15
    kinds: frozenset[str] = frozenset()
    """Kinds of decision to try; empty: all."""
    say: Callable[[str], None] = lambda text: None
    check_cancelled: Callable[[], None] = lambda: None
    trials: list[Trial] = field(default_factory=list)

    def run(self) -> Tuning:
        """Searches until the budget is spent or nothing is left to try."""
        deadline = time.monotonic() + self.budget
        first = best = self._compile({})
        oracle = Expected(tuple(self._program(first).run(self.inputs)))
        overrides: dict[str, str] = dict(self.session.options.overrides)
        tried: set[tuple[str, str]] = set()
        while time.monotonic() < deadline:
            candidate = self._next(best, tried)
            if candidate is None:
                break
            _, decision, choice = candidate
            tried.add((decision.id, choice))
            self.check_cancelled()
            self.say(f"{len(self.trials) + 1}: {decision.id} -> {choice}")
            attempt = self._try(best, oracle, {**overrides, decision.id: choice}, candidate)
            if attempt is not None:
                overrides[decision.id] = choice
                if best is not first:
                    self._program(best).close()
                best = attempt
        ratio = self._ratio(first, best) if best is not first else 1.0
        for recording in {id(r): r for r in (first, best)}.values():
            self._program(recording).close()
        return Tuning(tuple(self.trials), overrides, ratio)

    def _compile(self, overrides: dict[str, str]) -> Recording:
        options = replace(
            self.session.options,
            overrides={**self.session.options.overrides, **overrides},
            keep_rewrites=False,
        )
        return record(replace(self.session, options=options))

    @staticmethod
    def _program(recording: Recording) -> Any:
        assert recording.compilation is not None
        return recording.compilation.executable

    def _next(self, best: Recording, tried: set[tuple[str, str]]) -> tuple[str, Decision, str] | None:
        """The next alternative: of the kernel that loses most, the first that has not been tried."""
        found: Profile = profile(best.trace, self._program(best), self.inputs, self.limits, runs=2)
        decisions = {decision.id: decision for decision in best.trace.decisions}
        for line in found.lines:
            for identity in line.decisions:
                decision = decisions[identity]
                if self.kinds and decision.kind not in self.kinds:
                    continue
                for choice in decision.choices:
                    fresh = (identity, choice.name) not in tried
                    if fresh and not choice.forbidden and choice.name != decision.chosen:
                        return line.kernel.name, decision, choice.name
        return None

    def _try(
        self,
        best: Recording,
        oracle: Expected,
        overrides: dict[str, str],
        candidate: tuple[str, Decision, str],
    ) -> Recording | None:
        """Compiles and measures one alternative; the recording when it won."""
        kernel, decision, choice = candidate
        try:
            attempt = self._compile(overrides)
        except (BackendError, StageFailure, IllegalOverride) as error:
            self.trials.append(Trial(decision.id, choice, kernel, None, False, str(error)))
            return None
        program = self._program(attempt)
        verdict = oracle.judge(program.run(self.inputs), attempt.trace.final)
        if verdict.result == BAD:
            self.trials.append(
                Trial(decision.id, choice, kernel, None, False, f"wrong result: {verdict.detail}")
            )
            program.close()
            return None
        ratio = self._ratio(best, attempt)
        won = ratio < self.threshold and self._ratio(best, attempt) < self.threshold
        self.trials.append(Trial(decision.id, choice, kernel, ratio, won))
        if not won:
            program.close()
        return attempt if won else None

    def _ratio(self, before: Recording, after: Recording) -> float:
        """The middle of the pairwise ratios of runs in turn; each run long enough for the clock."""
        old, new = self._program(before), self._program(after)
        single = max(_seconds(old, self.inputs, 1), 1e-7)
        repeat = max(1, int(2e-3 / single))
        ratios = []
        for _ in range(self.pairs):
            first = _seconds(old, self.inputs, repeat)
            ratios.append(_seconds(new, self.inputs, repeat) / first)
        return median(ratios)


def _seconds(program: Any, inputs: Sequence[Array], repeat: int) -> float:
    started = time.perf_counter()
    for _ in range(repeat):
        program.run(inputs)
    return (time.perf_counter() - started) / repeat
