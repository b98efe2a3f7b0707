"""Whether an instruction may write its result over one of its operands.

Copy insertion and buffer assignment ask; every backend's kernels must honour a yes. The rule that kernels keep: a kernel
reads all operand elements that a block of result elements needs before it writes that block, and a shareable operand's
element is needed by the same-placed result element alone.
"""

from __future__ import annotations

from compiler.ir.program import Computation, Instruction, Module
from compiler.ir.types import TensorType, TupleType, Type

_IN_PLACE_ZERO = frozenset({"dynamic_update_slice", "scatter"})
"""Operations that change some elements of operand 0 and leave the others where they are."""
_SAME_PLACE = frozenset({"copy", "reshape"})


def _is_elementwise(opcode: str) -> bool:
    from compiler.ops import OPERATIONS
    from compiler.ops.record import Trait

    record = OPERATIONS.get(opcode)
    return record is not None and Trait.ELEMENTWISE in record.traits


def _same_place(left: Type, right: Type) -> bool:
    if not isinstance(left, TensorType) or not isinstance(right, TensorType):
        return False
    same_bytes = left.element.storage_bytes == right.element.storage_bytes
    return same_bytes and left.shape == right.shape and left.minor_to_major == right.minor_to_major


def may_share(module: Module, instruction: Instruction, operand: int) -> bool:
    """True when the result (each leaf of a fusion's) may take the buffer of this operand, if nobody needs it later.

    An operand that is given twice is never shared, for the other use may be of another place.
    """
    name = instruction.operands[operand]
    if instruction.operands.count(name) > 1:
        return _is_elementwise(instruction.opcode)
    if instruction.opcode in _IN_PLACE_ZERO:
        return operand == 0 and isinstance(instruction.type, TensorType)
    if instruction.opcode == "fusion":
        return _fusion_may_share(module.computations[instruction.called[0]], operand)
    return instruction.opcode in _SAME_PLACE or _is_elementwise(instruction.opcode)


def _fusion_may_share(body: Computation, operand: int) -> bool:
    """Every way from the parameter to a root keeps each element in its place."""
    parameter = body[body.parameters[operand]]
    root = body.root_instruction
    outputs = [body[name] for name in root.operands] if root.opcode == "tuple" else [root]
    if isinstance(root.type, TupleType) and root.opcode != "tuple":
        return False
    if any(not _same_place(parameter.type, output.type) for output in outputs):
        return False
    in_place = {parameter.name}
    for instruction in body:
        if instruction.name == parameter.name or (instruction is root and root.opcode == "tuple"):
            continue
        touched = [index for index, name in enumerate(instruction.operands) if name in in_place]
        if not touched:
            continue
        if instruction.opcode in _IN_PLACE_ZERO:
            if touched != [0] or instruction.operands[0] != parameter.name or instruction not in outputs:
                return False
        elif not _is_elementwise(instruction.opcode) or not _same_place(parameter.type, instruction.type):
            return False
        in_place.add(instruction.name)
    return True
