"""Rules about parts of values: slices, padding, concatenation."""

from __future__ import annotations

from compiler.ir.program import Instruction
from compiler.ir.types import TensorType
from compiler.passes.rules.pattern import Build, Builder, Pattern, Site, pattern

Range = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def range_of(i: Instruction) -> Range:
    """A slice's starts, limits and strides."""
    a = i.attributes
    return a["start_indices"], a["limit_indices"], a["strides"]


@pattern("slice-everything", "slice(x) of all of x = x", "slice")
def _slice_everything(site: Site, i: Instruction) -> Build | None:
    x = site.operand(i)
    return (lambda b: x.name) if x.tensor.shape == i.tensor.shape else None


@pattern("slice-of-slice", "slice(slice(x)) = slice(x)", "slice")
def _slice_of_slice(site: Site, i: Instruction) -> Build | None:
    inner = site.operand(i)
    if inner.opcode != "slice":
        return None
    start, _, step = range_of(i)
    first, _, stride = range_of(inner)
    starts = tuple(f + s * k for f, s, k in zip(first, start, stride, strict=True))
    steps = tuple(s * k for s, k in zip(step, stride, strict=True))
    limits = tuple(
        s + (size - 1) * k + 1 if size else s
        for s, size, k in zip(starts, i.tensor.shape, steps, strict=True)
    )
    return lambda b: b.slice(inner.operands[0], starts, limits, steps)


@pattern("slice-of-concatenate", "slice(concatenate(…, x, …)) within x = slice(x)", "slice")
def _slice_of_concatenate(site: Site, i: Instruction) -> Build | None:
    joined = site.operand(i)
    if joined.opcode != "concatenate":
        return None
    d = joined.attributes["dimension"]
    starts, limits, strides = range_of(i)
    base = 0
    for name in joined.operands:
        size = site.type(name).shape[d]
        if base <= starts[d] and limits[d] <= base + size:
            low = tuple(s - base if k == d else s for k, s in enumerate(starts))
            high = tuple(s - base if k == d else s for k, s in enumerate(limits))
            return lambda b: b.slice(name, low, high, strides)
        base += size
    return None


@pattern("slice-of-broadcast", "slice(broadcast(x)) = broadcast(slice(x))", "slice")
def _slice_of_broadcast(site: Site, i: Instruction) -> Build | None:
    spread = site.operand(i)
    if spread.opcode != "broadcast_in_dim" or not site.has_one_user(spread.name):
        return None
    x, dims = site.operand(spread), spread.attributes["broadcast_dimensions"]
    starts, limits, strides = range_of(i)
    kept = [size == spread.tensor.shape[d] for size, d in zip(x.tensor.shape, dims, strict=True)]
    low = tuple(starts[d] if keep else 0 for keep, d in zip(kept, dims, strict=True))
    high = tuple(limits[d] if keep else 1 for keep, d in zip(kept, dims, strict=True))
    steps = tuple(strides[d] if keep else 1 for keep, d in zip(kept, dims, strict=True))
    return lambda b: b.broadcast(b.slice(x.name, low, high, steps), i.tensor.shape, dims)


@pattern("slice-of-pad", "slice(pad(x)) within x = slice(x)", "slice")
def _slice_of_pad(site: Site, i: Instruction) -> Build | None:
    padded = site.operand(i)
    if padded.opcode != "pad" or any(padded.attributes["interior_padding"]):
        return None
    starts, limits, strides = range_of(i)
    lows, shape = padded.attributes["edge_padding_low"], site.operand(padded).tensor.shape
    low = tuple(s - p for s, p in zip(starts, lows, strict=True))
    high = tuple(s - p for s, p in zip(limits, lows, strict=True))
    if min(low, default=0) < 0 or any(h > size for h, size in zip(high, shape, strict=True)):
        return None
    return lambda b: b.slice(padded.operands[0], low, high, strides)


@pattern("slice-of-iota", "slice(iota) that keeps the counted dimension = iota", "slice")
def _slice_of_iota(site: Site, i: Instruction) -> Build | None:
    counted = site.operand(i)
    if counted.opcode != "iota":
        return None
    d = counted.attributes["iota_dimension"]
    starts, _, strides = range_of(i)
    if starts[d] != 0 or (strides[d] != 1 and i.tensor.shape[d] > 1):
        return None
    return lambda b: b.add("iota", (), TensorType(i.tensor.element, i.tensor.shape), counted.attributes)


@pattern("pad-nothing", "pad(x) by nothing = x", "pad")
def _pad_nothing(site: Site, i: Instruction) -> Build | None:
    a, shape = i.attributes, site.operand(i).tensor.shape
    if any(a["edge_padding_low"]) or any(a["edge_padding_high"]):
        return None
    if any(gap and size > 1 for gap, size in zip(a["interior_padding"], shape, strict=True)):
        return None
    return lambda b: i.operands[0]


