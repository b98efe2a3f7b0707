"""Operations that HLO has in another shape, spelled out for XLA as several HLO instructions.

StableHLO's `broadcast_in_dim` stretches dimensions of size 1, HLO's `broadcast` does not; a splat constant has no HLO text; a
`send` is two instructions in HLO; and so on. When a whole module is printed, such an instruction is preceded by helpers named
after it (`NAME.squeezed`, `NAME.splat`, `NAME.start`, …), and the last one carries its own name. A single line, as the views
show it, stays one instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from compiler.ir.hlo_attributes import channel_id, collective
from compiler.ir.hlo_values import type_text
from compiler.ir.literal import Literal
from compiler.ir.program import NO_ATTRIBUTES, Attributes, Instruction
from compiler.ir.types import TOKEN, UI32, TensorType, TupleType, Type, tensor

Operands = Mapping[str, Instruction]
Expansion = list[Instruction]

SPLAT_ELEMENTS = 64
"""Splats of more elements are printed as a scalar and a broadcast."""


def expand(instruction: Instruction, operands: Operands) -> Expansion:
    """The HLO instructions that stand for one instruction, the last of them under its name. Often just itself."""
    rule = _RULES.get(instruction.opcode)
    return rule(instruction, operands) if rule is not None else [instruction]


def _step(
    base: Instruction,
    suffix: str,
    opcode: str,
    kind: Type,
    operands: tuple[str, ...],
    attributes: Attributes = NO_ATTRIBUTES,
) -> Instruction:
    name = f"{base.name}.{suffix}" if suffix else base.name
    return Instruction(name, opcode, kind, operands, attributes, (), base.location)


def raw(opcode: str, *texts: str) -> tuple[str, Attributes]:
    """An HLO instruction that has no StableHLO counterpart: its HLO opcode and attributes as they are to be printed."""
    return opcode, Attributes({RAW: texts})


RAW = "hlo.text"
"""The attribute that holds ready attribute texts of helper instructions."""


def _broadcast(i: Instruction, operands: Operands) -> Expansion:
    operand = operands[i.operands[0]].type
    if not isinstance(operand, TensorType) or not isinstance(i.type, TensorType):
        return [i]
    dimensions = i.attributes["broadcast_dimensions"]
    kept = [n for n, dim in enumerate(dimensions) if operand.shape[n] == i.type.shape[dim]]
    if len(kept) == len(dimensions):
        return [i]
    smaller = operand.with_shape(tuple(operand.shape[n] for n in kept))
    squeezed = _step(i, "squeezed", "reshape", smaller, i.operands)
    attributes = i.attributes.having(broadcast_dimensions=tuple(dimensions[n] for n in kept))
    return [squeezed, replace(i, operands=(squeezed.name,), attributes=attributes)]


def _constant(i: Instruction, operands: Operands) -> Expansion:
    literal = i.literal
    if not literal.is_splat or literal.array.size <= SPLAT_ELEMENTS:
        return [i]
    scalar = TensorType(literal.type.element, ())
    value = Literal(scalar, np.asarray(literal.splat_value))
    splat = _step(i, "splat", "constant", scalar, (), Attributes(value=value))
    return [
        splat,
        _step(i, "", "broadcast_in_dim", i.type, (splat.name,), Attributes(broadcast_dimensions=())),
    ]


def _rng(i: Instruction, operands: Operands) -> Expansion:
    return [replace(i, operands=i.operands[:2])]


def _barrier(i: Instruction, operands: Operands) -> Expansion:
    if len(i.operands) == 1:
        return [i]
    return [_step(i, "tuple", "tuple", i.type, i.operands), replace(i, operands=(f"{i.name}.tuple",))]


def _one_or_tuple(i: Instruction, names: tuple[str, ...], operands: Operands) -> tuple[Expansion, str, Type]:
    """Several values as the one operand that HLO's transfers take."""
    types = tuple(operands[name].type for name in names)
    if len(names) == 1:
        return [], names[0], types[0]
    packed = _step(i, "data", "tuple", TupleType(types), names)
    return [packed], packed.name, packed.type


def _transfer_texts(i: Instruction) -> tuple[str, ...]:
    channel = max(channel_id(i.attributes), 1)
    host = i.attributes.get("is_host_transfer")
    return (f"channel_id={channel}", *(["is_host_transfer=true"] if host else []))


def _send(i: Instruction, operands: Operands) -> Expansion:
    steps, data, kind = _one_or_tuple(i, i.operands[:-1], operands)
    opcode, attributes = raw("send", *_transfer_texts(i))
    context = TupleType((kind, tensor(UI32), TOKEN))
    start = _step(i, "start", opcode, context, (data, i.operands[-1]), attributes)
    done_opcode, done = raw("send-done", *_transfer_texts(i))
    return [*steps, start, _step(i, "", done_opcode, TOKEN, (start.name,), done)]


