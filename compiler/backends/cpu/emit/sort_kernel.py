"""sort: a stable merge sort of each row, with the comparator inline; several operands move together.

Rows are copied into scratch memory, runs of doubling length are merged back and forth, and the outcome is copied to the
results. Tasks are ranges of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.backends.cpu.emit.elemental import ElementalEmitter
from compiler.backends.cpu.emit.registers import Held, memory_type
from compiler.backends.cpu.emit.skeleton import KernelWriter
from compiler.backends.cpu.lowered import Operand, Result, Use
from compiler.backends.cpu.text_builder import TextBuilder
from compiler.ir.program import Computation, Instruction
from compiler.ir.types import ElementType, TensorType
from compiler.kernel.elemental import Node
from compiler.kernel.expansion import body_nodes, plain
from compiler.kernel.index_expression import physical_strides

if TYPE_CHECKING:
    from compiler.backends.cpu.lowering import Lowering

_COMPARISON_NS = 5.0
_TASK_NS = 10_000.0


@dataclass
class _Sort:
    """One sort being emitted; `length` elements a row, from two scratch areas of `area` bytes each."""

    e: ElementalEmitter
    kinds: list[ElementType]
    types: list[TensorType]
    dimension: int
    comparator: Node
    length: int
    offsets: list[int]
    area: int

    @property
    def b(self) -> TextBuilder:
        """The function under construction."""
        return self.e.b


def sort_use(low: Lowering, computation: Computation, sort: Instruction) -> Use | None:
    """The kernel of a sort."""
    types = [computation[name].tensor for name in sort.operands]
    kinds = [plain(kind) for kind in types]
    dimension = sort.attributes["dimension"] % max(types[0].rank, 1)
    length = types[0].shape[dimension] if types[0].rank else 1
    rows = types[0].size // length if length else 0
    count = len(types)
    offsets, area = [], 0
    for kind in kinds:
        offsets.append(area)
        area += -(-length * kind.storage_bytes // 64) * 64
    work = rows * length * max(length.bit_length(), 1) * _COMPARISON_NS
    tasks = max(1, min(rows, 4 * low.threads, int(work / _TASK_NS))) if low.threads > 1 else 1
    per_task = -(-rows // tasks) if rows else 1
    tasks = -(-rows // per_task) if rows else 1
    doubled = [kind for kind in kinds for _ in range(2)]
    comparator = body_nodes(low.computations[sort.called[0]], low.computations, doubled)[0]
    writer = KernelWriter(count)
    e = writer.open(range(2 * count + 1))
    s = _Sort(e, kinds, types, dimension, comparator, length, offsets, area)
    b = writer.b
    with b.loop("%begin", "%end", hint="task") as task, e.scope():
        scratch = b.gep(e.buffers[2 * count], b.mul(task, 2 * area))
        first = b.mul(task, per_task)
        last = b.minimum(b.add(first, per_task), rows)
        with b.loop(first, last, hint="row") as row, e.scope():
            _row(s, row, scratch)
    code = writer.finish("sort", tasks, 2 * area * tasks)
    buffers = (*(Operand(number) for number in range(count)), *(Result(number) for number in range(count)))
    return Use(code, buffers, "sort")


def _row_start(s: _Sort, row: str, kind: TensorType) -> tuple[str, int]:
    """Where a row starts, in elements, and how far apart its elements are."""
    strides = physical_strides(kind.shape, kind.minor_to_major)
    start, rest = "0", row
    for d in reversed([d for d in range(kind.rank) if d != s.dimension]):
        start = s.b.add(start, s.b.mul(s.b.rem(rest, kind.shape[d]), strides[d]))
        rest = s.b.div(rest, kind.shape[d])
    return start, strides[s.dimension] if kind.rank else 1


def _row(s: _Sort, row: str, scratch: str) -> None:
    b, count = s.b, len(s.kinds)
    starts = [_row_start(s, row, kind) for kind in s.types]
    with b.loop(0, s.length, hint="in") as at:
        for number, kind in enumerate(s.kinds):
            memory, (start, stride) = _whole(kind), starts[number]
            source = b.gep(s.e.buffers[number], b.add(start, b.mul(at, stride)), memory)
            value = b.load(memory, source, 1)
            b.store(memory, value, b.gep(b.gep(scratch, s.offsets[number]), at, memory), 1)
    source, target = b.alloca("ptr", 1, 8), b.alloca("ptr", 1, 8)
    b.store("ptr", scratch, source)
    b.store("ptr", b.gep(scratch, s.area), target)
    width = b.alloca("i64", 1, 8)
    b.store("i64", 1, width)
    head, body, done = b.label("width"), b.label("merge"), b.label("sorted")
    b.branch(head)
    b.place(head)
    present = b.load("i64", width)
    b.branch_if(b.compare("slt", present, s.length), body, done)
    b.place(body)
    here, there = b.load("ptr", source), b.load("ptr", target)
    with b.loop(0, s.length, b.add(present, present), "run") as low:
        middle = b.minimum(b.add(low, present), s.length)
        high = b.minimum(b.add(middle, present), s.length)
        _merge(s, here, there, low, middle, high)
    b.store("ptr", there, source)
    b.store("ptr", here, target)
    b.store("i64", b.add(present, present), width)
    b.branch(head)
    b.place(done)
    final = b.load("ptr", source)
    with b.loop(0, s.length, hint="out") as at:
        for number, kind in enumerate(s.kinds):
            memory, (start, stride) = _whole(kind), starts[number]
            value = b.load(memory, b.gep(b.gep(final, s.offsets[number]), at, memory), 1)
            place = b.gep(s.e.buffers[count + number], b.add(start, b.mul(at, stride)), memory)
            b.store(memory, value, place, 1)


def _whole(kind: ElementType) -> str:
    """An integer type as wide as an element in memory: elements are moved as bits."""
    return f"i{8 * kind.storage_bytes}"


def _merge(s: _Sort, here: str, there: str, low: str, middle: str, high: str) -> None:
    """Takes the smaller head of two runs, the left one's where neither is: that keeps the sort stable."""
    b = s.b
    with b.carried_loop(low, high, [("i64", low), ("i64", middle)], hint="take") as loop, s.e.scope():
        left, right = loop.values
        # Beyond a run's end any element will do: the choice is made without it.
        left_at, right_at = b.minimum(left, s.length - 1), b.minimum(right, s.length - 1)
        values: list[Held] = []
        for number, kind in enumerate(s.kinds):
            values += [_element(s, here, number, kind, right_at), _element(s, here, number, kind, left_at)]
        smaller = str(s.e.apply([s.comparator], values)[0])
        left_done, right_left = b.compare("sge", left, middle), b.compare("slt", right, high)
        wanted = b.op(f"or i1 {left_done}, {smaller}")
        take = b.op(f"and i1 {right_left}, {wanted}")
        chosen = b.select(take, right_at, left_at)
        for number, kind in enumerate(s.kinds):
            memory = _whole(kind)
            value = b.load(memory, b.gep(b.gep(here, s.offsets[number]), chosen, memory), 1)
            b.store(memory, value, b.gep(b.gep(there, s.offsets[number]), loop.index, memory), 1)
        step = b.op(f"zext i1 {take} to i64")
        loop.next = [b.add(left, b.sub(1, step)), b.add(right, step)]


def _element(s: _Sort, base: str, number: int, kind: ElementType, at: str) -> Held:
    b, e = s.b, s.e
    memory = memory_type(kind, 1)
    area = b.gep(base, s.offsets[number])
    if kind.is_complex:
        first = b.mul(at, 2)
        return (
            b.load(memory, b.gep(area, first, memory), 1),
            b.load(memory, b.gep(area, b.add(first, 1), memory), 1),
        )
    return e.registers.from_memory(kind, 1, b.load(memory, b.gep(area, at, memory), 1))
