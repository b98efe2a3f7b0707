"""`verify`: parses and verifies files; mistakes with file, line, column, the line itself and a caret."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from views.cli.arguments import add_json
from views.cli.output import print_json

if TYPE_CHECKING:
    from compiler.frontend.errors import SourceError


def configure(parser: argparse.ArgumentParser) -> None:
    """PATH…, and whether to list mistakes."""
    parser.add_argument("paths", metavar="PATH", nargs="+", help="models, or folders of models")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only the last line")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints every mistake and `N valid, N invalid`; 1 when any program is invalid."""
    from explorer.verification import model_files, verify_file
    from views.highlight import visible

    valid = invalid = 0
    mistakes: list[SourceError] = []
    for path in model_files(arguments.paths):
        for program in verify_file(path):
            valid += program.is_valid
            invalid += not program.is_valid
            mistakes += program.mistakes
            if not arguments.json and not arguments.quiet:
                for mistake in program.mistakes:
                    print("\n".join(map(visible, str(mistake).splitlines())))
    if arguments.json:
        rows = [
            {
                "file": m.file,
                "line": m.line,
                "column": m.column,
                "message": m.message,
                "source": m.source_line,
            }
            for m in mistakes
        ]
        print_json("verify", valid=valid, invalid=invalid, errors=rows)
    else:
        print(f"{valid} valid, {invalid} invalid")
    return 1 if invalid else 0
