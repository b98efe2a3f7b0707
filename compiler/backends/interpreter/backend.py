"""The `interpreter` backend: the optimised module evaluated by the reference interpreter, instruction by instruction.

Slow and right. It takes every fusion and every operation, ignores the memory plan, and shows what the smallest backend
looks like.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler.analysis.values import CONTROL, NO_CODE, Values, leaves
from compiler.backends.base import (
    Availability,
    BackendError,
    CompileRequest,
    Insertion,
    KernelRecord,
    KernelTime,
)
from compiler.ir.program import Instruction, Module
from compiler.passes.base import Capabilities

Array = np.ndarray[Any, np.dtype[Any]]


class InterpreterCapabilities:
    """Everything is supported; the machine's sizes are nominal."""

    name = "interpreter"
    vector_bytes = 16
    cache_bytes: tuple[int, ...] = (32 << 10, 1 << 20)

    @property
    def threads(self) -> int:
        """One at a time."""
        return 1

    def supports(self, opcode: str) -> bool:
        """Every operation has an evaluation rule."""
        return True

    def accepts_fusion(self, kind: str, opcodes: frozenset[str]) -> str:
        """Any fusion can be evaluated."""
        return ""


class InterpreterExecutable:
    """A module ready to be evaluated."""

    def __init__(self, module: Module, custom_calls: Any, devices: Any = None) -> None:
        self._module = module
        self._devices = devices
        self._custom_calls = custom_calls
        self._types = [leaf for kind in module.entry_computation.parameter_types for _, leaf in leaves(kind)]
        self.kernels = tuple(_records(module))

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """Evaluates the entry.

        Raises:
            BackendError: when an argument does not fit, or something has no value.
        """
        return self._evaluate(arguments, None)

    def _evaluate(self, arguments: Sequence[Array], on_value: Any) -> list[Array]:
        from compiler.reference import EvaluationError, evaluate

        if len(arguments) != len(self._types):
            raise BackendError(f"{len(arguments)} arguments given, the model takes {len(self._types)}")
        for index, (array, kind) in enumerate(zip(arguments, self._types, strict=True)):
            if array.shape != kind.shape or array.dtype != kind.element.dtype:
                raise BackendError(f"argument {index} is {array.dtype}{list(array.shape)}, not {kind}")
        try:
            found = evaluate(
                self._module,
                list(arguments),
                custom_calls=self._custom_calls,
                devices=self._devices,
                on_value=on_value,
            )
        except EvaluationError as error:
            raise BackendError(str(error)) from error
        return [np.array(value) for value in found]

    def profile(self, arguments: Sequence[Array]) -> list[KernelTime]:
        """Time from one value to the next, by instruction."""
        names = {kernel.name for kernel in self.kernels}
        spent: dict[str, list[int]] = {}
        last = [time.perf_counter_ns()]

        def on_value(computation: str, instruction: Instruction, operands: Any, value: Any) -> None:
            now = time.perf_counter_ns()
            if instruction.name in names:
                entry = spent.setdefault(instruction.name, [0, 0])
                entry[0] += now - last[0]
                entry[1] += 1
            last[0] = time.perf_counter_ns()

        self._evaluate(arguments, on_value)
        return [KernelTime(name, entry[0], entry[1]) for name, entry in spent.items()]

    def kernel_form(self, name: str, form: str) -> str:
        """There is no code to show."""
        raise BackendError(f"the interpreter has no {form} form of {name}: it evaluates operations directly")

    def close(self) -> None:
        """Nothing to give back."""


def _records(module: Module) -> list[KernelRecord]:
    """Each instruction that computes something counts as a kernel."""
    found = []
    for computation, name in Values(module).steps:
        instruction = module.instruction(computation, name)
        if instruction.opcode in NO_CODE or instruction.opcode in CONTROL:
            continue
        owner = module.computations[computation]
        read = sum(leaf.bytes for operand in instruction.operands for _, leaf in leaves(owner[operand].type))
        written = sum(leaf.bytes for _, leaf in leaves(instruction.type))
        kind = str(instruction.attributes.get("kind", instruction.opcode))
        found.append(KernelRecord(name, kind, ((computation, name),), read, written, 0.0))
    return found


class InterpreterBackend:
    """See the module's docstring."""

    name = "interpreter"

    def availability(self) -> Availability:
        """Always there."""
        return Availability(True, f"NumPy {np.__version__}, process {os.getpid()}")

    def capabilities(self) -> Capabilities:
        """See `InterpreterCapabilities`."""
        return InterpreterCapabilities()

    def stages(self) -> tuple[Insertion, ...]:
        """Adds none."""
        return ()

    def skips(self) -> frozenset[str]:
        """Runs all."""
        return frozenset()

    def compile(self, request: CompileRequest) -> InterpreterExecutable:
        """Keeps the module."""
        return InterpreterExecutable(request.module, request.custom_calls, request.devices)
