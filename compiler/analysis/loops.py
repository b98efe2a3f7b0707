"""Loops as passes see them: the carried elements, which of them never change, and how often the body runs.

A `while` has one operand, its state: a tuple of elements, or a single value, which counts as the only element.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.editor import Editor
from compiler.ir.program import Computation, Instruction
from compiler.ir.types import ElementType, TensorType, TupleType

MAX_TRIPS = 1 << 62


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop with its elements told apart; `inits` are those it starts with. `is_tuple` is False for a single value."""

    computation: str
    instruction: Instruction
    condition: Computation
    body: Computation
    inits: tuple[str, ...]
    is_tuple: bool = True

    @property
    def results(self) -> tuple[str, ...]:
        """Names in the body of the elements' next values."""
        return self.body.root_instruction.operands if self.is_tuple else (self.body.root,)

    @property
    def width(self) -> int:
        """How many elements are carried."""
        return len(self.inits)

    def element_of(self, body: Computation, name: str) -> int | None:
        """Which carried element a value of the body or the condition is, unchanged."""
        i = body[name]
        if not self.is_tuple:
            return 0 if name == body.parameters[0] else None
        if i.opcode == "get_tuple_element" and i.operands[0] == body.parameters[0]:
            index: int = i.attributes["index"]
            return index
        return None

    @property
    def invariant(self) -> frozenset[int]:
        """Elements that the body hands on as they are."""
        return frozenset(k for k, name in enumerate(self.results) if self.element_of(self.body, name) == k)


def loop_at(editor: Editor, computation: str, name: str) -> Loop | None:
    """The loop that a `while` is; None when a tuple state is not put together ahead of it and at the body's end."""
    i = editor.get(computation, name)
    state = editor.get(computation, i.operands[0])
    condition, body = (editor.computation(called) for called in i.called)
    if not isinstance(i.type, TupleType):
        return Loop(computation, i, condition, body, i.operands, False)
    if state.opcode != "tuple":
        return None
    if body.root_instruction.opcode != "tuple" or len(state.operands) != len(i.type.elements):
        return None
    return Loop(computation, i, condition, body, state.operands)


def trip_count(editor: Editor, loop: Loop) -> int | None:
    """How often the body runs, when a counter with known start, step and limit alone decides.

    Counters that would wrap on the way are not counted.
    """
    test = _test(loop)
    if test is None:
        return None
    direction, index, limit = test
    start = _constant(editor.get(loop.computation, loop.inits[index]))
    bound = limit if isinstance(limit, int) else _invariant_constant(editor, loop, limit[0])
    step = _step(loop, index)
    kind = loop.body[loop.results[index]].type
    if start is None or bound is None or step is None or not isinstance(kind, TensorType):
        return None
    return _count(direction, start, bound, step, kind)


def _test(loop: Loop) -> tuple[str, int, int | tuple[int]] | None:
    """The condition as (direction, element, limit): the limit a number, or a 1-tuple of the element that holds it."""
    root = loop.condition.root_instruction
    if root.opcode != "compare":
        return None
    direction: str = root.attributes["comparison_direction"]
    sides = [_side(loop, name) for name in root.operands]
    if sides[0] is None or sides[1] is None:
        return None
    if isinstance(sides[0], int):
        flipped = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}
        sides.reverse()
        direction = flipped.get(direction, direction)
    left, right = sides
    return (direction, left[0], right) if isinstance(left, tuple) and right is not None else None


def _side(loop: Loop, name: str) -> int | tuple[int] | None:
    index = loop.element_of(loop.condition, name)
    return (index,) if index is not None else _constant(loop.condition[name])


def _constant(i: Instruction) -> int | None:
    """The value of an integer scalar constant."""
    if i.opcode != "constant" or not isinstance(i.type, TensorType) or i.type.rank:
        return None
    return int(i.literal.array) if i.type.element.is_integer else None


def _invariant_constant(editor: Editor, loop: Loop, index: int) -> int | None:
    if index not in loop.invariant:
        return None
    return _constant(editor.get(loop.computation, loop.inits[index]))


def _step(loop: Loop, index: int) -> int | None:
    """What the body adds to an element each time."""
    body = loop.body
    i = body[loop.results[index]]
    if i.opcode not in ("add", "subtract"):
        return None
    left, right = (body[name] for name in i.operands)
    if i.opcode == "add" and left.opcode == "constant":
        left, right = right, left
    amount = _constant(right)
    if amount is None or loop.element_of(body, left.name) != index:
        return None
    return amount if i.opcode == "add" else -amount


def _count(direction: str, start: int, bound: int, step: int, kind: TensorType) -> int | None:
    element = kind.element
    if not isinstance(element, ElementType) or not element.is_integer:
        return None
    if direction in ("GT", "GE"):
        direction, start, bound, step = {"GT": "LT", "GE": "LE"}[direction], -start, -bound, -step
    if direction == "LE":
        direction, bound = "LT", bound + 1
    if direction == "NE":
        if step == 0 or (bound - start) % step or (bound - start) // step < 0:
            return None
        return (bound - start) // step
    if direction != "LT":
        return None
    if start >= bound:
        return 0
    if step <= 0:
        return None
    count = -((start - bound) // step)
    low, high = (0, (1 << element.bits) - 1)
    if element.kind == "int":
        low, high = -(1 << (element.bits - 1)), (1 << (element.bits - 1)) - 1
    last = abs(start + count * step)
    return count if last <= min(high, -low if low else high) and count < MAX_TRIPS else None
