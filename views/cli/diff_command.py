"""`diff`: what a stage changed, or several, or the difference of two models, instruction by instruction."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from views.cli.arguments import add_compile, add_json, add_model, find_stage, open_trace, unknown_name
from views.cli.output import colours, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from compiler.ir.program import Computation, Instruction, Module
    from explorer.diff import ComputationDiff, DiffLine, ModuleDiff
    from explorer.trace import Trace
    from views.tui.rows import Row


def configure(parser: argparse.ArgumentParser) -> None:
    """MODEL or two, which stages, how much of them."""
    add_model(parser)
    parser.add_argument("other", metavar="OTHER", nargs="?", default="", help="a second model or trace")
    parser.add_argument(
        "--stage",
        metavar="A[..B]",
        default="",
        help="a stage, or from the program before A to the one after B; by id or number (default: the whole compile)",
    )
    parser.add_argument("--function", metavar="F", default="", help="only this computation")
    parser.add_argument("--all", action="store_true", help="also the unchanged lines")
    add_json(parser)
    add_compile(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints the difference; added lines are marked +, removed ones -, a changed one is shown as both."""
    from explorer.diff import diff_modules

    before, after, title = _programs(arguments)
    function = arguments.function
    if function and function not in before.computations and function not in after.computations:
        raise unknown_name("computation", function, [*after.computations, *before.computations])
    diff = diff_modules(before, after, function)
    if arguments.json:
        _print_json(diff, title)
    else:
        _print_rows(diff, title, arguments.all)
    return 0


def _programs(arguments: argparse.Namespace) -> tuple[Module, Module, str]:
    trace = open_trace(arguments) if arguments.stage or not arguments.other else None
    if not arguments.other:
        assert trace is not None
        return _range(trace, arguments.stage)
    title = f"{arguments.model} -> {arguments.other}"
    if not arguments.stage:
        return _as_read(arguments.model), _as_read(arguments.other), title
    other = open_trace(arguments, path=arguments.other)
    assert trace is not None
    sides = find_stage(trace, arguments.stage).after, find_stage(other, arguments.stage).after
    return *sides, f"{title}, after {arguments.stage}"


def _as_read(path: str) -> Module:
    from explorer.verification import load_valid
    from views.cli.arguments import is_trace

    if is_trace(path):
        from explorer.trace_decode import load_trace

        return load_trace(path).input
    return load_valid(path).module


def _range(trace: Trace, text: str) -> tuple[Module, Module, str]:
    """The programs before and after some stages."""
    if not text:
        return trace.input, trace.final, f"{trace.model}: as read -> after all stages"
    first, dots, last = text.partition("..")
    if not dots:
        stage = find_stage(trace, first)
        return stage.before, stage.after, f"{trace.model}: stage {stage.index} {stage.id}"
    before = find_stage(trace, first).before if first else trace.input
    after = find_stage(trace, last).after if last else trace.final
    return before, after, f"{trace.model}: {first or 'as read'} .. {last or 'the end'}"


def _print_rows(diff: ModuleDiff, title: str, everything: bool) -> None:
    from views.cli.output import console
    from views.highlight import visible
    from views.tui.rows import rows_of_diff

    added, removed, changed = diff.counts
    target = console() if colours() else None
    print(visible(f"{title}: +{added} -{removed} ~{changed}"))
    for row in rows_of_diff(diff, everything=everything):
        _print_row(row, target)


def _print_row(row: Row, target: Console | None) -> None:
    from views.highlight import visible
    from views.tui.rows import differing_spans, row_text

    text = row_text(row)
    if row.kind == "h":
        print()
    lead = "" if row.kind in "hgn" else f"{row.kind} "
    if target is None:
        print(visible(lead + text))
        return
    from rich.style import Style
    from rich.text import Text

    from views.highlight import MARKS, highlight

    if row.kind in "hgn":
        style = Style(bold=True) if row.kind == "h" else Style(dim=True)
        target.print(Text(visible(text), style))
        return
    line = highlight(lead + text, MARKS.get(row.kind))
    for start, end in differing_spans(row):
        line.stylize(Style(underline=True), start + len(lead), end + len(lead))
    target.print(line)


def _print_json(diff: ModuleDiff, title: str) -> None:
    added, removed, changed = diff.counts
    print_json(
        "diff",
        title=title,
        added=added,
        removed=removed,
        changed=changed,
        computations=[_computation(found) for found in diff.changed],
        unchanged=list(diff.unchanged),
    )


def _computation(found: ComputationDiff) -> dict[str, Any]:
    return {
        "name": found.name,
        "mark": found.kind,
        "result_changed": found.root_changed,
        "reordered": found.reordered,
        "lines": [_line(line, found) for line in found.lines if line.kind != " "],
    }


def _line(line: DiffLine, found: ComputationDiff) -> dict[str, Any]:
    return {
        "mark": line.kind,
        "name": line.name,
        "before": _text(line.before, found.before),
        "after": _text(line.after, found.after),
    }


def _text(instruction: Instruction | None, computation: Computation | None) -> str | None:
    from compiler.ir.hlo_text import format_instruction

    return None if instruction is None else format_instruction(instruction, computation)
