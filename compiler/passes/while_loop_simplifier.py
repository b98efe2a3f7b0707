"""Loops whose number of turns is known: none, one, or a number worth writing down.

A loop that counts (its state holds a number that starts at a constant, grows by a constant and is compared with a constant)
runs a known number of times. Without a turn it is its initial state, with one it is its body; otherwise the number is noted
in the attribute `known_trip_count`, which costs and schedules are made from.
"""

from __future__ import annotations

from compiler.ir.editor import Editor
from compiler.ir.program import Computation, Instruction
from compiler.ir.rewrite import Rule
from compiler.ir.types import ElementType, TensorType
from compiler.passes.base import Option, PassContext
from compiler.passes.inlining import clone_into

NO_TURN = Rule("while-no-turn", "while(false, x) = x")
ONE_TURN = Rule("while-one-turn", "a loop of one turn is its body")
COUNTED = Rule("while-trip-count", "a loop that counts from a by s until b turns ceil((b - a) / s) times")


class WhileLoopSimplifier:
    """See the module's docstring."""

    name = "while-loop-simplifier"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Looks at every loop."""
        for computation in editor.computations():
            for name in editor.working(computation).names():
                state = editor.working(computation).instructions
                if name in state and state[name].opcode == "while":
                    _simplify(editor, computation, state[name])


def _simplify(editor: Editor, computation: str, loop: Instruction) -> None:
    count = trip_count(editor, computation, loop)
    if count is None:
        return
    body = editor.computation(loop.called[1])
    if count == 0 and not editor.effectful(loop):
        with editor.rewrite(NO_TURN, computation, loop.name) as edit:
            edit.replace(loop.name, loop.operands[0])
    elif count == 1 and not editor.effectful(loop):
        with editor.rewrite(ONE_TURN, computation, loop.name) as edit:
            edit.replace(loop.name, clone_into(edit, body, loop.operands, loop.location))
    elif loop.attributes.get("known_trip_count") != count:
        with editor.rewrite(COUNTED, computation, loop.name) as edit:
            edit.update(loop.with_attributes(loop.attributes.having(known_trip_count=count)))
            edit.note = f"{count} turns"


def trip_count(editor: Editor, computation: str, loop: Instruction) -> int | None:
    """How often a loop runs its body; None when that is not known."""
    condition, body = (editor.computation(name) for name in loop.called)
    test = condition.root_instruction
    if test.opcode != "compare":
        return None
    for counter, limit, mirrored in ((0, 1, False), (1, 0, True)):
        index = _state_index(condition, test.operands[counter])
        bound = _constant(condition, test.operands[limit])
        if index is None or bound is None:
            continue
        start = _initial(editor, computation, loop.operands[0], index)
        step = _step(body, index)
        if start is None or step is None:
            return None
        kind = condition[test.operands[counter]].tensor.element
        assert isinstance(kind, ElementType)
        direction = test.attributes["comparison_direction"]
        return _count(start, step, bound, _MIRROR[direction] if mirrored else direction, kind)
    return None


_MIRROR = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}


def _state_index(owner: Computation, name: str) -> int | None:
    """Which element of the state a value is; -1 for the whole state."""
    instruction = owner[name]
    if not isinstance(instruction.type, TensorType) or not instruction.type.element.is_integer:
        return None
    if instruction.opcode == "parameter":
        return -1
    if instruction.opcode == "get_tuple_element" and instruction.operands[0] == owner.parameters[0]:
        return int(instruction.attributes["index"])
    return None


def _constant(owner: Computation, name: str) -> int | None:
    instruction = owner[name]
    if (
        instruction.opcode != "constant"
        or instruction.tensor.size != 1
        or not instruction.tensor.element.is_integer
    ):
        return None
    return int(instruction.literal.array.reshape(-1)[0])


def _initial(editor: Editor, computation: str, state: str, index: int) -> int | None:
    owner = editor.computation(computation)
    if index >= 0:
        made = owner[state]
        if made.opcode != "tuple":
            return None
        state = made.operands[index]
    return _constant(owner, state)


def _step(body: Computation, index: int) -> int | None:
    """By how much a turn changes the element; 0 is given as None (it never ends or never starts by itself)."""
    root = body.root_instruction
    if index >= 0:
        if root.opcode != "tuple":
            return None
        root = body[root.operands[index]]
    if root.opcode not in ("add", "subtract"):
        return None
    for value, amount in ((0, 1), (1, 0)):
        if _state_index(body, root.operands[value]) == index:
            step = _constant(body, root.operands[amount])
            if step is None or (root.opcode == "subtract" and value == 1):
                return None
            return -step if root.opcode == "subtract" else step
    return None


def _holds(left: int, direction: str, right: int) -> bool:
    return {
        "LT": left < right,
        "LE": left <= right,
        "GT": left > right,
        "GE": left >= right,
        "EQ": left == right,
        "NE": left != right,
    }[direction]


def _count(start: int, step: int, bound: int, direction: str, kind: ElementType) -> int | None:
    if not _holds(start, direction, bound):
        return 0
    low, high = (
        (0, (1 << kind.bits) - 1)
        if kind.kind == "uint"
        else (-(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1)
    )
    if step > 0 and direction in ("LT", "LE"):
        end = bound if direction == "LT" else bound + 1
        turns = -(-(end - start) // step)
        return turns if start + turns * step <= high else None
    if step < 0 and direction in ("GT", "GE"):
        end = bound if direction == "GT" else bound - 1
        turns = -(-(start - end) // -step)
        return turns if start + turns * step >= low else None
    if direction == "NE" and step and (bound - start) % step == 0 and (bound - start) // step > 0:
        return (bound - start) // step
    return None
