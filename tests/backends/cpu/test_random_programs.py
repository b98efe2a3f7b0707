"""Random programs against the interpreter: fused, and one kernel an instruction."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import random_program
from whole_program import check

from compiler.kernel import schedule


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(3, 25))
def test_fused_programs_agree(seed: int, steps: int) -> None:
    module, arguments = random_program(seed, steps)
    check(module, arguments)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(10_001, 20_000), st.integers(3, 20))
def test_single_kernels_agree(seed: int, steps: int) -> None:
    module, arguments = random_program(seed, steps)
    check(module, arguments, disable="fusion")


@pytest.mark.parametrize("seed", range(500, 540))
def test_tasks_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many tasks as can be, on several threads."""
    monkeypatch.setattr(schedule, "_TASK_NS", 1.0)
    module, arguments = random_program(seed, 14)
    check(module, arguments, threads=4)
    check(module, arguments, threads=4, disable="fusion")


@pytest.mark.parametrize("seed", [1088, 1202, 1300])
def test_reversed_and_reshaped(seed: int) -> None:
    """Programs that once divided negative indices: reshapes of reversed arrays."""
    module, arguments = random_program(seed, 28)
    check(module, arguments)
