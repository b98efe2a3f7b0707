"""`decisions`: the decision log, with the ids to override."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from views.cli.arguments import add_compile, add_json, add_model, is_trace, open_trace, unknown_name
from views.cli.output import plural, print_json, print_lines

if TYPE_CHECKING:
    from compiler.decisions.log import Choice, Decision


def configure(parser: argparse.ArgumentParser) -> None:
    """MODEL, and which decisions."""
    add_model(parser)
    parser.add_argument("--kind", metavar="K", default="", help="only of this kind: fusion, layout, …")
    parser.add_argument("--subject", metavar="GLOB", default="", help="only about subjects like this: *exp*")
    parser.add_argument("--stage", metavar="S", default="", help="only those of this stage")
    parser.add_argument("--overruled", action="store_true", help="only where you chose otherwise")
    add_json(parser)
    add_compile(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints id, choice, alternatives with their estimates, and the reason of each."""
    log = _log(arguments)
    kinds = sorted({decision.kind for decision in log})
    if arguments.kind and arguments.kind not in kinds:
        raise unknown_name("kind of decision here", arguments.kind, kinds)
    found = [decision for decision in log if _matches(decision, arguments)]
    if arguments.json:
        print_json("decisions", model=arguments.model, decisions=[_row(decision) for decision in found])
        return 0
    from views.highlight import visible

    for decision in found:
        print_lines(map(visible, _lines(decision)))
    shown = f" of {len(log):,}" if len(found) != len(log) else ""
    print(f"{plural(len(found), 'decision')}{shown}; kinds: {', '.join(kinds) or 'none'}")
    return 0


def _log(arguments: argparse.Namespace) -> list[Decision]:
    """The log alone where a trace was saved; its programs are not read."""
    if is_trace(arguments.model):
        from explorer.trace_decode import TraceFile

        return TraceFile(arguments.model).decisions()
    return list(open_trace(arguments).decisions)


def _matches(decision: Decision, arguments: argparse.Namespace) -> bool:
    return (
        (not arguments.kind or decision.kind == arguments.kind)
        and (not arguments.stage or decision.stage == arguments.stage)
        and (not arguments.overruled or decision.overruled)
        and (
            not arguments.subject
            or fnmatchcase(decision.subject, arguments.subject)
            or fnmatchcase(decision.id, arguments.subject)
        )
    )


def _lines(decision: Decision) -> list[str]:
    from compiler.ir.location import source_line

    by = "" if decision.by == "policy" else f"  ({decision.by}; the policy says {decision.policy})"
    lines = [decision.id, f"  {decision.chosen}{by}: {decision.reason}"]
    others = [choice for choice in decision.choices if choice.name != decision.chosen]
    for choice in decision.choices:
        if choice.name == decision.chosen and choice.estimate is not None:
            lines.append(f"    chosen   {_choice(choice)}")
    lines += [f"    instead  {_choice(choice)}" for choice in others]
    places = [line for found in decision.locations if (line := source_line(found)) is not None]
    if places:
        lines.append(f"    at       {', '.join(dict.fromkeys(map(str, places)))}")
    return lines


def _choice(choice: Choice) -> str:
    if choice.forbidden:
        return f"{choice.name}: not possible, {choice.forbidden}"
    if choice.estimate is None:
        return choice.name
    return f"{choice.name}: {choice.estimate:,.6g} {choice.unit}".rstrip()


def _row(decision: Decision) -> dict[str, Any]:
    return {
        "id": decision.id,
        "kind": decision.kind,
        "subject": decision.subject,
        "stage": decision.stage,
        "chosen": decision.chosen,
        "policy": decision.policy,
        "by": decision.by,
        "overruled": decision.overruled,
        "reason": decision.reason,
        "choices": [asdict(choice) for choice in decision.choices],
        "evidence": dict(decision.evidence),
        "locations": [str(location) for location in decision.locations],
    }
