"""Loops that read across rows: squares of elements are loaded along the rows and transposed in registers.

Where a load is of neighbours along another loop than the one along the lanes, a block of both loops is done at a time.
Reading such a load element by element would cost a cache line for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.backends.cpu.contraction.copying import transpose
from compiler.backends.cpu.emit.elemental import ElementalEmitter
from compiler.backends.cpu.emit.registers import memory_type, part_bytes
from compiler.backends.cpu.target import Target
from compiler.kernel.elemental import Load, Node
from compiler.kernel.index_expression import Axis
from compiler.kernel.loop_nest import LoopNest
from compiler.kernel.schedule import lane_step, widest_bits

_MOST_LOADS = 3


def across(
    nest: LoopNest, nodes: Sequence[Node], free: Sequence[Node]
) -> tuple[Axis, tuple[Load, ...]] | None:
    """The loop along whose points some loads are of neighbours although the lanes' are not, and those loads."""
    along = nest.axes[-1]
    loads = [
        node
        for node in nodes
        if isinstance(node, Load) and along in node.axes and lane_step(node.offset, along) not in (1, -1)
    ]
    if not loads or len(loads) > _MOST_LOADS or any(load not in free for load in loads):
        return None
    for axis in reversed(nest.axes[:-1]):
        if all(_suits(load, along, axis) for load in loads):
            return axis, tuple(loads)
    return None


def _suits(load: Load, along: Axis, other: Axis) -> bool:
    e = load.element
    fits = not e.is_complex and e.storage_bytes <= 8
    return fits and lane_step(load.offset, other) == 1 and lane_step(load.offset, along) is not None


def square_side(nodes: Sequence[Node], along: Axis, other: Axis, target: Target) -> int:
    """Points of a square each way: a vector's, but no more than registers hold well; 1 where loops are too short."""
    side = min(target.lanes(max(widest_bits(nodes, along), 32)), 16)
    return side if min(along.extent, other.extent) >= side else 1


def emit_squares(
    e: ElementalEmitter,
    along: Axis,
    other: Axis,
    loads: Sequence[Load],
    side: int,
    first: str,
    last: str,
    store: Callable[[], None],
) -> None:
    """All points of `other` and the given range of `along`, in squares and then what is left of both."""
    b = e.b
    whole = other.extent // side * side
    count = b.sub(last, first)
    end = b.add(first, b.mul(b.div(count, side), side))
    with b.loop(0, whole, side, f"{other}.block") as row, e.scope():
        with b.loop(first, end, side, f"{along}.block") as column, e.scope():
            _square(e, along, other, loads, side, (row, column), store)
        _points(e, along, other, (row, b.add(row, side)), (end, last), store)
    if other.extent % side:
        _points(e, along, other, (str(whole), str(other.extent)), (first, last), store)
    e.axes.pop(along, None)
    e.axes.pop(other, None)


def _square(
    e: ElementalEmitter,
    along: Axis,
    other: Axis,
    loads: Sequence[Load],
    side: int,
    corner: tuple[str, str],
    store: Callable[[], None],
) -> None:
    row, column = corner
    columns: dict[Load, list[str]] = {}
    e.axes[other] = row
    for load in loads:
        kind, vectors = memory_type(load.element, side), []
        for lane in range(side):
            e.axes[along] = e.b.add(column, lane)
            with e.scope():
                place = e.index.scalar(load.offset)
            address = e.address(e.buffers[load.operand], place, memory_type(load.element, 1))
            vectors.append(e.b.load(kind, address, part_bytes(load.element)))
        columns[load] = transpose(e.b, vectors, kind)
    for position in range(side):
        e.axes[other], e.axes[along] = e.b.add(row, position), column
        with e.vectorised(along, side):
            for load in loads:
                value = e.registers.from_memory(load.element, side, columns[load][position])
                e.note((load, side), value)
            store()


def _points(
    e: ElementalEmitter,
    along: Axis,
    other: Axis,
    rows: tuple[str, str],
    columns: tuple[str, str],
    store: Callable[[], None],
) -> None:
    if columns[0] == columns[1]:
        return
    with (
        e.b.loop(*rows, hint=f"{other}.rest") as row,
        e.scope(),
        e.b.loop(*columns, hint=f"{along}.rest") as column,
    ):
        e.axes[other], e.axes[along] = row, column
        with e.vectorised(along, 1):
            store()
