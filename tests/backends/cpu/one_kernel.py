"""Runs the kernel of a program's one interesting instruction on guarded memory, beside the reference interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from guarded import Array, Side, run_kernel

from compiler.analysis.values import leaves
from compiler.backends.cpu.jit import ModuleCompiler
from compiler.backends.cpu.kernel_code import KernelCode, kernel_module
from compiler.backends.cpu.lowered import Use
from compiler.backends.cpu.lowering import Lowering
from compiler.backends.cpu.target import detect
from compiler.frontend.mlir import parse_module
from compiler.ir.program import Computation, Instruction, Module
from compiler.reference import evaluate

Emitter = Callable[[Lowering, Computation, Instruction], Use | None]


@lru_cache(maxsize=1)
def compiler() -> ModuleCompiler:
    return ModuleCompiler(detect())


def lowering(module: Module, threads: int) -> Lowering:
    return Lowering(module, compiler().target, threads)


def find(module: Module, opcode: str) -> Instruction:
    (found,) = [entry for entry in module.entry_computation if entry.opcode == opcode]
    return found


def emit(module: Module, opcode: str, emitter: Emitter, threads: int = 4) -> Use | None:
    return emitter(lowering(module, threads), module.entry_computation, find(module, opcode))


def run_both(
    text: str,
    opcode: str,
    emitter: Emitter,
    arguments: Sequence[Array],
    *,
    side: Side = "end",
    threads: int = 4,
) -> tuple[list[Array], list[Array]]:
    """What the kernel gives and what the interpreter gives; the program's parameters are the operands in order."""
    module = parse_module(text)
    instruction = find(module, opcode)
    use = emit(module, opcode, emitter, threads)
    assert use is not None
    assert isinstance(use.code, KernelCode)
    library = compiler().load(kernel_module([use.code]))
    outputs = [np.full(kind.shape, 1, kind.element.dtype) for _, kind in leaves(instruction.type)]
    ranges = min(use.code.tasks, 3)
    after = run_kernel(library, use.code, [*arguments, *outputs], side, ranges)
    for before, same in zip(arguments, after, strict=False):
        assert same_bits(before, same)
    return after[len(arguments) :], evaluate(module, list(arguments))


def same_bits(left: Array, right: Array) -> bool:
    same_type = left.dtype == right.dtype and left.shape == right.shape
    return bool(same_type and left.tobytes() == right.tobytes())
