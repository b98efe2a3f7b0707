"""`profile`: where the time goes, worst kernel first, each with the decisions that shape it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from views.cli.arguments import (
    add_compile,
    add_inputs,
    add_json,
    add_model,
    count,
    entry_arguments,
    open_session,
)
from views.cli.output import duration_text, print_json, print_lines, table

if TYPE_CHECKING:
    from explorer.profile import Line, Profile


def configure(parser: argparse.ArgumentParser) -> None:
    """MODEL, inputs, how often and how much to show."""
    add_model(parser)
    add_inputs(parser)
    parser.add_argument(
        "--repeat", type=count(1), default=5, metavar="N", help="profiled runs; the fastest counts"
    )
    parser.add_argument(
        "--top", type=count(0), default=20, metavar="N", help="kernels to show (0: all; default 20)"
    )
    add_json(parser)
    add_compile(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compiles, runs with clocks, and prints the kernels by the time that they lose."""
    from explorer.profile import measure_limits, profile
    from explorer.session import record

    session = open_session(arguments)
    inputs = entry_arguments(arguments, session)
    recording = record(session)
    assert recording.compilation is not None
    executable = recording.compilation.executable
    try:
        limits = measure_limits(session.options.threads)
        found = profile(recording.trace, executable, inputs, limits, runs=arguments.repeat)
    finally:
        executable.close()
    if arguments.json:
        _print_json(found)
    else:
        print_lines(_lines(found, arguments.top))
    return 0


def _print_json(found: Profile) -> None:
    rows = [_row(line) for line in found.lines]
    limits = {
        "bytes_per_second": found.limits.bytes_per_second,
        "flops_per_second": found.limits.flops_per_second,
    }
    print_json("profile", seconds=found.seconds, in_kernels=found.in_kernels, limits=limits, kernels=rows)


def _row(line: Line) -> dict[str, Any]:
    return {
        "name": line.kernel.name,
        "kind": line.kernel.kind,
        "calls": line.calls,
        "seconds": line.seconds,
        "floor": line.floor,
        "lost": line.lost,
        "bytes_read": line.kernel.bytes_read,
        "bytes_written": line.kernel.bytes_written,
        "flops": line.kernel.flops,
        "decisions": list(line.decisions),
    }


def _lines(found: Profile, top: int) -> list[str]:
    shown = found.lines[:top] if top > 0 else found.lines
    total = found.in_kernels or 1.0
    rows = []
    for line in shown:
        rows.append(
            (
                line.kernel.name,
                line.kernel.kind,
                str(line.calls),
                duration_text(line.seconds),
                f"{line.seconds / total:.0%}",
                duration_text(line.lost),
                f"{line.bytes_per_second / 1e9:.1f}",
                f"{line.flops_per_second / 1e9:.1f}",
                ", ".join(line.decisions[:3]) + ("…" if len(line.decisions) > 3 else ""),
            )
        )
    header = ("kernel", "kind", "calls", "time", "share", "lost", "GB/s", "GFLOP/s", "decisions")
    lines = table(header, rows, right=(2, 3, 4, 5, 6, 7))
    more = len(found.lines) - len(shown)
    if more > 0:
        lines.append(f"… and {more} more kernels (--top 0 shows all)")
    limits = found.limits
    lines.append("")
    lines.append(
        f"one run {duration_text(found.seconds)}, of which {duration_text(found.in_kernels)} in kernels (with clocks)"
    )
    lines.append(
        f"this machine: {limits.bytes_per_second / 1e9:.1f} GB/s, {limits.flops_per_second / 1e9:.0f} GFLOP/s, as measured just now"
    )
    return lines
