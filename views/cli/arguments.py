"""Arguments that many commands share, and what they turn into: sessions, traces, arrays.

Each command's `configure` picks what it needs; its `run` calls `open_session`, `open_trace` and friends. Nothing heavy is
imported before they are called: `COMMAND --help` must answer at once.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np

    from compiler.options import CompileOptions
    from compiler.plugins import Registry
    from explorer.session import Recording, Session, UserError
    from explorer.trace import StageRecord, Trace


def count(least: int) -> Callable[[str], int]:
    """The type of an option that takes a whole number of `least` or more."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number") from None
        if number < least:
            raise argparse.ArgumentTypeError(f"{number} is too small; {least} is the least")
        return number

    return parse


def tolerance(text: str) -> float:
    """The type of an option that takes a tolerance: 0 or more, and not NaN, with which nothing would compare."""
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None
    if math.isnan(number) or number < 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no tolerance; it is 0 or more")
    return number


def add_model(parser: argparse.ArgumentParser) -> None:
    """MODEL."""
    parser.add_argument(
        "model", metavar="MODEL", help="StableHLO text, an artifact, HLO text, or a saved trace"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def add_compile(parser: argparse.ArgumentParser) -> None:
    """Everything that shapes a compile."""
    group = parser.add_argument_group("compiling")
    group.add_argument("--backend", default="cpu", help="cpu (default), interpreter, or a plugin's")
    group.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="arg0=2x3",
        help="the shape of an argument whose sizes are dynamic",
    )
    group.add_argument("--overrides", metavar="FILE", help="a TOML file of choices and options")
    group.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="set an option of the compiler"
    )
    group.add_argument(
        "--plugin", action="append", default=[], metavar="FILE.py", help="load passes, backends, custom calls"
    )
    group.add_argument("--fp", choices=("exact", "fast"), default="exact", help="fast: values may change")
    group.add_argument("--threads", type=count(0), default=0, metavar="N", help="threads to run on (0: all)")
    group.add_argument("--verify-each", action="store_true", help="verify the program after every stage")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Where arguments come from."""
    group = parser.add_argument_group("inputs")
    group.add_argument("--inputs", metavar="F.npz", help="arrays arg0, arg1, … (or a folder of argN.npy)")
    group.add_argument(
        "--seed", type=count(0), default=0, metavar="N", help="random inputs of this seed (default 0)"
    )


def compile_options(arguments: argparse.Namespace) -> CompileOptions:
    """The options of a compile from parsed arguments.

    Raises:
        UserError: for a malformed `--option`.
    """
    from compiler.decisions.overrides import load_overrides
    from compiler.options import CompileOptions
    from explorer.session import UserError

    values: dict[str, Any] = {}
    choices: dict[str, str] = {}
    if getattr(arguments, "overrides", None):
        overrides = load_overrides(arguments.overrides)
        values.update(overrides.options)
        choices.update(overrides.choices)
    for text in arguments.option:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise UserError(f"--option {text}: write it as KEY=VALUE")
        values[key] = value
    return CompileOptions(
        arguments.backend,
        values,
        choices,
        tuple(arguments.plugin),
        arguments.fp == "fast",
        arguments.threads,
        arguments.verify_each,
    )


def open_session(arguments: argparse.Namespace) -> Session:
    """Reads the model and takes the compile's options. A saved trace stands for the model that was read for it.

    A model with dynamic sizes is made static for the shapes in `--shape` or those of the arrays in `--inputs`.
    """
    from explorer.session import Session
    from explorer.shapes import with_shapes
    from explorer.verification import load_valid

    if is_trace(arguments.model):
        from compiler.frontend.parsed import Parsed
        from explorer.trace_decode import load_trace

        trace = load_trace(arguments.model)
        parsed = Parsed(trace.input, trace.positions, trace.model)
        session = Session(trace.model, parsed, compile_options(arguments))
    else:
        session = Session(arguments.model, load_valid(arguments.model), compile_options(arguments))
    return with_shapes(session, getattr(arguments, "shape", ()), getattr(arguments, "inputs", None))


def is_trace(path: str) -> bool:
    """True for a saved trace. Raises SourceError when the file cannot be read."""
    from compiler.frontend.load import TRACE, detect, read_head

    return detect(read_head(path)) == TRACE


def open_trace(arguments: argparse.Namespace, *, code: bool = False, path: str = "") -> Trace:
    """The recording to report on: a saved trace or XLA's dump is read, a model is compiled (machine code only with `code`)."""
    from compiler.frontend.load import is_dump

    if is_dump(path or arguments.model):
        from explorer.xla_dump import read_dump

        return read_dump(path or arguments.model)
    if is_trace(path or arguments.model):
        from explorer.trace_decode import load_trace

        return load_trace(path or arguments.model)
    return open_recording(arguments, code=code, path=path).trace


