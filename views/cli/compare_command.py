"""`compare`: two compiles of one model (or of two versions of it) side by side: program, plan, kernels, time, numbers."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
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
from views.cli.output import duration_text, print_json, print_lines, size_text, table

if TYPE_CHECKING:
    from explorer.arrays import Difference
    from explorer.compare import Comparison
    from explorer.session import Recording

MOST_DECISIONS = 20


@dataclass(frozen=True)
class _Times:
    """Fastest run of each side, in seconds, and the middle one of the pairwise ratios (after / before)."""

    before: float
    after: float
    ratio: float


def configure(parser: argparse.ArgumentParser) -> None:
    """MODEL, perhaps a second one, override files of both sides."""
    add_model(parser)
    parser.add_argument("other", metavar="MODEL2", nargs="?", default="", help="another version of the model")
    add_inputs(parser)
    parser.add_argument(
        "--repeat", type=count(1), default=30, metavar="N", help="pairs of runs, in turn (default 30)"
    )
    add_json(parser)
    add_compile(parser)
    parser.add_argument("--with", dest="other_overrides", metavar="FILE", help="overrides of the second side")


def run(arguments: argparse.Namespace) -> int:
    """Compiles both sides, runs them in turn on the same inputs, and prints what differs."""
    from explorer.compare import compare_traces
    from explorer.session import UserError, record

    second = argparse.Namespace(**vars(arguments))
    second.model = arguments.other or arguments.model
    second.overrides = arguments.other_overrides or arguments.overrides
    if not arguments.other_overrides and not arguments.other:
        arguments.overrides = None
        if not second.overrides:
            raise UserError(
                "compare needs something to compare with: MODEL2, --overrides FILE, or --with FILE"
            )
    sessions = [open_session(side) for side in (arguments, second)]
    inputs = entry_arguments(arguments, sessions[0])
    sides = [record(session) for session in sessions]
    comparison = compare_traces(sides[0].trace, sides[1].trace)
    try:
        times, differences = _run_both(sides, inputs, arguments.repeat)
    finally:
        for side in sides:
            if side.compilation is not None:
                side.compilation.executable.close()
    if arguments.json:
        _print_json(comparison, times, differences)
    else:
        print_lines(_lines(comparison, times, differences))
    return 0


def _run_both(sides: list[Recording], inputs: list[Any], repeat: int) -> tuple[_Times, list[Difference]]:
    """Runs the two sides in turn, A B A B, so that both see the same machine."""
    from statistics import median

    from explorer.arrays import compare

    programs = [side.compilation.executable for side in sides if side.compilation is not None]
    outputs = [program.run(inputs) for program in programs]
    taken: list[list[float]] = [[], []]
    for _ in range(repeat):
        for index, program in enumerate(programs):
            started = time.perf_counter()
            program.run(inputs)
            taken[index].append(time.perf_counter() - started)
    ratios = [after / before for before, after in zip(*taken, strict=True)]
    pairs = zip(outputs[0], outputs[1], strict=False)
    differences = [compare(i, got, wanted, 0.0, 0.0) for i, (wanted, got) in enumerate(pairs)]
    return _Times(min(taken[0]), min(taken[1]), median(ratios)), differences


def _print_json(found: Comparison, times: _Times, differences: list[Difference]) -> None:
    from dataclasses import asdict

    print_json(
        "compare",
        figures=[
            {"name": f.name, "before": f.before, "after": f.after, "unit": f.unit} for f in found.figures
        ],
        decisions=[
            {
                "id": change.id,
                "before": change.before.chosen if change.before else None,
                "after": change.after.chosen if change.after else None,
                "by": change.after.by if change.after else None,
            }
            for change in found.decisions
        ],
        seconds={"before": times.before, "after": times.after, "median_ratio": times.ratio},
        outputs=[asdict(difference) for difference in differences],
        unmatched=[{"override": name, "nearest": list(close)} for name, close in found.unmatched],
    )


def _number(value: int | None, unit: str) -> str:
    if value is None:
        return "-"
    return size_text(value) if unit == "bytes" else f"{value:,}"


def _lines(found: Comparison, times: _Times, differences: list[Difference]) -> list[str]:
    from views.highlight import visible

    rows = [(f.name, _number(f.before, f.unit), _number(f.after, f.unit)) for f in found.figures]
    rows.append(("fastest run", duration_text(times.before), duration_text(times.after)))
    lines = table(("", "before", "after"), rows, right=(1, 2))
    lines += ["", f"time after / before, middle of the pairs: {times.ratio:.3f}"]
    apart = [d for d in differences if not d.equal]
    if apart:
        worst = max(apart, key=lambda d: d.largest_absolute)
        lines.append(
            f"{len(apart)} of {len(differences)} outputs differ, at most by {worst.largest_absolute:.3g} ({worst.largest_ulp:.3g} ULP)"
        )
    else:
        lines.append(f"all {len(differences)} outputs are equal to the bit")
    changes = found.decisions[:MOST_DECISIONS]
    if changes:
        lines += ["", "decisions that differ"]
    for change in changes:
        before = change.before.chosen if change.before else "(not asked)"
        after = change.after.chosen if change.after else "(not asked)"
        by = f"  ({change.after.by})" if change.after and change.after.by != "policy" else ""
        lines.append(visible(f"  {change.id}: {before} -> {after}{by}"))
    if len(found.decisions) > len(changes):
        lines.append(f"  … and {len(found.decisions) - len(changes)} more")
    return lines
