"""Runs self-checking programs: `check.expect_*` operations and `custom_call @check.*`, several programs a file.

Headless: `xla-explore check` prints what this returns. A program passes when it runs to its end and none of its checks
fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compiler.frontend.errors import SourceError
from compiler.frontend.mlir import parse, split_programs
from compiler.ir.program import Module

Array = np.ndarray[Any, np.dtype[Any]]
Run = Callable[[Module], Sequence[Array]]
"""Runs a module's entry, which takes no arguments; raises when a check fails or it cannot be run."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What became of one program: the file, the line on which it starts, and why it failed (empty when it passed)."""

    path: str
    line: int
    function: str
    message: str

    @property
    def passed(self) -> bool:
        """True when every check held."""
        return not self.message

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line > 1 else self.path
        return f"{place}: {self.message or 'passed'}"


def run_on_interpreter(module: Module) -> Sequence[Array]:
    """Runs a program by the reference interpreter. Raises EvaluationError, CheckFailed."""
    from compiler.reference import evaluate

    return evaluate(module, ())


def check_file(path: str, run: Run = run_on_interpreter) -> list[CheckResult]:
    """Runs every program of a file.

    A program's entry is its `main`, or each of its public functions without arguments when there is none.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return [CheckResult(path, 1, "", f"cannot be read: {error}")]
    return [
        result
        for offset, program in split_programs(text)
        for result in _check_program(path, offset, program, run)
    ]


def check_paths(paths: Sequence[str], run: Run = run_on_interpreter) -> Iterator[CheckResult]:
    """Runs every program of files and of the `.mlir` files below folders."""
    for path in paths:
        root = Path(path)
        files = sorted(root.rglob("*.mlir")) if root.is_dir() else [root]
        for file in files:
            yield from check_file(str(file), run)


def _check_program(path: str, offset: int, text: str, run: Run) -> Iterator[CheckResult]:
    from compiler.ops.checks import CheckFailed
    from compiler.reference import EvaluationError

    line = offset + 1
    try:
        module = parse(text, path, offset).module
    except SourceError as error:
        yield CheckResult(path, line, "", str(error).splitlines()[0])
        return
    for name in _entries(module):
        chosen = module if name == module.entry else _with_entry(module, name)
        message = ""
        try:
            run(chosen)
        except (CheckFailed, EvaluationError) as error:
            message = str(error) or type(error).__name__
        yield CheckResult(path, line, name, message)


def _entries(module: Module) -> list[str]:
    """The functions to run: `main`, or all that take nothing and that nobody calls."""
    if module.entry == "main":
        return ["main"]
    called = {name for c in module.computations.values() for i in c for name in i.called}
    return [n for n, c in module.computations.items() if not c.parameters and n not in called] or [
        module.entry
    ]


def _with_entry(module: Module, name: str) -> Module:
    from dataclasses import replace

    return replace(module, entry=name, parameter_attributes=(), result_attributes=())
