"""The console entry: finds the command, gives it its arguments, turns the user's mistakes into one line.

Nothing heavy is imported here: `--help` must answer at once. A command is a module of `views.cli` with
`configure(parser)` and `run(arguments) -> int`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

VERSION = "0.1.0"

COMMANDS: dict[str, str] = {
    "open": "step through a compile interactively (the default)",
    "run": "compile and run; compare with expected outputs, time it",
    "check": "run self-checking programs",
    "verify": "parse and verify only",
    "passes": "the stages: what each changed, and how long it took",
    "diff": "what a stage changed, or the difference of two stages or two models",
    "history": "where an instruction came from and what became of it",
    "decisions": "the decision log, with ids to override",
    "fusion": "every kernel: what is computed together, which edges were considered, and why",
    "memory": "the memory plan, its peak explained",
    "kernels": "the kernels, and each one's loops, LLVM IR or assembly",
    "profile": "where the time goes: kernels by the time they lose, and the decisions behind them",
    "compare": "two compiles side by side: program, plan, kernels, times in turn, numbers",
    "tune": "try alternatives for the worst kernels, and write the overrides that won",
    "graph": "a Graphviz graph of a snapshot or of the pipeline",
    "bisect": "find the stage, rewrite or kernel that makes a result wrong",
    "trace": "save the recording of a compile to one file",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status: 2 for wrong usage or bad input."""
    words = list(sys.argv[1:] if argv is None else argv)
    if (words and words[0] in ("-h", "--help", "help")) or not words:
        print(overview())
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        print(f"xla-explore {VERSION}")
        return 0
    if words[0] not in COMMANDS:
        if words[0].startswith("-"):
            return _complain(f"unknown option {words[0]}; try --help")
        if not os.path.exists(words[0]) and not _looks_like_path(words[0]):
            return _complain(f"{words[0]}: no such file, and no such command; try --help")
        words.insert(0, "open")
    return _dispatch(words[0], words[1:])


def _looks_like_path(word: str) -> bool:
    return os.sep in word or "." in word


def overview() -> str:
    """The text of `--help`."""
    width = max(map(len, COMMANDS))
    lines = [
        "usage: xla-explore MODEL            open a model in the explorer",
        "       xla-explore COMMAND ...      see xla-explore COMMAND --help",
        "",
        "MODEL is StableHLO text, a portable artifact, HLO text or a saved trace; the format is detected.",
        "",
        "commands:",
        *(f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items()),
        "",
        "  -V, --version   print the version",
        "  -h, --help      print this",
    ]
    return "\n".join(lines)


class _Parser(argparse.ArgumentParser):
    """Usage errors in one line, exit status 2."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise SystemExit(_complain(f"{message}; try {self.prog} --help"))


def _dispatch(name: str, words: list[str]) -> int:
    command = import_module(f"views.cli.{name}_command")
    parser = _Parser(prog=f"xla-explore {name}", description=COMMANDS[name], allow_abbrev=False)
    command.configure(parser)
    external: list[str] = []
    if getattr(command, "TAKES_COMMAND", False) and "--" in words:
        cut = words.index("--")
        words, external = words[:cut], words[cut + 1 :]
    parser.set_defaults(external=external)
    try:
        arguments = parser.parse_args(words)
    except SystemExit as stop:
        return int(stop.code or 0)
    return _guarded(command.run, arguments)


def _guarded(run: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    from explorer.session import user_errors

    try:
        status = int(run(arguments))
        sys.stdout.flush()
        return status
    except user_errors() as error:
        return _complain(str(error), prefix=not _has_position(error))
    except BrokenPipeError:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        return _complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except RecursionError:
        return _complain("the program is nested too deeply")
    except MemoryError:
        return _complain("out of memory")


def _has_position(error: BaseException) -> bool:
    return hasattr(error, "line")


def _complain(message: str, prefix: bool = True) -> int:
    from views.highlight import visible

    text = f"xla-explore: {message}" if prefix else message
    print("\n".join(map(visible, text.splitlines())), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
