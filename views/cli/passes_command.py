"""`passes`: the stages of a compile, what each did, and how long it took."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from views.cli.arguments import add_compile, add_json, add_model, open_trace
from views.cli.output import duration_text, print_json, print_lines, table

if TYPE_CHECKING:
    from explorer.trace import StageRecord, Trace


def configure(parser: argparse.ArgumentParser) -> None:
    """MODEL."""
    add_model(parser)
    parser.add_argument("--changed", action="store_true", help="only the stages that changed something")
    add_json(parser)
    add_compile(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints the table; a star marks stages that changed the program."""
    trace = open_trace(arguments)
    stages = [stage for stage in trace.stages if stage.changed or not arguments.changed]
    if arguments.json:
        print_json("passes", model=trace.model, error=trace.error, stages=[_row(stage) for stage in stages])
        return 0
    header = ("#", "stage", "", "instructions", "rewrites", "decisions", "time")
    print_lines(table(header, [_cells(stage) for stage in stages], right=(0, 3, 4, 5, 6), shrink=1))
    print_lines(_summary(trace))
    return 0


def _row(stage: StageRecord) -> dict[str, Any]:
    return {
        "number": stage.index,
        "stage": stage.id,
        "pass": stage.pass_name,
        "why": stage.why,
        "changed": stage.changed,
        "skipped": stage.skipped,
        "instructions_before": stage.instructions_before,
        "instructions_after": stage.instructions_after,
        "rewrites": len(stage.rewrites),
        "decisions": len(stage.decisions),
        "refused": stage.refused,
        "seconds": stage.seconds,
    }


def _cells(stage: StageRecord) -> tuple[str, ...]:
    before, after = stage.instructions_before, stage.instructions_after
    counts = f"{before:,} -> {after:,}" if before != after else f"{after:,}"
    return (
        str(stage.index),
        stage.id,
        "*" if stage.changed else "",
        counts,
        f"{len(stage.rewrites):,}" if stage.rewrites else "",
        f"{len(stage.decisions):,}" if stage.decisions else "",
        stage.skipped or duration_text(stage.seconds),
    )


def _summary(trace: Trace) -> list[str]:
    changed = sum(stage.changed for stage in trace.stages)
    seconds = sum(stage.seconds for stage in trace.stages)
    lines = [f"{changed} of {len(trace.stages)} stages changed the program, in {duration_text(seconds)}"]
    if trace.error:
        from views.highlight import visible

        lines.append(visible(f"the compile ended early: {trace.error}"))
    return lines
