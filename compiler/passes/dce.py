"""Dead code elimination: removes values that nobody reads, and computations that nobody calls.

Stands after passes that leave such behind. What has side effects stays, and so do parameters: they are signatures.
"""

from __future__ import annotations

from compiler.analysis.call_graph import reachable
from compiler.ir.editor import Editor
from compiler.ir.rewrite import Rule
from compiler.passes.base import Option, PassContext

UNUSED = Rule("unused-value", "a value without effects that nobody reads can go")
UNCALLED = Rule("uncalled-computation", "a computation that the entry never reaches can go")


class DeadCodeElimination:
    """Removes dead instructions (each rewrite takes one with all that it alone kept) and computations."""

    name = "dce"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Removes what is dead in every computation, and unreachable computations."""
        remove_uncalled(editor)
        for computation in editor.computations():
            remove_unused(editor, computation)
        remove_uncalled(editor)


def remove_unused(editor: Editor, computation: str) -> None:
    """Removes the dead instructions of one computation."""
    state = editor.working(computation)
    for name in reversed(state.names()):
        instruction = state.instructions.get(name)
        if instruction is None or name == state.root or instruction.opcode == "parameter":
            continue
        if state.has_users(name) or editor.effectful(instruction):
            continue
        with editor.rewrite(UNUSED, computation, name) as edit:
            edit.sweep(name)


def remove_uncalled(editor: Editor) -> None:
    """Removes the computations that cannot be reached from the entry."""
    needed = reachable(editor)
    for name in reversed(editor.computations()):
        if name not in needed:
            with editor.rewrite(UNCALLED, name, editor.working(name).root) as edit:
                edit.remove_computation(name)
