"""Reductions and what is fused into them.

A sum (or any other operation that may be reordered) over neighbours is done in several vectors at once that are added up
pairwise at the end; one over rows runs along the columns, row by row. Long sums are done a block at a time, so that
rounding errors stay small. Any other body is folded in order, for as many results at once as there are lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from compiler.backends.cpu.emit.elemental import ElementalEmitter
from compiler.backends.cpu.emit.identity import identity_of, widened
from compiler.backends.cpu.emit.loop_kernel import is_maskable, lanes_for, vector_loop
from compiler.backends.cpu.emit.registers import Held, register_bits, register_kind, register_type
from compiler.backends.cpu.emit.skeleton import KernelWriter, hoist_addresses, over_tasks, unguarded
from compiler.backends.cpu.emit.streamed_columns import StreamedColumns, streams
from compiler.backends.cpu.kernel_code import KernelCode
from compiler.backends.cpu.target import Target
from compiler.backends.cpu.text_builder import llvm_type
from compiler.kernel.elemental import Compute, Fold, Load, Node
from compiler.kernel.index_expression import Axis
from compiler.kernel.loop_nest import LoopNest
from compiler.kernel.schedule import Schedule, Tasks, cut, lane_step, rows_along, work_ns

_BLOCK = 128
_VECTORS = 4


@dataclass
class _Reduction:
    """One reduction kernel being emitted."""

    nest: LoopNest
    operands: int
    target: Target
    writer: KernelWriter
    e: ElementalEmitter
    fold: Fold
    identity: complex | None
    """The body's neutral element when it may be reordered."""
    free: list[Node]

    def combine(self, left: Sequence[Held], right: Sequence[Held]) -> list[Held]:
        """The body on accumulators and elements at the present lanes."""
        return self.e.apply(self.fold.body, [*left, *right])

    def inputs(self) -> list[Held]:
        """The elements at the present point."""
        return [self.e.value(node) for node in self.fold.inputs]

    def finish(self, values: Sequence[Held], *, with_initial: bool) -> None:
        """Takes the initial value in and stores the results."""
        if with_initial:
            values = self.combine([self.e.value(node) for node in self.fold.initial], values)
        for store in self.nest.stores:
            assert isinstance(store.value, Fold)
            base = self.e.buffers[self.operands + store.result]
            self.e.store(store.element, base, store.offset, values[store.value.result])


def emit_reduction_kernel(nest: LoopNest, operands: int, target: Target, threads: int) -> KernelCode:
    """The kernel of a nest whose stores are results of one fold over `nest.folded`."""
    fold = nest.stores[0].value
    assert isinstance(fold, Fold)
    nest, fold = widened(nest, fold)
    identity = identity_of(fold)
    writer = KernelWriter(operands, nest.tables)
    loads = [node for node in nest.nodes if isinstance(node, Load)]
    e = writer.open([*(node.operand for node in loads), *(operands + store.result for store in nest.stores)])
    free = unguarded((*fold.initial, *fold.inputs))
    r = _Reduction(nest, operands, target, writer, e, fold, identity, free)
    return _by_columns(r, threads) if _prefers_columns(r) else _by_rows(r, threads)


def _prefers_columns(r: _Reduction) -> bool:
    """Whether the kept axis, not the folded one, is what neighbours in memory run along."""
    if r.identity is None:
        return True
    if not r.nest.axes or lane_step(r.nest.stores[0].offset, r.nest.axes[-1]) != 1:
        return False
    folded, kept = r.nest.folded[-1], r.nest.axes[-1]
    largest = max(
        (node for node in r.nest.nodes if isinstance(node, Load)),
        key=lambda load: prod(axis.extent for axis in load.axes),
        default=None,
    )
    if largest is None:
        return kept.extent >= folded.extent
    if lane_step(largest.offset, kept) == 1:
        return True
    if lane_step(largest.offset, folded) in (1, -1):
        return False
    return (
        rows_along(r.nest.nodes, kept)[0] >= rows_along(r.nest.nodes, folded)[0]
        and kept.extent >= folded.extent
    )


def _nodes(r: _Reduction) -> list[Node]:
    return [*r.nest.nodes, *r.fold.body]


