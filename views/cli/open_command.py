"""`open`: the interactive explorer."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from views.cli.arguments import add_compile, add_model, open_session

if TYPE_CHECKING:
    from explorer.session import Session
    from explorer.trace import Trace


def configure(parser: argparse.ArgumentParser) -> None:
    """MODEL and the compile's options."""
    add_model(parser)
    add_compile(parser)


def run(arguments: argparse.Namespace) -> int:
    """Runs the explorer until the user leaves."""
    from compiler.frontend.load import DUMP, TRACE, format_of
    from views.tui.app import ExplorerApp

    form = format_of(arguments.model)
    if not sys.stdout.isatty() or not sys.stdin.isatty():
        print(
            "xla-explore: open needs a terminal; `passes`, `diff` and the others print text", file=sys.stderr
        )
        return 2

    def opener() -> Session | Trace:
        if form == TRACE:
            from explorer.trace_decode import load_trace

            return load_trace(arguments.model)
        if form == DUMP:
            from explorer.xla_dump import read_dump

            return read_dump(arguments.model)
        return open_session(arguments)

    app = ExplorerApp(opener, arguments.model, arguments.overrides or "")
    app.run()
    if app.failure:
        print(app.failure, file=sys.stderr)
        return 2
    return 0
