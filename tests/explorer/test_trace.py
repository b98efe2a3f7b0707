"""Saved traces: what comes back equals what went in, sharing included, and damaged files are told in one line."""

from __future__ import annotations

import dataclasses
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler.backends.base import KernelTime
from compiler.decisions.log import Choice, Decision
from compiler.frontend.load import load
from compiler.ir.literal import Literal
from compiler.ir.location import CallSite, FileLocation, FusedLocation, NameLocation
from compiler.ir.program import Attributes, Computation, Instruction, Module, make_computation
from compiler.ir.types import TOKEN, Layout, QuantizedType, TensorType, TupleType, element
from compiler.options import CompileOptions
from explorer.session import Session, UserError, record
from explorer.trace import StageRecord, Trace
from explorer.trace_decode import TraceFile, load_trace
from explorer.trace_encode import save_trace

SAMPLES = Path(__file__).resolve().parents[2] / "sample_models"


def equal(left: Any, right: Any) -> bool:
    """Deep equality of records; programs compare by identity on their own, so their parts are compared."""
    if isinstance(left, Module):
        return isinstance(right, Module) and all(
            equal(getattr(left, f.name), getattr(right, f.name)) for f in dataclasses.fields(left)
        )
    if isinstance(left, Computation):
        return (
            isinstance(right, Computation)
            and (left.name, left.root, left.parameters) == (right.name, right.root, right.parameters)
            and list(left.instructions) == list(right.instructions)
            and all(equal(a, b) for a, b in zip(left, right, strict=True))
        )
    if dataclasses.is_dataclass(left) and not isinstance(left, Instruction | Literal):
        return type(left) is type(right) and all(
            equal(getattr(left, f.name), getattr(right, f.name)) for f in dataclasses.fields(left)
        )
    if isinstance(left, tuple | list):
        return len(left) == len(right) and all(equal(a, b) for a, b in zip(left, right, strict=True))
    if hasattr(left, "keys") and not isinstance(left, Attributes):
        return list(left) == list(right) and all(equal(left[key], right[key]) for key in left)
    return bool(left == right)


def recorded(name: str) -> Trace:
    path = str(SAMPLES / name / "model.mlir")
    recording = record(Session(path, load(path), CompileOptions()))
    assert recording.compilation is not None
    recording.compilation.executable.close()
    return recording.trace


def there_and_back(trace: Trace, folder: Path) -> Trace:
    path = str(folder / "saved.xtrace")
    save_trace(trace, path)
    return load_trace(path)


@pytest.mark.parametrize("name", ["mlp", "while_newton", "moe_router", "train_step"])
def test_a_recording_comes_back_equal(name: str, tmp_path: Path) -> None:
    trace = recorded(name)
    back = there_and_back(trace, tmp_path)
    for field in dataclasses.fields(Trace):
        assert equal(getattr(trace, field.name), getattr(back, field.name)), field.name
    assert [stage.changed for stage in back.stages] == [stage.changed for stage in trace.stages]


def test_snapshots_share_after_reading_what_they_shared_before(tmp_path: Path) -> None:
    back = there_and_back(recorded("mlp"), tmp_path)
    for earlier, later in zip(back.stages, back.stages[1:], strict=False):
        assert earlier.after is later.before
    assert back.stages[0].before is back.input
    entry = back.input.entry_computation
    kept = [i for i in back.stages[8].after.entry_computation if i.name in entry.instructions]
    assert any(entry[i.name] is i for i in kept)


def rich_module() -> Module:
    f32, quantised = (
        element("f32"),
        QuantizedType(element("i8"), element("f32"), (0.5, 0.25), (0, 3), -128, 127, 1),
    )
    location = FusedLocation(
        (CallSite(FileLocation("a.py", 3, 7), NameLocation("jit(f)", FileLocation("b.py", 9))),), "tag"
    )
    pair = TupleType((TensorType(f32, (2, 3), Layout((0, 1))), TOKEN))
    nan = np.array([np.nan, -0.0, np.inf], np.float32)
    kinds = {
        "bf16": TensorType(element("bf16"), (2,)),
        "c64": TensorType(element("complex<f32>"), ()),
        "i4": TensorType(element("i4"), (3,)),
        "i1": TensorType(element("i1"), (2,)),
    }
    body = [
        Instruction("arg0.1", "parameter", pair, (), Attributes(index=0), (), location),
        Instruction("arg1.2", "parameter", TensorType(quantised, (4, 2)), (), Attributes(index=1)),
        Instruction(
            "c.3",
            "constant",
            TensorType(f32, (3,)),
            (),
            Attributes(value=Literal(TensorType(f32, (3,)), nan)),
        ),
        Instruction(
            "c.4",
            "constant",
            TensorType(f32, (1 << 20, 1 << 20)),
            (),
            Attributes(value=Literal(TensorType(f32, (1 << 20, 1 << 20)), np.float32(2).reshape(()))),
        ),
        *(
            Instruction(
                f"{name}.5",
                "constant",
                kind,
                (),
                Attributes(value=Literal(kind, np.ones(kind.shape, kind.element.dtype))),
            )
            for name, kind in kinds.items()
        ),
        Instruction(
            "custom_call.6",
            "custom_call",
            pair,
            ("arg0.1", "c.3"),
            Attributes(
                {
                    "call_target_name": "x\x1b[0m\u2028",
                    "nothing": (),
                    "nested": Attributes(a=1, b=(2.5, float("inf"), True)),
                    "type": TensorType(f32, (1,)),
                    "big": 1 << 80,
                }
            ),
        ),
    ]
    computation = make_computation("main", {i.name: i for i in body}, "custom_call.6")
    attributes = Attributes({"jax.buffer_donor": True})
    return Module(
        "rich",
        {"main": computation},
        "main",
        Attributes({"mhlo.num_partitions": 2}),
        (attributes, Attributes()),
        (attributes,),
        {"3": 2},
        True,
    )


