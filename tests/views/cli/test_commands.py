"""Every command over sample models: text, JSON, exit statuses, saved traces in place of models, mistakes in one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.views.cli.conftest import MLP, REPORTS, ROOT, SAMPLES
from views.main import COMMANDS

MLP_INPUTS, MLP_EXPECTED = str(SAMPLES / "mlp" / "inputs.npz"), str(SAMPLES / "mlp" / "expected.npz")


def test_run_compares_times_and_writes(run, tmp_path: Path) -> None:
    out = tmp_path / "out.npz"
    words = ["run", MLP, "--inputs", MLP_INPUTS, "--expect", MLP_EXPECTED, "--outputs", out, "--repeat", "3"]
    found = run(*words)
    assert found.status == 0 and "all as expected" in found.out and "f32[32,10]" in found.out
    assert re.search(r"3 runs: min .*s, median .*s", found.out)
    with np.load(out) as written, np.load(MLP_EXPECTED) as expected:
        np.testing.assert_allclose(written["out0"], expected["out0"], 1e-4)
    document = run(*words, "--json").json
    assert document["version"] == 1 and document["expected"]["result"] == "good"
    assert document["outputs"][0]["shape"] == [32, 10]
    assert len(document["seconds"]["runs"]) == 3


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_run_exits_with_1_when_outputs_differ(backend: str, run) -> None:
    words = ["run", MLP, "--seed", "4", "--expect", MLP_EXPECTED, "--backend", backend]
    found = run(*words)
    assert found.status == 1 and "DIFFERS" in found.out and "instead of" in found.out
    assert run(*words, "--json").json["outputs"][0]["difference"]["within"] is False
    assert run(*words, "--rtol", "1e9").status == 0


def test_run_needs_arrays_that_fit(run, tmp_path: Path) -> None:
    np.savez(tmp_path / "wrong.npz", arg0=np.zeros(3, np.float32))
    for inputs in (tmp_path / "wrong.npz", tmp_path / "missing.npz", Path(MLP_EXPECTED), Path(MLP)):
        found = run("run", MLP, "--inputs", inputs)
        assert found.status == 2 and found.err.count("\n") == 1, found.err


def test_passes_lists_every_stage(run, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = run("passes", MLP).out.splitlines()
    with monkeypatch.context() as patched:
        patched.setattr("views.cli.output.terminal_width", lambda: 80)
        fitted = run("passes", MLP).out.splitlines()
    assert len(fitted) == len(lines) and max(map(len, fitted)) <= 80
    assert [line.split()[0] for line in fitted] == [line.split()[0] for line in lines]
    assert any(re.match(r" *\d+ +fusion +\* +\d+ -> \d+ +\d+ +\d+ ", line) for line in lines)
    stages = run("passes", MLP, "--json").json["stages"]
    assert [stage["number"] for stage in stages] == list(range(len(stages)))
    fusion = next(stage for stage in stages if stage["stage"] == "fusion")
    assert fusion["changed"] and fusion["rewrites"] and fusion["decisions"] and fusion["why"]


def test_diff_of_a_stage_of_several_and_of_two_models(run) -> None:
    found = run("diff", MLP, "--stage", "cse")
    assert "- %constant.31 = f32[] constant(0)" in found.out and "\x1b" not in found.out
    whole = run("diff", MLP, "--json").json
    assert whole["added"] and whole["removed"]
    ranged = run("diff", MLP, "--stage", "0..buffer-assignment", "--json").json
    assert (ranged["added"], ranged["removed"]) == (whole["added"], whole["removed"])
    assert "no change" in run("diff", MLP, MLP).out
    other = str(SAMPLES / "while_newton" / "model.mlir")
    assert run("diff", MLP, other, "--json").json["changed"] >= 0
    assert len(run("diff", MLP, "--stage", "cse", "--all").out) > len(found.out)


def test_history_goes_back_to_the_models_line(run) -> None:
    kernel = run("kernels", MLP, "--json").json["kernels"][0]["name"]
    found = run("history", MLP, f"%{kernel}")
    assert re.search(r"read from .*model\.mlir:\d+:\d+ \(mlp\.py:\d+:\d+\)", found.out)
    gone = run("history", MLP, "constant.31", "--json").json
    assert gone["in_final"] is False
    assert gone["events"][0]["kind"] == "removed" and gone["events"][0]["replaced_by"] == ["constant.12.1"]


def test_decisions_can_be_chosen_and_overridden(run, tmp_path: Path) -> None:
    log = run("decisions", MLP, "--kind", "fusion", "--subject", "*add.11->*", "--json").json["decisions"]
    assert [entry["id"] for entry in log] == ["fusion:main/add.11->maximum.12.3"]
    assert {choice["name"] for choice in log[0]["choices"]} == {"fuse", "keep-apart"}
    file = tmp_path / "o.toml"
    file.write_text(f'[[override]]\ndecision = "{log[0]["id"]}"\nchoice = "keep-apart"\n')
    found = run("decisions", MLP, "--overrides", file, "--overruled")
    assert "keep-apart  (override; the policy says fuse)" in found.out
    file.write_text(f'[[override]]\ndecision = "{log[0]["id"]}x"\nchoice = "keep-apart"\n')
    found = run("passes", MLP, "--overrides", file)
    assert found.status == 0 and f"matched no decision; nearest: {log[0]['id']}" in found.err


def test_memory_explains_the_peak(run) -> None:
    model = str(SAMPLES / "train_step" / "model.mlir")
    found = run("memory", model)
    assert re.search(r"peak: .* at step \d+ of \d+", found.out) and "train_step.py:" in found.out
    assert "█" in found.out and max(map(len, found.out.splitlines())) <= 80
    report = run("memory", model, "--json").json
    aligned = 64
    live = sum(-(-buffer["bytes"] // aligned) * aligned for buffer in report["at_peak"])
    assert report["peak_bytes"] == max(report["live_bytes"]) <= report["arena_bytes"]
    assert live == report["peak_bytes"]
    sizes = [buffer["bytes"] for buffer in report["at_peak"]]
    assert sizes == sorted(sizes, reverse=True)


def test_kernels_and_their_forms(run) -> None:
    names = [kernel["name"] for kernel in run("kernels", MLP, "--json").json["kernels"]]
    assert all(name in run("kernels", MLP).out for name in names)
    last = names[-1]
    for form, sign in (("loops", "for "), ("llvm", "define "), ("asm", "ret")):
        assert sign in run("kernels", MLP, last, "--emit", form).out
    assert run("kernels", MLP, "--emit", "loops").out.count("; ----") == len(names)


def test_graph_in_each_format(run, tmp_path: Path) -> None:
    for suffix, start in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("dot", b"digraph")):
        path = tmp_path / f"mlp.{suffix}"
        assert run("graph", MLP, "--stage", "fusion", "-o", path).status == 0
        assert path.read_bytes().startswith(start)
    around = run("graph", MLP, "--around", "reduce.26", "--radius", "1", "--stage", "cse", "--json").json
    assert {node["id"] for node in around["nodes"]} == {
        "add.21",
        "constant.22",
        "reduce.26",
        "broadcast_in_dim.27",
    }
    assert run("graph", MLP, "-o", tmp_path / "x.gif").status == 2


@pytest.mark.parametrize("command", REPORTS)
def test_a_saved_trace_stands_for_its_model(command: str, saved: str, run) -> None:
    words = REPORTS[command]
    from_model, from_trace = (
        run(command, MLP, *words, "--json").json,
        run(command, saved, *words, "--json").json,
    )

    def without_times(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                k: without_times(v)
                for k, v in value.items()
                if k not in ("seconds", "forms", "lines", "model")
            }
        return [without_times(entry) for entry in value] if isinstance(value, list) else value

    assert without_times(from_trace) == without_times(from_model)
    assert from_trace["version"] == 1 and from_trace["command"] == command
    assert run(command, saved, *words).status == 0


def test_a_trace_runs_and_holds_the_forms_that_were_kept(saved: str, run) -> None:
    assert run("run", saved, "--inputs", MLP_INPUTS, "--expect", MLP_EXPECTED).status == 0
    name = run("kernels", saved, "--json").json["kernels"][0]["name"]
    assert "define" in run("kernels", saved, name, "--emit", "llvm").out
    found = run("kernels", saved, name, "--emit", "asm")
    assert found.status == 2 and "the trace was saved without it" in found.err


def test_verify_points_at_each_mistake(run, tmp_path: Path) -> None:
    good = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  func.return %x : tensor<2xf32>\n}\n"
    bad = (
        "func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {\n"
        '  %y = "stablehlo.reshape"(%x) : (tensor<2xf32>) -> tensor<3xf32>\n'
        "  func.return %y : tensor<3xf32>\n}\n"
    )
    file = tmp_path / "sub" / "two.mlir"
    file.parent.mkdir()
    file.write_text(good + "// -----\n" + bad + "// -----\n" + "func.func @main( {\n")
    (tmp_path / "good.mlir").write_text(good)
    found = run("verify", tmp_path)
    assert found.status == 1 and found.out.splitlines()[-1] == "2 valid, 2 invalid"
    assert re.search(rf"^{re.escape(str(file))}:6:\d+: error: ", found.out, re.MULTILINE)
    lines = found.out.splitlines()
    place = next(index for index, line in enumerate(lines) if ":6:" in line)
    assert '"stablehlo.reshape"' in lines[place + 1] and lines[place + 2].strip() == "^"
    document = run("verify", tmp_path, "--json").json
    assert (document["valid"], document["invalid"]) == (2, 2)
    assert [error["line"] for error in document["errors"]] == [6, 10]
    assert run("verify", tmp_path / "good.mlir").status == 0


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_check_counts_programs(jobs: str, backend: str, run, tmp_path: Path) -> None:
    program = (
        "func.func @main() {{\n  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>\n"
        "  %1 = stablehlo.add %0, %0 : tensor<2xi32>\n"
        "  check.expect_eq_const %1, dense<[2, {}]> : tensor<2xi32>\n  func.return\n}}\n"
    )
    (tmp_path / "a.mlir").write_text(program.format(4) + "// -----\n" + program.format(5))
    (tmp_path / "b.mlir").write_text(program.format(4))
    words = ["check", tmp_path, "--jobs", jobs, "--backend", backend]
    found = run(*words)
    assert found.status == 1 and found.out.splitlines()[-1] == "2 passed, 1 failed"
    assert found.out.splitlines()[0].startswith(f"{tmp_path}/a.mlir:8: ") and "want 5" in found.out
    assert run(*words, "--json").json["failures"][0]["line"] == 8
    assert run("check", tmp_path / "b.mlir", "--backend", backend).status == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_quick_and_loads_nothing_heavy(command: str) -> None:
    script = (
        "import sys, io\nfrom contextlib import redirect_stdout\nfrom views.main import main\n"
        f"with redirect_stdout(io.StringIO()) as out:\n    status = main(['{command}', '--help'])\n"
        "assert 'usage: xla-explore' in out.getvalue()\n"
        "heavy = {'numpy', 'rich', 'textual', 'llvmlite', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy\nsys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 0, done.stderr


def test_a_closed_pipe_ends_quietly() -> None:
    words = [sys.executable, "-m", "views.main", "diff", MLP, "--all", "--json"]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        error = process.stderr.read()
        assert process.wait(30) == 0 and error == b""


def test_colours_only_on_a_terminal(run, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [sys.executable, "-m", "views.main", "diff", MLP, "--stage", "cse"]
    assert "\x1b" not in run(*words[3:]).out
    if sys.platform == "win32":
        return
    import pty

    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(words, cwd=ROOT, stdout=child, stderr=child, env=environment) as process:
        os.close(child)
        shown = b""
        try:
            while block := os.read(parent, 65536):
                shown += block
        except OSError:
            pass
        assert process.wait(30) == 0
    os.close(parent)
    assert b"\x1b[" in shown and b"Traceback" not in shown


def test_an_interrupt_is_told_in_a_word(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("views.cli.passes_command.run", stop)
    found = run("passes", MLP)
    assert (found.status, found.out, found.err) == (130, "", "interrupted\n")
