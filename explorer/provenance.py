"""Where an instruction came from, and what became of it, rewrite by rewrite.

An index over a trace, built once per trace from the changes that each rewrite recorded. Names are never recycled, so the
life of a value is: made by one rewrite (or read from the file), changed by some, removed by at most one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compiler.ir.program import Instruction
from compiler.ir.rewrite import Rewrite
from explorer.trace import StageRecord, Trace


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a name: `made`, `changed`, `removed`, `moved` (into another computation)."""

    kind: str
    name: str
    stage: StageRecord
    rewrite: Rewrite
    before: Instruction | None
    after: Instruction | None


@dataclass(frozen=True, slots=True)
class Ancestor:
    """One step back: `name` was made by `event` out of `parents` (none: it was read from the file)."""

    name: str
    depth: int
    event: Event | None
    parents: tuple[str, ...]
    instruction: Instruction | None


class Provenance:
    """The index. Cheap to extend: build a new one for each new trace, or one when it is finished."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._events: dict[str, list[Event]] = {}
        for stage in trace.stages:
            for rewrite in stage.rewrites:
                self._note(stage, rewrite)

    def _note(self, stage: StageRecord, rewrite: Rewrite) -> None:
        first: dict[str, Instruction | None] = {}
        last: dict[str, Instruction | None] = {}
        moved: set[str] = set()
        place: dict[str, str] = {}
        for change in rewrite.changes:
            for instruction in change.computation_before or ():
                first.setdefault(instruction.name, instruction)
                if place.get(instruction.name, change.computation) == change.computation:
                    last[instruction.name] = None
            for instruction in change.computation_after or ():
                moved.add(instruction.name)
                place[instruction.name] = change.computation
                first.setdefault(instruction.name, None)
                last[instruction.name] = instruction
            if change.name:
                first.setdefault(change.name, change.before)
                if change.after is not None:
                    place[change.name] = change.computation
                if first[change.name] is None and change.before is not None and change.name in moved:
                    first[change.name] = change.before
                if not (change.after is None and change.name in moved):
                    last[change.name] = change.after
        for name, before in first.items():
            after = last[name]
            if before is None and after is None:
                continue
            kind = "made" if before is None else "removed" if after is None else "changed"
            if name in moved and before is not None:
                kind = "moved"
            self._events.setdefault(name, []).append(Event(kind, name, stage, rewrite, before, after))

    def events(self, name: str) -> tuple[Event, ...]:
        """Everything that happened to a name, in order."""
        return tuple(self._events.get(name, ()))

    def origin(self, name: str) -> Event | None:
        """The event that made a name; None when it was read from the file (or is unknown)."""
        return next((event for event in self._events.get(name, ()) if event.kind == "made"), None)

    def knows(self, name: str) -> bool:
        """True when the name occurs anywhere in the recording."""
        return name in self._events or self.trace.input.find(name) is not None

    def ancestors(self, name: str, limit: int = 200) -> list[Ancestor]:
        """The values that a name goes back to, nearest first, down to those that were read from the file."""
        found: dict[str, Ancestor] = {}
        queue = [(name, 0)]
        while queue and len(found) < limit:
            current, depth = queue.pop(0)
            if current in found:
                continue
            event = self.origin(current)
            parents = () if event is None else self._parents(event)
            instruction = event.after if event else self._as_read(current)
            found[current] = Ancestor(current, depth, event, parents, instruction)
            queue.extend((parent, depth + 1) for parent in parents if parent != current)
        return list(found.values())

    def _as_read(self, name: str) -> Instruction | None:
        place = self.trace.input.find(name)
        return place[1] if place else None

    @staticmethod
    def _parents(event: Event) -> tuple[str, ...]:
        """What the making rewrite was about: its root, and what it took away."""
        rewrite = event.rewrite
        return tuple(dict.fromkeys((rewrite.root, *rewrite.removed)))

    def descendants(self, name: str) -> Iterator[Event]:
        """What became of a name: events of its own, then, once it was removed, those of what replaced it."""
        seen: set[str] = set()
        queue = [name]
        while queue:
            current = queue.pop(0)
            if current in seen:
                continue
            seen.add(current)
            for event in self._events.get(current, ()):
                if event.kind != "made" or current == name:
                    yield event
                if event.kind == "removed":
                    queue.extend(made for made in event.rewrite.made if made not in seen)
