"""Who calls whom, and what calling means: reachability, callers, purity of what an instruction does.

Asked by the passes that inline, clone, merge and drop computations.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler.ir.editor import Editor
from compiler.ir.program import Instruction
from compiler.ops import OPERATIONS
from compiler.ops.record import Trait


def reachable(editor: Editor) -> dict[str, None]:
    """Names of the computations that the entry runs or applies, itself included, callees first."""
    found: dict[str, None] = {}
    stack: list[tuple[str, Iterator[str]]] = [(editor.entry, _callees(editor, editor.entry))]
    entered = {editor.entry}
    while stack:
        name, rest = stack[-1]
        callee = next((callee for callee in rest if callee not in entered), None)
        if callee is None:
            stack.pop()
            found[name] = None
        else:
            entered.add(callee)
            stack.append((callee, _callees(editor, callee)))
    return found


def _callees(editor: Editor, computation: str) -> Iterator[str]:
    instructions = editor.working(computation).instructions.values()
    return iter([callee for instruction in instructions for callee in instruction.called])


def call_sites(editor: Editor) -> dict[str, list[tuple[str, str]]]:
    """For each called computation the (computation, instruction) pairs that call it, once for each mention."""
    sites: dict[str, list[tuple[str, str]]] = {}
    for name in editor.computations():
        for instruction in editor.working(name).instructions.values():
            for callee in instruction.called:
                sites.setdefault(callee, []).append((name, instruction.name))
    return sites


def is_deterministic(editor: Editor, instruction: Instruction) -> bool:
    """False when two executions on equal operands may differ, on its own or through what it calls."""
    record = OPERATIONS.get(instruction.opcode)
    if record is None or Trait.NON_DETERMINISTIC in record.traits:
        return False
    return all(
        is_deterministic(editor, inner)
        for name in instruction.called
        for inner in editor.working(name).instructions.values()
        if inner.opcode not in ("parameter", "constant")
    )


def is_pure(editor: Editor, instruction: Instruction) -> bool:
    """True when an instruction does nothing but yield a value that follows from its operands."""
    return not editor.effectful(instruction) and is_deterministic(editor, instruction)
