"""How a loop nest is run: which axis goes along the lanes, how many at once, and how it is cut into tasks.

Target-neutral but for a few numbers about the machine; the CPU's emitters follow it, and it is shown with the loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from compiler.kernel.elemental import Choose, Compute, Constant, Fold, Load, Node
from compiler.kernel.index_expression import Axis, Index, atom_axes
from compiler.kernel.loop_nest import LoopNest
from compiler.ops import OPERATIONS

_TASK_NS = 8_000.0
"""Work worth handing to another thread."""
_TASKS_PER_THREAD = 4
_BYTES_PER_NS = 12.0
_POINT_NS = 0.03
_TRANSCENDENTAL_NS = 0.5
_STRIDED_NS = 1.0


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks are ranges of the flattened first `prefix` axes, `step` points each, or, with no prefix, of the last axis.

    `count` tasks together cover everything.
    """

    count: int
    prefix: int
    step: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """See the module's docstring. `lanes` is 1 when points are computed one by one (`along` is then None)."""

    along: Axis | None
    lanes: int
    maskable: bool
    """Whether a vector that reaches beyond the end can leave lanes out; else the rest is done point by point."""
    tasks: Tasks


def lane_step(index: Index, axis: Axis) -> int | None:
    """How an index grows along an axis; None when not evenly."""
    step = 0
    for atom, count in index.terms:
        if atom == axis:
            step += count
        elif not isinstance(atom, Axis) and axis in atom_axes(atom):
            return None
    return step


def widest_bits(nodes: Sequence[Node], along: Axis | None) -> int:
    """Bits of the widest value that lanes hold: narrow floats count as the f32 they are computed in."""
    bits = 8
    for node in nodes:
        e = node.element
        if isinstance(node, Constant) or (along is not None and along not in node.axes):
            continue
        own = e.real.bits if e.is_complex else e.bits
        bits = max(bits, max(own, 32) if e.is_float or e.is_complex else own)
    return bits


def rows_along(nodes: Sequence[Node], axis: Axis) -> tuple[int, int]:
    """How many loads step by one element along an axis, and how many by others (weighted by nothing)."""
    even = odd = 0
    for node in nodes:
        if isinstance(node, Load) and axis in node.axes:
            if lane_step(node.offset, axis) in (1, -1):
                even += 1
            else:
                odd += 1
    return even, odd


def work_ns(nest: LoopNest) -> float:
    """A rough estimate of the time one thread takes."""
    per_point = 0.0
    for node in nest.nodes:
        if isinstance(node, Compute):
            heavy = OPERATIONS[node.opcode].transcendental
            per_point += _TRANSCENDENTAL_NS if heavy else _POINT_NS
        elif isinstance(node, (Choose, Fold)):
            per_point += 4 * _POINT_NS
            if isinstance(node, Fold) and not nest.folded:
                per_point += prod(axis.extent for axis in node.over) * _STRIDED_NS
        elif isinstance(node, Load):
            per_point += node.element.storage_bytes / _BYTES_PER_NS
    stored = sum(store.element.storage_bytes for store in nest.stores) / _BYTES_PER_NS
    return nest.points * per_point + prod(axis.extent for axis in nest.axes) * stored


def cut(axes: Sequence[Axis], work: float, threads: int, lanes: int, *, along_last: bool = True) -> Tasks:
    """Cuts loops into tasks. `along_last`: the last axis runs along the lanes, in steps of `lanes`."""
    wanted = int(min(threads * _TASKS_PER_THREAD, work / _TASK_NS)) if threads > 1 else 1
    if wanted < 2 or not axes:
        return Tasks(1, 0, axes[-1].extent if axes else 1)
    outer = axes[:-1] if along_last else axes
    for prefix in range(1, len(outer) + 1):
        rows = prod(axis.extent for axis in outer[:prefix])
        if rows >= wanted and (rows >= 4 * wanted or rows % wanted == 0 or prefix == len(outer)):
            step = -(-rows // wanted)
            return Tasks(-(-rows // step), prefix, step)
    extent = axes[-1].extent
    share = -(-extent // wanted)
    step = -(-share // lanes) * lanes
    if along_last and extent >= 2 * lanes:
        return Tasks(-(-extent // step), 0, step)
    if outer:
        rows = prod(axis.extent for axis in outer)
        step = -(-rows // wanted)
        return Tasks(-(-rows // step), len(outer), step)
    return Tasks(1, 0, extent)
