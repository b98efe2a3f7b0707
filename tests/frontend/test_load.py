"""Opening files whose format nobody has said."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from compiler.frontend.errors import SourceError
from compiler.frontend.load import BYTECODE, DUMP, HLO, MLIR, TRACE, UNKNOWN, detect, format_of, load
from tests.frontend.mlir import programs


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"module @m {", MLIR),
        (b"// a comment\n\n  func.func @main() {", MLIR),
        (b'#loc = loc("x":1:2)\nmodule {', MLIR),
        (b'"builtin.module"() ({', MLIR),
        (b"HloModule jit_f, entry_computation_layout={()->f32[]}", HLO),
        (b"// comment\nHloModule m", HLO),
        (b"ML\xefR\x0dStableHLO_v1.9.0\0", BYTECODE),
        (b"PK\x03\x04\x14\0", TRACE),
        (b"\x7fELF\x02\x01\x01\0", UNKNOWN),
        (b"hello there", UNKNOWN),
        (b"module\0", UNKNOWN),
        ("module // größe".encode()[:-4], MLIR),
    ],
)
def test_the_first_bytes_tell(head: bytes, expected: str) -> None:
    assert detect(head) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"HloModule m", "the module has no computation"),
        (b"ML\xefR\x0d", "at byte 5: the text that starts here does not end"),
        (b"PK\x03\x04", "is an archive"),
        (b"\0\1\2\3", "is neither StableHLO text"),
        (b"module { \xff }", "is not UTF-8 text from here on"),
    ],
)
def test_each_wrong_file_has_its_line(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "model"
    file.write_bytes(content)
    with pytest.raises(SourceError) as caught:
        load(str(file))
    text = str(caught.value)
    first, *excerpt = text.split("\n")
    assert message in first
    assert len(excerpt) in (0, 2), "the line of the file and a caret, where there is a line to show"
    assert text.startswith(str(file))


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"nothing: error: no such file$"):
        load(str(tmp_path / "nothing"))
    with pytest.raises(SourceError, match=r"is a folder, not a model$"):
        load(str(tmp_path))
    (tmp_path / "module_0000.jit_f.before_optimizations.txt").write_text("HloModule jit_f")
    assert format_of(str(tmp_path)) == DUMP
    with pytest.raises(SourceError, match=r"is a folder of XLA's dumps, not a model$"):
        load(str(tmp_path))


def test_a_hundred_megabytes_of_noise_are_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "noise"
    with file.open("wb") as stream:
        stream.write(os.urandom(1 << 16))
        stream.truncate(100 << 20)
    started = time.perf_counter()
    with pytest.raises(SourceError, match="is neither"):
        load(str(file))
    assert time.perf_counter() - started < 0.5


def test_a_model_is_read_with_its_positions(tmp_path: Path) -> None:
    file = tmp_path / "model.mlir"
    file.write_text(programs.ELEMENTWISE)
    parsed = load(str(file))
    assert parsed.module.instruction_count == 9
    assert parsed.positions["add.6"] == (7, 10)
    assert parsed.filename == str(file)
