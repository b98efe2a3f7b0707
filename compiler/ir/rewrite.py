"""Records of change: the rule that a rewrite applied, and the rewrite itself.

Made by the editor, kept by the recorder, shown by the explorer, refused by bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compiler.ir.location import Location
from compiler.ir.working import Change


@dataclass(frozen=True, slots=True)
class Rule:
    """What a rewrite applies: a stable id, the law in words or symbols, where it is written, and its licence.

    `fast_math` marks rules that are allowed only under `--fp fast`.
    """

    id: str
    law: str
    source: str = ""
    fast_math: bool = False


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One committed change. `id` is stable: `stage/rule@computation/root`, with `#n` from the second time on.

    `changes` hold each touched instruction as it was (None: new) and as it is (None: gone), in order.
    """

    id: str
    stage: str
    rule: Rule
    computation: str
    root: str
    location: Location | None
    note: str
    changes: tuple[Change, ...]

    def _ends(self) -> dict[str, tuple[Change, Change]]:
        ends: dict[str, tuple[Change, Change]] = {}
        for change in self.changes:
            if change.name:
                ends[change.name] = (ends[change.name][0] if change.name in ends else change, change)
        return ends

    @property
    def made(self) -> tuple[str, ...]:
        """Names of instructions that this rewrite introduced and left in place."""
        return tuple(n for n, (first, last) in self._ends().items() if not first.before and last.after)

    @property
    def removed(self) -> tuple[str, ...]:
        """Names of instructions that this rewrite took away."""
        return tuple(n for n, (first, last) in self._ends().items() if first.before and not last.after)


Gate = Callable[[str], bool]
"""Asked with a rewrite's id once it is complete; False undoes it."""
Listener = Callable[[Rewrite], None]
