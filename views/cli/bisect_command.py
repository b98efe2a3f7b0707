"""`bisect`: finds the stage, rewrite or kernel that makes a result wrong."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from views.cli.arguments import (
    add_compile,
    add_inputs,
    add_json,
    add_model,
    count,
    entry_arguments,
    open_session,
    output_path,
    registry_of,
    tolerance,
)
from views.cli.output import plain, print_json, print_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from explorer.bisect import Bisection, Finding, Progress
    from explorer.case import Oracle
    from explorer.session import Session

TAKES_COMMAND = True
"""What stands after `--` is an external judge."""


def configure(parser: argparse.ArgumentParser) -> None:
    """MODEL, inputs, and what tells right from wrong."""
    parser.usage = f"{parser.prog} MODEL [options] [-- COMMAND ...]"
    parser.epilog = (
        "COMMAND judges a run: exit 0 good, 125 cannot tell, other statuses bad. {outputs} and {module} in it "
        "stand for an .npz of the outputs and the program as MLIR text."
    )
    add_model(parser)
    add_inputs(parser)
    oracle = parser.add_mutually_exclusive_group()
    oracle.add_argument("--expect", metavar="F.npz", help="right outputs: out0, out1, …")
    oracle.add_argument(
        "--oracle",
        metavar="WHO",
        default="",
        help="who is right: interpreter (the model as read; default), or another backend",
    )
    parser.add_argument("--rtol", type=tolerance, metavar="X", help="relative tolerance (default 1e-4)")
    parser.add_argument("--atol", type=tolerance, metavar="X", help="absolute, in parts of the largest value")
    parser.add_argument("--state", metavar="FILE", help="keep verdicts here, and go on from them")
    parser.add_argument("--report", metavar="FILE", help="write the finding to a file (JSON when it ends so)")
    parser.add_argument(
        "--repeats", type=count(1), default=3, metavar="N", help="runs of machine code a trial (default 3)"
    )
    add_json(parser)
    add_compile(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints the finding; 0 when something was found, 1 when nothing is wrong."""
    from explorer.bisect import NONE, Bisection, text
    from explorer.case import Case
    from views.highlight import visible

    report = output_path(arguments.report) if arguments.report else None
    session = open_session(arguments)
    inputs = entry_arguments(arguments, session)
    oracle = _oracle(arguments, session, inputs)
    case = Case(session.parsed.module, inputs, oracle, session.path)
    progress = _progress()
    search = Bisection(
        case, session.options, registry_of(arguments), progress, repeats=max(1, arguments.repeats)
    )
    if arguments.state:
        _resume(search, str(output_path(arguments.state)))
    finding = search.run()
    _clear()
    if report is not None:
        from compiler.decisions.overrides import write_atomically

        write_atomically(str(report), _report(search, finding, str(report)))
    if arguments.json:
        print_json("bisect", model=session.path, **_facts(finding))
    else:
        print_lines(map(visible, text(finding).splitlines()))
    return 1 if finding.kind == NONE else 0


def _facts(finding: Finding) -> dict[str, Any]:
    return {key: value for key, value in finding.json().items() if key != "version"}


def _oracle(arguments: argparse.Namespace, session: Session, inputs: Sequence[Any]) -> Oracle:
    from explorer.arrays import load_arrays
    from explorer.case import Command, Expected, Tolerance
    from explorer.session import UserError

    given = {name: getattr(arguments, name) for name in ("rtol", "atol")}
    tolerance = Tolerance(**{name: value for name, value in given.items() if value is not None})
    if arguments.external:
        if arguments.expect or arguments.oracle:
            raise UserError("give one of --expect, --oracle and -- COMMAND")
        return Command(tuple(arguments.external))
    if arguments.expect:
        result = session.parsed.module.entry_computation.result_type
        return Expected(tuple(load_arrays(arguments.expect, "out", [result], widened=True)), tolerance)
    if arguments.oracle in ("", "interpreter"):
        return Expected(_interpreted(arguments, session, inputs), tolerance)
    return Expected(_by_backend(arguments.oracle, session, inputs), tolerance)


def _interpreted(arguments: argparse.Namespace, session: Session, inputs: Sequence[Any]) -> tuple[Any, ...]:
    from compiler.reference import EvaluationError
    from explorer.case import evaluate
    from explorer.session import UserError

    try:
        return tuple(evaluate(session.parsed.module, inputs, registry_of(arguments).custom_calls))
    except EvaluationError as error:
        raise UserError(f"the interpreter cannot run the model: {error}") from error


def _by_backend(backend: str, session: Session, inputs: Sequence[Any]) -> tuple[Any, ...]:
    from dataclasses import replace

    from explorer.session import record

    options = replace(session.options, backend=backend, keep_rewrites=False)
    recording = record(replace(session, options=options))
    assert recording.compilation is not None
    try:
        return tuple(recording.compilation.executable.run(inputs))
    finally:
        recording.compilation.executable.close()


def _progress() -> Progress:
    from explorer.bisect import Progress

    def say(line: str) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{line[:78]}")
            sys.stderr.flush()

    return Progress(say)


def _clear() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _resume(search: Bisection, path: str) -> None:
    """Takes up the verdicts in the state file, and has new ones written to it."""
    from explorer.bisect_state import load_state, question_digest, save_state

    question = question_digest(search.case, search.options)
    known = load_state(path, question)
    if known is None:
        print(f"xla-explore: {path}: is the state of another search; beginning anew", file=sys.stderr)
    search.known.update(known or {})
    search.progress.remember = lambda verdicts: save_state(path, question, verdicts)


def _report(search: Bisection, finding: Finding, path: str) -> str:
    """The finding, and the culprit's program before and after."""
    from explorer.bisect import text

    if path.endswith(".json"):
        document = {"version": 1, "command": "bisect", "model": search.case.path, **_facts(finding)}
        return json.dumps(plain(document), indent=1) + "\n"
    lines = [f"bisection of {search.case.path}", "", text(finding), "", *_culprit(search, finding)]
    lines += ["", "trials", *(f"  {v.result:<8} {key}" for key, v in search.known.items())]
    return "\n".join(lines) + "\n"


def _culprit(search: Bisection, finding: Finding) -> list[str]:
    from views.tui.rows import row_text, rows_of_rewrite

    if search.trace is None or not finding.rewrite:
        return []
    rewrites = search.trace.stage(finding.stage).rewrites
    number = next((n for n, rewrite in enumerate(rewrites) if rewrite.id == finding.rewrite), None)
    if number is None:
        return []
    rows = rows_of_rewrite(rewrites[number], number, len(rewrites))
    return [row_text(row) if row.kind in "hgn" else f"{row.kind} {row_text(row)}" for row in rows]
