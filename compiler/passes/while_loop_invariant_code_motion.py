"""Moves out of a loop what each turn would compute anew from values that never change.

After simplification, when what is left in a body is real work. What moves out travels back in through the loop's state, so
it must be worth a buffer: shapes alone (broadcasts, reshapes, iotas) stay, and nothing moves that is larger than what it is
made from by more than the option allows.
"""

from __future__ import annotations

from compiler.analysis.values import CONTROL
from compiler.ir.editor import Edit, Editor
from compiler.ir.program import Attributes, Computation, Instruction
from compiler.ir.rewrite import Rule
from compiler.ir.types import TensorType, TupleType
from compiler.ops import OPERATIONS
from compiler.ops.record import Trait
from compiler.passes.base import Option, PassContext

HOIST = Rule("hoist-loop-invariant", "f(x) is the same in every turn when x is")

NOT_ALONE = frozenset(
    {
        "constant",
        "iota",
        "broadcast_in_dim",
        "reshape",
        "bitcast",
        "tuple",
        "get_tuple_element",
        "slice",
        "copy",
    }
)
"""Moves only together with work that needs it."""


class WhileLoopInvariantCodeMotion:
    """See the module's docstring."""

    name = "while-loop-invariant-code-motion"
    options: tuple[Option, ...] = (
        Option(
            "licm_max_growth",
            4,
            "a hoisted value is at most this many times as large as what it is made from",
        ),
    )

    def run(self, editor: Editor, context: PassContext) -> None:
        """Works from the innermost loops outwards, so that values can leave several."""
        growth = int(context.options.get("licm_max_growth", 4))
        for computation in editor.computations():
            for instruction in list(editor.computation(computation)):
                if instruction.opcode == "while":
                    context.check_cancelled()
                    _hoist(editor, computation, editor.get(computation, instruction.name), growth)


def _hoist(editor: Editor, computation: str, loop: Instruction, growth: int) -> None:
    users = [editor.get(computation, user) for user in editor.users(computation, loop.name)]
    taken_apart = all(user.opcode == "get_tuple_element" for user in users)
    if (
        not isinstance(loop.type, TupleType)
        or not taken_apart
        or editor.working(computation).root == loop.name
    ):
        return
    body = editor.computation(loop.called[1])
    invariant = invariant_elements(body)
    movable = _movable(editor, body, invariant, growth)
    if movable:
        with editor.rewrite(HOIST, computation, loop.name) as edit:
            _move(editor, edit, computation, loop, body, invariant, movable)


def invariant_elements(body: Computation) -> dict[str, int]:
    """`get_tuple_element`s of the body's parameter that the body returns in the same place, with their index."""
    root = body.root_instruction
    if root.opcode != "tuple":
        return {}
    found = {}
    for instruction in body:
        if instruction.opcode == "get_tuple_element" and instruction.operands[0] == body.parameters[0]:
            index = instruction.attributes["index"]
            kept = body[root.operands[index]]
            same_place = kept.opcode == instruction.opcode and kept.operands == instruction.operands
            if same_place and kept.attributes["index"] == index:
                found[instruction.name] = index
    return found


def _movable(
    editor: Editor, body: Computation, invariant: dict[str, int], growth: int
) -> dict[str, Instruction]:
    """Instructions that depend on invariants alone and are worth it, with the shapes that they need."""
    fixed: dict[str, Instruction] = {}
    for instruction in body:
        if instruction.name in invariant or not isinstance(instruction.type, TensorType):
            continue
        if instruction.opcode in CONTROL or instruction.opcode == "parameter":
            continue
        if not all(operand in invariant or operand in fixed for operand in instruction.operands):
            continue
        record = OPERATIONS.get(instruction.opcode)
        if record is None or Trait.NON_DETERMINISTIC in record.traits or editor.effectful(instruction):
            continue
        fixed[instruction.name] = instruction
    wanted: set[str] = set()
    for name, instruction in fixed.items():
        if instruction.opcode in NOT_ALONE or not instruction.operands:
            continue
        sources = sum(body[operand].type.bytes for operand in instruction.operands)
        if instruction.tensor.bytes <= growth * max(sources, 64):
            wanted.add(name)
    for name in reversed(list(fixed)):
        if name in wanted:
            wanted.update(operand for operand in fixed[name].operands if operand in fixed)
    return {name: instruction for name, instruction in fixed.items() if name in wanted}


