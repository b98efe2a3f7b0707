"""Each planted fault is named with its stage, its rewrite and its instruction, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.explorer.faults import FAULTS, Fault
from views.main import main


def bisect_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    assert main(["bisect", *words, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return json.loads(printed.out)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.rule)
def test_a_planted_fault_is_named(fault: Fault, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, plugin = fault.write(tmp_path)
    found = bisect_json(capsys, model, "--plugin", plugin, "--seed", "3")
    assert found["version"] == 1 and found["kind"] == "rewrite", found
    assert (found["stage"], found["rule"], found["law"]) == (fault.stage, fault.rule, fault.law)
    assert found["instruction"].startswith(fault.opcode)
    assert found["rewrite"] == f"{fault.stage}/{fault.rule}@{found['computation']}/{found['instruction']}"
    assert found["rule_source"].startswith("plugin.py")
    assert found["mended_by_refusing"] is True
    assert "instead of" in found["detail"]
    assert main(["bisect", model, "--plugin", plugin, "--seed", "3"]) == 0
    text = capsys.readouterr().out
    assert f"stage {fault.stage}, rule {fault.rule} on {found['instruction']}" in text.splitlines()[0]
    assert "  without it   the result is right" in text and fault.law in text


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.rule)
def test_without_the_plugin_nothing_is_wrong(
    fault: Fault, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, _ = fault.write(tmp_path)
    assert main(["bisect", model, "--seed", "3"]) == 1
    assert "nothing is wrong" in capsys.readouterr().out
