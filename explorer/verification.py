"""Parses and verifies files without compiling: what is wrong in them, and where.

Headless: `xla-explore verify` prints what this returns. A file may hold several programs, separated by `// -----`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from compiler.frontend.errors import SourceError
from compiler.frontend.parsed import Parsed
from explorer.session import UserError, read_sources

SUFFIXES = frozenset({".mlir", ".mlirbc", ".bc", ".hlo"})
"""Files looked at in folders."""


@dataclass(frozen=True)
class Verified:
    """One program: the file, the line on which it starts, and its mistakes (none: it is valid)."""

    path: str
    line: int
    mistakes: tuple[SourceError, ...]

    @property
    def is_valid(self) -> bool:
        """True when nothing is wrong with it."""
        return not self.mistakes


def model_files(paths: Sequence[str]) -> list[str]:
    """The files named, and those below folders that are named, sorted.

    Raises:
        UserError: for a path that does not exist, or a folder without a model.
    """
    found: list[str] = []
    for path in paths:
        root = Path(path)
        if root.is_dir():
            below = sorted(
                str(file) for file in root.rglob("*") if file.suffix in SUFFIXES and file.is_file()
            )
            if not below:
                raise UserError(f"{path}: there is no model in this folder")
            found += below
        elif root.exists():
            found.append(path)
        else:
            raise UserError(f"{path}: no such file")
    return list(dict.fromkeys(found))


def verify_file(path: str) -> Iterator[Verified]:
    """Every program of a file."""
    from compiler.frontend.load import MLIR, detect, load, read_head, read_text
    from compiler.frontend.mlir import parse, split_programs

    try:
        if detect(read_head(path)) != MLIR:
            yield Verified(path, 1, tuple(_mistakes(load(path), "")))
            return
        text = read_text(path)
    except SourceError as error:
        yield Verified(path, 1, (error,))
        return
    lines = text.splitlines()
    for offset, program in split_programs(text):
        try:
            parsed = parse(program, path, offset)
        except SourceError as error:
            yield Verified(path, offset + 1, (error,))
        else:
            yield Verified(path, offset + 1, tuple(_mistakes(parsed, lines)))


def load_valid(path: str) -> Parsed:
    """Reads a model that must be valid.

    Raises:
        SourceError: for the first mistake.
    """
    from compiler.frontend.load import load

    parsed = load(path)
    for mistake in _mistakes(parsed, ""):
        if mistake.line and not mistake.source_line:
            text = read_sources(path).get(path, "").split("\n")
            shown = text[mistake.line - 1] if mistake.line <= len(text) else ""
            raise SourceError(mistake.file, mistake.line, mistake.column, mistake.message, shown)
        raise mistake
    return parsed


def _mistakes(parsed: Parsed, lines: Sequence[str]) -> Iterator[SourceError]:
    from compiler.ir.verifier import VerificationError, verify
    from compiler.ops import SEMANTICS

    try:
        verify(parsed.module, SEMANTICS)
    except VerificationError as error:
        for problem in error.problems:
            line, column = parsed.positions.get(problem.instruction, (0, 0))
            shown = lines[line - 1] if 0 < line <= len(lines) else ""
            subject = problem.instruction or problem.computation
            yield SourceError(parsed.filename, line, column, f"{subject}: {problem.message}", shown)