def test_every_kind_of_type_value_and_location_comes_back(tmp_path: Path) -> None:
    module = rich_module()
    choices = (Choice("a", 1.5, "ns"), Choice("b", None, "", "a rule forbids it"))
    location = module.entry_computation["arg0.1"].location
    assert location is not None
    decision = Decision(
        "k:s", "k", "s", "one", choices, "b", "a", "override", "because", {"n": 3, "f": 0.5}, (location,)
    )
    stage = StageRecord(0, "one", "pass", "why", module, module, (), (decision,), 0.25, 2, "disabled")
    trace = Trace(
        "m\n.mlir",
        module,
        (stage,),
        profile=(KernelTime("k", 12, 3),),
        options={"disable": ("a", "b"), "n": 4, "f": 0.5, "flag": True},
        overrides={"k:s": "b"},
        unmatched_overrides=("x:y",),
        pending=("two",),
        finished=True,
        error="ended",
        producer="test",
        sources={"a.py": "x = 1\n"},
        positions={"c.3": (3, 9)},
    )
    back = there_and_back(trace, tmp_path)
    for field in dataclasses.fields(Trace):
        assert equal(getattr(trace, field.name), getattr(back, field.name)), field.name
    assert back.input.entry_computation["c.4"].literal.is_splat
    assert np.signbit(back.input.entry_computation["c.3"].literal.array[1])


def test_decisions_are_read_without_the_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = recorded("mlp")
    path = str(tmp_path / "saved.xtrace")
    save_trace(trace, path)
    file = TraceFile(path)
    read: list[str] = []
    raw = file._raw
    monkeypatch.setattr(file, "_raw", lambda name: read.append(name) or raw(name))
    assert equal(tuple(file.decisions()), trace.decisions)
    assert read == ["decisions.json"]


def rewritten(path: Path, member: str, change: Any) -> Path:
    """A copy of a trace in which one member is changed."""
    target = path.with_name("changed.xtrace")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as sink:
        for info in source.infolist():
            data = source.read(info)
            sink.writestr(info.filename, change(data) if info.filename == member else data)
    return target


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "saved.xtrace"
    save_trace(recorded("mlp"), str(path))
    return path


@pytest.mark.parametrize(
    "member", ["about.json", "tables.json", "programs.json", "decisions.json", "plan.json"]
)
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"null", b"[" * 100_000, b'{"a": -1}', b"\xff"])
def test_damaged_members_are_told(saved: Path, member: str, content: bytes) -> None:
    path = rewritten(saved, member, lambda _: content)
    if member == "decisions.json" and content in (b"[]", b"{}"):
        assert load_trace(str(path)).decisions == ()
        return
    if member == "plan.json" and content == b"null":
        assert load_trace(str(path)).plan is None
        return
    with pytest.raises(UserError) as told:
        load_trace(str(path))
    assert str(path) in str(told.value) and "\n" not in str(told.value)


def test_rows_that_point_nowhere_are_told(saved: Path) -> None:
    def bend(data: bytes) -> bytes:
        programs = json.loads(data)
        programs["input"] = 10**9
        return json.dumps(programs).encode()

    with pytest.raises(UserError, match="damaged"):
        load_trace(str(rewritten(saved, "programs.json", bend)))


def test_cut_and_foreign_files_are_told(saved: Path, tmp_path: Path) -> None:
    raw = saved.read_bytes()
    for size in (0, 3, 100, len(raw) // 2, len(raw) - 30):
        path = tmp_path / "cut.xtrace"
        path.write_bytes(raw[:size])
        with pytest.raises(UserError):
            load_trace(str(path))
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(UserError, match="not a readable trace"):
        load_trace(str(other))
    with pytest.raises(UserError, match="no such file"):
        load_trace(str(tmp_path / "missing"))


def test_another_version_is_told(saved: Path) -> None:
    def newer(data: bytes) -> bytes:
        return json.dumps({**json.loads(data), "version": 99}).encode()

    with pytest.raises(UserError, match="format 99"):
        load_trace(str(rewritten(saved, "about.json", newer)))


def test_an_archive_that_would_burst_is_refused(saved: Path, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.xtrace"
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as sink:
        for info in source.infolist():
            data = source.read(info)
            sink.writestr(info.filename, b" " * (64 << 20) + data if info.filename == "tables.json" else data)
    with pytest.raises(UserError, match="claims to hold"):
        load_trace(str(bomb))


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept.xtrace"
    path.write_bytes(b"old")
    monkeypatch.setattr("explorer.trace_encode.members", lambda trace: iter([("a", None)]))
    with pytest.raises(TypeError):
        save_trace(Trace("m", rich_module()), str(path))
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["kept.xtrace"]
