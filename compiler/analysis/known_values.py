"""What shape refinement knows of values before the program runs: sizes, and what is computed from them.

A known value is an array, or a tuple of known and unknown (None) parts. Values are computed by the operation records'
own evaluation, so that shape computations mean exactly what they would mean at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from compiler.ir.program import Attributes, Computation, Instruction, Module
from compiler.ir.semantics import OperationError
from compiler.ir.types import QuantizedType, TensorType, TupleType, Type
from compiler.ops import OPERATIONS
from compiler.ops.record import Trait

Array = np.ndarray[Any, np.dtype[Any]]
Known = Array | tuple[Any, ...] | None
"""An array, a tuple of `Known`, or None when nothing is known."""

LIMIT = 4096
"""Elements of the largest value that is followed; shapes are short."""
WORK = 1 << 16
"""Elements of the largest operand that is read to compute a value."""
_FEW = 64
"""Elements of the largest value that a computation is cloned for."""
_UNFOLLOWED = frozenset({"parameter", "while", "fusion", "custom_call", "replica_id", "partition_id", "rng"})
_EFFECTS = frozenset({Trait.SIDE_EFFECT, Trait.NON_DETERMINISTIC, Trait.COLLECTIVE})


@dataclass(frozen=True, slots=True)
class Fact:
    """The static type of a value, and the value if it is known."""

    type: Type
    value: Known = None

    def part(self, index: int) -> Fact:
        """An element of a tuple."""
        assert isinstance(self.type, TupleType)
        return Fact(self.type.elements[index], self.value[index] if isinstance(self.value, tuple) else None)


def is_known(value: Known) -> bool:
    """True when every part is known."""
    return all(map(is_known, value)) if isinstance(value, tuple) else value is not None


def together(values: Sequence[Known]) -> Known:
    """The value of a tuple; None when no part is known."""
    return tuple(values) if any(value is not None for value in values) else None


def digest(value: Known) -> object:
    """Something hashable that equal values share."""
    if isinstance(value, tuple):
        return tuple(map(digest, value))
    return None if value is None else (value.dtype.name, value.shape, value.tobytes())


def evaluate(module: Module, instruction: Instruction, operands: Sequence[Fact]) -> Known:
    """The value of an instruction of static type on known operands; None when it cannot or should not be computed."""
    record = OPERATIONS[instruction.opcode]
    if (
        instruction.opcode in _UNFOLLOWED
        or record.traits & _EFFECTS
        or not _is_small(instruction.type, LIMIT)
    ):
        return None
    if not all(is_known(fact.value) and _is_small(fact.type, WORK) for fact in operands):
        return None
    if any(_is_unfollowed(module, name) for name in instruction.called):
        return None
    try:
        return run(module, instruction, operands)
    except OperationError:
        return None


def run(module: Module, instruction: Instruction, operands: Sequence[Fact]) -> Known:
    """Evaluates an instruction by its record. Raises OperationError when it has no value."""
    from compiler.reference import Evaluation, EvaluationError, Interpreter

    names = tuple(f"operand{index}" for index in range(len(operands)))
    body = {
        name: Instruction(name, "parameter", fact.type, (), Attributes(index=index))
        for index, (name, fact) in enumerate(zip(names, operands, strict=True))
    }
    alone = Instruction(
        "value", instruction.opcode, instruction.type, names, instruction.attributes, instruction.called
    )
    computation = Computation("shapes", MappingProxyType({**body, "value": alone}), "value", names)
    interpreter = Interpreter(Module("shapes", _beside(module, computation, instruction), "shapes"))
    values: list[Any] = [fact.value for fact in operands]
    try:
        with np.errstate(all="ignore"):
            found: Any = OPERATIONS[alone.opcode].evaluate(
                Evaluation(interpreter, computation, alone), *values
            )
    except (EvaluationError, ValueError, TypeError, IndexError, ArithmeticError) as error:
        raise OperationError(str(error)) from None
    return found if isinstance(found, np.ndarray | tuple) else None


def _beside(module: Module, computation: Computation, instruction: Instruction) -> Mapping[str, Computation]:
    """A computation with those that its one instruction calls."""
    called = called_computations(module, instruction.called)
    return {computation.name: computation, **{callee.name: callee for callee in called}}


def relevant(fact: Fact) -> Fact:
    """A fact with only such values as sizes are made of: few integers or booleans."""
    return Fact(fact.type, _sizes_only(fact.value))


def _sizes_only(value: Known) -> Known:
    if isinstance(value, tuple):
        return together([_sizes_only(part) for part in value])
    return value if value is not None and value.dtype.kind in "iub" and value.size <= _FEW else None


def run_computation(module: Module, name: str, arguments: Sequence[Fact]) -> Known:
    """The value of a computation of static types on known arguments; None when it has to be left to run time."""
    from compiler.reference import EvaluationError, Interpreter

    computation = module.computations[name]
    if not _is_small(computation.result_type, LIMIT) or not all(is_known(fact.value) for fact in arguments):
        return None
    if _is_unfollowed(module, name):
        return None
    values: list[Any] = [fact.value for fact in arguments]
    try:
        found = Interpreter(module).run(name, values)
    except EvaluationError:
        return None
    return found if isinstance(found, np.ndarray | tuple) else None


def _is_small(kind: Type, limit: int) -> bool:
    if isinstance(kind, TupleType):
        return all(_is_small(part, limit) for part in kind.elements)
    if not isinstance(kind, TensorType) or isinstance(kind.element, QuantizedType):
        return False
    return kind.is_static and kind.size <= (limit if kind.element.kind in ("bool", "int", "uint") else _FEW)


def _is_unfollowed(module: Module, name: str) -> bool:
    """True when a computation holds something that is not run while shapes are computed."""
    for computation in called_computations(module, (name,)):
        for instruction in computation:
            if instruction.opcode != "parameter" and (
                instruction.opcode in _UNFOLLOWED
                or OPERATIONS[instruction.opcode].traits & _EFFECTS
                or not _is_small(instruction.type, WORK)
            ):
                return True
    return False


def called_computations(module: Module, names: Sequence[str]) -> Iterator[Computation]:
    """The named computations and all that they call, each once."""
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        computation = module.computations[name]
        yield computation
        waiting.extend(callee for instruction in computation for callee in instruction.called)
