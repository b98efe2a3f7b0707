"""How the index of a result element maps to indices of operand elements, for each operation that moves data.

Where an operation takes its elements from one operand, the map is one tuple of index expressions; where the operand
depends on the index (pad, concatenate, a dynamic update), the pieces say under which conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compiler.ir.program import Instruction
from compiler.ir.types import TensorType
from compiler.kernel.elemental import Within
from compiler.kernel.index_expression import (
    ZERO,
    Index,
    constant_index,
    delinearise,
    dot,
    linearise,
    physical_strides,
)

Indices = tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a result: taken from operand `operand` at `indices`, where all `conditions` hold."""

    conditions: tuple[Within, ...]
    operand: int
    indices: Indices


def broadcast(instruction: Instruction, operand: TensorType, at: Indices) -> Indices:
    """`broadcast_in_dim`: dimensions of size 1 stay at their only element."""
    dimensions = instruction.attributes["broadcast_dimensions"]
    return tuple(ZERO if size == 1 else at[d] for size, d in zip(operand.shape, dimensions, strict=True))


def transpose(instruction: Instruction, operand: TensorType, at: Indices) -> Indices:
    """`transpose`."""
    found = [ZERO] * operand.rank
    for position, dimension in enumerate(instruction.attributes["permutation"]):
        found[dimension] = at[position]
    return tuple(found)


def reverse(instruction: Instruction, operand: TensorType, at: Indices) -> Indices:
    """`reverse`."""
    turned = set(instruction.attributes["dimensions"])
    return tuple(
        constant_index(operand.shape[d] - 1) - index if d in turned else index for d, index in enumerate(at)
    )


def slice_(instruction: Instruction, operand: TensorType, at: Indices) -> Indices:
    """`slice`."""
    starts = instruction.attributes["start_indices"]
    strides = instruction.attributes.get("strides") or (1,) * len(starts)
    return tuple(index * stride + start for index, start, stride in zip(at, starts, strides, strict=True))


def reshape(operand: TensorType, result: TensorType, at: Indices, *, split: bool) -> Indices:
    """`reshape`: groups of dimensions that hold as many elements on both sides are mapped one by one."""
    found = [ZERO] * operand.rank
    inner = [d for d, size in enumerate(operand.shape) if size != 1]
    outer = [d for d, size in enumerate(result.shape) if size != 1]
    left = right = 0
    while left < len(inner):
        first_in, first_out = left, right
        inside, outside = operand.shape[inner[left]], result.shape[outer[right]]
        left, right = left + 1, right + 1
        while inside != outside:
            if inside < outside:
                inside *= operand.shape[inner[left]]
                left += 1
            else:
                outside *= result.shape[outer[right]]
                right += 1
        group_in, group_out = inner[first_in:left], outer[first_out:right]
        number = linearise([at[d] for d in group_out], tuple(result.shape[d] for d in group_out))
        parts = delinearise(number, tuple(operand.shape[d] for d in group_in), split=split)
        for dimension, index in zip(group_in, parts, strict=True):
            found[dimension] = index
    return tuple(found)


def bitcast(operand: TensorType, result: TensorType, at: Indices, *, split: bool) -> Indices:
    """The same memory under another shape and layout: the element at the same place."""
    if operand.layout is None and result.layout is None:
        return reshape(operand, result, at, split=split)
    place = dot(at, physical_strides(result.shape, result.minor_to_major))
    order = tuple(reversed(operand.minor_to_major))
    found = [ZERO] * operand.rank
    parts = delinearise(place, tuple(operand.shape[d] for d in order), split=split)
    for dimension, index in zip(order, parts, strict=True):
        found[dimension] = index
    return tuple(found)


def pad(instruction: Instruction, operand: TensorType, at: Indices) -> list[Piece]:
    """`pad`: the operand's piece first, then the padding value."""
    attributes = instruction.attributes
    conditions: list[Within] = []
    inner: list[Index] = []
    for d, index in enumerate(at):
        step = attributes["interior_padding"][d] + 1
        low = attributes["edge_padding_low"][d]
        moved = index - low
        span = (operand.shape[d] - 1) * step + 1 if operand.shape[d] else 0
        conditions.append(Within(moved, 0, span))
        if step > 1:
            moved, rest = moved.divided(step)
            conditions.append(Within(rest, 0, 1))
        inner.append(moved)
    return [Piece(tuple(conditions), 0, tuple(inner)), Piece((), 1, ())]


def concatenate(instruction: Instruction, operands: Sequence[TensorType], at: Indices) -> list[Piece]:
    """`concatenate`: one piece an operand, in order; those without elements have none."""
    dimension = instruction.attributes["dimension"]
    start = 0
    pieces: list[Piece] = []
    for number, operand in enumerate(operands):
        size = operand.shape[dimension]
        if size:
            moved = (*at[:dimension], at[dimension] - start, *at[dimension + 1 :])
            pieces.append(Piece((Within(at[dimension] - start, 0, size),), number, moved))
        start += size
    return pieces


Mover = Callable[[Instruction, TensorType, Indices], Indices]

MOVERS: dict[str, Mover] = {
    "broadcast_in_dim": broadcast,
    "transpose": transpose,
    "reverse": reverse,
    "slice": slice_,
    "copy": lambda instruction, operand, at: at,
}
"""Operations that read one element of their only operand."""
