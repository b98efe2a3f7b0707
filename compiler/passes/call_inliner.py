"""Inlines the functions that a program calls, so that every later pass sees one flat computation.

First in the pipeline. Only `call` is inlined: computations that loops, branches and reductions use stay theirs.
"""

from __future__ import annotations

from compiler.analysis.call_graph import reachable
from compiler.ir.editor import Editor
from compiler.ir.rewrite import Rule
from compiler.passes.base import Option, PassContext
from compiler.passes.dce import remove_uncalled
from compiler.passes.inlining import inline_call

INLINE = Rule("inline-call", "call(f, x) = f(x)")


class CallInliner:
    """Inlines calls, callees first, so that each body is flat when it is copied; then drops what nobody calls."""

    name = "call-inliner"
    options = (
        Option(
            "inline-limit",
            2_000_000,
            "calls stay calls once inlining has made this many instructions: nested doubling has no other end",
        ),
    )

    def run(self, editor: Editor, context: PassContext) -> None:
        """Inlines every call that the entry reaches."""
        left = int(context.options.get("inline-limit", self.options[0].default))
        for computation in reachable(editor):
            context.check_cancelled()
            state = editor.working(computation)
            for call in [i for i in editor.computation(computation) if i.opcode == "call"]:
                size = len(editor.working(call.called[0]).instructions)
                if call.name not in state.instructions or size > left:
                    continue
                left -= size
                with editor.rewrite(INLINE, computation, call.name) as edit:
                    inline_call(editor, edit)
        remove_uncalled(editor)
