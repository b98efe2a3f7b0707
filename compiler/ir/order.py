"""Orders: instructions with operands before users, computations with callees before callers.

Used by the editor when it freezes a program, and by frontends when they build one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compiler.ir.program import Computation, Instruction


def is_topological(instructions: Mapping[str, Instruction]) -> bool:
    """True when every operand stands before its users."""
    seen: set[str] = set()
    for name, instruction in instructions.items():
        for operand in instruction.operands:
            if operand not in seen:
                return False
        seen.add(name)
    return True


def topological(instructions: dict[str, Instruction]) -> dict[str, Instruction]:
    """A stable topological order: each instruction as early as its place and operands allow.

    Raises:
        ValueError: on a cycle.
    """
    ordered: dict[str, Instruction] = {}
    active: set[str] = set()
    for start in instructions:
        stack = [start]
        while stack:
            name = stack[-1]
            if name in ordered:
                stack.pop()
                continue
            waiting = [o for o in instructions[name].operands if o not in ordered]
            if not waiting:
                ordered[name] = instructions[name]
                active.discard(name)
                stack.pop()
            elif name in active:
                raise ValueError(f"instructions form a cycle through {name}")
            else:
                active.add(name)
                stack.extend(reversed(waiting))
    return ordered


def callees_first(computations: dict[str, Computation], entry: str) -> dict[str, Computation]:
    """Orders computations so that each stands after those it calls; keeps uncalled ones, ahead of the entry."""
    ordered: dict[str, Computation] = {}

    def visit(start: str) -> None:
        stack: list[tuple[str, Iterator[str]]] = [(start, iter(_callees(computations[start])))]
        active = {start}
        while stack:
            name, rest = stack[-1]
            for callee in rest:
                if callee not in ordered and callee not in active and callee in computations:
                    active.add(callee)
                    stack.append((callee, iter(_callees(computations[callee]))))
                    break
            else:
                stack.pop()
                ordered[name] = computations[name]

    for name in computations:
        if name != entry and name not in ordered:
            visit(name)
    if entry not in ordered:
        visit(entry)
    return ordered


def _callees(computation: Computation) -> list[str]:
    return [name for instruction in computation for name in instruction.called]
