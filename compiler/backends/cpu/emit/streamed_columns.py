"""Sums over the leading dimension of a large array: rows are read from end to end, sums kept in the first-level cache.

Keeping the sums of a few columns in registers would read a little of each of many rows, a page apart each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compiler.backends.cpu.emit.elemental import ElementalEmitter
from compiler.backends.cpu.emit.registers import Held, part_bytes, register_kind, register_type
from compiler.backends.cpu.text_builder import llvm_type
from compiler.ir.types import ElementType
from compiler.kernel.elemental import Load
from compiler.kernel.index_expression import Axis
from compiler.kernel.loop_nest import LoopNest
from compiler.kernel.schedule import lane_step

_BLOCK_BYTES = 8 << 10
_ROWS_AT_ONCE = 4
_FEWEST_ROWS = 32
_PAGE = 4096


def streams(nest: LoopNest, element: ElementType, along: Axis) -> bool:
    """Whether rows are so long that reading a few columns of each is slow, and many enough to matter."""
    if element.is_complex or len(nest.folded) != 1 or nest.folded[-1].extent < _FEWEST_ROWS:
        return False
    wide = along.extent * element.storage_bytes >= _PAGE
    rows = [
        abs(lane_step(node.offset, nest.folded[-1]) or 0) * node.element.storage_bytes
        for node in nest.nodes
        if isinstance(node, Load)
    ]
    return wide and max(rows, default=0) >= _PAGE


@dataclass
class StreamedColumns:
    """One such sum being emitted, `lanes` columns at a time.

    Attributes:
        combine: the body, on accumulators and elements.
        inputs: the elements at the present point.
        finish: takes the initial value in and stores, at the present point.
    """

    e: ElementalEmitter
    nest: LoopNest
    element: ElementType
    along: Axis
    lanes: int
    identity: complex
    combine: Callable[[Sequence[Held], Sequence[Held]], list[Held]]
    inputs: Callable[[], list[Held]]
    finish: Callable[[list[Held]], None]

    @property
    def columns(self) -> int:
        """Columns whose sums are kept at a time."""
        most = _BLOCK_BYTES // part_bytes(self.element) if self.element.bits >= 32 else _BLOCK_BYTES // 4
        return most // self.lanes * self.lanes

    def emit(self, first: str, last: str) -> None:
        """The sums of whole vectors of columns from `first` to `last`."""
        b, e = self.e.b, self.e
        kind = register_type(self.element, self.lanes)
        scalar = llvm_type(register_kind(self.element))
        sums = b.alloca(scalar, self.columns)
        with b.loop(first, last, self.columns, f"{self.along}.block") as start, e.scope():
            end = b.minimum(b.add(start, self.columns), last)
            zero = str(e.builder(self.lanes).constant(self.element, self.identity))
            with b.loop(start, end, self.lanes, "zero") as column:
                b.store(kind, zero, b.gep(sums, b.sub(column, start), scalar), 64)
            rows = self.nest.folded[0]
            whole = rows.extent // _ROWS_AT_ONCE * _ROWS_AT_ONCE
            self._rows(sums, start, end, ("0", str(whole)), _ROWS_AT_ONCE)
            self._rows(sums, start, end, (str(whole), str(rows.extent)), 1)
            with b.loop(start, end, self.lanes, "finish") as column:
                e.axes[self.along] = column
                with e.vectorised(self.along, self.lanes):
                    self.finish([b.load(kind, b.gep(sums, b.sub(column, start), scalar), 64)])
        e.axes.pop(self.along, None)

    def _rows(self, sums: str, start: str, end: str, rows: tuple[str, str], together: int) -> None:
        if rows[0] == rows[1]:
            return
        b, e, folded = self.e.b, self.e, self.nest.folded[0]
        kind, scalar = register_type(self.element, self.lanes), llvm_type(register_kind(self.element))
        with (
            b.loop(*rows, together, str(folded)) as row,
            e.scope(),
            b.loop(start, end, self.lanes, str(self.along)) as column,
        ):
            e.axes[self.along] = column
            found: list[Held] = []
            for number in range(together):
                e.axes[folded] = b.add(row, number)
                with e.vectorised(self.along, self.lanes):
                    found.append(self.inputs()[0])
            with e.vectorised(self.along, self.lanes):
                while len(found) > 1:
                    found = [self.combine([x], [y])[0] for x, y in zip(found[::2], found[1::2], strict=True)]
                place = b.gep(sums, b.sub(column, start), scalar)
                total = self.combine([b.load(kind, place, 64)], found)[0]
            b.store(kind, total if isinstance(total, str) else total[0], place, 64)
        e.axes.pop(folded, None)
