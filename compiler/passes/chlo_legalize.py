"""Replaces CHLO operations that the backend does not compile by StableHLO ones.

The replacement is the operation's own `decompose`. It may contain CHLO operations again (a decomposition in terms of
another), which are looked at in turn.
"""

from __future__ import annotations

from compiler.analysis.call_graph import reachable
from compiler.ir.editor import Editor
from compiler.ir.program import Instruction
from compiler.ir.rewrite import Rule
from compiler.ops import OPERATIONS
from compiler.ops.decompose import EditBuilder
from compiler.passes.base import Option, PassContext

LEGALIZE = Rule("legalize-chlo", "a CHLO operation means its decomposition")


class ChloLegalize:
    """Decomposes CHLO operations everywhere."""

    name = "chlo-legalize-to-stablehlo"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Decomposes until only operations that the backend supports, or that have no decomposition, are left."""
        for computation in reachable(editor):
            _legalize(editor, context, computation)


def _legalize(editor: Editor, context: PassContext, computation: str) -> None:
    state = editor.working(computation)
    waiting = list(reversed(state.names()))
    while waiting:
        instruction = state.instructions.get(waiting.pop())
        if instruction is None or not instruction.opcode.startswith("chlo."):
            continue
        decompose = OPERATIONS[instruction.opcode].decompose
        if decompose is None or context.capabilities.supports(instruction.opcode):
            continue
        with editor.rewrite(LEGALIZE, computation, instruction.name) as edit:
            builder = EditBuilder(editor, edit, instruction)
            result = decompose(builder, *instruction.operands)
            edit.replace(instruction.name, result)
        if edit.committed:
            waiting.extend(_above(state.instructions, result, set(instruction.operands)))


def _above(instructions: dict[str, Instruction], result: str, operands: set[str]) -> list[str]:
    """The CHLO instructions between a result and the operands it was made from."""
    found: list[str] = []
    seen, stack = set(operands), [result]
    while stack:
        name = stack.pop()
        if name in seen:
            continue
        seen.add(name)
        instruction = instructions[name]
        if instruction.opcode.startswith("chlo."):
            found.append(name)
        stack.extend(instruction.operands)
    return found
