"""What the tests of commands share: the sample models, a way to run a command, a saved trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from views.main import main

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "sample_models"
MLP = str(SAMPLES / "mlp" / "model.mlir")

REPORTS = {
    "passes": [],
    "diff": ["--stage", "fusion"],
    "decisions": ["--kind", "fusion"],
    "memory": [],
    "kernels": [],
    "graph": ["--pipeline"],
    "history": ["dot_general.8"],
}
"""Commands that report on a recording, with arguments that suit the mlp."""


class Ran:
    """What a command printed, and its status."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    def command(*words: str) -> Ran:
        status = main([str(word) for word in words])
        printed = capsys.readouterr()
        return Ran(status, printed.out, printed.err)

    return command


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("traces") / "mlp.xtrace")
    assert main(["trace", MLP, "-o", path, "--forms", "loops,llvm"]) == 0
    return path
