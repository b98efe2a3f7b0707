"""Two recordings of one model held side by side: what an overruled decision, or another option, changed.

Reads finished traces only. The views print what this returns; the difference of the programs is made when asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from compiler.decisions.log import Decision
from compiler.decisions.overrides import nearest
from explorer.diff import ModuleDiff, diff_modules
from explorer.trace import Trace


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of both recordings; None where a recording does not have it. `unit` is `bytes` or empty."""

    name: str
    before: int | None
    after: int | None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class DecisionChange:
    """A decision that came out differently, or that only one of the compiles had to make (the other side is None)."""

    id: str
    before: Decision | None
    after: Decision | None


@dataclass(frozen=True)
class Comparison:
    """Both recordings with what differs between them."""

    before: Trace
    after: Trace
    figures: tuple[Figure, ...]
    decisions: tuple[DecisionChange, ...]
    unmatched: tuple[tuple[str, tuple[str, ...]], ...]
    """Overrides of the later compile that no decision asked for, each with the ids most like it."""

    @cached_property
    def diff(self) -> ModuleDiff:
        """The difference of the two final programs."""
        return diff_modules(self.before.final, self.after.final)


def compare_traces(before: Trace, after: Trace) -> Comparison:
    """Compares two finished recordings."""
    known = [decision.id for decision in after.decisions]
    unmatched = tuple((found, tuple(nearest(found, known))) for found in after.unmatched_overrides)
    return Comparison(before, after, _figures(before, after), _changes(before, after), unmatched)


def _figures(before: Trace, after: Trace) -> tuple[Figure, ...]:
    def pair(name: str, old: int | None, new: int | None, unit: str = "") -> Figure:
        return Figure(name, old, new, unit)

    plans = (before.plan, after.plan)
    codes = (before.code, after.code)
    arenas = [None if plan is None else plan.arena_bytes for plan in plans]
    bounds = [None if plan is None else plan.lower_bound for plan in plans]
    kernels = [None if code is None else len(code.kernels) for code in codes]
    return (
        pair("instructions", before.final.instruction_count, after.final.instruction_count),
        pair("computations", len(before.final.computations), len(after.final.computations)),
        pair("kernels", kernels[0], kernels[1]),
        pair("arena", arenas[0], arenas[1], "bytes"),
        pair("peak of live bytes", bounds[0], bounds[1], "bytes"),
        pair("decisions", len(before.decisions), len(after.decisions)),
    )


def _changes(before: Trace, after: Trace) -> tuple[DecisionChange, ...]:
    old = {decision.id: decision for decision in before.decisions}
    new = {decision.id: decision for decision in after.decisions}
    found = []
    for identity in dict.fromkeys((*new, *old)):
        was, now = old.get(identity), new.get(identity)
        if was is None or now is None or (was.chosen, was.by) != (now.chosen, now.by):
            found.append(DecisionChange(identity, was, now))
    return tuple(sorted(found, key=_importance))


def _importance(change: DecisionChange) -> int:
    """The user's own choices first, then decisions that flipped, then those only one compile had."""
    if any(side is not None and side.by == "override" for side in (change.before, change.after)):
        return 0
    return 1 if change.before is not None and change.after is not None else 2
