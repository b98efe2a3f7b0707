"""Removes optimisation barriers once there is nothing left to hold back.

Barriers are kept through all optimising passes; this one stands after them.
"""

from __future__ import annotations

from compiler.analysis.call_graph import reachable
from compiler.ir.editor import Editor
from compiler.ir.rewrite import Rule
from compiler.passes.base import Option, PassContext

EXPAND = Rule("expand-barrier", "optimization_barrier(x) = x")


class OptimizationBarrierExpander:
    """Replaces each barrier by what it held."""

    name = "optimization-barrier-expander"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Removes the barriers of every computation."""
        for computation in reachable(editor):
            for instruction in editor.computation(computation):
                if instruction.opcode != "optimization_barrier":
                    continue
                with editor.rewrite(EXPAND, computation, instruction.name) as edit:
                    held = editor.get(computation, instruction.name).operands
                    edit.replace(instruction.name, held[0] if len(held) == 1 else edit.add("tuple", held))
