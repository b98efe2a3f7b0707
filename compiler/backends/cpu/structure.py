"""What makes two instructions the same code: operations, types, attributes and called computations, names left out."""

from __future__ import annotations

from collections.abc import Hashable

from compiler.ir.program import Computation, Instruction, Module


def structure_of(module: Module, computation: Computation, instruction: Instruction) -> Hashable:
    """A key under which an instruction's code may be shared with any other of an equal key."""
    operands = tuple(computation[name].type for name in instruction.operands)
    repeats = tuple(instruction.operands.index(name) for name in instruction.operands)
    called = tuple(computation_structure(module, name) for name in instruction.called)
    return (instruction.opcode, operands, repeats, instruction.attributes, instruction.type, called)


def computation_structure(module: Module, name: str) -> Hashable:
    """The key of a computation, instructions numbered in order."""
    computation = module.computations[name]
    number = {entry: position for position, entry in enumerate(computation.instructions)}
    body = tuple(
        (
            instruction.opcode,
            instruction.type,
            tuple(number[operand] for operand in instruction.operands),
            instruction.attributes,
            tuple(computation_structure(module, called) for called in instruction.called),
        )
        for instruction in computation
    )
    return (body, number[computation.root])
