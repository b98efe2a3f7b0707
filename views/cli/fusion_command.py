"""`fusion`: every kernel, what was computed together in it, and the edges considered with their reasons."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from views.cli.arguments import add_compile, add_json, add_model, open_trace, unknown_name
from views.cli.output import plural, print_json, print_lines

if TYPE_CHECKING:
    from explorer.fusion_report import Edge, FusionGroup


def configure(parser: argparse.ArgumentParser) -> None:
    """MODEL, one kernel."""
    add_model(parser)
    parser.add_argument("name", metavar="KERNEL", nargs="?", default="", help="one kernel (default: all)")
    add_json(parser)
    add_compile(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints groups and edges."""
    from explorer.fusion_report import fusion_report

    groups = fusion_report(open_trace(arguments))
    if arguments.name:
        wanted = arguments.name.removeprefix("%")
        names = [group.instruction.name for group in groups]
        groups = tuple(group for group in groups if group.instruction.name == wanted)
        if not groups:
            raise unknown_name("kernel", wanted, names)
    if arguments.json:
        print_json("fusion", groups=[_row(group) for group in groups])
    else:
        print_lines(line for group in groups for line in _lines(group))
    return 0


def _row(group: FusionGroup) -> dict[str, Any]:
    return {
        "kernel": group.instruction.name,
        "computation": group.computation,
        "kind": group.kind,
        "members": [member.name for member in group.members],
        "into": [_edge_row(edge) for edge in group.into],
        "onward": [_edge_row(edge) for edge in group.onward],
    }


def _edge_row(edge: Edge) -> dict[str, Any]:
    decision = edge.decision
    return {
        "decision": decision.id,
        "chosen": decision.chosen,
        "by": decision.by,
        "reason": decision.reason,
        "choices": [
            {"name": c.name, "estimate": c.estimate, "unit": c.unit, "forbidden": c.forbidden}
            for c in decision.choices
        ],
    }


def _lines(group: FusionGroup) -> list[str]:
    from views.highlight import visible

    lines = [visible(f"{group.instruction.name}  {group.kind}, {plural(len(group.members), 'instruction')}")]
    names = ", ".join(member.name for member in group.members if member.opcode != "constant")
    lines.append(visible(f"  computes  {names}"))
    for edge in group.into:
        mark = "took in " if edge.fused else "left out"
        lines.append(visible(f"  {mark}  {edge.producer}: {edge.decision.reason}"))
    for edge in group.onward:
        lines.append(visible(f"  not into  {edge.consumer}: {edge.decision.reason}"))
    return [*lines, ""]
