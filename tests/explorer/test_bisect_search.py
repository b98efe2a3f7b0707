"""How the search goes: oracles of each kind, interruption and resumption, faults that come and go, reports."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compiler.frontend.load import load
from compiler.options import CompileOptions
from compiler.plugins import load_plugins
from compiler.random_inputs import random_inputs
from explorer.arrays import save_arrays
from explorer.bisect import Bisection, Progress
from explorer.case import BAD, GOOD, UNKNOWN, Case, Expected, Verdict, evaluate
from tests.explorer.faults import FAULTS
from views.main import main

FAULT = next(fault for fault in FAULTS if fault.rule == "subtract-is-commutative")


def search(model: str, plugin: str) -> Bisection:
    module = load(model).module
    inputs = random_inputs(module.entry_computation.parameter_types, 0)
    oracle = Expected(tuple(evaluate(module, inputs)))
    case = Case(module, inputs, oracle, model)
    return Bisection(case, CompileOptions(plugins=(plugin,)), load_plugins([plugin]))


def test_expected_outputs_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, plugin = FAULT.write(tmp_path)
    module = load(model).module
    inputs = random_inputs(module.entry_computation.parameter_types, 9)
    save_arrays(str(tmp_path / "in.npz"), "arg", inputs)
    save_arrays(str(tmp_path / "out.npz"), "out", evaluate(module, inputs))
    words = ["--inputs", str(tmp_path / "in.npz"), "--expect", str(tmp_path / "out.npz")]
    assert main(["bisect", model, *words, "--plugin", plugin, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stage"] == FAULT.stage
    assert main(["bisect", model, "--expect", str(tmp_path / "out.npz"), "--seed", "5"]) == 0
    assert "as it was read already gives wrong results" in capsys.readouterr().out


def test_another_backend_as_oracle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, _ = FAULT.write(tmp_path)
    assert main(["bisect", model, "--oracle", "cpu"]) == 1
    assert "nothing is wrong" in capsys.readouterr().out


def test_a_command_judges(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model, plugin = FAULT.write(tmp_path)
    module = load(model).module
    inputs = random_inputs(module.entry_computation.parameter_types, 0)
    save_arrays(str(tmp_path / "right.npz"), "out", evaluate(module, inputs))
    judge = tmp_path / "judge.py"
    judge.write_text(
        "import os, sys, numpy as np\n"
        "print('judging')\n"
        "assert sys.argv[1] == os.environ['XLA_EXPLORE_OUTPUTS']\n"
        "assert 'func.func' in open(sys.argv[2]).read()\n"
        "got, want = np.load(sys.argv[1])['out0'], np.load(sys.argv[3])['out0']\n"
        "sys.exit(0 if np.allclose(got, want, 1e-4) else 1)\n"
    )
    command = [sys.executable, str(judge), "{outputs}", "{module}", str(tmp_path / "right.npz")]
    assert main(["bisect", model, "--plugin", plugin, "--json", "--", *command]) == 0
    printed = capfd.readouterr()
    finding = json.loads(printed.out)
    assert finding["stage"] == FAULT.stage and finding["rule"] == FAULT.rule
    assert "judging" in printed.err


def test_a_command_that_cannot_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, plugin = FAULT.write(tmp_path)
    cannot = [sys.executable, "-c", "import sys; sys.exit(125)"]
    assert main(["bisect", model, "--plugin", plugin, "--", *cannot]) == 0
    assert "the oracle cannot judge the program as it was read" in capsys.readouterr().out
    assert main(["bisect", model, "--plugin", plugin, "--oracle", "interpreter", "--", *cannot]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["bisect", model, "--", str(tmp_path / "no-such-program")]) == 0
    assert "cannot be run" in capsys.readouterr().out


def test_a_search_goes_on_where_it_was_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, plugin = FAULT.write(tmp_path)
    state = tmp_path / "state.json"
    words = ["bisect", model, "--plugin", plugin, "--state", str(state), "--json"]
    assert main(words) == 0
    first = json.loads(capsys.readouterr().out)
    assert main(words) == 0
    again = json.loads(capsys.readouterr().out)
    assert again.pop("trials") == 0 < first.pop("trials")
    assert again == first
    kept = json.loads(state.read_text())
    half = dict(list(kept["verdicts"].items())[:2])
    state.write_text(json.dumps({**kept, "verdicts": half}))
    assert main(words) == 0
    resumed = json.loads(capsys.readouterr().out)
    assert 0 < resumed.pop("trials") < json.loads(state.read_text())["verdicts"].__len__()
    assert resumed == first


def test_the_state_of_another_search_is_not_believed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, plugin = FAULT.write(tmp_path)
    state = tmp_path / "state.json"
    assert main(["bisect", model, "--state", str(state), "--seed", "1"]) == 1
    assert main(["bisect", model, "--state", str(state), "--seed", "2", "--plugin", plugin]) == 0
    assert "is the state of another search" in capsys.readouterr().err
    for broken in ("{", "[]", '{"version": 1}', '{"version": 1, "question": 2, "verdicts": 3}'):
        state.write_text(broken)
        status = main(["bisect", model, "--state", str(state)])
        printed = capsys.readouterr().err
        assert status in (1, 2) and printed.count("\n") == 1 and str(state) in printed


def test_reports_as_text_and_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, plugin = FAULT.write(tmp_path)
    report = tmp_path / "report.txt"
    assert main(["bisect", model, "--plugin", plugin, "--report", str(report)]) == 0
    text = report.read_text()
    assert FAULT.law in text and "before and after" in text
    assert "- %subtract" in text and "+ %subtract" in text
    assert f"bad      after {FAULT.stage}" in text
    assert main(["bisect", model, "--plugin", plugin, "--report", str(tmp_path / "r.json")]) == 0
    assert json.loads((tmp_path / "r.json").read_text())["rule"] == FAULT.rule
    capsys.readouterr()


def test_a_fault_that_comes_and_goes_and_comes_again(tmp_path: Path) -> None:
    model, plugin = FAULT.write(tmp_path)
    text = Path(plugin).read_text()
    register = text[text.index("def register") :]
    places = ("late-cse", "late-dce", "layout-assignment")
    lines = "".join(
        f'    registry.add_pass(Pass(), id="planted-{n}", before="{place}")\n'
        for n, place in enumerate(places)
    )
    Path(plugin).write_text(text.replace(register, f"def register(registry):\n{lines}"))
    bisection = search(model, plugin)
    finding = bisection.run()
    assert finding.kind == "rewrite" and finding.rule == FAULT.rule
    assert finding.stage in ("planted-0", "planted-2")
    assert bisection.trace is not None
    stage = bisection.trace.stage(finding.stage)
    judge = bisection.case.oracle.judge
    assert judge(evaluate(stage.before, bisection.case.inputs), stage.before).result == GOOD
    assert judge(evaluate(stage.after, bisection.case.inputs), stage.after).result == BAD


class Uncertain:
    """Cannot tell at some calls, and follows another oracle else."""

    def __init__(self, inner: Expected, unknown_calls: set[int]) -> None:
        self.inner, self.unknown_calls, self.calls = inner, unknown_calls, 0

    def judge(self, outputs, module) -> Verdict:
        self.calls += 1
        return Verdict(UNKNOWN) if self.calls in self.unknown_calls else self.inner.judge(outputs, module)


def test_of_what_cannot_be_judged_none_is_accused(tmp_path: Path) -> None:
    model, plugin = FAULT.write(tmp_path)
    sure = search(model, plugin)
    assert sure.run().stage == FAULT.stage
    for unknown in ({3}, {4}, {3, 4}, {4, 5}, {3, 4, 5, 6, 7, 8}):
        bisection = search(model, plugin)
        assert isinstance(bisection.case.oracle, Expected)
        bisection.case.oracle = Uncertain(bisection.case.oracle, unknown)
        finding = bisection.run()
        if finding.candidates:
            assert any(FAULT.stage in candidate for candidate in finding.candidates)
            assert "could not be judged" in finding.summary
        else:
            assert (finding.stage, finding.rule) == (FAULT.stage, FAULT.rule)


def test_cancelling_stops_between_trials(tmp_path: Path) -> None:
    model, plugin = FAULT.write(tmp_path)
    bisection = search(model, plugin)
    remembered: list[int] = []

    def check() -> None:
        if len(remembered) >= 2:
            raise KeyboardInterrupt

    bisection.progress = Progress(check_cancelled=check, remember=lambda known: remembered.append(len(known)))
    with pytest.raises(KeyboardInterrupt):
        bisection.run()
    assert remembered == [1, 2]
    resumed = search(model, plugin)
    resumed.known = dict(bisection.known)
    assert resumed.run().rule == FAULT.rule


def test_a_program_that_cannot_be_evaluated_is_wrong(tmp_path: Path) -> None:
    model, plugin = FAULT.write(tmp_path)
    bisection = search(model, plugin)
    bisection.case = replace(bisection.case, inputs=[np.zeros((2, 2), np.float32)] * 2)
    finding = bisection.run()
    assert finding.kind == "input" and "cannot be evaluated" in finding.detail
