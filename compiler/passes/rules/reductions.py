"""Rules about reductions. Only single reductions by one commutative operation are looked into.

Sums of floats are never split or joined here (their rounding would change); the order inside one sum is free, so a sum
may read its operand in another order.
"""

from __future__ import annotations

import math

import numpy as np

from compiler.ir.program import Instruction
from compiler.ir.types import TensorType
from compiler.ops.applied import binary_opcode
from compiler.passes.rules.law import number, number_matches
from compiler.passes.rules.pattern import Build, Builder, Pattern, Site, element_kind, pattern

IDEMPOTENT = frozenset({"maximum", "minimum", "and", "or"})
_IDENTITY = {
    "add": "0",
    "multiply": "1",
    "maximum": "lowest",
    "minimum": "highest",
    "and": "ones",
    "or": "0",
    "xor": "0",
}


def reducer(site: Site, i: Instruction) -> str | None:
    """The one operation that a reduction of one operand applies, its types all being the operand's; else None."""
    if i.opcode != "reduce" or len(i.operands) != 2 or not isinstance(i.type, TensorType):
        return None
    body = site.editor.computation(i.called[0])
    element = i.type.element
    same = all(
        isinstance(t, TensorType) and t.element == element for t in (*body.parameter_types, body.result_type)
    )
    if not same or site.type(i.operands[0]).element != element or element_kind(i) in ("", "complex"):
        return None
    return binary_opcode(body)


def is_exact(opcode: str, i: Instruction) -> bool:
    """True when an operation is associative to the bit on an instruction's elements."""
    return element_kind(i) in ("int", "uint", "bool") or opcode in IDEMPOTENT


def reduced(b: Builder, i: Instruction, x: str, init: str, dimensions: tuple[int, ...]) -> str:
    """The reduction `i` of another operand along other dimensions; without any, its operation on the initial value."""
    return b.add("reduce", (x, init), None, i.attributes.having(dimensions=dimensions), i.called)


@pattern("reduce-of-ones", "reduce(x) along dimensions of size 1 = f(init, reshape(x))", "reduce")
def _reduce_of_ones(site: Site, i: Instruction) -> Build | None:
    opcode = reducer(site, i)
    x, dims = site.operand(i), i.attributes["dimensions"]
    if opcode is None or any(x.tensor.shape[d] != 1 for d in dims):
        return None

    def build(b: Builder) -> str:
        return b.op(opcode, b.reshape(x.name, i.tensor.shape), b.broadcast(i.operands[1], i.tensor.shape, ()))

    return build


@pattern(
    "reduce-drops-ones",
    "reduce(x) along some dimensions of size 1 = reduce(reshape(x)) along the others",
    "reduce",
)
def _reduce_drops_ones(site: Site, i: Instruction) -> Build | None:
    x, dims = site.operand(i), i.attributes["dimensions"]
    if reducer(site, i) is None or x.tensor.size == 0:
        return None
    dropped = [d for d in dims if x.tensor.shape[d] == 1]
    if not dropped or len(dropped) == len(dims):
        return None
    kept = [d for d in range(x.tensor.rank) if d not in dropped]
    left = tuple(kept.index(d) for d in dims if d not in dropped)
    return lambda b: reduced(
        b, i, b.reshape(x.name, tuple(x.tensor.shape[d] for d in kept)), i.operands[1], left
    )


@pattern(
    "reduce-of-reduce",
    "reduce(reduce(x)) = reduce(x) along both, where the operation is associative",
    "reduce",
)
def _reduce_of_reduce(site: Site, i: Instruction) -> Build | None:
    opcode, inner = reducer(site, i), site.operand(i)
    if opcode is None or reducer(site, inner) != opcode or not is_exact(opcode, i):
        return None
    value = site.splat(inner.operands[1])
    element = i.tensor.element
    if value is None or not number_matches(_IDENTITY[opcode], value, element):  # type: ignore[arg-type]
        return None
    first = inner.attributes["dimensions"]
    left = [d for d in range(site.operand(inner).tensor.rank) if d not in first]
    dims = tuple(sorted((*first, *(left[d] for d in i.attributes["dimensions"]))))
    return lambda b: reduced(b, i, inner.operands[0], i.operands[1], dims)


@pattern("reduce-of-transpose", "reduce(transpose(x)) = transpose(reduce(x))", "reduce")
def _reduce_of_transpose(site: Site, i: Instruction) -> Build | None:
    turned = site.operand(i)
    if reducer(site, i) is None or turned.opcode != "transpose":
        return None
    permutation = turned.attributes["permutation"]
    dims = tuple(sorted(permutation[d] for d in i.attributes["dimensions"]))
    kept = [permutation[d] for d in range(len(permutation)) if d not in i.attributes["dimensions"]]
    order = tuple(sorted(kept).index(d) for d in kept)
    return lambda b: b.transpose(reduced(b, i, turned.operands[0], i.operands[1], dims), order)


