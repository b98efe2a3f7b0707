"""Replaces composites by their decompositions, unless the backend computes them as they are.

Stands beside the call inliner. A backend says that it takes a composite by supporting `composite.` and its name.
"""

from __future__ import annotations

from compiler.analysis.call_graph import reachable
from compiler.ir.editor import Editor
from compiler.ir.rewrite import Rule
from compiler.passes.base import Option, PassContext
from compiler.passes.dce import remove_uncalled
from compiler.passes.inlining import inline_call

DECOMPOSE = Rule("decompose-composite", "a composite means its decomposition")


class CompositeLowering:
    """Inlines decompositions, callees first."""

    name = "composite-lowering"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Lowers every composite that the backend does not support."""
        for computation in reachable(editor):
            for instruction in editor.computation(computation):
                if instruction.opcode != "composite":
                    continue
                if context.capabilities.supports(f"composite.{instruction.attributes['name']}"):
                    continue
                with editor.rewrite(DECOMPOSE, computation, instruction.name) as edit:
                    inline_call(editor, edit)
        remove_uncalled(editor)