def _by_columns(r: _Reduction, threads: int) -> KernelCode:
    """Results along the lanes; the folded loops run inside, row by row."""
    nest, e = r.nest, r.e
    along = nest.axes[-1] if nest.axes else None
    if along is not None and any(lane_step(store.offset, along) != 1 for store in nest.stores):
        along = None
    lanes, maskable = 1, False
    if along is not None:
        maskable = is_maskable(nest, nest.nodes, along, r.target)
        lanes = lanes_for(
            nest.nodes, along, along.extent, r.target, maskable, 2 * _VECTORS if _is_short(r) else 1
        )
    if lanes == 1:
        along = None
    tasks = cut(nest.axes, work_ns(nest), threads, lanes, along_last=along is not None)
    axes = nest.axes[:-1] if along is not None else nest.axes

    def finish_column(values: list[Held]) -> None:
        r.finish(values, with_initial=True)

    def column() -> None:
        elements = [node.element for node in r.fold.initial]
        if r.identity is None:
            start = [e.value(node) for node in r.fold.initial]
            r.finish(
                e.looped(nest.folded, elements, start, lambda v: r.combine(v, r.inputs())), with_initial=False
            )
            return
        zero = [e.builder(e.lanes).constant(elements[0], r.identity)]
        r.finish(_blocked(r, nest.folded, zero, lambda v: r.combine(v, r.inputs())), with_initial=True)

    element = r.fold.initial[0].element
    vector = r.target.lanes(max(32, register_bits(element)))
    streamed = along is not None and r.identity is not None and along.extent % vector == 0
    streamed = streamed and along is not None and streams(nest, element, along)
    if streamed:
        # Sums in memory are whole vectors at aligned places: one vector at a time.
        lanes = vector
        tasks = cut(nest.axes, work_ns(nest), threads, lanes)

    def points(first: str, last: str) -> None:
        if along is None:
            column()
        elif streamed:
            StreamedColumns(
                e, nest, element, along, lanes, r.identity or 0, r.combine, r.inputs, finish_column
            ).emit(first, last)
        else:
            hoist_addresses(e, r.free, [store.offset for store in nest.stores], along)
            vector_loop(e, along, Schedule(along, lanes, maskable, tasks), first, last, column)

    over_tasks(e, axes, tasks, r.free, points, along=along)
    return r.writer.finish("reduction", tasks.count)


def _is_short(r: _Reduction) -> bool:
    return sum(isinstance(node, Compute) for node in _nodes(r)) <= 4


def _blocked(
    r: _Reduction, over: Sequence[Axis], zero: list[Held], inside: Callable[[list[Held]], list[Held]]
) -> list[Held]:
    """Folds over loops; long ones in blocks whose results are folded in turn."""
    e = r.e
    elements = [node.element for node in r.fold.initial]
    if not over or not elements[0].is_float or over[-1].extent < 4 * _BLOCK:
        return e.looped(over, elements, zero, inside)
    axis, outer = over[-1], over[:-1]
    kind = register_type(elements[0], e.lanes)

    def blocks(values: list[Held]) -> list[Held]:
        with e.b.carried_loop(0, axis.extent, [(kind, str(values[0]))], _BLOCK, f"{axis}.block") as block:
            end = e.b.minimum(e.b.add(block.index, _BLOCK), axis.extent)
            with e.b.carried_loop(block.index, end, [(kind, str(zero[0]))], hint=str(axis)) as loop:
                e.axes[axis] = loop.index
                with e.scope():
                    loop.next = [str(inside([loop.values[0]])[0])]
            block.next = [str(r.combine([block.values[0]], [loop.results[0]])[0])]
        return [block.results[0]]

    return e.looped(outer, elements, zero, blocks)


def _by_rows(r: _Reduction, threads: int) -> KernelCode:
    """Folded neighbours along the lanes of a few vectors, which are folded at the end."""
    nest, e = r.nest, r.e
    along = nest.folded[-1]
    element = r.fold.initial[0].element
    maskable = is_maskable(replace(nest, stores=()), nest.nodes, along, r.target)
    maskable = maskable and all(
        lane_step(node.offset, along) in (1, -1)
        for node in nest.nodes
        if isinstance(node, Load) and along in node.axes
    )
    unroll = _VECTORS if sum(isinstance(node, Compute) for node in _nodes(r)) <= 12 else 2
    lanes = lanes_for(nest.nodes, along, along.extent, r.target, maskable, unroll)
    if rows_along(nest.nodes, along)[0] == 0 and rows_along(nest.nodes, along)[1] > 0:
        lanes = 1
    wanted = cut(nest.axes, work_ns(nest), threads, 1, along_last=False) if nest.axes else Tasks(1, 0, 1)
    if wanted.count > 1 and wanted.prefix == 0:
        wanted = Tasks(1, 0, 1)

    def row(first: str, last: str) -> None:
        zero: Held = e.builder(lanes).constant(element, r.identity or 0)
        total = _row_total(r, along, lanes, maskable, zero)
        with e.vectorised(None, 1):
            r.finish([total], with_initial=True)

    over_tasks(e, nest.axes, wanted, r.free, row, along=None)
    return r.writer.finish("reduction", wanted.count)


