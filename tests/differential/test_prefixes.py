"""Every prefix of the pipeline gives the interpreter's result on every sample model, and every stage leaves a valid program."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from compiler.driver import compile_module
from compiler.frontend.load import load
from compiler.options import CompileOptions
from compiler.reference import evaluate
from explorer.arrays import compare, load_arrays
from explorer.session import Session, record

SAMPLES = Path(__file__).resolve().parents[2] / "sample_models"
MODELS = sorted(path.parent.name for path in SAMPLES.glob("*/model.mlir"))

REORDERS_SUMS = {"batch-norm-expander", "algebraic-simplifier", "algebraic-simplifier.2", "dot-canonicalizer"}
"""Stages after which a sum may be taken in another order, so that results may differ in the last places."""


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("model", MODELS)
def test_every_prefix_of_the_pipeline_keeps_the_result(model: str, backend: str) -> None:
    path = SAMPLES / model / "model.mlir"
    parsed = load(str(path))
    arguments = load_arrays(
        str(SAMPLES / model / "inputs.npz"), "arg", parsed.module.entry_computation.parameter_types
    )
    wanted = evaluate(parsed.module, arguments)
    session = Session(str(path), parsed, CompileOptions(backend=backend, verify_each=True))
    trace = record(session, code=False).trace
    reordered = False
    for stage in trace.stages:
        reordered = reordered or (stage.changed and stage.id in REORDERS_SUMS)
        if not stage.changed:
            continue
        for index, (got, right) in enumerate(zip(evaluate(stage.after, arguments), wanted, strict=True)):
            scale = float(np.abs(right.astype(np.float64)).max()) if right.size else 0.0
            tolerance = 1e-5 if reordered else 0.0
            found = compare(index, got, right, tolerance, tolerance * scale)
            assert found.within, f"after {stage.id}: {found}"


@pytest.mark.parametrize("model", MODELS)
def test_the_reference_interpreter_gives_the_stored_outputs(model: str) -> None:
    parsed = load(str(SAMPLES / model / "model.mlir"))
    entry = parsed.module.entry_computation
    arguments = load_arrays(str(SAMPLES / model / "inputs.npz"), "arg", entry.parameter_types)
    wanted = load_arrays(str(SAMPLES / model / "expected.npz"), "out", [entry.result_type])
    for index, (got, right) in enumerate(zip(evaluate(parsed.module, arguments), wanted, strict=True)):
        found = compare(index, got, right, *_tolerance(model))
        assert found.within, found


@pytest.mark.parametrize("model", MODELS)
def test_machine_code_gives_the_stored_outputs(model: str) -> None:
    parsed = load(str(SAMPLES / model / "model.mlir"))
    entry = parsed.module.entry_computation
    arguments = load_arrays(str(SAMPLES / model / "inputs.npz"), "arg", entry.parameter_types)
    wanted = load_arrays(str(SAMPLES / model / "expected.npz"), "out", [entry.result_type])
    executable = compile_module(parsed.module, CompileOptions()).executable
    for _ in range(3):
        for index, (got, right) in enumerate(zip(executable.run(arguments), wanted, strict=True)):
            found = compare(index, got, right, *_tolerance(model))
            assert found.within, found
    executable.close()


def _tolerance(model: str) -> tuple[float, float]:
    """Relative and absolute, as the index of the sample models states them."""
    rows = json.loads((SAMPLES / "index.json").read_text())
    stated = next(row["tolerance"] for row in rows if row["name"] == model)
    return stated["relative"], stated["absolute"]


@pytest.mark.parametrize("model", MODELS)
def test_compiling_twice_gives_equal_programs(model: str) -> None:
    from compiler.ir.hlo_text import print_module

    path = SAMPLES / model / "model.mlir"
    texts = []
    for _ in range(2):
        session = Session(str(path), load(str(path)), CompileOptions(backend="interpreter"))
        trace = record(session, code=False).trace
        texts.append([print_module(stage.after) for stage in trace.stages])
        ids = [[decision.id for decision in stage.decisions] for stage in trace.stages]
        texts[-1].append(str(ids))
    assert texts[0] == texts[1]
