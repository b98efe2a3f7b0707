"""Static types from dynamic ones: what an instruction yields once its operands' sizes are known.

Used by shape refinement. A declared type tells the elements and the sizes written in the program; inference from the
operands' static types, or the operation's own rule, tells the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from compiler.analysis.static_forms import UnknownSize
from compiler.ir.location import source_line
from compiler.ir.program import Computation, Instruction
from compiler.ir.semantics import OperationError
from compiler.ir.types import DYNAMIC, TensorType, TupleType, Type
from compiler.ops import OPERATIONS, SEMANTICS
from compiler.ops.constraints import compatible, merged_shape
from compiler.ops.custom_targets import IDENTITIES
from compiler.ops.record import Site, Trait


class RefinementError(Exception):
    """A program cannot be made static for these arguments; one line. `instruction` names where, `message` says why."""

    def __init__(self, message: str, instruction: Instruction | None = None) -> None:
        self.message = message
        self.instruction = instruction
        super().__init__(self._text())

    def _text(self) -> str:
        if self.instruction is None:
            return self.message
        line = source_line(self.instruction.location)
        return f"{f'{line}: ' if line else ''}{self.subject}: {self.message}"

    @property
    def subject(self) -> str:
        """The instruction and its operation, as messages name it."""
        return f"{self.instruction.name} ({self.instruction.opcode})" if self.instruction else ""


def is_static(kind: Type) -> bool:
    """True when no size in the type is unknown and none is merely bounded."""
    if isinstance(kind, TupleType):
        return all(map(is_static, kind.elements))
    return not isinstance(kind, TensorType) or (kind.is_static and kind.bounds is None)


def entry_type(index: int, declared: Type, given: Type) -> Type:
    """The static type of an entry parameter. Raises RefinementError when the argument does not fit."""
    if not is_static(given):
        raise RefinementError(f"argument #{index} needs a shape: the model takes {declared}")
    if not compatible(declared, given):
        raise RefinementError(f"argument #{index} is {given}, but the model takes {declared}")
    return _merged(declared, given)


def refined_type(instruction: Instruction, operands: Sequence[Type], called: Sequence[Computation]) -> Type:
    """The static type of an instruction's result.

    Raises:
        OperationError: when the operands' types contradict each other or the declared type, or break a constraint.
        UnknownSize: when a size does not follow from them.
    """
    declared = instruction.type
    site = Site(instruction.opcode, operands, instruction.attributes, called, declared)
    found = OPERATIONS[instruction.opcode].infer(site)
    if not compatible(found, declared):
        raise OperationError(f"has the type {found}, but {declared} is declared")
    merged = _merged(declared, found)
    if not is_static(merged):
        merged = _by_rule(instruction, operands, merged)
    if not is_static(merged):
        raise UnknownSize(
            f"its type is {merged}, and the missing sizes do not follow from the argument shapes"
        )
    SEMANTICS.verify(instruction.opcode, operands, instruction.attributes, called, merged)
    return merged


def _merged(declared: Type, found: Type) -> Type:
    """The declared type with the sizes that were found in place of unknown ones."""
    if isinstance(declared, TupleType) and isinstance(found, TupleType):
        parts = tuple(map(_merged, declared.elements, found.elements))
        return declared if parts == declared.elements else type(declared)(parts)
    if not isinstance(declared, TensorType) or not isinstance(found, TensorType):
        return declared
    if declared.is_static:
        return declared
    shape = tuple(b if a == DYNAMIC else a for a, b in zip(declared.shape, found.shape, strict=True))
    return declared.with_shape(shape)


def _by_rule(instruction: Instruction, operands: Sequence[Type], kind: Type) -> Type:
    """Sizes of operations whose inference takes the declared type at its word."""
    tensors = [entry for entry in operands if isinstance(entry, TensorType)]
    opcode, attributes = instruction.opcode, instruction.attributes
    if opcode == "custom_call" and attributes["call_target_name"] in IDENTITIES:
        return _merged(kind, operands[0] if len(operands) == 1 else TupleType(tuple(operands)))
    if not isinstance(kind, TensorType) or not tensors:
        return kind
    if opcode == "reshape" and kind.shape.count(DYNAMIC) == 1:
        others = math.prod(size for size in kind.shape if size != DYNAMIC)
        size = tensors[0].size // others if others else 0
        return kind.with_shape(tuple(size if entry == DYNAMIC else entry for entry in kind.shape))
    if opcode == "broadcast_in_dim":
        shape = list(kind.shape)
        for index, dimension in enumerate(attributes["broadcast_dimensions"]):
            if tensors[0].shape[index] != 1:
                shape[dimension] = tensors[0].shape[index]
        return kind.with_shape(tuple(shape))
    if opcode == "bitcast_convert":
        leading = tensors[0].shape[: kind.rank]
        return _merged(kind, kind.with_shape((*leading, *kind.shape[len(leading) :])))
    if Trait.ELEMENTWISE in OPERATIONS[opcode].traits:
        shape_found = merged_shape([entry for entry in tensors if entry.rank == kind.rank])
        return _merged(kind, kind.with_shape(shape_found)) if shape_found is not None else kind
    return kind
