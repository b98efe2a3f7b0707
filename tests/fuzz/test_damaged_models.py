"""Damaged models are told about, whatever the damage: a SourceError or a valid program, in time and memory.

The models: those that come with the product and the frontend's own cases; as HLO text, what the printer makes of them;
as bytecode, the files of `corpus/`, artifacts of the frontend's cases. `XLA_EXPLORE_FUZZ_CORPUS` names a folder of more.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from compiler.frontend import bytecode
from compiler.frontend.errors import SourceError
from compiler.frontend.hlo import parse_hlo
from compiler.frontend.load import load
from compiler.frontend.mlir import parse
from compiler.frontend.parsed import Parsed
from compiler.ir.hlo_text import print_module
from compiler.ir.verifier import VerificationError, verify
from compiler.ops import SEMANTICS
from tests.frontend.mlir import programs
from tests.fuzz.budget import TooSlow, bounded, seconds, seeds
from tests.fuzz.mutations import damaged_bytes, damaged_text

pytestmark = pytest.mark.timeout(0 if seconds() else 120)

LIMIT_SECONDS = 10
LIMIT_BYTES = 1 << 30
_LARGEST = 60_000
_ROOT = Path(__file__).parents[2]


def _given(*suffixes: str) -> list[Path]:
    folder = os.environ.get("XLA_EXPLORE_FUZZ_CORPUS")
    found = [path for path in Path(folder).rglob("*") if path.suffix in suffixes] if folder else []
    return sorted(path for path in found if path.stat().st_size <= _LARGEST)


@cache
def mlir_texts() -> tuple[str, ...]:
    """Texts to damage."""
    files = [path for path in sorted(_ROOT.glob("sample_models/*/*.mlir")) if path.stat().st_size <= _LARGEST]
    own = [
        value for name, value in sorted(vars(programs).items()) if name.isupper() and isinstance(value, str)
    ]
    return (*own, *own, *(path.read_text() for path in (*files, *_given(".mlir"))))


@cache
def hlo_texts() -> tuple[str, ...]:
    """The same programs in XLA's syntax."""
    made = []
    for text in mlir_texts():
        if read(parse, text) == "valid":
            made.append(print_module(parse(text).module))
    return (*made, *(path.read_text() for path in _given(".hlo", ".txt")))


@cache
def artifacts() -> tuple[bytes, ...]:
    """Bytecode to damage."""
    files = [*sorted((Path(__file__).parent / "corpus").glob("*.mlirbc")), *_given(".mlirbc", ".bc")]
    return tuple(path.read_bytes() for path in files)


def read(parser: Callable[[Any, str], Parsed], source: Any) -> str:
    """What became of one model: `valid`, `invalid` or `refused`. Anything else is raised."""
    try:
        parsed = parser(source, "fuzz")
    except SourceError as error:
        assert "\n" not in error.message and str(error)
        # A parser tells of running out of memory as of any mistake; here that is one of its own.
        if isinstance(error.__context__, MemoryError):
            raise error.__context__ from error
        return "refused"
    try:
        verify(parsed.module, SEMANTICS)
    except VerificationError as error:
        assert all(str(problem) for problem in error.problems)
        return "invalid"
    return "valid"


def _fuzz(
    parser: Callable[[Any, str], Parsed],
    sources: tuple[Any, ...],
    damage: Callable[[int, Any], Any],
    short: int,
    folder: Path,
) -> None:
    outcomes = {"valid": 0, "invalid": 0, "refused": 0}
    failures = []
    for seed in seeds(short, 0.15):
        source = damage(seed, sources[seed % len(sources)])
        try:
            with bounded(LIMIT_SECONDS, LIMIT_BYTES):
                outcomes[read(parser, source)] += 1
        except (Exception, TooSlow) as error:
            file = folder / f"damaged_{seed}"
            file.write_bytes(source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass"))
            failures.append(f"seed {seed}: {type(error).__name__}: {str(error)[:200]} ({file})")
            gc.collect()
            if len(failures) >= 20:
                break
    print(f"{sum(outcomes.values())} damaged models: {outcomes}")
    assert not failures, "\n".join(failures)
    assert outcomes["refused"]


def test_mlir_text(tmp_path: Path) -> None:
    _fuzz(parse, mlir_texts(), damaged_text, 250, tmp_path)


def test_hlo_text(tmp_path: Path) -> None:
    _fuzz(parse_hlo, hlo_texts(), damaged_text, 250, tmp_path)


def test_bytecode(tmp_path: Path) -> None:
    _fuzz(bytecode.parse, artifacts(), damaged_bytes, 400, tmp_path)


@pytest.mark.parametrize("seed", range(6))
def test_files(seed: int, tmp_path: Path) -> None:
    """The way of every command: what a file is, its encoding, its text."""
    file = tmp_path / "model.mlir"
    file.write_bytes(damaged_bytes(seed, mlir_texts()[seed].encode()))
    try:
        load(str(file))
    except SourceError as error:
        assert str(error).startswith(str(file))
