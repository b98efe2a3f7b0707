"""Logical buffers: which values share one, and between which steps it is live.

Built from `Values`; buffer assignment joins buffers and places them, the memory report explains them.
"""

from __future__ import annotations

from compiler.analysis.plan import ValueKey
from compiler.analysis.values import ALIASES, Values, leaves
from compiler.ir.program import Computation, Instruction


class Buffer:
    """One logical buffer. Live from step `first` to step `last`, inclusive; `fixed` ones are not the arena's."""

    __slots__ = ("first", "fixed", "last", "size", "values")

    def __init__(self, key: ValueKey, size: int, step: int, fixed: bool) -> None:
        self.values = [key]
        self.size = size
        self.first = step
        self.last = step
        self.fixed = fixed


class Buffers:
    """All logical buffers of a module; a union-find over the leaves that own buffers."""

    def __init__(self, values: Values) -> None:
        self._of: dict[ValueKey, Buffer] = {}
        for computation in values.computations:
            for instruction in computation:
                self._define(values, computation, instruction)
        for computation in values.computations:
            for instruction in computation:
                if instruction.opcode not in ALIASES:
                    self._use(values, computation, instruction)
                if instruction.opcode == "while":
                    self._keep_predicate(values, computation, instruction)
        end = len(values.steps)
        entry = values.module.entry_computation
        for path, _ in leaves(entry.result_type):
            self.of(values.source(entry.name, entry.root, path)).last = end

    def _define(self, values: Values, computation: Computation, instruction: Instruction) -> None:
        if instruction.opcode in ALIASES or instruction.opcode == "call":
            return
        is_entry = computation.name == values.module.entry
        if instruction.opcode == "parameter" and not is_entry:
            return
        step = values.step_of[(computation.name, instruction.name)]
        fixed = instruction.opcode in ("parameter", "constant")
        for path, leaf in leaves(instruction.type):
            key = (computation.name, instruction.name, path)
            if instruction.opcode == "while" and values.source(*key) != key:
                continue
            self._of[key] = Buffer(key, leaf.bytes, step, fixed)

    def _use(self, values: Values, computation: Computation, instruction: Instruction) -> None:
        step = values.step_of[(computation.name, instruction.name)]
        for operand in instruction.operands:
            for path, _ in leaves(computation[operand].type):
                buffer = self._of.get(values.source(computation.name, operand, path))
                if buffer is not None and buffer.last < step:
                    buffer.last = step

    def _keep_predicate(self, values: Values, computation: Computation, loop: Instruction) -> None:
        """A loop's predicate is read once its whole condition has run."""
        condition = values.module.computations[loop.called[0]]
        buffer = self.find(values.source(condition.name, condition.root, ()))
        if buffer is not None:
            buffer.last = max(buffer.last, values.step_of[(computation.name, loop.name)])

    def of(self, key: ValueKey) -> Buffer:
        """The buffer of a leaf that owns one. Raises KeyError for others."""
        return self._of[key]

    def find(self, key: ValueKey) -> Buffer | None:
        """The buffer of a leaf, or None when it owns none."""
        return self._of.get(key)

    def join(self, left: ValueKey, right: ValueKey) -> None:
        """Makes two leaves share one buffer."""
        into, other = self._of[left], self._of[right]
        if into is other:
            return
        if len(into.values) < len(other.values):
            into, other = other, into
        into.values.extend(other.values)
        into.first = min(into.first, other.first)
        into.last = max(into.last, other.last)
        into.size = max(into.size, other.size)
        into.fixed = into.fixed or other.fixed
        for key in other.values:
            self._of[key] = into

    def all(self) -> list[Buffer]:
        """Every buffer once, by first step."""
        unique = {id(buffer): buffer for buffer in self._of.values()}
        return sorted(unique.values(), key=lambda buffer: buffer.first)
