"""The user's own passes, backends and custom calls, from a Python file named on the command line.

The file defines `register(registry)`. It is the only way in which code of the user's choosing is run, and only when
asked for by `--plugin`.
"""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compiler.backends.base import Backend, Insertion
from compiler.passes.base import Pass


class PluginError(Exception):
    """A plugin cannot be loaded; one line with file and line."""


@dataclass
class Registry:
    """What plugins have added. A plugin's `register` is given one."""

    insertions: list[Insertion] = field(default_factory=list)
    backends: dict[str, Callable[[], Backend]] = field(default_factory=dict)
    custom_calls: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def add_pass(
        self, make: Pass, *, id: str, why: str = "from a plugin", before: str = "", after: str = ""
    ) -> None:
        """Adds a stage next to the one whose id is given (`before` or `after`).

        Raises:
            ValueError: when neither or both places are given.
        """
        if bool(before) == bool(after):
            raise ValueError(f"pass {id}: give exactly one of before= and after=")
        self.insertions.append(Insertion(id, make, why, before, after))

    def add_backend(self, name: str, factory: Callable[[], Backend]) -> None:
        """Adds a backend under a name."""
        self.backends[name] = factory

    def add_custom_call(self, target: str, function: Callable[..., Any]) -> None:
        """Gives a custom call's target a Python function `(evaluation, *operands) -> value`."""
        self.custom_calls[target] = function


def load_plugins(paths: Sequence[str]) -> Registry:
    """Runs each plugin file's `register`.

    Raises:
        PluginError: when a file is missing, fails, or has no `register`.
    """
    registry = Registry()
    for path in paths:
        if not Path(path).is_file():
            raise PluginError(f"{path}: no such plugin file")
        try:
            namespace = runpy.run_path(path, run_name="xla_explore_plugin")
            register = namespace.get("register")
            if not callable(register):
                raise PluginError(f"{path}: defines no function register(registry)")
            register(registry)
        except PluginError:
            raise
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            raise PluginError(f"{_where(error, path)}: {type(error).__name__}: {error}") from error
    return registry


def _where(error: BaseException, path: str) -> str:
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{error.filename}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return f"{path}:{frames[-1].lineno}" if frames else path
