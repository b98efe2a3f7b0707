"""Rules about broadcasts, reshapes, transposes, reversals and iotas: the same elements, named another way."""

from __future__ import annotations

import numpy as np

from compiler.ir.program import Attributes, Instruction
from compiler.ir.types import TensorType
from compiler.ops import OPERATIONS
from compiler.ops.record import Trait
from compiler.passes.rules.pattern import Build, Builder, Pattern, Site, pattern

_ELEMENTWISE = tuple(
    opcode
    for opcode, entry in OPERATIONS.items()
    if Trait.ELEMENTWISE in entry.traits
    and not entry.regions
    and not entry.traits & {Trait.NON_DETERMINISTIC, Trait.SIDE_EFFECT}
)


def without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes other than 1."""
    return tuple(size for size in shape if size != 1)


def moves_only_ones(shape: tuple[int, ...], permutation: tuple[int, ...]) -> bool:
    """True when a transpose leaves the order of the dimensions of sizes other than 1 as it is."""
    moved = [d for d in permutation if shape[d] != 1]
    return moved == sorted(moved)


@pattern("broadcast-nothing", "broadcast(x) of x's own shape = x", "broadcast_in_dim")
def _broadcast_nothing(site: Site, i: Instruction) -> Build | None:
    x, dims = site.operand(i), i.attributes["broadcast_dimensions"]
    if x.tensor.shape != i.tensor.shape:
        return None
    return lambda b: b.transpose(x.name, tuple(dims.index(d) for d in range(len(dims))))


@pattern(
    "broadcast-as-reshape",
    "broadcast(x) that only adds dimensions of size 1 = reshape(x)",
    "broadcast_in_dim",
)
def _broadcast_as_reshape(site: Site, i: Instruction) -> Build | None:
    x, dims = site.operand(i), i.attributes["broadcast_dimensions"]
    if x.tensor.size != i.tensor.size or x.tensor.size == 0 or x.tensor.shape == i.tensor.shape:
        return None
    if not moves_only_ones(x.tensor.shape, tuple(sorted(range(len(dims)), key=lambda d: dims[d]))):
        return None
    return lambda b: b.reshape(x.name, i.tensor.shape)


@pattern("broadcast-of-broadcast", "broadcast(broadcast(x)) = broadcast(x)", "broadcast_in_dim")
def _broadcast_of_broadcast(site: Site, i: Instruction) -> Build | None:
    inner = site.operand(i)
    if inner.opcode != "broadcast_in_dim":
        return None
    outer = i.attributes["broadcast_dimensions"]
    dims = tuple(outer[d] for d in inner.attributes["broadcast_dimensions"])
    return lambda b: b.broadcast(inner.operands[0], i.tensor.shape, dims)


@pattern("broadcast-of-reshape", "broadcast(reshape(x)) that adds 1s to x = broadcast(x)", "broadcast_in_dim")
def _broadcast_of_reshape(site: Site, i: Instruction) -> Build | None:
    middle = site.operand(i)
    if middle.opcode != "reshape":
        return None
    source = site.operand(middle).tensor.shape
    between = middle.tensor.shape
    if 1 in source or without_ones(between) != source or between == source:
        return None
    outer = i.attributes["broadcast_dimensions"]
    dims = tuple(outer[d] for d, size in enumerate(between) if size != 1)
    return lambda b: b.broadcast(middle.operands[0], i.tensor.shape, dims)


@pattern("reshape-nothing", "reshape(x) to x's own shape = x", "reshape")
def _reshape_nothing(site: Site, i: Instruction) -> Build | None:
    x = site.operand(i)
    return (lambda b: x.name) if x.tensor.shape == i.tensor.shape else None


@pattern("reshape-of-reshape", "reshape(reshape(x)) = reshape(x)", "reshape")
def _reshape_of_reshape(site: Site, i: Instruction) -> Build | None:
    inner = site.operand(i)
    if inner.opcode != "reshape":
        return None
    return lambda b: b.reshape(inner.operands[0], i.tensor.shape)


@pattern(
    "reshape-of-broadcast",
    "reshape(broadcast(x)) = broadcast(x) where only 1s or nothing but copies move",
    "reshape",
)
def _reshape_of_broadcast(site: Site, i: Instruction) -> Build | None:
    inner = site.operand(i)
    if inner.opcode != "broadcast_in_dim":
        return None
    x = site.operand(inner)
    if x.tensor.rank == 0:
        return lambda b: b.broadcast(x.name, i.tensor.shape, ())
    before, after = inner.tensor.shape, i.tensor.shape
    if 1 in x.tensor.shape or without_ones(before) != without_ones(after):
        return None
    places = iter([d for d, size in enumerate(after) if size != 1])
    moved = {d: next(places) for d, size in enumerate(before) if size != 1}
    dims = tuple(moved[d] for d in inner.attributes["broadcast_dimensions"])
    return lambda b: b.broadcast(x.name, after, dims)


@pattern("transpose-nothing", "transpose(x) by the identity = x", "transpose")
def _transpose_nothing(site: Site, i: Instruction) -> Build | None:
    permutation = i.attributes["permutation"]
    return (lambda b: i.operands[0]) if permutation == tuple(range(len(permutation))) else None


@pattern("transpose-of-transpose", "transpose(transpose(x)) = transpose(x)", "transpose")
def _transpose_of_transpose(site: Site, i: Instruction) -> Build | None:
    inner = site.operand(i)
    if inner.opcode != "transpose":
        return None
    first = inner.attributes["permutation"]
    return lambda b: b.transpose(inner.operands[0], tuple(first[d] for d in i.attributes["permutation"]))


@pattern(
    "transpose-as-reshape", "transpose(x) that moves only dimensions of size 1 = reshape(x)", "transpose"
)
def _transpose_as_reshape(site: Site, i: Instruction) -> Build | None:
    x = site.operand(i)
    if not moves_only_ones(x.tensor.shape, i.attributes["permutation"]):
        return None
    return lambda b: b.reshape(x.name, i.tensor.shape)


@pattern("transpose-of-broadcast", "transpose(broadcast(x)) = broadcast(x)", "transpose")
def _transpose_of_broadcast(site: Site, i: Instruction) -> Build | None:
    inner = site.operand(i)
    if inner.opcode != "broadcast_in_dim":
        return None
    permutation = i.attributes["permutation"]
    dims = tuple(permutation.index(d) for d in inner.attributes["broadcast_dimensions"])
    if dims != tuple(sorted(dims)):
        return None
    return lambda b: b.broadcast(inner.operands[0], i.tensor.shape, dims)


@pattern("iota-of-one", "iota along a dimension of size 1 = 0", "iota")
def _iota_of_one(site: Site, i: Instruction) -> Build | None:
    if i.tensor.shape[i.attributes["iota_dimension"]] != 1:
        return None
    return lambda b: b.splat(i.tensor, 0)


@pattern("reverse-of-ones", "reverse along dimensions of size 1 or of copies = no reverse", "reverse")
def _reverse_of_ones(site: Site, i: Instruction) -> Build | None:
    x = site.operand(i)
    held: tuple[int, ...] = tuple(range(x.tensor.rank))
    if x.opcode == "broadcast_in_dim":
        source = site.operand(x).tensor.shape
        held = tuple(
            d for d, size in zip(x.attributes["broadcast_dimensions"], source, strict=True) if size != 1
        )
    elif x.opcode == "constant" and x.literal.is_splat:
        held = ()
    left = tuple(d for d in i.attributes["dimensions"] if x.tensor.shape[d] != 1 and d in held)
    if len(left) == len(i.attributes["dimensions"]):
        return None
    return (lambda b: b.op("reverse", x.name, dimensions=left)) if left else (lambda b: x.name)


@pattern(
    "reverse-of-reverse", "reverse(reverse(x)) = reverse(x) along what only one of them turns", "reverse"
)
def _reverse_of_reverse(site: Site, i: Instruction) -> Build | None:
    inner = site.operand(i)
    if inner.opcode != "reverse":
        return None
    left = tuple(sorted(set(i.attributes["dimensions"]) ^ set(inner.attributes["dimensions"])))
    source = inner.operands[0]
    return (lambda b: b.op("reverse", source, dimensions=left)) if left else (lambda b: source)


@pattern("elementwise-of-broadcasts", "f(broadcast(x), broadcast(y)) = broadcast(f(x, y))", *_ELEMENTWISE)
def _elementwise_of_broadcasts(site: Site, i: Instruction) -> Build | None:
    if not isinstance(i.type, TensorType):
        return None
    source: TensorType | None = None
    dims: tuple[int, ...] = ()
    for name in i.operands:
        operand = site.instructions[name]
        if operand.opcode == "constant" and operand.literal.is_splat:
            continue
        if operand.opcode != "broadcast_in_dim" or operand.tensor.shape != i.type.shape:
            return None
        found = site.operand(operand).tensor
        where = operand.attributes["broadcast_dimensions"]
        if source is not None and (found.shape != source.shape or where != dims):
            return None
        source, dims = found, where
    if source is None or source.size >= i.type.size or _has_other_shapes(site, i):
        return None
    shape = source.shape
    return lambda b: b.broadcast(_spread_later(site, b, i, shape), i.tensor.shape, dims)


def _has_other_shapes(site: Site, i: Instruction) -> bool:
    return any(site.type(name).shape != i.tensor.shape for name in i.operands)


def _spread_later(site: Site, b: Builder, i: Instruction, shape: tuple[int, ...]) -> str:
    """The elementwise operation on what its operands are broadcasts of."""
    operands = []
    for name in i.operands:
        operand = site.instructions[name]
        if operand.opcode == "constant":
            operands.append(
                b.splat(TensorType(operand.tensor.element, shape), np.asarray(operand.literal.splat_value))
            )
        else:
            operands.append(operand.operands[0])
    return b.add(i.opcode, operands, TensorType(i.tensor.element, shape), Attributes(i.attributes), i.called)


PATTERNS: tuple[Pattern, ...] = (
    _broadcast_nothing,
    _broadcast_as_reshape,
    _broadcast_of_broadcast,
    _broadcast_of_reshape,
    _reshape_nothing,
    _reshape_of_reshape,
    _reshape_of_broadcast,
    _transpose_nothing,
    _transpose_of_transpose,
    _transpose_as_reshape,
    _transpose_of_broadcast,
    _iota_of_one,
    _reverse_of_ones,
    _reverse_of_reverse,
    _elementwise_of_broadcasts,
)
