"""A miscompile as a question: a model, inputs, and an oracle that tells right from wrong.

Bisection asks it of programs (evaluated by the reference interpreter) and of executables. A verdict is `good`, `bad` or
`unknown` (the run could not tell, as `git bisect run`'s 125).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from compiler.ir.program import Module
from explorer.arrays import Difference, compare, save_arrays

Array = np.ndarray[Any, np.dtype[Any]]

GOOD, BAD, UNKNOWN = "good", "bad", "unknown"


@dataclass(frozen=True)
class Verdict:
    """What the oracle said of one run, and the worst difference it saw."""

    result: str
    detail: str = ""
    differences: tuple[Difference, ...] = ()


class Oracle(Protocol):
    """Judges one run's outputs. `module` is the program that made them."""

    def judge(self, outputs: Sequence[Array], module: Module) -> Verdict:
        """Good, bad or unknown."""
        ...


@dataclass(frozen=True)
class Tolerance:
    """How far results may be apart: |got - want| <= rtol * |want| + atol * the largest |want| of the output."""

    rtol: float = 1e-4
    atol: float = 1e-4

    def limits(self, wanted: Array) -> tuple[float, float]:
        """Relative and absolute limits for one output; narrow floats get their own precision's room."""
        scale = 1.0
        name = wanted.dtype.name
        if name in ("bfloat16", "float16"):
            scale = 200.0 if name == "bfloat16" else 30.0
        elif name.startswith(("float8_", "float4_", "float6_")):
            scale = 1500.0
        elif wanted.dtype in (np.float64, np.complex128):
            scale = 1e-4
        wide = np.abs(wanted.astype(np.complex128 if wanted.dtype.kind == "c" else np.float64))
        finite = wide[np.isfinite(wide)]
        largest = float(finite.max()) if finite.size else 0.0
        return self.rtol * scale, self.atol * scale * largest


@dataclass(frozen=True)
class Expected:
    """Right outputs: given in a file, or made by the reference interpreter."""

    outputs: tuple[Array, ...]
    tolerance: Tolerance = field(default_factory=Tolerance)

    def judge(self, outputs: Sequence[Array], module: Module) -> Verdict:
        """Bad when any output is not within its tolerance."""
        if len(outputs) != len(self.outputs):
            return Verdict(BAD, f"{len(outputs)} outputs instead of {len(self.outputs)}")
        found = []
        for index, (got, wanted) in enumerate(zip(outputs, self.outputs, strict=True)):
            if got.shape != wanted.shape:
                return Verdict(BAD, f"output {index} has shape {got.shape} instead of {wanted.shape}")
            rtol, atol = self.tolerance.limits(wanted)
            found.append(compare(index, got, wanted.astype(got.dtype), rtol, atol))
        wrong = [difference for difference in found if not difference.within]
        detail = "" if not wrong else describe(wrong[0])
        return Verdict(BAD if wrong else GOOD, detail, tuple(found))


def describe(difference: Difference) -> str:
    """One line about a difference."""
    place = "".join(f"[{i}]" for i in difference.place)
    return (
        f"output {difference.index}{place} is {difference.got} instead of {difference.wanted} "
        f"({difference.differing} of {difference.total} elements differ)"
    )


@dataclass(frozen=True)
class Command:
    """An external judge: exit 0 good, 125 cannot tell, any other bad.

    `{outputs}` and `{module}` in its words stand for an `.npz` of the outputs and the program as MLIR text; both are
    also in the environment as XLA_EXPLORE_OUTPUTS and XLA_EXPLORE_MODULE.
    """

    words: tuple[str, ...]
    timeout: float = 600.0

    def judge(self, outputs: Sequence[Array], module: Module) -> Verdict:
        """Runs the command."""
        from compiler.frontend.mlir.printer import print_module

        with tempfile.TemporaryDirectory(prefix="xla-explore-") as folder:
            arrays, text = Path(folder, "outputs.npz"), Path(folder, "module.mlir")
            save_arrays(str(arrays), "out", outputs)
            text.write_text(print_module(module), encoding="utf-8")
            words = [w.replace("{outputs}", str(arrays)).replace("{module}", str(text)) for w in self.words]
            environment = {**os.environ, "XLA_EXPLORE_OUTPUTS": str(arrays), "XLA_EXPLORE_MODULE": str(text)}
            try:
                # Its words go to standard error: standard output is the report's.
                done = subprocess.run(words, env=environment, timeout=self.timeout, check=False, stdout=2)
            except subprocess.TimeoutExpired:
                return Verdict(UNKNOWN, f"the command took longer than {self.timeout:g} s")
            except OSError as error:
                return Verdict(UNKNOWN, f"the command cannot be run: {error}")
        if done.returncode == 0:
            return Verdict(GOOD)
        if done.returncode == 125:
            return Verdict(UNKNOWN, "the command exited with 125")
        return Verdict(BAD, f"the command exited with {done.returncode}")


@dataclass
class Case:
    """A model read from a file, the inputs to run it on, and the judge."""

    module: Module
    inputs: Sequence[Array]
    oracle: Oracle
    path: str = ""


def evaluate(module: Module, inputs: Sequence[Array], custom_calls: Any = None) -> list[Array]:
    """The outputs of a program by the reference interpreter.

    Raises:
        EvaluationError: when the program cannot be evaluated.
    """
    from compiler.reference import evaluate as reference_evaluate

    return list(reference_evaluate(module, list(inputs), custom_calls=custom_calls))
