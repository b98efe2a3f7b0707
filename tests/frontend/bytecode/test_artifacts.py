"""Artifacts give the module that the text gives; damaged ones give one line with the byte, and nothing else ever."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.frontend.bytecode import parse
from compiler.frontend.errors import SourceError
from compiler.frontend.load import BYTECODE, detect, load
from compiler.ir.fingerprint import fingerprint_module
from compiler.ir.location import source_line
from tests.frontend.bytecode.artifacts import ARTIFACTS, exported, text_of


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda path: path.stem)
def test_an_artifact_is_the_module_of_its_text(artifact: Path) -> None:
    module = load(str(artifact)).module
    text = load(text_of(artifact)).module
    assert fingerprint_module(module) == fingerprint_module(text)
    assert module.name == text.name
    assert module.parameter_attributes == text.parameter_attributes
    assert [str(i.type) for i in module.entry_computation] == [str(i.type) for i in text.entry_computation]


def test_every_version_that_the_format_changed_with_is_covered() -> None:
    versions = {artifact.read_bytes()[4] >> 1 for artifact in ARTIFACTS}
    assert {3, 6} <= versions


def test_locations_come_with_the_operations() -> None:
    module = load(str(next(path for path in ARTIFACTS if path.stem == "layers.1_9_0"))).module
    convolution = next(i for i in module.entry_computation if i.opcode == "convolution")
    place = source_line(convolution.location)
    assert place is not None
    assert place.line == 8


@pytest.mark.parametrize("artifact", ARTIFACTS[:2], ids=lambda path: path.stem)
def test_the_container_of_jax_export_is_opened(artifact: Path, tmp_path: Path) -> None:
    file = tmp_path / "exported.bin"
    file.write_bytes(exported(artifact.read_bytes()))
    assert detect(file.read_bytes()) == BYTECODE
    assert fingerprint_module(load(str(file)).module) == fingerprint_module(load(str(artifact)).module)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "the container's module is not MLIR bytecode"),
        (b"ML\xefR\x0fnewer\0", "version 7 of MLIR bytecode is newer than can be read (6)"),
        (b"ML\xefR\x0dmade by hand\0", "the section of strings is missing"),
    ],
)
def test_a_container_without_a_module_tells_the_byte(payload: bytes, message: str) -> None:
    with pytest.raises(SourceError, match=r"at byte \d+: ") as caught:
        parse(exported(payload), "model.bin")
    assert message in str(caught.value)


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda path: path.stem)
def test_an_artifact_cut_short_anywhere_is_refused(artifact: Path) -> None:
    data = artifact.read_bytes()
    for length in range(4, len(data), 7):
        with pytest.raises(SourceError, match=r"at byte \d+: "):
            parse(data[:length], "model.mlirbc")


_CONTENTS = [artifact.read_bytes() for artifact in ARTIFACTS]
_CHANGES = st.lists(
    st.tuples(st.integers(5, 1 << 16), st.sampled_from(["flip", "set", "drop", "huge"]), st.integers(0, 255)),
    min_size=1,
    max_size=4,
)


def _damaged(data: bytes, changes: list[tuple[int, str, int]]) -> bytes:
    found = bytearray(data)
    for place, kind, value in changes:
        at = place % len(found)
        if kind == "flip":
            found[at] ^= 1 << (value % 8)
        elif kind == "set":
            found[at] = value
        elif kind == "drop":
            del found[at : at + 1 + value % 8]
        else:
            found[at : at + 9] = b"\0" + b"\xff" * 8
    return bytes(found)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(_CONTENTS), _CHANGES, st.booleans())
def test_a_damaged_artifact_raises_nothing_but_its_error(
    data: bytes, changes: list[tuple[int, str, int]], is_wrapped: bool
) -> None:
    damaged = _damaged(exported(data) if is_wrapped else data, changes)
    tracemalloc.start()
    try:
        parse(damaged, "model.mlirbc")
    except SourceError as error:
        text = str(error)
        assert text.startswith("model.mlirbc: error: at byte ")
        assert "\n" not in text
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 64 << 20
