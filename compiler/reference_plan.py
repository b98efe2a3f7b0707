"""How the reference interpreter runs a computation: its steps, each with its rule and what dies after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compiler.ir.program import Computation, Instruction, Module
from compiler.ir.types import TensorType, Type
from compiler.ops.record import Evaluate, Evaluation, Trait, Value
from compiler.ops.table import operation

PLAIN_CALLS = frozenset({"call", "composite", "fusion"})
"""Operations that mean no more than their one called computation applied to the operands."""
_SCALAR_MOVES = frozenset({"broadcast_in_dim", "reshape", "transpose", "copy", "bitcast"})


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction, made ready: operand names, its rule, and the values that nobody reads afterwards."""

    instruction: Instruction
    operands: tuple[str, ...]
    evaluate: Evaluate
    evaluation: Evaluation
    dead: tuple[str, ...]
    is_call: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """A computation's steps in order; parameters are none of them."""

    computation: Computation
    steps: tuple[Step, ...]
    root: str


def make_plan(computation: Computation, evaluation: Callable[[Instruction], Evaluation]) -> Plan:
    """Prepares a computation.

    Raises:
        OperationError: for an operation that nobody knows.
    """
    last: dict[str, str] = {}
    for instruction in computation:
        for name in instruction.operands:
            last[name] = instruction.name
        last.setdefault(instruction.name, instruction.name)
    last[computation.root] = ""
    dying: dict[str, list[str]] = {}
    for name, reader in last.items():
        dying.setdefault(reader, []).append(name)
    steps = tuple(
        _step(instruction, evaluation(instruction), tuple(dying.get(instruction.name, ())))
        for instruction in computation
        if instruction.opcode != "parameter"
    )
    return Plan(computation, steps, computation.root)


def _step(instruction: Instruction, evaluation: Evaluation, dead: tuple[str, ...]) -> Step:
    rule = operation(instruction.opcode).evaluate
    is_call = instruction.opcode in PLAIN_CALLS and len(instruction.called) == 1
    return Step(instruction, instruction.operands, rule, evaluation, dead, is_call)


def _first_operand(evaluation: Evaluation, value: Value) -> Value:
    return value


def _is_scalar(kind: Type) -> bool:
    return isinstance(kind, TensorType) and kind.rank == 0


def _is_widenable(module: Module, computation: Computation, instruction: Instruction) -> bool:
    opcode = instruction.opcode
    if opcode in ("parameter", "constant"):
        return _is_scalar(instruction.type)
    if opcode in ("tuple", "get_tuple_element"):
        return True
    if opcode in PLAIN_CALLS:
        return all(_all_widenable(module, module.computations[name]) for name in instruction.called)
    types = [computation[name].type for name in instruction.operands]
    if not _is_scalar(instruction.type) or not all(map(_is_scalar, types)):
        return False
    return opcode in _SCALAR_MOVES or Trait.ELEMENTWISE in operation(opcode).traits


def _all_widenable(module: Module, computation: Computation) -> bool:
    return all(_is_widenable(module, computation, instruction) for instruction in computation)


def widened_plan(
    module: Module, computation: Computation, evaluation: Callable[[Computation, Instruction], Evaluation]
) -> Plan | None:
    """The plan that applies a scalar computation to arrays, or None when something in it is not elementwise."""
    if not _all_widenable(module, computation):
        return None
    plan = make_plan(computation, lambda instruction: evaluation(computation, instruction))
    steps = tuple(
        Step(step.instruction, step.operands, _first_operand, step.evaluation, (), False)
        if step.instruction.opcode in _SCALAR_MOVES
        else step
        for step in plan.steps
    )
    return Plan(computation, steps, plan.root)
