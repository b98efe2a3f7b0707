"""Kernels that treat a tensor row by row (sorts, factorisations): where rows start, how they are cut into tasks.

A row is what lies along one or two chosen dimensions; the others are numbered in the order of the first operand's memory,
so that neighbouring rows are neighbours in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from compiler.backends.cpu.emit.skeleton import KernelWriter
from compiler.backends.cpu.text_builder import TextBuilder
from compiler.ir.types import TensorType
from compiler.kernel.index_expression import physical_strides

_TASK_NS = 8_000.0
_TASKS_PER_THREAD = 4
_MOST_SCRATCH = 64 << 20
"""Scratch memory that more tasks than threads may take."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a tensor: sizes and numbers of the dimensions that are not inside a row, outermost first."""

    dimensions: tuple[int, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, kind: TensorType, inside: Sequence[int]) -> Rows:
        """The rows of a tensor along the dimensions `inside`."""
        outer = tuple(d for d in reversed(kind.minor_to_major) if d not in inside)
        return cls(outer, tuple(kind.shape[d] for d in outer))

    @property
    def count(self) -> int:
        """How many rows there are."""
        return prod(self.sizes)

    def starts(self, b: TextBuilder, row: str, kinds: Sequence[TensorType]) -> list[str]:
        """Where row number `row` starts in each tensor, in elements."""
        indices: list[str] = []
        number = row
        for size in reversed(self.sizes[1:]):
            indices.insert(0, b.rem(number, size))
            number = b.div(number, size)
        if self.sizes:
            indices.insert(0, number)
        found = []
        for kind in kinds:
            strides = physical_strides(kind.shape, kind.minor_to_major)
            start = "0"
            for d, index in zip(self.dimensions, indices, strict=True):
                start = b.add(start, b.mul(index, strides[d]))
            found.append(start)
        return found


@dataclass(frozen=True, slots=True)
class RowTasks:
    """`count` tasks of `step` rows each, with `scratch_bytes` of scratch memory for each task."""

    rows: Rows
    count: int
    step: int
    scratch_bytes: int

    @property
    def all_scratch_bytes(self) -> int:
        """The scratch memory of all tasks."""
        return self.count * self.scratch_bytes


def cut_rows(rows: Rows, row_ns: float, threads: int, scratch_bytes: int = 0) -> RowTasks:
    """Cuts rows into tasks, given an estimate of the time a row takes and the scratch memory a task needs."""
    scratch = -(-scratch_bytes // 64) * 64
    wanted = 1
    if threads > 1:
        most = threads * _TASKS_PER_THREAD
        if scratch * most > _MOST_SCRATCH:
            most = threads
        wanted = max(1, int(min(most, rows.count * row_ns / _TASK_NS, rows.count)))
    step = max(1, -(-rows.count // wanted))
    return RowTasks(rows, max(1, -(-rows.count // step)), step, scratch)


def over_rows(
    writer: KernelWriter,
    tasks: RowTasks,
    kinds: Sequence[TensorType],
    body: Callable[[list[str], str], None],
) -> None:
    """Runs `body` for each row of each task; it is given the row's starts in `kinds` and the task's scratch memory.

    The scratch buffer comes after the buffers of `kinds`.
    """
    b = writer.b
    memory = writer.pointer(len(kinds)) if tasks.scratch_bytes else ""
    with b.loop("%begin", "%end", hint="task") as task:
        scratch = b.gep(memory, b.mul(task, tasks.scratch_bytes)) if memory else ""
        first = b.mul(task, tasks.step)
        last = b.minimum(b.add(first, tasks.step), tasks.rows.count)
        with b.loop(first, last, hint="row") as row:
            body(tasks.rows.starts(b, row, kinds), scratch)


@dataclass(frozen=True, slots=True)
class Slot:
    """A variable of a function being written; kept on the stack until LLVM moves it to registers."""

    b: TextBuilder
    kind: str
    address: str

    @classmethod
    def new(cls, b: TextBuilder, kind: str, value: str) -> Slot:
        """A variable with a first value."""
        slot = cls(b, kind, b.alloca(kind, align=16))
        slot.set(value)
        return slot

    def get(self) -> str:
        """Its value."""
        return self.b.load(self.kind, self.address)

    def set(self, value: str) -> None:
        """Changes its value."""
        self.b.store(self.kind, value, self.address)


def loop_while(b: TextBuilder, condition: Callable[[], str], body: Callable[[], None]) -> None:
    """A loop that asks a condition before each turn; what changes is kept in slots."""
    head, inside, done = b.label("while"), b.label("turn"), b.label("done")
    b.branch(head)
    b.place(head)
    b.branch_if(condition(), inside, done)
    b.place(inside)
    body()
    b.branch(head)
    b.place(done)


__all__ = ["RowTasks", "Rows", "Slot", "cut_rows", "loop_while", "over_rows"]
