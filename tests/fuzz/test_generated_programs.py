"""Generated programs: every stage leaves a valid program, and compiled code gives the interpreter's bits.

A program that fails is written as an .mlir file; its seed is told. `XLA_EXPLORE_FUZZ_SEED` repeats one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compiler.driver import compile_module
from compiler.frontend.mlir import parse_module
from compiler.frontend.mlir.printer import print_module
from compiler.ir.program import Module
from compiler.ir.verifier import verify
from compiler.ops import SEMANTICS
from compiler.options import CompileOptions
from compiler.reference import evaluate
from tests.fuzz.budget import seconds, seeds
from tests.fuzz.generated import generated_program
from tests.passes.harness import inputs, same_bits

pytestmark = pytest.mark.timeout(0 if seconds() else 120)

_MOST_FAILURES = 10


def check(module: Module, seed: int) -> None:
    """Raises an error when a stage, the code or the text of a program is wrong."""
    verify(module, SEMANTICS)
    arguments = inputs(module, seed)
    wanted = evaluate(module, arguments)
    for found in (_compiled(module, arguments), evaluate(parse_module(print_module(module)), arguments)):
        assert len(found) == len(wanted)
        for index, (left, right) in enumerate(zip(found, wanted, strict=True)):
            assert same_bits(np.asarray(left), np.asarray(right)), f"result {index}: {left} is not {right}"


def _compiled(module: Module, arguments: list[np.ndarray]) -> list[np.ndarray]:  # type: ignore[type-arg]
    compiled = compile_module(module, CompileOptions(backend="cpu", threads=2, verify_each=True))
    try:
        return compiled.executable.run(arguments)
    finally:
        compiled.executable.close()


def test_compiled_programs(tmp_path: Path) -> None:
    failures, count = [], 0
    for seed in seeds(40, 0.5):
        module = generated_program(seed)
        count += 1
        try:
            check(module, seed)
        except Exception as error:
            file = tmp_path / f"program_{seed}.mlir"
            file.write_text(f"// seed {seed}\n{print_module(module)}")
            failures.append(f"seed {seed}: {type(error).__name__}: {str(error)[:300]} ({file})")
            if len(failures) >= _MOST_FAILURES:
                break
    print(f"{count} generated programs")
    assert not failures, "\n".join(failures)
