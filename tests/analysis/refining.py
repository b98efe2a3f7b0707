"""Makes programs static and runs them, for tests of shape refinement."""

from __future__ import annotations

import numpy as np

from compiler.analysis.refined_types import is_static
from compiler.analysis.shape_refinement import Refined, is_dynamic_module, refine
from compiler.driver import compile_module
from compiler.frontend.mlir import parse_module
from compiler.ir.program import Module
from compiler.ir.types import TensorType, element_of_dtype
from compiler.ir.verifier import verify
from compiler.ops import SEMANTICS
from compiler.reference import evaluate


def refined(text: str, *arguments: np.ndarray, sizes: int = 0) -> Refined:
    """The program for some arguments, of which the first `sizes` tell sizes; it must be static and valid."""
    types = [TensorType(element_of_dtype(array.dtype), array.shape) for array in arguments]
    found = refine(parse_module(text), types, {index: arguments[index] for index in range(sizes)})
    verify(found.module, SEMANTICS)
    assert not is_dynamic_module(found.module)
    for computation in found.module.computations.values():
        assert all(is_static(instruction.type) for instruction in computation)
    return found


def run(module: Module, *arguments: np.ndarray) -> list[np.ndarray]:
    """The outputs, which must be the same on both backends."""
    wanted = evaluate(module, arguments)
    executable = compile_module(module).executable
    try:
        got = executable.run(list(arguments))
    finally:
        executable.close()
    for left, right in zip(got, wanted, strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)
    return list(wanted)


def opcodes(module: Module) -> set[str]:
    return {i.opcode for computation in module.computations.values() for i in computation}


def floats(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape), dtype=np.float32) - 3).reshape(shape)