def _row_total(r: _Reduction, along: Axis, lanes: int, maskable: bool, zero: Held) -> Held:
    """The fold over all folded axes, `along` in vectors."""
    e, element = r.e, r.fold.initial[0].element
    whole = along.extent // lanes * lanes
    left = along.extent - whole

    def vectors(values: list[Held]) -> list[Held]:
        total: Held = values[0]
        hoist_addresses(e, r.free, [], along)
        if whole:
            blocks = whole // lanes
            total = _vector_run(r, along, lanes, whole, total, zero if blocks > 4 * _BLOCK else None)
        if left and maskable and lanes > 1:
            e.axes[along] = str(whole)
            with e.vectorised(along, lanes, e.b.lane_mask(left, lanes)):
                masked = e.builder(lanes).select(element, str(e.mask), r.inputs()[0], zero)
                total = r.combine([total], [masked])[0]
        e.axes.pop(along, None)
        return [total]

    with e.vectorised(None, lanes):
        values = e.looped(r.nest.folded[:-1], [element], [zero], vectors)
    total = _halved(r, values[0], lanes)
    if left and not (maskable and lanes > 1):
        total = _scalar_rest(r, along, whole, total)
    return total


def _vector_run(r: _Reduction, along: Axis, lanes: int, whole: int, start: Held, zero: Held | None) -> Held:
    e, kind = r.e, register_type(r.fold.initial[0].element, lanes)

    def run(first: str, last: str, initial: Held) -> Held:
        parts = list(initial) if isinstance(initial, tuple) else [initial]
        with e.b.carried_loop(first, last, [(kind, part) for part in parts], lanes, str(along)) as loop:
            e.axes[along] = loop.index
            with e.vectorised(along, lanes):
                carried: Held = loop.values[0] if len(parts) == 1 else (loop.values[0], loop.values[1])
                value = r.combine([carried], r.inputs())[0]
            loop.next = list(value) if isinstance(value, tuple) else [value]
        return loop.results[0] if len(parts) == 1 else (loop.results[0], loop.results[1])

    if zero is None or isinstance(start, tuple):
        return run("0", str(whole), start)
    step = _BLOCK * lanes
    with e.b.carried_loop(0, whole, [(kind, start)], step, f"{along}.block") as block:
        end = e.b.minimum(e.b.add(block.index, step), whole)
        part = run(block.index, end, zero)
        with e.vectorised(along, lanes):
            block.next = [str(r.combine([block.values[0]], [part])[0])]
    return block.results[0]


def _halved(r: _Reduction, value: Held, lanes: int) -> Held:
    """The fold of a vector's lanes, pairwise."""
    while lanes > 1:
        half = lanes // 2
        left, right = _side(r, value, lanes, 0), _side(r, value, lanes, half)
        with r.e.vectorised(None, half):
            value = r.combine([left], [right])[0]
        lanes = half
    return value


def _side(r: _Reduction, value: Held, lanes: int, first: int) -> Held:
    """Half of a vector's lanes, from `first` on."""
    if isinstance(value, tuple):
        return (_part(r, value[0], lanes, first), _part(r, value[1], lanes, first))
    return _part(r, value, lanes, first)


def _part(r: _Reduction, whole: str, lanes: int, first: int) -> str:
    b, half = r.e.b, lanes // 2
    vector = llvm_type(register_kind(r.fold.initial[0].element), lanes)
    if half == 1:
        return b.op(f"extractelement {vector} {whole}, i64 {first}")
    numbers = ", ".join(f"i32 {first + lane}" for lane in range(half))
    return b.op(f"shufflevector {vector} {whole}, {vector} poison, <{half} x i32> <{numbers}>")


def _scalar_rest(r: _Reduction, along: Axis, whole: int, total: Held) -> Held:
    """What no full vector covers, point by point, over all outer folded loops again."""
    e, element = r.e, r.fold.initial[0].element

    def points(values: list[Held]) -> list[Held]:
        parts = list(values[0]) if isinstance(values[0], tuple) else [values[0]]
        kind = register_type(element, 1)
        with e.b.carried_loop(
            whole, along.extent, [(kind, part) for part in parts], hint=f"{along}.rest"
        ) as loop:
            e.axes[along] = loop.index
            with e.vectorised(along, 1):
                carried: Held = loop.values[0] if len(parts) == 1 else (loop.values[0], loop.values[1])
                value = r.combine([carried], r.inputs())[0]
            loop.next = list(value) if isinstance(value, tuple) else [value]
        e.axes.pop(along, None)
        return [loop.results[0] if len(parts) == 1 else (loop.results[0], loop.results[1])]

    with e.vectorised(None, 1):
        return e.looped(r.nest.folded[:-1], [element], [total], points)[0]
