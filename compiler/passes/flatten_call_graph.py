"""Gives each loop and each branch computations of its own.

Runs right after inlining, which copies loops but not their bodies, and once more ahead of scheduling: from there on a
computation that runs as it stands has one place in the order of execution and one set of buffers.
"""

from __future__ import annotations

from compiler.analysis.values import CONTROL
from compiler.ir.editor import Edit, Editor
from compiler.ir.program import Instruction
from compiler.ir.rewrite import Rule
from compiler.passes.base import Option, PassContext

COPY = Rule("copy-called-computation", "a copy of a computation computes the same")


class FlattenCallGraph:
    """See the module's docstring."""

    name = "flatten-call-graph"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Copies every computation that a second `while`, `case`, `if` or `call` would share."""
        taken: set[str] = set()
        stack = [editor.entry]
        while stack:
            computation = stack.pop()
            for name in editor.working(computation).names():
                instruction = editor.get(computation, name)
                if instruction.opcode not in CONTROL:
                    continue
                if taken & set(instruction.called) or len(set(instruction.called)) < len(instruction.called):
                    _own(editor, computation, instruction, taken)
                called = editor.get(computation, name).called
                taken.update(called)
                stack.extend(called)


def _own(editor: Editor, computation: str, instruction: Instruction, taken: set[str]) -> None:
    with editor.rewrite(COPY, computation, instruction.name) as edit:
        mine: list[str] = []
        for callee in instruction.called:
            fresh = callee in taken or callee in mine
            mine.append(copy_computation(editor, edit, callee) if fresh else callee)
        edit.update(instruction.with_called(tuple(mine)))


def copy_computation(editor: Editor, edit: Edit, name: str) -> str:
    """Adds a copy of a computation, and of all that runs inside it as it stands; gives its name."""
    body = editor.computation(name)
    renamed: dict[str, str] = {}
    copies: list[Instruction] = []
    for old in body:
        stem = old.name.split(".")[0] if old.opcode == "parameter" else old.opcode.replace(".", "_")
        renamed[old.name] = edit.fresh_name(stem, old.name)
        called = old.called
        if old.opcode in CONTROL:
            called = tuple(copy_computation(editor, edit, callee) for callee in called)
        operands = tuple(renamed[operand] for operand in old.operands)
        copies.append(
            Instruction(
                renamed[old.name], old.opcode, old.type, operands, old.attributes, called, old.location
            )
        )
    return edit.add_computation(name, copies, renamed[body.root])
