"""Folders of XLA's pass dumps as traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.frontend.errors import SourceError
from explorer.trace_decode import load_trace
from explorer.trace_encode import save_trace
from explorer.xla_dump import modules_of, read_dump

HELPER = "twice {\n  x = f32[2] parameter(0)\n  ROOT t = f32[2] add(x, x)\n}\n\n"
CALL = "ENTRY main {\n  p = f32[2] parameter(0)\n  z = f32[2] negate(p)\n  ROOT c = f32[2] call(p), to_apply=twice\n}\n"
CLEAN = "ENTRY main {\n  p = f32[2] parameter(0)\n  ROOT c = f32[2] call(p), to_apply=twice\n}\n"
INLINED = "ENTRY main {\n  p = f32[2] parameter(0)\n  ROOT t.1 = f32[2] add(p, p)\n}\n"

FILES = {
    "module_0003.jit_f.before_optimizations.txt": HELPER + CALL,
    "module_0003.jit_f.0000.cleanup.after_pipeline-start.before_dce.txt": HELPER + CALL,
    "module_0003.jit_f.0001.cleanup.after_dce.before_cse.txt": HELPER + CLEAN,
    "module_0003.jit_f.0002.cleanup.after_cse.before_pipeline-end.txt": HELPER + CLEAN,
    "module_0003.jit_f.0003.late.after_pipeline-start.before_dce.txt": HELPER + CLEAN,
    "module_0003.jit_f.0004.late.after_dce.before_inliner.txt": HELPER + CLEAN,
    "module_0003.jit_f.0010.cleanup.after_dce.txt": INLINED,
    "module_0003.jit_f.cpu_after_optimizations.txt": INLINED,
    "module_0003.jit_f.cpu_after_optimizations-buffer-assignment.txt": "BufferAssignment:\n",
}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A small dump of one module."""
    for name, body in FILES.items():
        text = body if body.startswith("Buffer") else f"HloModule jit_f\n\n{body}"
        (tmp_path / name).write_text(text)
    return tmp_path


def test_stages_stand_in_the_order_of_the_files(dump: Path) -> None:
    trace = read_dump(str(dump))
    assert [stage.id for stage in trace.stages] == ["cleanup/dce", "cleanup/cse", "late/dce", "cleanup/dce.2"]
    assert [stage.changed for stage in trace.stages] == [True, False, False, True]
    assert [stage.instructions_after for stage in trace.stages] == [4, 4, 4, 2]
    assert trace.producer == "XLA"
    assert trace.finished
    assert trace.stages[0].why == "in the pipeline cleanup, ahead of cse"
    assert trace.stages[1].why == "in the pipeline cleanup"


def test_each_stage_begins_with_what_the_one_before_left(dump: Path) -> None:
    trace = read_dump(str(dump))
    assert trace.stages[0].before is trace.input
    for earlier, later in zip(trace.stages, trace.stages[1:], strict=False):
        assert later.before is earlier.after


def test_what_does_not_change_is_one_object(dump: Path) -> None:
    trace = read_dump(str(dump))
    first, second = trace.input, trace.stages[0].after
    assert second.computations["twice"] is first.computations["twice"]
    assert second.computations["main"] is not first.computations["main"]


def test_the_text_of_the_first_file_is_kept(dump: Path) -> None:
    trace = read_dump(str(dump))
    line, column = trace.positions["z"]
    assert trace.sources[trace.model].splitlines()[line - 1][column - 1 :].startswith("z = f32[2]")


def test_a_change_between_pipelines_is_a_stage(dump: Path) -> None:
    (dump / "module_0003.jit_f.0007.end.after_pipeline-start.before_x.txt").write_text(
        f"HloModule jit_f\n\n{INLINED}"
    )
    stage = read_dump(str(dump)).stage("end/pipeline-start")
    assert stage.changed
    assert stage.why == "changed between pipelines, as end finds it"


def test_first_and_last_program_alone_are_one_stage(tmp_path: Path) -> None:
    (tmp_path / "module_0001.f.before_optimizations.txt").write_text(f"HloModule f\n\n{HELPER}{CALL}")
    (tmp_path / "module_0001.f.sm_9.0_gpu_after_optimizations.txt").write_text(f"HloModule f\n\n{INLINED}")
    trace = read_dump(str(tmp_path))
    assert [stage.id for stage in trace.stages] == ["after-optimizations"]


def test_the_largest_module_is_read_unless_another_is_named(dump: Path) -> None:
    (dump / "module_0001.small.before_optimizations.txt").write_text(f"HloModule small\n\n{INLINED}")
    assert modules_of(str(dump)) == ["module_0003.jit_f", "module_0001.small"]
    assert read_dump(str(dump)).input.name == "jit_f"
    assert read_dump(str(dump), "module_0001.small").input.name == "small"
    with pytest.raises(SourceError, match="has no module other, only "):
        read_dump(str(dump), "other")


def test_it_is_saved_like_any_trace(dump: Path, tmp_path: Path) -> None:
    trace = read_dump(str(dump))
    path = str(tmp_path / "x.xtrace")
    save_trace(trace, path)
    again = load_trace(path)
    assert [stage.id for stage in again.stages] == [stage.id for stage in trace.stages]
    assert again.producer == "XLA"


def test_mistakes_are_told_with_their_file(dump: Path, tmp_path: Path) -> None:
    bad = dump / "module_0003.jit_f.0005.late.after_x.txt"
    bad.write_text("HloModule jit_f\n\nENTRY main {\n  p = f32[2] parametr(0)\n}\n")
    with pytest.raises(SourceError) as caught:
        read_dump(str(dump))
    assert (caught.value.file, caught.value.line) == (str(bad), 4)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(SourceError, match="holds no XLA dump"):
        read_dump(str(empty))
    with pytest.raises(SourceError, match="No such file"):
        read_dump(str(tmp_path / "missing"))