@pattern("pad-of-pad", "pad(pad(x, c), c) = pad(x, c)", "pad")
def _pad_of_pad(site: Site, i: Instruction) -> Build | None:
    inner = site.operand(i)
    if inner.opcode != "pad" or not _same_value(site, inner.operands[1], i.operands[1]):
        return None
    a, n = i.attributes, inner.attributes
    if any(a["interior_padding"]) or min(a["edge_padding_low"] + a["edge_padding_high"], default=0) < 0:
        return None
    if min(n["edge_padding_low"] + n["edge_padding_high"], default=0) < 0:
        return None
    low = tuple(p + q for p, q in zip(a["edge_padding_low"], n["edge_padding_low"], strict=True))
    high = tuple(p + q for p, q in zip(a["edge_padding_high"], n["edge_padding_high"], strict=True))
    return lambda b: b.op(
        "pad",
        inner.operands[0],
        i.operands[1],
        edge_padding_low=low,
        edge_padding_high=high,
        interior_padding=n["interior_padding"],
    )


def _same_value(site: Site, left: str, right: str) -> bool:
    if left == right:
        return True
    a, b = site.instructions[left], site.instructions[right]
    return a.opcode == b.opcode == "constant" and a.literal == b.literal


@pattern("concatenate-one", "concatenate(x) = x", "concatenate")
def _concatenate_one(site: Site, i: Instruction) -> Build | None:
    return (lambda b: i.operands[0]) if len(i.operands) == 1 else None


@pattern("concatenate-empty", "concatenate(x, empty) = concatenate(x)", "concatenate")
def _concatenate_empty(site: Site, i: Instruction) -> Build | None:
    d = i.attributes["dimension"]
    left = tuple(name for name in i.operands if site.type(name).shape[d] != 0)
    if len(left) == len(i.operands) or not left:
        return None
    return lambda b: left[0] if len(left) == 1 else b.op("concatenate", *left, dimension=d)


@pattern(
    "concatenate-of-concatenate", "concatenate(concatenate(x, y), z) = concatenate(x, y, z)", "concatenate"
)
def _concatenate_of_concatenate(site: Site, i: Instruction) -> Build | None:
    d = i.attributes["dimension"]
    flat: list[str] = []
    for name in i.operands:
        inner = site.instructions[name]
        is_inner = (
            inner.opcode == "concatenate" and inner.attributes["dimension"] == d and site.has_one_user(name)
        )
        flat.extend(inner.operands if is_inner else (name,))
    if len(flat) == len(i.operands):
        return None
    return lambda b: b.op("concatenate", *flat, dimension=d)


@pattern("concatenate-of-slices", "concatenate(x[a:b], x[b:c]) = x[a:c]", "concatenate")
def _concatenate_of_slices(site: Site, i: Instruction) -> Build | None:
    d = i.attributes["dimension"]
    merged: list[tuple[str, Range | None]] = []
    for name in i.operands:
        part = site.instructions[name]
        piece = (part.operands[0], range_of(part)) if part.opcode == "slice" else (name, None)
        if merged and (joined := _adjacent(merged[-1], piece, d)) is not None:
            merged[-1] = (piece[0], joined)
        else:
            merged.append(piece)
    if len(merged) == len(i.operands):
        return None

    def build(b: Builder) -> str:
        parts = [source if where is None else b.slice(source, *where) for source, where in merged]
        return parts[0] if len(parts) == 1 else b.op("concatenate", *parts, dimension=d)

    return build


def _adjacent(left: tuple[str, Range | None], right: tuple[str, Range | None], d: int) -> Range | None:
    """The range of two slices of one value that continue each other along a dimension."""
    if left[0] != right[0] or left[1] is None or right[1] is None:
        return None
    (start, limit, step), (begin, end, stride) = left[1], right[1]
    if step != stride or step[d] != 1 or limit[d] != begin[d]:
        return None
    others = [k for k in range(len(start)) if k != d]
    if any(start[k] != begin[k] or limit[k] != end[k] for k in others):
        return None
    return start, tuple(end[k] if k == d else limit[k] for k in range(len(limit))), step


@pattern("concatenate-of-copies", "concatenate(broadcast(x), broadcast(x)) = broadcast(x)", "concatenate")
def _concatenate_of_copies(site: Site, i: Instruction) -> Build | None:
    d, parts = i.attributes["dimension"], [site.instructions[name] for name in i.operands]
    first = parts[0]
    if first.opcode != "broadcast_in_dim" or d in first.attributes["broadcast_dimensions"]:
        return None
    dims = first.attributes["broadcast_dimensions"]
    for part in parts:
        if part.opcode != "broadcast_in_dim" or part.operands != first.operands:
            return None
        if part.attributes["broadcast_dimensions"] != dims:
            return None
    return lambda b: b.broadcast(first.operands[0], i.tensor.shape, dims)


PATTERNS: tuple[Pattern, ...] = (
    _slice_everything,
    _slice_of_slice,
    _slice_of_concatenate,
    _slice_of_broadcast,
    _slice_of_pad,
    _slice_of_iota,
    _pad_nothing,
    _pad_of_pad,
    _concatenate_one,
    _concatenate_empty,
    _concatenate_of_concatenate,
    _concatenate_of_slices,
    _concatenate_of_copies,
)
