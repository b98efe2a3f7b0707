"""Names in HLO text are unique in a computation; programs here have module-wide names, and their own numbers for fresh ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compiler.frontend.hlo.tree import WrittenComputation


class UniqueNames:
    """Gives each instruction its own name as it stands in the file, or that name with a number if another computation has it."""

    def __init__(self, computations: Iterable[WrittenComputation]) -> None:
        self._written = {made.name for computation in computations for made in computation.instructions}
        self._taken: set[str] = set()
        self._serials: dict[str, int] = {}

    def take(self, name: str) -> str:
        """A name that no other instruction of the module has or will have."""
        if name not in self._taken:
            self._taken.add(name)
            return name
        return self._numbered(name)

    def derive(self, name: str) -> str:
        """A name for an instruction that the file does not have: the given one, unless some instruction there has it."""
        if name not in self._written and name not in self._taken:
            self._taken.add(name)
            return name
        return self._numbered(name)

    def _numbered(self, name: str) -> str:
        serial = self._serials.get(name, 0)
        while True:
            serial += 1
            made = f"{name}.{serial}"
            if made not in self._written and made not in self._taken:
                break
        self._serials[name] = serial
        self._taken.add(made)
        return made

    def lineages(self) -> Mapping[str, int]:
        """For each number, the highest serial that a name ending in `.NUMBER.SERIAL` has, so that fresh names are none of these."""
        found: dict[str, int] = {}
        for name in self._taken:
            words = name.rsplit(".", 2)
            if len(words) == 3 and words[1].isdigit() and words[2].isdigit() and len(words[2]) < 18:
                found[words[1]] = max(found.get(words[1], 0), int(words[2]))
        return found
