"""The editor's private, mutable image of one computation: instructions, users, places of new ones, freezing.

Kept apart from the editor so that the book-keeping of users and order is in one place. Nothing but the editor
writes to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import MappingProxyType

from compiler.ir.order import is_topological, topological
from compiler.ir.program import Computation, Instruction


@dataclass(frozen=True, slots=True)
class Change:
    """One step of a rewrite: an instruction before and after, or a change of a computation as a whole.

    `root` is (old, new); `order` is (old, new); a computation added or removed stands in `computation_after` or
    `computation_before`. `anchor` is what a new instruction was put ahead of; None: the root at that time.
    """

    computation: str
    name: str
    before: Instruction | None
    after: Instruction | None
    root: tuple[str, str] | None = None
    order: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    computation_before: Computation | None = None
    computation_after: Computation | None = None
    anchor: str | None = None


class WorkingComputation:
    """See the module's docstring. `instructions` may be read freely; its order is not the program's order."""

    def __init__(self, frozen: Computation) -> None:
        self.name = frozen.name
        self.instructions: dict[str, Instruction] = dict(frozen.instructions)
        self.root = frozen.root
        self.dirty = False
        self._frozen = frozen
        self._order_stale = False
        self._placed: dict[str, list[str]] = {}
        self._users: dict[str, dict[str, None]] | None = None

    # ---- users ---------------------------------------------------------------------------------------------------

    def _user_map(self) -> dict[str, dict[str, None]]:
        if self._users is None:
            users: dict[str, dict[str, None]] = {name: {} for name in self.instructions}
            for instruction in self.instructions.values():
                for operand in instruction.operands:
                    users[operand][instruction.name] = None
            self._users = users
        return self._users

    def users(self, name: str) -> Iterable[str]:
        """Names of the readers of a value."""
        return self._user_map().get(name, {})

    def has_users(self, name: str) -> bool:
        """True when anything reads the value."""
        return bool(self._user_map().get(name))

    # ---- changes -------------------------------------------------------------------------------------------------

    def put(self, name: str, new: Instruction | None, anchor: str | None = None) -> Instruction | None:
        """Stores, replaces or (None) removes an instruction, and returns what was there."""
        old = self.instructions.get(name)
        self._relink(name, old, new)
        if new is None:
            del self.instructions[name]
        else:
            if old is None:
                place = anchor if anchor is not None else self.root
                self._placed.setdefault(place, []).append(name)
            self.instructions[name] = new
        self.dirty = self._order_stale = True
        return old

    def restore(self, name: str, old: Instruction | None, anchor: str | None = None) -> None:
        """Undoes `put`, which was given the same anchor; later changes must have been undone before."""
        self._relink(name, self.instructions.get(name), old)
        if old is None:
            del self.instructions[name]
            placed = self._placed.get(anchor if anchor is not None else self.root)
            if placed and placed[-1] == name:
                placed.pop()
        else:
            self.instructions[name] = old
        self.dirty = self._order_stale = True

    def _relink(self, name: str, old: Instruction | None, new: Instruction | None) -> None:
        users = self._user_map()
        if new is not None and any(operand not in users for operand in new.operands):
            missing = next(operand for operand in new.operands if operand not in users)
            raise KeyError(f"{name} reads {missing}, which is not in {self.name}")
        if old is not None:
            for operand in old.operands:
                users[operand].pop(name, None)
        if new is None:
            users.pop(name, None)
            return
        users.setdefault(name, {})
        for operand in new.operands:
            users[operand][name] = None

    def set_root(self, name: str) -> None:
        """Changes the result."""
        self.root = name
        self.dirty = self._order_stale = True

    def reorder(self, order: list[str]) -> None:
        """Takes a whole new order. Raises ValueError unless it is a permutation with operands before users."""
        if len(order) != len(self.instructions) or set(order) != self.instructions.keys():
            raise ValueError(f"not a permutation of {self.name}'s instructions")
        ordered = {name: self.instructions[name] for name in order}
        if not is_topological(ordered):
            raise ValueError(f"the new order of {self.name} has a user ahead of its operand")
        self._frozen = Computation(self.name, MappingProxyType(ordered), self.root, self._parameters())
        self._placed = {}
        self.dirty, self._order_stale = True, False

    def checkpoint(self) -> Callable[[], None]:
        """Remembers the order; the action given back restores it once all later changes have been undone."""
        frozen, placed, stale, dirty = self._frozen, self._placed, self._order_stale, self.dirty

        def restore() -> None:
            if self._placed is not placed:
                live = self.instructions
                self._placed = {a: [n for n in names if n in live] for a, names in placed.items()}
            self._frozen, self._order_stale, self.dirty = frozen, stale, dirty

        return restore

    # ---- freezing ------------------------------------------------------------------------------------------------

    def freeze(self) -> Computation:
        """The computation as a value, operands before users; the old object when nothing differs."""
        if not self._order_stale:
            return self._frozen
        ordered = self._ordered()
        if not is_topological(ordered):
            ordered = topological(ordered)
        same = self.root == self._frozen.root and len(ordered) == len(self._frozen.instructions)
        if same and all(a is b for a, b in zip(ordered.values(), self._frozen, strict=True)):
            self.dirty = False
        else:
            self._frozen = Computation(self.name, MappingProxyType(ordered), self.root, self._parameters())
        self._placed = {}
        self._order_stale = False
        return self._frozen

    def names(self) -> tuple[str, ...]:
        """Names in program order, operands first, as of now."""
        return tuple(self.freeze().instructions)

    def _parameters(self) -> tuple[str, ...]:
        found = {i.attributes["index"]: i.name for i in self.instructions.values() if i.opcode == "parameter"}
        return tuple(found[index] for index in sorted(found))

    def _ordered(self) -> dict[str, Instruction]:
        ordered: dict[str, Instruction] = {}
        placed, live = self._placed, self.instructions

        def emit(name: str) -> None:
            stack = [(name, False)]
            while stack:
                current, ready = stack.pop()
                if ready or current not in placed:
                    if current in live:
                        ordered[current] = live[current]
                    continue
                stack.append((current, True))
                stack.extend((extra, False) for extra in reversed(placed[current]))

        for name in self._frozen.instructions:
            emit(name)
        if len(ordered) != len(live):
            for name, instruction in live.items():
                ordered.setdefault(name, instruction)
        return ordered
