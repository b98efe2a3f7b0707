"""Why a buffer is not made in the place of one that its instruction reads: the plan's own facts, in words."""

from __future__ import annotations

from compiler.analysis.plan import BufferPlan, Lifetime, ValueKey
from compiler.decisions.log import Decision
from compiler.ir.program import Module
from explorer.memory import Buffer
from explorer.trace import Trace

SHARING_KIND = "in-place"


class Reuse:
    """An index over the plan of one trace."""

    def __init__(self, trace: Trace) -> None:
        assert trace.plan is not None
        self._plan: BufferPlan = trace.plan
        self._module: Module = trace.final
        self._of: dict[ValueKey, Lifetime] = {
            key: life for life in trace.plan.lifetimes for key in life.values
        }
        self._decisions: dict[str, list[Decision]] = {}
        for decision in trace.decisions:
            if decision.kind == SHARING_KIND:
                self._decisions.setdefault(decision.subject, []).append(decision)

    def reasons(self, buffer: Buffer) -> list[str]:
        """What the plan and its decisions say about sharing, the plan's own note first."""
        found = [buffer.note] if buffer.note else []
        suffix = "".join(f".{part}" for part in buffer.path)
        subjects = [f"{buffer.computation}/{buffer.instruction}{suffix}"]
        subjects += [f"{buffer.computation}/{name}" for name in buffer.shared]
        for subject in dict.fromkeys(subjects):
            for decision in self._decisions.get(subject, ()):
                by = "" if decision.by == "policy" else f" ({decision.by})"
                name = subject.partition("/")[2]
                found.append(f"{name}: {decision.chosen}{by}, {decision.reason}")
        if not buffer.shared and buffer.kind in ("arena", "result"):
            found += self._obstacles(buffer)
        return found

    def _obstacles(self, buffer: Buffer) -> list[str]:
        """For each operand of the instruction that makes the buffer, why its place could not be taken over."""
        instruction = self._module.instruction(buffer.computation, buffer.instruction)
        own = self._of.get((buffer.computation, buffer.instruction, buffer.path))
        found = []
        for operand in dict.fromkeys(instruction.operands):
            life = self._of.get((buffer.computation, operand, ()))
            if life is None or own is None or life is own:
                continue
            found.append(f"not over {operand}: {self._obstacle(life, own, buffer.computation)}")
        return found

    def _obstacle(self, life: Lifetime, own: Lifetime, computation: str) -> str:
        if life.slot.kind == "parameter":
            return "it is the caller's"
        if life.slot.kind == "constant":
            return "it is a constant"
        if life.last >= len(self._plan.steps):
            return "it is a result"
        if life.last > own.first:
            return f"{self._plan.steps[life.last][1]} still reads it (step {life.last})"
        if life.slot.size != own.slot.size:
            return f"it has {life.slot.size:,} bytes, this {own.slot.size:,}"
        if any(key[0] != computation for key in life.values):
            return "a loop around this may need it again"
        return "its elements are not read and written one by one in the same order"
