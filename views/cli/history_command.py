"""`history`: where an instruction came from and what became of it, rewrite by rewrite."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from views.cli.arguments import add_compile, add_json, add_model, open_trace, unknown_name
from views.cli.output import print_json, print_lines

if TYPE_CHECKING:
    from compiler.ir.program import Instruction
    from explorer.provenance import Ancestor, Event, Provenance
    from explorer.trace import Trace


def configure(parser: argparse.ArgumentParser) -> None:
    """MODEL and a name."""
    add_model(parser)
    parser.add_argument("instruction", metavar="INSTRUCTION", help="a name, as in the program of any stage")
    add_json(parser)
    add_compile(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints the ancestors down to the lines of the model, and all later events."""
    from explorer.provenance import Provenance

    trace = open_trace(arguments)
    provenance = Provenance(trace)
    name = arguments.instruction.removeprefix("%")
    if not provenance.knows(name):
        raise unknown_name("instruction", name, _all_names(trace))
    ancestors = provenance.ancestors(name)
    events = list(provenance.descendants(name))
    if arguments.json:
        _print_json(trace, name, ancestors, events)
    else:
        print_lines(_lines(trace, provenance, name, ancestors, events))
    return 0


def _all_names(trace: Trace) -> list[str]:
    names = [i.name for c in trace.final.computations.values() for i in c]
    names += [i.name for c in trace.input.computations.values() for i in c]
    made = (name for stage in trace.stages for rewrite in stage.rewrites for name in rewrite.made)
    return list(dict.fromkeys([*names, *made]))


def _lines(
    trace: Trace, provenance: Provenance, name: str, ancestors: list[Ancestor], events: list[Event]
) -> list[str]:
    from views.highlight import visible

    lines = [name]
    place = _place(trace, name)
    if place:
        lines.append(f"  {place}")
    lines += ["", "came from"]
    for ancestor in ancestors:
        lines += _ancestor_lines(trace, ancestor)
    lines += ["", "became"]
    later = [event for event in events if not (event.name == name and event.kind == "made")]
    for event in later:
        lines += _event_lines(event)
    if not later:
        lines.append("  nothing happened to it any more")
    return [visible(line) for line in lines]


def _place(trace: Trace, name: str) -> str:
    """Where the program before or after all stages has it."""
    found = trace.final.find(name)
    if found:
        return f"in {found[0].name} of the final program"
    found = trace.input.find(name)
    return f"in {found[0].name} as read; not in the final program" if found else "not in the final program"


def _ancestor_lines(trace: Trace, ancestor: Ancestor) -> list[str]:
    lead = "  " * (min(ancestor.depth, 12) + 1)
    lines = [f"{lead}{_text(ancestor.instruction) or ancestor.name}"]
    if ancestor.event is None:
        return [*lines, f"{lead}  read from {_source(trace, ancestor.name, ancestor.instruction)}"]
    rewrite = ancestor.event.rewrite
    stage = ancestor.event.stage
    return [
        *lines,
        f"{lead}  made by stage {stage.index} {stage.id}, rule {rewrite.rule.id}: {rewrite.rule.law}",
        *([f"{lead}  {rewrite.note}"] if rewrite.note else []),
    ]


def _source(trace: Trace, name: str, instruction: Instruction | None) -> str:
    """The model's line, and the user's own line where the model tells it."""
    from compiler.ir.location import source_line

    line = source_line(instruction.location) if instruction is not None else None
    where = trace.model
    if name in trace.positions:
        where += ":{}:{}".format(*trace.positions[name])
    return f"{where} ({line})" if line is not None and str(line) != where else where


def _event_lines(event: Event) -> list[str]:
    rewrite, stage = event.rewrite, event.stage
    lines = [f"  {event.name} {event.kind} by stage {stage.index} {stage.id}, rule {rewrite.rule.id}"]
    lines.append(f"    law: {rewrite.rule.law}")
    if event.kind == "removed" and rewrite.made:
        lines.append(f"    made instead: {', '.join(rewrite.made)}")
    elif event.kind == "removed":
        lines += [f"    its users read {other} instead" for other in _replacements(event)]
    elif event.after is not None:
        lines += [f"    - {_text(event.before)}"] * (event.before is not None) + [
            f"    + {_text(event.after)}"
        ]
    return lines


def _replacements(event: Event) -> list[str]:
    """What users of a removed value read after the rewrite."""
    found: dict[str, None] = {}
    for change in event.rewrite.changes:
        if change.before is not None and change.after is not None:
            pairs = zip(change.before.operands, change.after.operands, strict=False)
            found.update({new: None for old, new in pairs if old == event.name and new != old})
        if change.root is not None and change.root[0] == event.name:
            found[change.root[1]] = None
    return list(found)


def _text(instruction: Instruction | None) -> str:
    from compiler.ir.hlo_text import format_instruction

    return "" if instruction is None else format_instruction(instruction, layout=False)


def _print_json(trace: Trace, name: str, ancestors: list[Ancestor], events: list[Event]) -> None:
    print_json(
        "history",
        model=trace.model,
        instruction=name,
        in_final=trace.final.find(name) is not None,
        ancestors=[
            {
                "name": ancestor.name,
                "depth": ancestor.depth,
                "parents": list(ancestor.parents),
                "text": _text(ancestor.instruction),
                "source": _source(trace, ancestor.name, ancestor.instruction) if not ancestor.event else None,
                "made_by": _event(ancestor.event) if ancestor.event else None,
            }
            for ancestor in ancestors
        ],
        events=[_event(event) for event in events],
    )


def _event(event: Event) -> dict[str, Any]:
    return {
        "kind": event.kind,
        "name": event.name,
        "stage": event.stage.id,
        "rewrite": event.rewrite.id,
        "rule": event.rewrite.rule.id,
        "law": event.rewrite.rule.law,
        "note": event.rewrite.note,
        "before": _text(event.before) or None,
        "after": _text(event.after) or None,
        "made": list(event.rewrite.made),
        "removed": list(event.rewrite.removed),
        "replaced_by": _replacements(event) if event.kind == "removed" else [],
    }
