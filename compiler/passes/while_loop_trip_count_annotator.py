"""Notes how often a loop runs, for whoever schedules, estimates or unrolls (`known_trip_count`)."""

from __future__ import annotations

from compiler.analysis.call_graph import reachable
from compiler.analysis.loops import loop_at, trip_count
from compiler.ir.editor import Editor
from compiler.ir.rewrite import Rule
from compiler.passes.base import Option, PassContext

COUNT = Rule(
    "known-trip-count", "a counter from a known start by a known step to a known limit tells the trips"
)


class WhileLoopTripCountAnnotator:
    """Writes `known_trip_count` on loops whose counter tells it."""

    name = "while-loop-trip-count-annotator"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Annotates every loop that has no count yet, or another."""
        for computation in reachable(editor):
            for i in [i for i in editor.computation(computation) if i.opcode == "while"]:
                loop = loop_at(editor, computation, i.name)
                trips = trip_count(editor, loop) if loop is not None else None
                if trips is None or i.attributes.get("known_trip_count") == trips:
                    continue
                with editor.rewrite(COUNT, computation, i.name) as edit:
                    edit.note = f"{trips} trips"
                    edit.update(i.with_attributes(i.attributes.having(known_trip_count=trips)))
