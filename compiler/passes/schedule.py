"""Scheduling: fixes the order in which each computation runs.

Stands after fusion and layouts, ahead of copy insertion and buffer assignment, which rely on the order. Several orders
are made for each computation, each one's peak of live bytes is simulated, and the choice is a decision. Loop-carried
values are read as early as possible, so that the next value can be made in place.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping

from compiler.analysis.values import ALIASES, leaves
from compiler.decisions.log import Choice, Kind
from compiler.ir.editor import Editor
from compiler.ir.program import Computation, Instruction
from compiler.ir.rewrite import Rule
from compiler.passes.base import Option, PassContext
from compiler.passes.fusion import run_computations

ORDER = Kind("schedule", "The order in which a computation's instructions run", "program-order")
REORDER = Rule("reorder", "any order with operands before users computes the same")

FREE = ALIASES | {"parameter", "constant"}


class Scheduler:
    """See the module's docstring."""

    name = "scheduler"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Orders every computation that runs as it stands, and marks the module as scheduled."""
        for name in run_computations(editor):
            computation = editor.computation(name)
            orders = {label: make(computation) for label, make in ORDERS.items()}
            peaks = {label: peak_bytes(computation, order) for label, order in orders.items()}
            best = min(peaks, key=lambda label: peaks[label])
            choices = [Choice(label, float(peak), "bytes") for label, peak in peaks.items()]
            reason = "the lowest peak of live temporaries of the orders tried"
            chosen = context.decider.decide(ORDER, name, choices, best, reason)
            order = orders[chosen]
            if order != list(computation.instructions):
                with editor.rewrite(REORDER, name, computation.root) as edit:
                    edit.reorder(order)
        editor.set_module(is_scheduled=True)


def _bytes(instruction: Instruction) -> int:
    if instruction.opcode in FREE:
        return 0
    return sum(leaf.bytes for _, leaf in leaves(instruction.type))


def _owners(computation: Computation) -> dict[str, tuple[str, ...]]:
    """For each name, the instructions whose buffers it stands for."""
    owners: dict[str, tuple[str, ...]] = {}
    for instruction in computation:
        if instruction.opcode in ALIASES:
            owners[instruction.name] = tuple(
                dict.fromkeys(owner for operand in instruction.operands for owner in owners[operand])
            )
        else:
            owners[instruction.name] = (instruction.name,)
    return owners


def peak_bytes(computation: Computation, order: list[str]) -> int:
    """The largest number of bytes live at once when run in this order; parameters and constants not counted."""
    owners = _owners(computation)
    readers: dict[str, int] = {}
    for step, name in enumerate(order):
        for operand in computation[name].operands:
            for owner in owners[operand]:
                readers[owner] = step
    kept = set(owners[computation.root])
    dying: dict[int, int] = {}
    live = peak = 0
    for step, name in enumerate(order):
        size = _bytes(computation[name])
        live += size
        peak = max(peak, live)
        if name not in kept:
            last = max(readers.get(name, step), step)
            dying[last] = dying.get(last, 0) + size
        live -= dying.pop(step, 0)
    return peak


def program_order(computation: Computation) -> list[str]:
    """As the program stands."""
    return list(computation.instructions)


def depth_first(computation: Computation) -> list[str]:
    """Post-order from the root; the operand with the larger subtree first (after Sethi and Ullman, 1970)."""
    weight: dict[str, int] = {}
    for instruction in computation:
        below = max((weight[operand] for operand in instruction.operands), default=0)
        weight[instruction.name] = max(below, _bytes(instruction))
    order: dict[str, None] = dict.fromkeys(computation.parameters)
    starts = [computation.root, *reversed(list(computation.instructions))]
    for start in starts:
        stack = [(start, False)]
        while stack:
            name, ready = stack.pop()
            if name in order:
                continue
            if ready:
                order[name] = None
                continue
            stack.append((name, True))
            operands = sorted(set(computation[name].operands), key=lambda o: (weight[o], o))
            stack.extend((operand, False) for operand in operands if operand not in order)
    return list(order)


def list_schedule(computation: Computation) -> list[str]:
    """Greedy: among the ready instructions the one that frees most and makes least; ties in program order."""
    owners = _owners(computation)
    position = {name: index for index, name in enumerate(computation.instructions)}
    waiting: dict[str, int] = {}
    users: dict[str, list[str]] = {}
    uses_left: dict[str, int] = {}
    for instruction in computation:
        operands = set(instruction.operands)
        waiting[instruction.name] = len(operands)
        for operand in operands:
            users.setdefault(operand, []).append(instruction.name)
        for owner in {o for operand in operands for o in owners[operand]}:
            uses_left[owner] = uses_left.get(owner, 0) + 1
    kept = set(owners[computation.root])

    def gain(name: str) -> int:
        instruction = computation[name]
        freed = 0
        for owner in {o for operand in instruction.operands for o in owners[operand]}:
            if uses_left[owner] == 1 and owner not in kept:
                freed += _bytes(computation[owner])
        return _bytes(instruction) - freed

    ready = [(gain(name), position[name], name) for name, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        old_gain, place, name = heapq.heappop(ready)
        present = gain(name)
        if present < old_gain:
            heapq.heappush(ready, (present, place, name))
            continue
        order.append(name)
        for owner in {o for operand in computation[name].operands for o in owners[operand]}:
            uses_left[owner] -= 1
        for user in users.get(name, ()):
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, (gain(user), position[user], user))
    return order


ORDERS: Mapping[str, Callable[[Computation], list[str]]] = {
    "program-order": program_order,
    "depth-first": depth_first,
    "greedy": list_schedule,
}