def _move(
    editor: Editor,
    edit: Edit,
    computation: str,
    loop: Instruction,
    body: Computation,
    invariant: dict[str, int],
    movable: dict[str, Instruction],
) -> None:
    state = loop.operands[0]
    outside: dict[str, str] = {}
    for name, instruction in movable.items():
        operands = []
        for operand in instruction.operands:
            if operand not in outside:
                outside[operand] = _element(editor, edit, computation, state, invariant[operand])
            operands.append(outside[operand])
        outside[name] = edit.add(
            instruction.opcode,
            operands,
            type=instruction.type,
            attributes=instruction.attributes,
            called=instruction.called,
            location=instruction.location,
        )
    frontier = [name for name in movable if _is_needed(editor, body, name, movable)]
    widen_state(editor, edit, computation, loop, [outside[name] for name in frontier])
    first = len(loop.type.elements)  # type: ignore[union-attr]
    parameter = body.parameters[0]
    for offset, name in enumerate(frontier):
        inside = edit.add(
            "get_tuple_element",
            [parameter],
            type=movable[name].type,
            attributes=Attributes(index=first + offset),
            computation=body.name,
            before=name,
        )
        edit.replace(name, inside, body.name)
    edit.note = f"{len(movable)} instructions leave {body.name}"


def _is_needed(editor: Editor, body: Computation, name: str, movable: dict[str, Instruction]) -> bool:
    """True for a moved value that something which stays reads. Shapes of constants are made anew inside instead."""
    if movable[name].opcode in NOT_ALONE:
        return False
    return any(user not in movable for user in editor.users(body.name, name)) or body.root == name


def _element(editor: Editor, edit: Edit, computation: str, state: str, index: int) -> str:
    instruction = editor.get(computation, state)
    if instruction.opcode == "tuple":
        return instruction.operands[index]
    assert isinstance(instruction.type, TupleType)
    kind = instruction.type.elements[index]
    return edit.add("get_tuple_element", [state], type=kind, attributes=Attributes(index=index))


def widen_state(editor: Editor, edit: Edit, computation: str, loop: Instruction, values: list[str]) -> None:
    """Adds elements to a loop's state that its body hands on unchanged."""
    assert isinstance(loop.type, TupleType)
    types = [editor.get(computation, value).type for value in values]
    wide = TupleType((*loop.type.elements, *types))
    first = len(loop.type.elements)
    elements = [_element(editor, edit, computation, loop.operands[0], index) for index in range(first)]
    state = edit.add("tuple", [*elements, *values], type=wide)
    for name in loop.called:
        parameter = editor.get(name, editor.computation(name).parameters[0])
        edit.update(parameter.with_type(wide), name)
    body = editor.computation(loop.called[1])
    root = body.root_instruction
    assert root.opcode == "tuple"
    passed = [
        edit.add(
            "get_tuple_element",
            [body.parameters[0]],
            type=kind,
            attributes=Attributes(index=first + offset),
            computation=body.name,
            before=root.name,
        )
        for offset, kind in enumerate(types)
    ]
    made = edit.add("tuple", [*root.operands, *passed], type=wide, computation=body.name, before=root.name)
    edit.set_root(made, body.name)
    edit.remove(root.name, body.name)
    edit.update(loop.with_operands((state,)).with_type(wide))
    old = editor.get(computation, loop.operands[0])
    if old.opcode == "tuple" and not editor.users(computation, old.name):
        edit.remove(old.name)