def open_recording(arguments: argparse.Namespace, *, code: bool = True, path: str = "") -> Recording:
    """Compiles a model and records it; tells of overrides that matched nothing."""
    from explorer.session import record

    session = open_session(argparse.Namespace(**{**vars(arguments), "model": path or arguments.model}))
    recording = record(session, code=code)
    warn_unmatched(recording.trace)
    return recording


def warn_unmatched(trace: Trace) -> None:
    """A line on standard error for each override that no decision asked for, with the nearest ids."""
    from compiler.decisions.overrides import nearest
    from views.highlight import visible

    if not trace.unmatched_overrides:
        return
    known = [decision.id for decision in trace.decisions]
    for identity in trace.unmatched_overrides:
        close = nearest(identity, known)
        hint = f"; nearest: {', '.join(close)}" if close else ""
        print(visible(f"xla-explore: override {identity} matched no decision{hint}"), file=sys.stderr)


def unknown_name(kind: str, wanted: str, known: Iterable[str]) -> UserError:
    """The error for a name that does not exist, with those most like it."""
    from difflib import get_close_matches

    from explorer.session import UserError
    from views.highlight import visible

    names = list(dict.fromkeys(known))
    close = get_close_matches(wanted, names, n=3, cutoff=0.4)
    close = close or [name for name in names if wanted and wanted in name][:3]
    hint = f"; did you mean {' or '.join(close)}?" if close else f"; there are {len(names)}"
    if not close and 0 < len(names) <= 30:
        hint = f"; there are {', '.join(names)}"
    return UserError(visible(f"there is no {kind} {wanted!r}{hint}"))


def find_stage(trace: Trace, identity: str) -> StageRecord:
    """A stage of a trace by id or number.

    Raises:
        UserError: with the nearest ids when there is none such.
    """
    try:
        return trace.stage(identity)
    except KeyError:
        raise unknown_name("stage", identity, [stage.id for stage in trace.stages]) from None


def registry_of(arguments: argparse.Namespace) -> Registry:
    """The plugins named on the command line, loaded."""
    from compiler.plugins import load_plugins

    return load_plugins(arguments.plugin)


def output_path(text: str) -> Path:
    """A path to write to, whose folder must exist.

    A finished file takes the place of what is there, which must not befall a device or a pipe; a link is followed.

    Raises:
        UserError: when it cannot be written so.
    """
    from explorer.session import UserError

    path = Path(text)
    if path.is_dir():
        raise UserError(f"{text}: is a folder")
    if not path.parent.is_dir():
        raise UserError(f"{text}: the folder {path.parent} does not exist")
    if path.exists() and not path.is_file():
        raise UserError(f"{text}: is no ordinary file")
    return path.resolve() if path.is_symlink() else path


def entry_arguments(arguments: argparse.Namespace, session: Session) -> list[np.ndarray[Any, Any]]:
    """The arrays to run on: from `--inputs`, or random ones that suit the types.

    Raises:
        UserError: when a file does not fit the model.
    """
    from compiler.random_inputs import random_inputs
    from explorer.arrays import load_arrays
    from explorer.session import UserError

    entry = session.parsed.module.entry_computation
    if arguments.inputs:
        return load_arrays(arguments.inputs, "arg", entry.parameter_types)
    try:
        drawn = random_inputs(entry.parameter_types, arguments.seed)
        # (An argument that holds a size is a leading scalar, so its number is that of its leaf.)
        return [session.sizes.get(index, array) for index, array in enumerate(drawn)]
    except ValueError as error:
        raise UserError(f"{session.path}: {error}") from None
