"""Computes once, ahead of a loop, what its body would compute the same way each time.

Only what is worth carrying is moved: not constants, reshapes and broadcasts alone, which cost less to make than to keep,
and nothing whose result is larger than what it reads. What such a value needs moves with it.
"""

from __future__ import annotations

from compiler.analysis.call_graph import is_pure, reachable
from compiler.analysis.loops import Loop, loop_at
from compiler.ir.editor import Edit, Editor
from compiler.ir.program import Instruction
from compiler.ir.rewrite import Rule
from compiler.ir.types import TensorType
from compiler.ops import OPERATIONS
from compiler.ops.record import Trait
from compiler.passes.base import Option, PassContext
from compiler.passes.inlining import inlined_location
from compiler.passes.loop_state import Callers, change_state

HOIST = Rule(
    "hoist-invariant", "what a loop computes of unchanging values alone has one value in every round"
)

_CHEAP = frozenset(
    [
        "constant",
        "iota",
        "broadcast_in_dim",
        "reshape",
        "get_tuple_element",
        "tuple",
        "convert",
        "transpose",
        "slice",
    ]
)
_STAY = frozenset({"parameter", "tuple", "optimization_barrier", "after_all", "create_token"})


class WhileLoopInvariantCodeMotion:
    """Hoists, inner loops first, so that a value can leave several loops."""

    name = "while-loop-invariant-code-motion"
    options = (
        Option("hoist-bytes", 1024, "values up to this size are hoisted whatever they are computed from"),
    )

    def run(self, editor: Editor, context: PassContext) -> None:
        """Hoists out of every loop whose computations are its own."""
        callers = Callers(editor)
        small = int(context.options.get("hoist-bytes", self.options[0].default))
        for computation in reachable(editor):
            for name in [i.name for i in editor.computation(computation) if i.opcode == "while"]:
                loop = loop_at(editor, computation, name)
                if loop is not None and loop.is_tuple and callers.is_exclusive(loop):
                    _hoist(editor, loop, small)


def _hoist(editor: Editor, loop: Loop, small: int) -> None:
    fixed = _fixed(editor, loop)
    worthy = [name for name in fixed if _is_worth_it(editor, loop, name, fixed, small)]
    if not worthy:
        return
    with editor.rewrite(HOIST, loop.computation, loop.instruction.name) as edit:
        edit.note = f"{len(worthy)} values"
        made: dict[str, str] = {}
        outer = [_outside(edit, loop, name, made) for name in worthy]
        handed = change_state(editor, edit, loop, added=outer)
        for name, inner in zip(worthy, handed, strict=True):
            edit.replace(name, inner, loop.body.name)


def _fixed(editor: Editor, loop: Loop) -> dict[str, Instruction]:
    """The body's values that are the same in every round, in order."""
    fixed: dict[str, Instruction] = {}
    invariant = loop.invariant
    for i in loop.body:
        index = loop.element_of(loop.body, i.name)
        if index is not None:
            if index in invariant:
                fixed[i.name] = i
        elif i.opcode not in _STAY and isinstance(i.type, TensorType):
            movable = Trait.CONTROL not in OPERATIONS[i.opcode].traits and is_pure(editor, i)
            if movable and all(operand in fixed for operand in i.operands):
                fixed[i.name] = i
    return fixed


def _is_worth_it(editor: Editor, loop: Loop, name: str, fixed: dict[str, Instruction], small: int) -> bool:
    i = fixed[name]
    if i.opcode in _CHEAP or not i.operands:
        return False
    if all(user in fixed and fixed[user].opcode not in _CHEAP for user in editor.users(loop.body.name, name)):
        return False
    if all(_is_constant(fixed, operand) for operand in i.operands):
        return False
    return i.type.bytes <= max(small, sum(fixed[operand].type.bytes for operand in i.operands))


def _is_constant(fixed: dict[str, Instruction], name: str) -> bool:
    i = fixed[name]
    if i.opcode not in _CHEAP or i.opcode == "get_tuple_element":
        return False
    return all(_is_constant(fixed, operand) for operand in i.operands)


def _outside(edit: Edit, loop: Loop, name: str, made: dict[str, str]) -> str:
    """Computes a fixed value of the body ahead of the loop."""
    index = loop.element_of(loop.body, name)
    if index is not None:
        return loop.inits[index]
    if name not in made:
        i = loop.body[name]
        operands = [_outside(edit, loop, operand, made) for operand in i.operands]
        where = inlined_location(i.location, loop.instruction.location)
        made[name] = edit.add(
            i.opcode, operands, type=i.type, attributes=i.attributes, called=i.called, location=where
        )
    return made[name]
