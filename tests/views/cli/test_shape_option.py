"""`--shape` and `--inputs` on models with dynamic sizes, over whole commands."""

from __future__ import annotations

import json

import numpy as np
import pytest

from views.main import main

CENTRED = """func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sums = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<?x4xf32>, tensor<f32>) -> tensor<?xf32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %shape = stablehlo.concatenate %n1, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %wide = stablehlo.dynamic_broadcast_in_dim %sums, %shape, dims = [0]
      : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x4xf32>
  %out = stablehlo.subtract %x, %wide : tensor<?x4xf32>
  return %out : tensor<?x4xf32>
}
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "centred.mlir"
    path.write_text(CENTRED)
    return str(path)


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_run_on_arrays(model, tmp_path, capsys, backend):
    inputs, expected = str(tmp_path / "inputs.npz"), str(tmp_path / "expected.npz")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.savez(inputs, arg0=x)
    np.savez(expected, out0=x - x.sum(axis=1, keepdims=True))
    assert main(["run", model, "--inputs", inputs, "--expect", expected, "--backend", backend]) == 0
    assert "all as expected" in capsys.readouterr().out


def test_run_on_random_inputs(model, capsys):
    assert main(["run", model, "--shape", "arg0=5x4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"][0]["shape"] == [5, 4]


@pytest.mark.parametrize("command", ["passes", "diff", "fusion", "memory", "kernels"])
def test_reports(model, capsys, command):
    assert main([command, model, "--shape", "arg0=5x4"]) == 0
    assert main([command, model]) == 2
    assert "as --shape arg0=2x4" in capsys.readouterr().err


def test_bisection_finds_nothing_in_a_right_program(model):
    assert main(["bisect", model, "--shape", "arg0=5x4"]) == 1
