"""Computes what is known when the program is compiled.

Every operation whose operands are constants is evaluated by the reference rules, unless it has effects, is not
deterministic, or its result would be large: a constant costs memory in the program where computing it again may cost
little. What moves or spreads one element (a splat) stays a splat of any size.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np

from compiler.analysis.call_graph import is_pure, reachable
from compiler.ir.editor import Editor
from compiler.ir.literal import Literal, canonical
from compiler.ir.program import Attributes, Computation, Instruction, Module
from compiler.ir.rewrite import Rule
from compiler.ir.types import ElementType, TensorType
from compiler.ops import OPERATIONS
from compiler.ops.record import Trait
from compiler.passes.base import Option, PassContext

FOLD = Rule("fold-constants", "an operation on constants is a constant")

_KEPT = frozenset(
    opcode
    for opcode, entry in OPERATIONS.items()
    if entry.traits & {Trait.SIDE_EFFECT, Trait.NON_DETERMINISTIC, Trait.COLLECTIVE}
    or opcode
    in ("parameter", "constant", "tuple", "optimization_barrier", "custom_call", "while", "iota", "fusion")
    or opcode in ("replica_id", "partition_id", "bitcast", "copy")
)
"""Never folded: effects, chance, what depends on the process, barriers, loops (they may never end), and forms that say
more than their value."""
_SPLAT_MOVES = frozenset(
    ["broadcast_in_dim", "reshape", "transpose", "slice", "reverse", "concatenate", "pad", "select", "gather"]
)


class ConstantFolding:
    """Folds constants in every computation, one walk in program order."""

    name = "constant-folding"
    options = (
        Option(
            "fold-limit",
            65_536,
            "largest number of elements that folding may make where the result takes more memory than its operands",
        ),
        Option("fold-work", 1 << 22, "largest number of operand elements that one folded operation may read"),
    )

    def run(self, editor: Editor, context: PassContext) -> None:
        """Folds until nothing is left to fold."""
        limit = int(context.options.get("fold-limit", self.options[0].default))
        work = int(context.options.get("fold-work", self.options[1].default))
        for computation in reachable(editor):
            state = editor.working(computation)
            for name in state.names():
                instruction = state.instructions.get(name)
                if instruction is None or not _is_foldable(instruction, state.instructions):
                    continue
                value = fold(editor, computation, instruction, limit, work)
                if value is None:
                    continue
                with editor.rewrite(FOLD, computation, name) as edit:
                    edit.replace(
                        name, edit.add("constant", type=value.type, attributes=Attributes(value=value))
                    )


def _is_foldable(instruction: Instruction, instructions: dict[str, Instruction]) -> bool:
    if (
        not instruction.operands
        or instruction.opcode in _KEPT
        or not isinstance(instruction.type, TensorType)
    ):
        return False
    return all(instructions[operand].opcode == "constant" for operand in instruction.operands)


def fold(
    editor: Editor, computation: str, instruction: Instruction, limit: int = 65_536, work: int = 1 << 22
) -> Literal | None:
    """The value of an instruction on constants, or None when it is better left to run time."""
    kind = instruction.type
    if not isinstance(kind, TensorType) or not isinstance(kind.element, ElementType) or not kind.is_static:
        return None
    literals = [editor.get(computation, operand).literal for operand in instruction.operands]
    if any(not isinstance(literal.type.element, ElementType) for literal in literals):
        return None
    splat = _splat(instruction, kind, literals)
    if splat is not None:
        return splat
    if sum(literal.array.size for literal in literals) > work or kind.size == 0:
        return None
    if kind.size > limit and kind.bytes > sum(x.type.bytes for x in literals if not x.is_splat):
        return None
    if instruction.called and not is_pure(editor, instruction):
        return None
    array = evaluate(editor, instruction, literals)
    return None if array is None else canonical(Literal(TensorType(kind.element, kind.shape), array))


def _splat(instruction: Instruction, kind: TensorType, literals: list[Literal]) -> Literal | None:
    """The splat that an operation makes of splats, without ever spreading it out."""
    values = [literal.splat_value for literal in literals]
    if kind.size == 0 or any(value is None for value in values):
        return None
    record = OPERATIONS[instruction.opcode]
    if Trait.ELEMENTWISE in record.traits and kind.element.bits >= 8:
        if any(literal.type.shape not in (kind.shape, ()) for literal in literals):
            return None
        return _scalar(instruction, kind, literals)
    if instruction.opcode not in _SPLAT_MOVES:
        return None
    moved = literals[1:] if instruction.opcode == "select" else literals
    if instruction.opcode == "gather":
        moved = literals[:1]
    bits = {np.asarray(literal.splat_value).tobytes() for literal in moved}
    if len(bits) != 1:
        return None
    return Literal(TensorType(kind.element, kind.shape), np.asarray(moved[0].splat_value))


def _scalar(instruction: Instruction, kind: TensorType, literals: list[Literal]) -> Literal | None:
    """An elementwise operation on splats, computed for one element."""
    scalars = [Literal(TensorType(x.type.element, ()), np.asarray(x.splat_value)) for x in literals]
    one = instruction.with_type(TensorType(kind.element, ()))
    found = _run(one, scalars, {})
    if not isinstance(found, np.ndarray):
        return None
    return Literal(TensorType(kind.element, kind.shape), np.asarray(found[()] if found.ndim == 0 else found))


def evaluate(
    editor: Editor, instruction: Instruction, literals: list[Literal]
) -> np.ndarray[Any, Any] | None:
    """Evaluates one instruction by the reference rules; None when it cannot be evaluated (it is then left alone)."""
    bodies: dict[str, Computation] = {}
    waiting = list(instruction.called)
    while waiting:
        name = waiting.pop()
        if name not in bodies:
            bodies[name] = editor.computation(name)
            waiting.extend(callee for inner in bodies[name] for callee in inner.called)
    found = _run(instruction, literals, bodies)
    return found if isinstance(found, np.ndarray) else None


def _run(instruction: Instruction, literals: list[Literal], bodies: dict[str, Computation]) -> object:
    from compiler.reference import EvaluationError, Interpreter

    names = tuple(f"operand{index}" for index in range(len(literals)))
    body = {
        name: Instruction(name, "parameter", literal.type, (), Attributes(index=index))
        for index, (name, literal) in enumerate(zip(names, literals, strict=True))
    }
    body["value"] = Instruction(
        "value", instruction.opcode, instruction.type, names, instruction.attributes, instruction.called
    )
    entry = Computation("folded", MappingProxyType(body), "value", names)
    module = Module("folded", MappingProxyType({**bodies, "folded": entry}), "folded")
    try:
        return Interpreter(module).run("folded", [literal.array for literal in literals])
    except EvaluationError:
        return None
