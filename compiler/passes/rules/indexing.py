"""Rules about parts whose place is a value: dynamic slices and updates, gathers of a single window."""

from __future__ import annotations

from compiler.ir.program import Instruction
from compiler.ir.types import TensorType
from compiler.passes.rules.pattern import Build, Builder, Pattern, Site, pattern


@pattern("dynamic-slice-everything", "dynamic_slice(x) of all of x = x", "dynamic_slice")
def _dynamic_slice_everything(site: Site, i: Instruction) -> Build | None:
    x = site.operand(i)
    return (lambda b: x.name) if x.tensor.shape == i.tensor.shape else None


@pattern("dynamic-slice-known", "dynamic_slice at known indices = slice", "dynamic_slice")
def _dynamic_slice_known(site: Site, i: Instruction) -> Build | None:
    found = [site.splat(name) for name in i.operands[1:]]
    if any(value is None for value in found):
        return None
    sizes, shape = i.tensor.shape, site.operand(i).tensor.shape
    starts = tuple(
        min(max(int(value), 0), whole - size) for value, whole, size in zip(found, shape, sizes, strict=True)
    )
    limits = tuple(start + size for start, size in zip(starts, sizes, strict=True))
    return lambda b: b.slice(i.operands[0], starts, limits)


@pattern(
    "dynamic-slice-of-update",
    "dynamic_slice(dynamic_update_slice(x, y, i), i) of y's size = y",
    "dynamic_slice",
)
def _dynamic_slice_of_update(site: Site, i: Instruction) -> Build | None:
    update = site.operand(i)
    if update.opcode != "dynamic_update_slice" or update.operands[2:] != i.operands[1:]:
        return None
    piece = site.operand(update, 1)
    return (lambda b: piece.name) if piece.tensor.shape == i.tensor.shape else None


@pattern("update-everything", "dynamic_update_slice(x, y) with y of x's shape = y", "dynamic_update_slice")
def _update_everything(site: Site, i: Instruction) -> Build | None:
    y = site.operand(i, 1)
    return (lambda b: y.name) if y.tensor.shape == i.tensor.shape else None


@pattern("update-nothing", "dynamic_update_slice(x, empty) = x", "dynamic_update_slice")
def _update_nothing(site: Site, i: Instruction) -> Build | None:
    return (lambda b: i.operands[0]) if site.operand(i, 1).tensor.size == 0 else None


@pattern(
    "update-twice",
    "dynamic_update_slice(dynamic_update_slice(x, y, i), z, i) = dynamic_update_slice(x, z, i)",
    "dynamic_update_slice",
)
def _update_twice(site: Site, i: Instruction) -> Build | None:
    inner = site.operand(i)
    if inner.opcode != "dynamic_update_slice" or inner.operands[2:] != i.operands[2:]:
        return None
    if site.operand(inner, 1).tensor.shape != site.operand(i, 1).tensor.shape:
        return None
    operands = (inner.operands[0], *i.operands[1:])
    return lambda b: b.add("dynamic_update_slice", operands, i.type, i.attributes)


@pattern("update-by-own-slice", "dynamic_update_slice(x, dynamic_slice(x, i), i) = x", "dynamic_update_slice")
def _update_by_own_slice(site: Site, i: Instruction) -> Build | None:
    piece = site.operand(i, 1)
    if piece.opcode != "dynamic_slice" or piece.operands != (i.operands[0], *i.operands[2:]):
        return None
    return lambda b: i.operands[0]


@pattern("gather-of-one-window", "gather(x, i) of a single window = dynamic_slice(x, i)", "gather")
def _gather_of_one_window(site: Site, i: Instruction) -> Build | None:
    a, x, indices = i.attributes, site.operand(i), site.operand(i, 1)
    mapped = a["start_index_map"]
    if a["operand_batching_dims"] or indices.tensor.size != len(mapped) or i.tensor.size == 0 or not mapped:
        return None

    def build(b: Builder) -> str:
        kind = TensorType(indices.tensor.element, ())
        flat = b.reshape(indices.name, (len(mapped),))
        starts = [b.reshape(b.slice(flat, (k,), (k + 1,)), ()) for k in range(len(mapped))]
        zero = b.splat(kind, 0) if len(mapped) < x.tensor.rank else ""
        places = [starts[mapped.index(d)] if d in mapped else zero for d in range(x.tensor.rank)]
        window = b.op("dynamic_slice", x.name, *places, slice_sizes=a["slice_sizes"])
        return b.reshape(window, i.tensor.shape)

    return build


PATTERNS: tuple[Pattern, ...] = (
    _dynamic_slice_everything,
    _dynamic_slice_known,
    _dynamic_slice_of_update,
    _update_everything,
    _update_nothing,
    _update_twice,
    _update_by_own_slice,
    _gather_of_one_window,
)