def _recv(i: Instruction, operands: Operands) -> Expansion:
    if not isinstance(i.type, TupleType):
        return [i]
    values = i.type.elements[:-1]
    data: Type = values[0] if len(values) == 1 else TupleType(values)
    opcode, attributes = raw("recv", *_transfer_texts(i))
    start = _step(i, "start", opcode, TupleType((data, tensor(UI32), TOKEN)), i.operands, attributes)
    done_opcode, done = raw("recv-done", *_transfer_texts(i))
    received = TupleType((data, TOKEN))
    if len(values) == 1:
        return [start, _step(i, "", done_opcode, received, (start.name,), done)]
    return [start, *_flattened(i, _step(i, "done", done_opcode, received, (start.name,), done))]


def _flattened(i: Instruction, pair: Instruction) -> Expansion:
    """`((values…), token)` as the flat tuple that StableHLO's transfers yield."""
    assert isinstance(i.type, TupleType)
    assert isinstance(pair.type, TupleType)
    inner = _step(i, "values", "get_tuple_element", pair.type.elements[0], (pair.name,), Attributes(index=0))
    token = _step(i, "token", "get_tuple_element", TOKEN, (pair.name,), Attributes(index=1))
    parts = [
        _step(i, f"value{n}", "get_tuple_element", kind, (inner.name,), Attributes(index=n))
        for n, kind in enumerate(i.type.elements[:-1])
    ]
    names = (*(part.name for part in parts), token.name)
    return [pair, inner, token, *parts, _step(i, "", "tuple", i.type, names)]


def _infeed(i: Instruction, operands: Operands) -> Expansion:
    if not isinstance(i.type, TupleType):
        return [i]
    config = i.attributes.get("infeed_config")
    opcode, attributes = raw("infeed", *([f'infeed_config="{config}"'] if config else []))
    pair = TupleType((TupleType(i.type.elements[:-1]), TOKEN))
    return _flattened(i, _step(i, "pair", opcode, pair, i.operands, attributes))


def _outfeed(i: Instruction, operands: Operands) -> Expansion:
    types = tuple(operands[name].type for name in i.operands[:-1])
    packed = _step(i, "data", "tuple", TupleType(types), i.operands[:-1])
    opcode, attributes = raw("outfeed", f"outfeed_shape={type_text(packed.type)}")
    return [packed, _step(i, "", opcode, i.type, (packed.name, i.operands[-1]), attributes)]


def _all_to_all(i: Instruction, operands: Operands) -> Expansion:
    """Splitting along one dimension and joining along another: HLO's form splits and joins along the same one."""
    operand = operands[i.operands[0]].type
    a = i.attributes
    split, concat, count = a["split_dimension"], a["concat_dimension"], a["split_count"]
    if split == concat or len(i.operands) != 1 or not isinstance(operand, TensorType):
        return [i]
    shape = operand.shape
    split_shape = operand.with_shape((*shape[:split], count, shape[split] // count, *shape[split + 1 :]))
    apart = _step(i, "split", "reshape", split_shape, i.operands)
    exchanged = _step(i, "exchange", *_exchange(i, split, split_shape, apart.name))
    order = [dim for dim in range(split_shape.rank) if dim != split]
    order.insert(concat, split)
    moved_shape = operand.with_shape(tuple(split_shape.shape[dim] for dim in order))
    moved = _step(
        i, "order", "transpose", moved_shape, (exchanged.name,), Attributes(permutation=tuple(order))
    )
    return [apart, exchanged, moved, _step(i, "", "reshape", i.type, (moved.name,))]


def _exchange(
    i: Instruction, split: int, kind: TensorType, operand: str
) -> tuple[str, Type, tuple[str, ...], Attributes]:
    opcode, attributes = raw("all-to-all", *collective(i.attributes), f"dimensions={{{split}}}")
    return opcode, kind, (operand,), attributes


def _collective_texts(i: Instruction, operands: Operands) -> Expansion:
    """HLO wants a channel wherever ids are global."""
    if i.attributes.get("use_global_device_ids") and not channel_id(i.attributes):
        return [replace(i, attributes=i.attributes.having(channel_id=1, channel_handle=None))]
    return [i]


def _async_start(i: Instruction, operands: Operands) -> Expansion:
    """HLO's value of an operation under way holds its operands beside its results."""
    assert isinstance(i.type, TupleType)
    results = i.type.elements
    given = TupleType(tuple(operands[name].type for name in i.operands))
    made = results[0] if len(results) == 1 else TupleType(results)
    return [replace(i, type=TupleType((given, made)))]


_RULES: dict[str, Callable[[Instruction, Operands], Expansion]] = {
    "all_gather": _collective_texts,
    "all_reduce": _collective_texts,
    "all_to_all": _all_to_all,
    "async_start": _async_start,
    "broadcast_in_dim": _broadcast,
    "constant": _constant,
    "infeed": _infeed,
    "optimization_barrier": _barrier,
    "outfeed": _outfeed,
    "recv": _recv,
    "reduce_scatter": _collective_texts,
    "rng": _rng,
    "send": _send,
}
