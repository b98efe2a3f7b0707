"""Gives every loop, branch and call computations of its own.

Passes that change a body for one caller (loop passes, copy insertion, buffer assignment) rely on it. Computations that
are applied to elements (of reductions, sorts, …) may stay shared: nothing is ever changed in them for one user.
"""

from __future__ import annotations

from compiler.analysis.call_graph import reachable
from compiler.ir.editor import Editor
from compiler.ir.rewrite import Rule
from compiler.passes.base import Option, PassContext
from compiler.passes.cloning import clone_computation

CALLERS = frozenset({"while", "if", "case", "call"})
CLONE = Rule("own-computation", "a copy of a computation computes the same")


class FlattenCallGraph:
    """Clones computations of control flow until each has one caller."""

    name = "flatten-call-graph"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Works from the entry down: copies of a caller need copies of what it calls."""
        order = list(reversed(list(reachable(editor))))
        sites: dict[str, list[tuple[str, str]]] = {}
        applied: set[str] = set()
        for computation in order:
            _note_sites(editor, computation, sites, applied)
        for callee in order:
            own = sites.get(callee, [])
            for computation, instruction in own[0 if callee in applied else 1 :]:
                copy = _give_copy(editor, computation, instruction, callee)
                if copy:
                    _note_sites(editor, copy, sites, applied)


def _note_sites(
    editor: Editor, computation: str, sites: dict[str, list[tuple[str, str]]], applied: set[str]
) -> None:
    """Enters what a computation calls: (computation, instruction) of each mention, and what it merely applies."""
    for i in editor.working(computation).instructions.values():
        for callee in i.called:
            if i.opcode in CALLERS:
                sites.setdefault(callee, []).append((computation, i.name))
            else:
                applied.add(callee)


def _give_copy(editor: Editor, computation: str, instruction: str, callee: str) -> str:
    """Lets one instruction call a copy; gives the copy's name, empty when refused."""
    with editor.rewrite(CLONE, computation, instruction) as edit:
        i = editor.get(computation, instruction)
        copy = clone_computation(edit, editor.computation(callee))
        place = max(index for index, name in enumerate(i.called) if name == callee)
        edit.update(i.with_called(tuple(copy if k == place else name for k, name in enumerate(i.called))))
    return copy if edit.committed else ""
