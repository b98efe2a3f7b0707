"""Arguments that many commands share, and what they turn into: sessions, arrays, restraints.

Each command's `configure` picks what it needs; its `run` calls `open_session` and friends.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.options import CompileOptions
from explorer.session import Session, UserError

if TYPE_CHECKING:
    import numpy as np

    from compiler.plugins import Registry


def add_model(parser: argparse.ArgumentParser) -> None:
    """MODEL."""
    parser.add_argument("model", metavar="MODEL", help="StableHLO text, or a saved trace")


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def add_compile(parser: argparse.ArgumentParser) -> None:
    """Everything that shapes a compile."""
    group = parser.add_argument_group("compiling")
    group.add_argument("--backend", default="cpu", help="cpu (default), interpreter, or a plugin's")
    group.add_argument("--overrides", metavar="FILE", help="a TOML file of choices and options")
    group.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="set an option of the compiler"
    )
    group.add_argument(
        "--plugin", action="append", default=[], metavar="FILE.py", help="load passes, backends, custom calls"
    )
    group.add_argument("--fp", choices=("exact", "fast"), default="exact", help="fast: values may change")
    group.add_argument("--threads", type=int, default=0, metavar="N", help="threads to run on (0: all)")
    group.add_argument("--verify-each", action="store_true", help="verify the program after every stage")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Where arguments come from."""
    group = parser.add_argument_group("inputs")
    group.add_argument("--inputs", metavar="F.npz", help="arrays arg0, arg1, … (or a folder of argN.npy)")
    group.add_argument(
        "--seed", type=int, default=0, metavar="N", help="random inputs of this seed (default 0)"
    )


def compile_options(arguments: argparse.Namespace) -> CompileOptions:
    """The options of a compile from parsed arguments.

    Raises:
        UserError: for a malformed `--option`.
    """
    from compiler.decisions.overrides import load_overrides

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
    """Reads the model and takes the compile's options."""
    from compiler.frontend.load import load

    return Session(arguments.model, load(arguments.model), compile_options(arguments))


def registry_of(arguments: argparse.Namespace) -> Registry:
    """The plugins named on the command line, loaded."""
    from compiler.plugins import load_plugins

    return load_plugins(arguments.plugin)


def output_path(text: str) -> Path:
    """A path to write to, whose folder must exist.

    Raises:
        UserError: when it does not.
    """
    path = Path(text)
    if not path.parent.is_dir():
        raise UserError(f"{text}: the folder {path.parent} does not exist")
    return path


def entry_arguments(arguments: argparse.Namespace, session: Session) -> list[np.ndarray[Any, Any]]:
    """The arrays to run on: from `--inputs`, or random ones that suit the types.

    Raises:
        UserError: when a file does not fit the model.
    """
    from compiler.random_inputs import random_arguments

    from explorer.arrays import load_arrays

    entry = session.parsed.module.entry_computation
    if arguments.inputs:
        return load_arrays(arguments.inputs, "arg", entry.parameter_types)
    return random_arguments(entry.parameter_types, arguments.seed)
