"""How the operations that are neither elementwise nor plain data movement expand, one rule an operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compiler.ir.program import Instruction
from compiler.ir.types import ElementType, element
from compiler.kernel import index_map
from compiler.kernel.elemental import Node, Within
from compiler.kernel.expansion import (
    CannotExpand,
    Expansion,
    fold_of_reduce,
    plain,
    starts_of,
    undecided,
)
from compiler.kernel.index_expression import constant_index, dot, physical_strides
from compiler.kernel.index_map import Indices, Piece

_MOST_PIECES = 16


def _parameter(e: Expansion, instruction: Instruction, at: Indices) -> Node:
    index = instruction.attributes["index"]
    known = e.parameters.get(index)
    if known is not None:
        return known
    kind = instruction.tensor
    offset = dot(at, physical_strides(kind.shape, kind.minor_to_major))
    return e.load(plain(kind), index, offset, instruction.name)


def _constant(e: Expansion, instruction: Instruction, at: Indices) -> Node:
    literal = instruction.literal
    kind = plain(instruction.tensor)
    value = literal.splat_value if literal.is_splat else None
    if value is None and literal.array.size == 1:
        value = literal.array.reshape(-1)[0]
    if value is not None:
        return e.constant(kind, _number(value, kind), instruction.name)
    if literal.array.nbytes > 1 << 14:
        raise CannotExpand(f"{instruction.name} is too large to be part of the code")
    if literal not in e.tables:
        e.tables.append(literal)
    number = -1 - e.tables.index(literal)
    offset = dot(at, physical_strides(literal.type.shape, tuple(range(literal.type.rank - 1, -1, -1))))
    return e.load(kind, number, offset, instruction.name)


def _number(value: Any, kind: ElementType) -> complex:
    if kind.is_complex:
        return complex(value)
    return float(value) if kind.is_float else int(value)


def _iota(e: Expansion, instruction: Instruction, at: Indices) -> Node:
    index, kind = at[instruction.attributes["iota_dimension"]], plain(instruction.tensor)
    number = e.index_value(index)
    return number if kind is number.element else e.compute("convert", kind, (number,), label=instruction.name)


def _reshape(e: Expansion, instruction: Instruction, at: Indices) -> Node:
    operand = e.type_of(instruction.operands[0])
    move = index_map.bitcast if instruction.opcode == "bitcast" else index_map.reshape
    return e.value(instruction.operands[0], move(operand, instruction.tensor, at, split=e.split))


def _pieces(e: Expansion, instruction: Instruction, pieces: Sequence[Piece]) -> Node:
    found = []
    for piece in pieces:
        needed = undecided(piece.conditions)
        if needed is not None or piece is pieces[-1]:
            found.append((piece.conditions, e.value(instruction.operands[piece.operand], piece.indices)))
    return e.choose(found)


def _pad(e: Expansion, instruction: Instruction, at: Indices) -> Node:
    return _pieces(e, instruction, index_map.pad(instruction, e.type_of(instruction.operands[0]), at))


def _concatenate(e: Expansion, instruction: Instruction, at: Indices) -> Node:
    if len(instruction.operands) > _MOST_PIECES:
        raise CannotExpand(
            f"concatenate of {len(instruction.operands)} operands asks too many questions an element"
        )
    operands = [e.type_of(name) for name in instruction.operands]
    return _pieces(e, instruction, index_map.concatenate(instruction, operands, at))


def _dynamic_slice(e: Expansion, instruction: Instruction, at: Indices) -> Node:
    operand = e.type_of(instruction.operands[0])
    sizes = instruction.attributes["slice_sizes"]
    starts = starts_of(e, instruction.operands[1:], operand, sizes)
    moved = tuple(start + index for start, index in zip(starts, at, strict=True))
    return e.value(instruction.operands[0], moved)


def _dynamic_update_slice(e: Expansion, instruction: Instruction, at: Indices) -> Node:
    operand, update = (e.type_of(name) for name in instruction.operands[:2])
    starts = starts_of(e, instruction.operands[2:], operand, update.shape)
    moved = tuple(index - start for index, start in zip(at, starts, strict=True))
    inside = tuple(Within(index, 0, size) for index, size in zip(moved, update.shape, strict=True))
    if 0 in update.shape:
        return e.value(instruction.operands[0], at)
    return _pieces(e, instruction, [Piece(inside, 1, moved), Piece((), 0, at)])


def _gather(e: Expansion, instruction: Instruction, at: Indices) -> Node:
    attributes = instruction.attributes
    operand, indices = (e.type_of(name) for name in instruction.operands)
    offset_dims, sizes = attributes["offset_dims"], attributes["slice_sizes"]
    batching = attributes.get("operand_batching_dims", ())
    batch = [at[d] for d in range(len(at)) if d not in offset_dims]
    vector = attributes["index_vector_dim"]
    start_map = attributes["start_index_map"]

    def component(number: int) -> Indices:
        if vector == indices.rank:
            return tuple(batch)
        return (*batch[:vector], constant_index(number), *batch[vector:])

    removed = {*attributes["collapsed_slice_dims"], *batching}
    windows = iter([at[d] for d in offset_dims])
    moved = []
    for d in range(operand.rank):
        index = constant_index(0) if d in removed else next(windows)
        if d in start_map:
            limit = operand.shape[d] - sizes[d]
            index = index + e.dynamic_start(instruction.operands[1], component(start_map.index(d)), limit)
        if d in batching:
            position = attributes["start_indices_batching_dims"][batching.index(d)]
            index = index + batch[position if position < vector else position - 1]
        moved.append(index)
    return e.value(instruction.operands[0], tuple(moved))


def _bitcast_convert(e: Expansion, instruction: Instruction, at: Indices) -> Node:
    source, target = plain(e.type_of(instruction.operands[0])), plain(instruction.tensor)
    name = instruction.operands[0]
    if source.bits == target.bits:
        return e.compute("bitcast_convert", target, (e.value(name, at),), label=instruction.name)
    if source.is_complex or target.is_complex or min(source.bits, target.bits) < 8:
        raise CannotExpand(f"bitcast_convert from {source.name} to {target.name}")
    narrow, wide = (
        element(f"ui{min(source.bits, target.bits)}"),
        element(f"ui{max(source.bits, target.bits)}"),
    )
    if source.bits > target.bits:
        raw = e.compute("bitcast_convert", wide, (e.value(name, at[:-1]),))
        place = e.compute("convert", wide, (e.index_value(at[-1]),))
        amount = e.compute("multiply", wide, (place, e.constant(wide, target.bits)))
        part = e.compute("shift_right_logical", wide, (raw, amount))
        return e.compute("bitcast_convert", target, (e.compute("convert", narrow, (part,)),))
    total: Node | None = None
    for number in range(target.bits // source.bits):
        raw = e.compute("bitcast_convert", narrow, (e.value(name, (*at, constant_index(number))),))
        moved = e.compute(
            "shift_left", wide, (e.compute("convert", wide, (raw,)), e.constant(wide, number * source.bits))
        )
        total = moved if total is None else e.compute("or", wide, (total, moved))
    assert total is not None
    return e.compute("bitcast_convert", target, (total,))


def _reduce(e: Expansion, instruction: Instruction, at: Indices) -> Node:
    return fold_of_reduce(e, instruction, at)[0]


def _call(e: Expansion, instruction: Instruction, at: Indices) -> Node:
    """A scalar function called inside a scalar computation."""
    if at:
        raise CannotExpand("call has no elemental form")
    parameters = {number: e.value(name, ()) for number, name in enumerate(instruction.operands)}
    callee = e.computations[instruction.called[0]]
    return Expansion(callee, e.computations, parameters, split=False).value(callee.root, ())


def _map(e: Expansion, instruction: Instruction, at: Indices) -> Node:
    parameters = {number: e.value(name, at) for number, name in enumerate(instruction.operands)}
    callee = e.computations[instruction.called[0]]
    return Expansion(callee, e.computations, parameters, split=False).value(callee.root, ())


def _barrier(e: Expansion, instruction: Instruction, at: Indices) -> Node:
    if len(instruction.operands) != 1:
        raise CannotExpand("optimization_barrier of several values")
    return e.value(instruction.operands[0], at)


RULES: dict[str, Callable[[Expansion, Instruction, Indices], Node]] = {
    "parameter": _parameter,
    "constant": _constant,
    "iota": _iota,
    "reshape": _reshape,
    "bitcast": _reshape,
    "pad": _pad,
    "concatenate": _concatenate,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "bitcast_convert": _bitcast_convert,
    "reduce": _reduce,
    "call": _call,
    "map": _map,
    "optimization_barrier": _barrier,
}
