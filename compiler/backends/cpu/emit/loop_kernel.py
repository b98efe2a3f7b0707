"""Kernels without a reduction at their root: elementwise operations and data movement, fused or alone.

Loops in the order of the result's memory, the innermost along the lanes; what reaches beyond its end is masked or done
point by point.
"""

from __future__ import annotations

from compiler.backends.cpu.emit.elemental import ElementalEmitter
from compiler.backends.cpu.emit.skeleton import KernelWriter, hoist_addresses, over_tasks, unguarded
from compiler.backends.cpu.emit.transposing import across, emit_squares, square_side
from compiler.backends.cpu.kernel_code import KernelCode
from compiler.backends.cpu.target import Target
from compiler.kernel.elemental import Choose, Compute, Fold, Load, Node, dynamic_nodes
from compiler.kernel.index_expression import Axis
from compiler.kernel.loop_nest import LoopNest
from compiler.kernel.schedule import Schedule, Tasks, cut, lane_step, widest_bits, work_ns
from compiler.ops import OPERATIONS

_MOST_LANES = 64


def schedule_loops(nest: LoopNest, target: Target, threads: int) -> Schedule:
    """Along the last axis if results are neighbours there."""
    along = nest.axes[-1] if nest.axes else None
    if along is not None and any(lane_step(store.offset, along) != 1 for store in nest.stores):
        along = None
    nodes = nest.nodes
    lanes, maskable = 1, False
    if along is not None:
        maskable = is_maskable(nest, nodes, along, target)
        lanes = lanes_for(nodes, along, along.extent, target, maskable, unrolling(nodes))
    if lanes == 1:
        along = None
    tasks = cut(nest.axes, work_ns(nest), threads, lanes, along_last=along is not None)
    return Schedule(along, lanes, maskable, tasks)


def is_maskable(nest: LoopNest, nodes: list[Node], along: Axis, target: Target) -> bool:
    """Whether lanes can be left out: every load and store is of neighbours, in a form the target can mask."""
    if not target.has_masked_memory:
        return False
    narrow = target.vector_bits >= 512
    kinds = [store.element for store in nest.stores]
    for node in nodes:
        if isinstance(node, Load) and along in node.axes:
            if lane_step(node.offset, along) not in (1, -1):
                return False
            kinds.append(node.element)
    return all(not e.is_complex and (narrow or e.storage_bytes >= 4) for e in kinds)


def unrolling(nodes: list[Node]) -> int:
    """How many vectors to compute at once: short bodies gain by it, long ones run out of registers."""
    work = 0
    for node in nodes:
        if isinstance(node, Compute):
            work += 8 if OPERATIONS[node.opcode].transcendental else 1
        elif isinstance(node, (Choose, Fold)):
            work += 8
    return 4 if work <= 3 else 2 if work <= 8 else 1


def lanes_for(
    nodes: list[Node], along: Axis, extent: int, target: Target, maskable: bool, unroll: int
) -> int:
    """Points at once: full vectors, several for short bodies, fewer where the axis is short."""
    one = target.lanes(widest_bits(nodes, along))
    lanes = min(one * unroll, max(_MOST_LANES, one))
    while lanes > one and lanes > extent:
        lanes //= 2
    if maskable:
        while lanes > 1 and lanes // 2 >= extent:
            lanes //= 2
        return lanes
    while lanes > extent:
        lanes //= 2
    return max(lanes, 1)


def emit_loop_kernel(nest: LoopNest, operands: int, target: Target, threads: int) -> KernelCode:
    """The kernel of a nest; with `update_of`, the result already holds what is not overwritten."""
    schedule = schedule_loops(nest, target, threads)
    writer = KernelWriter(operands, nest.tables)
    nodes = nest.nodes
    loads = [node for node in nodes if isinstance(node, Load)]
    results = [operands + store.result for store in nest.stores]
    e = writer.open([*(node.operand for node in loads), *results])
    starts = [node for store in nest.stores for node in dynamic_nodes(store.offset)]
    free = unguarded((*starts, *nest.roots))
    along = schedule.along
    if along is not None and _emit_transposing(e, nest, free, target, schedule, threads, operands):
        return writer.finish("loop", _transposing_tasks(nest, free, target, threads).count)
    axes = nest.axes[:-1] if along is not None else nest.axes

    def points(first: str, last: str) -> None:
        if along is None:
            _store_all(e, nest, operands)
            return
        hoist_addresses(e, free, [store.offset for store in nest.stores], along)
        vector_loop(e, along, schedule, first, last, lambda: _store_all(e, nest, operands))

    over_tasks(e, axes, schedule.tasks, free, points, along=along)
    return writer.finish("loop", schedule.tasks.count)


def _transposing_tasks(nest: LoopNest, free: list[Node], target: Target, threads: int) -> Tasks:
    found = across(nest, nest.nodes, free)
    assert found is not None
    side = square_side(nest.nodes, nest.axes[-1], found[0], target)
    outer = [axis for axis in nest.axes[:-1] if axis != found[0]]
    return cut([*outer, nest.axes[-1]], work_ns(nest), threads, side)


def _emit_transposing(
    e: ElementalEmitter,
    nest: LoopNest,
    free: list[Node],
    target: Target,
    schedule: Schedule,
    threads: int,
    operands: int,
) -> bool:
    """Emits the loops in squares if some load is read across its rows; says whether it did."""
    found = across(nest, nest.nodes, free)
    along = schedule.along
    if found is None or along is None or nest.update_of is not None:
        return False
    other, loads = found
    side = square_side(nest.nodes, along, other, target)
    if side == 1:
        return False
    outer = [axis for axis in nest.axes[:-1] if axis != other]
    tasks = _transposing_tasks(nest, free, target, threads)

    def points(first: str, last: str) -> None:
        emit_squares(e, along, other, loads, side, first, last, lambda: _store_all(e, nest, operands))

    over_tasks(e, outer, tasks, free, points, along=along)
    return True


def vector_loop(
    e: ElementalEmitter, along: Axis, schedule: Schedule, first: str, last: str, body: object
) -> None:
    """Runs `body` over a range of the lanes' axis, vector by vector, and then over what is left."""
    assert callable(body)
    b, lanes = e.b, schedule.lanes
    count = b.sub(last, first)
    end = b.add(first, b.mul(b.div(count, lanes), lanes))
    if not (first == "0" and end == "0"):
        with b.loop(first, end, lanes, str(along)) as index:
            e.axes[along] = index
            with e.vectorised(along, lanes):
                body()
    if along.extent % lanes:
        rest = b.sub(last, end)
        if schedule.maskable:
            _masked_rest(e, along, schedule, end, rest, body)
        else:
            with b.loop(end, last, 1, f"{along}.rest") as index:
                e.axes[along] = index
                with e.vectorised(along, 1):
                    body()
    e.axes.pop(along, None)


def _masked_rest(
    e: ElementalEmitter, along: Axis, schedule: Schedule, end: str, rest: str, body: object
) -> None:
    assert callable(body)
    b = e.b

    def masked() -> None:
        e.axes[along] = end
        with e.vectorised(along, schedule.lanes, b.lane_mask(rest, schedule.lanes)):
            body()

    if rest.isdigit():
        masked()
        return
    with b.when(b.compare("sgt", rest, 0)):
        masked()


def _store_all(e: ElementalEmitter, nest: LoopNest, operands: int) -> None:
    """All values first, then the stores: a result may lie where an operand lies."""
    values = [e.value(store.value) for store in nest.stores]
    for store, value in zip(nest.stores, values, strict=True):
        e.store(store.element, e.buffers[operands + store.result], store.offset, value)
