"""`tune`: tries alternatives for the worst kernels within a time budget, and writes the overrides that won."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from views.cli.arguments import add_compile, add_inputs, add_json, add_model, entry_arguments, open_session
from views.cli.output import print_json, print_lines, table

if TYPE_CHECKING:
    from explorer.tune import Tuning


def configure(parser: argparse.ArgumentParser) -> None:
    """MODEL, inputs, the budget, and where to write."""
    add_model(parser)
    add_inputs(parser)
    parser.add_argument("--seconds", type=float, default=30.0, metavar="S", help="time to spend (default 30)")
    parser.add_argument(
        "--kind", action="append", default=[], metavar="K", help="decisions of this kind only"
    )
    parser.add_argument("-o", "--output", metavar="F.toml", help="write the overrides that won")
    add_json(parser)
    add_compile(parser)


def run(arguments: argparse.Namespace) -> int:
    """Searches, prints what was tried, and writes the winners; 1 when nothing won."""
    from explorer.profile import measure_limits
    from explorer.tune import Tuner
    from views.cli.arguments import output_path
    from views.highlight import visible

    session = open_session(arguments)
    inputs = entry_arguments(arguments, session)
    target = output_path(arguments.output) if arguments.output else None
    show = sys.stderr.isatty()

    def say(text: str) -> None:
        if show:
            print(f"\r\x1b[K{visible(text)}"[:200], end="", file=sys.stderr, flush=True)

    limits = measure_limits(session.options.threads)
    kinds = frozenset(arguments.kind)
    found = Tuner(session, inputs, limits, arguments.seconds, kinds=kinds, say=say).run()
    if show:
        print("\r\x1b[K", end="", file=sys.stderr)
    if target is not None:
        _save(str(target), found)
    if arguments.json:
        rows = [
            {
                "decision": t.decision,
                "choice": t.choice,
                "kernel": t.kernel,
                "ratio": t.ratio,
                "won": t.won,
                "remark": t.remark,
            }
            for t in found.trials
        ]
        print_json("tune", trials=rows, overrides=found.overrides, ratio=found.ratio)
    else:
        print_lines(_lines(found))
    return 0 if any(trial.won for trial in found.trials) else 1


def _save(path: str, found: Tuning) -> None:
    from compiler.decisions.overrides import Override, Overrides, save_overrides

    won = {trial.decision: trial.ratio for trial in found.trials if trial.won}
    entries = tuple(
        Override(
            decision, choice, f"measured {won[decision]:.3f} of the time before" if decision in won else ""
        )
        for decision, choice in found.overrides.items()
    )
    save_overrides(path, Overrides({}, entries))


def _lines(found: Tuning) -> list[str]:
    rows = [
        (
            "won" if trial.won else "",
            "-" if trial.ratio is None else f"{trial.ratio:.3f}",
            trial.choice,
            trial.decision + (f"  {trial.remark}" if trial.remark else ""),
        )
        for trial in found.trials
    ]
    lines = table(("", "ratio", "choice", "decision"), rows, right=(1,))
    count = sum(trial.won for trial in found.trials)
    lines.append("")
    lines.append(f"{len(found.trials)} alternatives tried, {count} won; tuned / first: {found.ratio:.3f}")
    return lines
