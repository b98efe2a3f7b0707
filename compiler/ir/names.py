"""Where fresh names come from.

Names are never recycled: an instruction's name is its opcode, the number its lineage began with, and a serial that only
grows; a computation's is its base with a serial once the base is taken. The editor holds one source for a whole pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping


def lineage_of(name: str) -> str:
    """The number a name descends from: `multiply.17.2` -> `17`; `0` when it has none."""
    for part in name.split(".")[1:]:
        if part.isdigit():
            return part
    return "0"


class NameSource:
    """Gives names that no instruction and no computation has had so far. Each method also returns its own undo."""

    def __init__(self, lineages: Mapping[str, int], computations: Iterable[str]) -> None:
        self.lineages = dict(lineages)
        self._computations = set(computations)
        self._serials: dict[str, int] = {}

    def instruction(self, opcode: str, lineage: str) -> tuple[str, Callable[[], None]]:
        """`{opcode}.{number}.{serial}`, the number being that of the name `lineage`."""
        number = lineage_of(lineage)
        before = self.lineages.get(number)
        serial = (before or 0) + 1
        self.lineages[number] = serial

        def undo() -> None:
            if before is None:
                del self.lineages[number]
            else:
                self.lineages[number] = before

        return f"{opcode}.{number}.{serial}", undo

    def computation(self, base: str) -> tuple[str, Callable[[], None]]:
        """Gives `base` if no computation ever had that name, else `base.1`, `base.2` and so on."""
        before = self._serials.get(base, 0)
        name, serial = base, before
        while name in self._computations:
            serial += 1
            name = f"{base}.{serial}"
        self._serials[base] = serial
        self._computations.add(name)

        def undo() -> None:
            self._serials[base] = before
            self._computations.discard(name)

        return name, undo