@pattern("reduce-of-reshape", "reduce(reshape(x)) along whole dimensions of x = reduce(x)", "reduce")
def _reduce_of_reshape(site: Site, i: Instruction) -> Build | None:
    middle = site.operand(i)
    if reducer(site, i) is None or middle.opcode != "reshape" or middle.tensor.size == 0:
        return None
    x, dims = site.operand(middle), set(i.attributes["dimensions"])
    wanted: list[int] = []
    for before, after in factor_groups(x.tensor.shape, middle.tensor.shape):
        sized = [d for d in after if middle.tensor.shape[d] != 1]
        taken = [d for d in sized if d in dims]
        if taken and len(taken) != len(sized):
            return None
        if taken:
            wanted.extend(d for d in before if x.tensor.shape[d] != 1)
    if not wanted or (_only_ones_between(x.tensor.shape, middle.tensor.shape) and len(wanted) >= len(dims)):
        return None
    return lambda b: b.reshape(reduced(b, i, x.name, i.operands[1], tuple(wanted)), i.tensor.shape)


def _only_ones_between(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """True when a reshape only drops dimensions of size 1 (as `reduce-drops-ones` made it)."""
    return len(after) < len(before) and [s for s in before if s != 1] == [s for s in after if s != 1]


def factor_groups(before: tuple[int, ...], after: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Splits a reshape into the smallest runs of dimensions with equal products, in order."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        left, right = [i] if i < len(before) else [], [j] if j < len(after) else []
        size = before[i] if left else 1
        other = after[j] if right else 1
        i, j = i + len(left), j + len(right)
        while size != other:
            if size < other:
                size *= before[i]
                left.append(i)
                i += 1
            else:
                other *= after[j]
                right.append(j)
                j += 1
        groups.append((left, right))
    return groups


@pattern(
    "reduce-of-broadcast",
    "reduce(broadcast(x)) along copies = x, or count · x for sums of integers",
    "reduce",
)
def _reduce_of_broadcast(site: Site, i: Instruction) -> Build | None:
    opcode, spread = reducer(site, i), site.operand(i)
    if opcode is None or spread.opcode != "broadcast_in_dim" or spread.tensor.size == 0:
        return None
    is_sum = opcode == "add" and element_kind(i) in ("int", "uint")
    places = spread.attributes["broadcast_dimensions"]
    copies = [d for d in i.attributes["dimensions"] if d not in places]
    if not copies or not (opcode in IDEMPOTENT or is_sum):
        return None
    kept = [d for d in range(spread.tensor.rank) if d not in copies]
    shape = tuple(spread.tensor.shape[d] for d in kept)
    left = tuple(kept.index(d) for d in i.attributes["dimensions"] if d not in copies)
    count = math.prod(spread.tensor.shape[d] for d in copies)

    def build(b: Builder) -> str:
        x = b.broadcast(spread.operands[0], shape, tuple(kept.index(d) for d in places))
        if is_sum:
            factor = np.array(count % (1 << i.tensor.element.bits), np.uint64).astype(i.tensor.element.dtype)
            x = b.op("multiply", x, b.splat(TensorType(i.tensor.element, shape), factor))
        return reduced(b, i, x, i.operands[1], left)

    return build


@pattern("reduce-of-nothing", "reduce(x) of an empty x = init", "reduce")
def _reduce_of_nothing(site: Site, i: Instruction) -> Build | None:
    if reducer(site, i) is None or site.operand(i).tensor.size != 0 or i.tensor.size == 0:
        return None
    return lambda b: b.broadcast(i.operands[1], i.tensor.shape, ())


@pattern("reduce-by-identity", "reduce(splat of the identity) = init", "reduce")
def _reduce_by_identity(site: Site, i: Instruction) -> Build | None:
    opcode, x = reducer(site, i), site.operand(i)
    if opcode is None or x.opcode != "constant" or not is_exact(opcode, i):
        return None
    value, element = x.literal.splat_value, i.tensor.element
    if value is None or value != number(_IDENTITY[opcode], element):  # type: ignore[arg-type]
        return None
    return lambda b: b.broadcast(i.operands[1], i.tensor.shape, ())


PATTERNS: tuple[Pattern, ...] = (
    _reduce_of_ones,
    _reduce_drops_ones,
    _reduce_of_reduce,
    _reduce_of_transpose,
    _reduce_of_reshape,
    _reduce_of_broadcast,
    _reduce_of_nothing,
    _reduce_by_identity,
)
