"""Faults that no program shows: a kernel whose machine code is wrong, kernels wrong only together, and a race."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from views.main import main

MODEL = """func.func @main(%x: tensor<64x8xf32>, %w: tensor<8x8xf32>) -> tensor<64xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<64x8xf32>, tensor<8x8xf32>) -> tensor<64x8xf32>
  %t = stablehlo.tanh %d : tensor<64x8xf32>
  %r = stablehlo.reduce(%t init: %z) applies stablehlo.add across dimensions = [1]
    : (tensor<64x8xf32>, tensor<f32>) -> tensor<64xf32>
  func.return %r : tensor<64xf32>
}
"""
PLUGIN = """
from dataclasses import replace

from compiler.backends.cpu.backend import CpuBackend
from compiler.ir.program import make_computation


class Wrapped:
    def __init__(self, inner, module):
        self.inner, self.module, self.runs = inner, module, 0

    @property
    def kernels(self):
        return self.inner.kernels

    def run(self, arguments):
        self.runs += 1
        return {results}

    def kernel_form(self, name, form):
        return self.inner.kernel_form(name, form)

    def profile(self, arguments):
        return self.inner.profile(arguments)

    def close(self):
        self.inner.close()


def corrupted(module):
    computations = {{}}
    for name, computation in module.computations.items():
        body = {{i.name: {instruction} for i in computation}}
        computations[name] = make_computation(name, body, computation.root)
    return replace(module, computations=computations)


class Faulty(CpuBackend):
    name = "faulty"

    def compile(self, request):
        return Wrapped(super().compile(replace(request, module=corrupted(request.module))), request.module)


def register(registry):
    registry.add_backend("faulty", Faulty)
"""


def planted(folder: Path, results: str = "self.inner.run(arguments)", instruction: str = "i") -> list[str]:
    model, plugin = folder / "model.mlir", folder / "plugin.py"
    model.write_text(MODEL)
    plugin.write_text(PLUGIN.format(results=results, instruction=instruction))
    return [str(model), "--plugin", str(plugin), "--backend", "faulty", "--seed", "1"]


def found(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict:
    assert main(["bisect", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def kernel_names(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, list[list[str]]]:
    assert main(["kernels", words[0], "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["kernels"]
    return {row["name"]: row["instructions"] for row in rows}


@pytest.mark.parametrize(
    ("opcode", "instruction"),
    [
        ("tanh", 'replace(i, opcode="logistic") if i.opcode == "tanh" else i'),
        ("reduce", 'replace(i, opcode="maximum") if i.opcode == "add" else i'),
    ],
)
def test_a_wrong_kernel_is_named(
    opcode: str, instruction: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = planted(tmp_path, instruction=instruction)
    finding = found(words, capsys)
    assert finding["kind"] == "kernel"
    kernels = kernel_names(words, capsys)
    assert any(name.startswith(opcode) for _, name in kernels[finding["kernel"]])
    assert "instead of" in finding["detail"]
    assert main(["bisect", *words]) == 0
    text = capsys.readouterr().out
    assert f"machine code of kernel {finding['kernel']}" in text


def test_kernels_that_are_wrong_only_together_point_at_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = '[a + 1 for a in self.inner.run(arguments)] if self.module.entry != "alone" else self.inner.run(arguments)'
    finding = found(planted(tmp_path, wrong), capsys)
    assert finding["kind"] == "plan"
    assert "every kernel alone is right" in finding["summary"]


def test_a_race_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = (
        "[a + 1 for a in self.inner.run(arguments)] if self.runs == 3 and self.module.entry != 'alone' "
        "else self.inner.run(arguments)"
    )
    words = planted(tmp_path, wrong)
    finding = found([*words, "--repeats", "4"], capsys)
    assert finding["kind"] == "plan"
    assert any("wrong at run 3: a race" in note for note in finding["notes"])
    assert main(["bisect", *words, "--repeats", "1"]) == 1


def test_nothing_is_wrong_with_the_wrapper_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", *planted(tmp_path)]) == 1
    assert "nothing is wrong" in capsys.readouterr().out
