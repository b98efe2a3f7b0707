"""The sample models through the frontend and the reference interpreter: the outputs are XLA's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from compiler import reference
from compiler.frontend.load import load

FOLDER = Path(__file__).resolve().parent.parent / "sample_models"
INDEX = json.loads((FOLDER / "index.json").read_text())


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["name"])
def test_the_interpreter_gives_the_outputs_of_xla(entry: dict) -> None:
    folder = FOLDER / entry["name"]
    module = load(str(folder / "model.mlir")).module
    with np.load(folder / "inputs.npz") as stored:
        arguments = [stored[f"arg{index}"] for index in range(entry["arguments"])]
    with np.load(folder / "expected.npz") as stored:
        expected = [stored[f"out{index}"] for index in range(entry["outputs"])]
    outputs = reference.evaluate(module, arguments)
    assert [(got.dtype, got.shape) for got in outputs] == [(want.dtype, want.shape) for want in expected]
    for got, want in zip(outputs, expected, strict=True):
        if want.dtype.kind == "f":
            np.testing.assert_allclose(
                got, want, atol=entry["tolerance"]["absolute"], rtol=entry["tolerance"]["relative"]
            )
        else:
            np.testing.assert_array_equal(got, want)
