"""Structural difference of two programs, instruction by instruction.

Names are stable, so an instruction is compared with the one of its own name; parts that are the same object are equal
without a look. Lines are not formatted here: a difference of 30,000 instructions is made in milliseconds, and the views
print what they show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from compiler.ir.program import Computation, Instruction, Module

SAME, CHANGED, ADDED, REMOVED = " ", "~", "+", "-"


class DiffLine(NamedTuple):
    """One instruction in both programs. `kind` is one of the four marks; a missing side is None."""

    kind: str
    name: str
    before: Instruction | None
    after: Instruction | None


@dataclass(frozen=True, slots=True)
class ComputationDiff:
    """One computation in both programs, lines in the order of the later one."""

    name: str
    kind: str
    before: Computation | None
    after: Computation | None
    lines: tuple[DiffLine, ...]
    root_changed: bool = False
    reordered: bool = False

    @property
    def counts(self) -> tuple[int, int, int]:
        """Added, removed, changed."""
        kinds = [line.kind for line in self.lines]
        return kinds.count(ADDED), kinds.count(REMOVED), kinds.count(CHANGED)


@dataclass(frozen=True, slots=True)
class ModuleDiff:
    """All computations of two programs; unchanged ones have lines too, made on demand by `diff_computation`."""

    before: Module
    after: Module
    changed: tuple[ComputationDiff, ...]
    unchanged: tuple[str, ...]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Added, removed, changed instructions of all computations."""
        totals = [computation.counts for computation in self.changed]
        return sum(t[0] for t in totals), sum(t[1] for t in totals), sum(t[2] for t in totals)

    @property
    def is_empty(self) -> bool:
        """True when the two programs are equal."""
        return not self.changed


def diff_modules(before: Module, after: Module, function: str = "") -> ModuleDiff:
    """Compares two programs, or only the computation named `function` of each."""
    names = list(after.computations) + [
        name for name in before.computations if name not in after.computations
    ]
    changed, unchanged = [], []
    for name in _entry_first(names, after.entry):
        if function and name != function:
            continue
        old, new = before.computations.get(name), after.computations.get(name)
        if old is new:
            unchanged.append(name)
            continue
        found = diff_computation(old, new)
        if found.kind == SAME:
            unchanged.append(name)
        else:
            changed.append(found)
    return ModuleDiff(before, after, tuple(changed), tuple(unchanged))


def _entry_first(names: list[str], entry: str) -> list[str]:
    return [entry, *(name for name in names if name != entry)] if entry in names else names


def diff_computation(before: Computation | None, after: Computation | None) -> ComputationDiff:
    """Compares one computation; either side may be missing."""
    if after is None:
        assert before is not None
        lines = tuple(DiffLine(REMOVED, i.name, i, None) for i in before)
        return ComputationDiff(before.name, REMOVED, before, None, lines)
    if before is None:
        lines = tuple(DiffLine(ADDED, i.name, None, i) for i in after)
        return ComputationDiff(after.name, ADDED, None, after, lines)
    lines = tuple(_merged(before, after))
    root_changed = before.root != after.root
    kept_before = [name for name in before.instructions if name in after.instructions]
    kept_after = [name for name in after.instructions if name in before.instructions]
    reordered = kept_before != kept_after
    differs = root_changed or reordered or any(line.kind != SAME for line in lines)
    kind = CHANGED if differs else SAME
    return ComputationDiff(after.name, kind, before, after, lines, root_changed, reordered)


def _merged(before: Computation, after: Computation) -> Iterator[DiffLine]:
    """Lines in the later order; what is gone stands after what it used to follow."""
    gone_after: dict[str, list[Instruction]] = {}
    previous = ""
    for instruction in before:
        if instruction.name in after.instructions:
            previous = instruction.name
        else:
            gone_after.setdefault(previous, []).append(instruction)
    for instruction in gone_after.get("", ()):
        yield DiffLine(REMOVED, instruction.name, instruction, None)
    for new in after:
        old = before.instructions.get(new.name)
        if old is None:
            yield DiffLine(ADDED, new.name, None, new)
        else:
            yield DiffLine(SAME if old is new or old == new else CHANGED, new.name, old, new)
        for instruction in gone_after.get(new.name, ()):
            yield DiffLine(REMOVED, instruction.name, instruction, None)


def with_context(lines: tuple[DiffLine, ...], context: int) -> list[DiffLine | int]:
    """Keeps lines near a change; an int stands for that many unchanged lines left out."""
    keep = [False] * len(lines)
    for index, line in enumerate(lines):
        if line.kind != SAME:
            for near in range(max(0, index - context), min(len(lines), index + context + 1)):
                keep[near] = True
    shown: list[DiffLine | int] = []
    hidden = 0
    for line, kept in zip(lines, keep, strict=True):
        if kept:
            if hidden:
                shown.append(hidden)
            hidden = 0
            shown.append(line)
        else:
            hidden += 1
    if hidden:
        shown.append(hidden)
    return shown
