"""`memory`: the memory plan, its peak explained, and live bytes over the schedule as a chart."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from views.cli.arguments import (
    add_compile,
    add_json,
    add_model,
    count,
    open_trace,
)
from views.cli.output import plural, print_json, print_lines, size_text, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from explorer.memory import Buffer, MemoryReport

CHART_COLUMNS = 64
CHART_ROWS = 8
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def configure(parser: argparse.ArgumentParser) -> None:
    """MODEL."""
    add_model(parser)
    parser.add_argument(
        "--top", type=count(1), default=15, metavar="N", help="values shown at the peak (default 15)"
    )
    parser.add_argument("--all", action="store_true", help="list every buffer, not only those at the peak")
    add_json(parser)
    add_compile(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints sizes, the peak, what is live there, and the chart."""
    from explorer.memory import memory_report
    from explorer.session import UserError

    trace = open_trace(arguments)
    report = memory_report(trace)
    if report is None:
        raise UserError(f"{arguments.model}: the recording has no memory plan {trace.error}".rstrip())
    if arguments.json:
        print_json("memory", model=trace.model, **asdict(report))
        return 0
    print_lines(_sizes(report))
    print_lines(_peak(report, arguments.top))
    if arguments.all:
        print_lines(["", "every buffer", *_buffer_table(report.buffers, place=True)])
    return 0


def _sizes(report: MemoryReport) -> list[str]:
    bound = report.lower_bound
    over = report.arena_bytes - bound
    fit = "as small as this order allows" if over <= 0 else f"{size_text(over)} above what this order needs"
    total = report.arena_bytes + report.parameter_bytes + report.result_bytes + report.constant_bytes
    rows = [
        ("temporaries", size_text(report.arena_bytes), f"{fit}; placed {report.strategy or 'in order'}"),
        ("parameters", size_text(report.parameter_bytes), "the caller's"),
        ("results", size_text(report.result_bytes), "the caller's"),
        ("constants", size_text(report.constant_bytes), ""),
        ("total", size_text(total), ""),
    ]
    return table(("memory", "size", ""), rows, right=(1,))


def _peak(report: MemoryReport, top: int) -> list[str]:
    if report.peak_step < 0:
        return ["", "no temporaries: nothing is live besides parameters, results and constants"]
    steps = report.steps
    computation, name = steps[report.peak_step] if report.peak_step < len(steps) else ("", "the end")
    where = f"%{name} in {computation}" if computation else name
    lines = [
        "",
        f"peak: {size_text(report.peak_bytes)} at step {report.peak_step} of {len(steps)}, {where}",
        f"live there: {plural(len(report.at_peak), 'value')}, the largest first",
        *_buffer_table(report.at_peak[:top], place=False),
    ]
    rest = report.at_peak[top:]
    if rest:
        lines.append(f"… and {plural(len(rest), 'more value')}, {size_text(sum(b.bytes for b in rest))}")
    return [*lines, "", f"temporaries over the {len(steps)} steps", *_chart(report)]


def _buffer_table(buffers: Sequence[Buffer], place: bool) -> list[str]:
    rows = []
    for buffer in buffers:
        path = "".join(f"[{index}]" for index in buffer.path)
        kind = f"{buffer.kind}+{buffer.offset}" if buffer.kind == "arena" else buffer.kind
        tail = " ".join(part for part in (buffer.source, buffer.note) if part)
        rows.append(
            (
                size_text(buffer.bytes),
                f"{buffer.instruction}{path}",
                f"{buffer.first}-{buffer.last}",
                kind if place else buffer.last_reader,
                tail,
            )
        )
    header = ("size", "value", "live", "place" if place else "last read by", "source")
    return table(header, rows, right=(0,), shrink=1)


def _chart(report: MemoryReport) -> list[str]:
    """Columns of block characters; a column is the most that is live in its share of the steps."""
    live = report.live_bytes
    columns = min(CHART_COLUMNS, len(live))
    heights = [
        max(live[index * len(live) // columns : max((index + 1) * len(live) // columns, 1)])
        for index in range(columns)
    ]
    unit = report.peak_bytes / (CHART_ROWS * 8)
    lines = []
    for row in range(CHART_ROWS - 1, -1, -1):
        cells = [min(8, max(0, round(height / unit) - row * 8)) for height in heights]
        label = size_text(report.peak_bytes * (row + 1) / CHART_ROWS) if row % 2 else ""
        lines.append(f"{label:>9} │{''.join(_EIGHTHS[cell] for cell in cells)}".rstrip())
    last = max(len(live) - 1, 0)
    lines.append(f"{'':>9} └{'─' * columns}")
    marker = report.peak_step * columns // len(live)
    ruler = f"{0:<{max(columns - len(str(last)), 1)}}{last}"
    lines.append(f"{'':>11}{ruler}")
    lines.append(f"{'':>11}{' ' * marker}^ peak")
    return lines
