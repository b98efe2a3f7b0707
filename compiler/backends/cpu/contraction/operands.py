"""The operands of a matrix product as the microkernels want them: copied rows, packed panels, or in place.

Scratch memory of a task holds the copied rows of the left operand, then the packed panels of the right one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from compiler.backends.cpu.contraction.copying import call_copy, emit_copy, memory_order
from compiler.backends.cpu.contraction.matrix_address import matrix_address
from compiler.backends.cpu.contraction.schedule import Schedule
from compiler.backends.cpu.contraction.spec import GemmSpec, MatrixView
from compiler.backends.cpu.kernel_code import SharedFunction
from compiler.backends.cpu.text_builder import TextBuilder, Value

RowMaker = Callable[[TextBuilder, str, str, str, str, int], None]
"""Makes rows of a left operand: builder, destination, batch number, first row, row count, stride in bytes."""

PanelMaker = Callable[[TextBuilder, str, str, str, str], None]
"""Makes a panel of a right operand: builder, destination, batch number, first column, column count."""


@dataclass(frozen=True, slots=True)
class Depth:
    """The part of the sums being done: from where, and how much."""

    first: str
    count: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task works: the product of the batch, its matrices, the copied rows and the packed panels."""

    batch: str
    lhs: str
    rhs: str
    out: str
    copies: str
    panels: str


@dataclass(frozen=True, slots=True)
class Operands:
    """Emits the copying of both operands and the addresses the microkernels get.

    Attributes:
        spec: the product.
        schedule: how it is cut up.
        shared: the functions the kernel calls; added to.
        make_rows: what makes rows of the left operand that does not lie in memory.
        make_panel: what makes panels of the right operand that does not lie in memory.
        rhs_levels: sizes and strides that together step through the rows of the right operand, outermost
            first; empty where the one row stride does.
    """

    spec: GemmSpec
    schedule: Schedule
    shared: dict[str, SharedFunction]
    make_rows: RowMaker | None
    make_panel: PanelMaker | None
    rhs_levels: tuple[tuple[int, int], ...]

    def use(self, function: SharedFunction) -> SharedFunction:
        """Notes that the kernel calls `function`."""
        return self.shared.setdefault(function.name, function)

    def _lhs_bytes(self) -> int:
        schedule = self.schedule
        if not schedule.copy_lhs:
            return 0
        rows = (schedule.tile_rows + (schedule.taller_tiles > 0)) * schedule.tiles_per_block
        return rows * schedule.lhs_stride

    def _panel_bytes(self) -> int:
        return self.schedule.k_block * self.schedule.tile.columns * self.spec.accumulate_bytes

    def task_scratch_bytes(self) -> int:
        """Scratch memory of one task, in whole cache lines."""
        panels = self.schedule.panels_per_block * self._panel_bytes() if self.schedule.pack_rhs else 0
        return -(-(self._lhs_bytes() + panels) // 64) * 64

    def scratch(self, b: TextBuilder) -> str:
        """The scratch of this call: ranges do not overlap, so the first task's part is nobody else's."""
        size = self.task_scratch_bytes()
        if size == 0:
            return "null"
        base = b.load("ptr", b.gep("%buffers", self.spec.scratch_buffer, "ptr"), 8, hint="scratch")
        return b.gep(base, b.mul("%begin", size))

    def place(self, b: TextBuilder, batch: str, scratch: str) -> Place:
        """The matrices of one product of the batch."""
        return Place(
            batch,
            self._matrix(b, self.spec.lhs, batch),
            self._matrix(b, self.spec.rhs, batch),
            self._matrix(b, self.spec.out, batch),
            scratch,
            b.gep(scratch, self._lhs_bytes()) if self.schedule.pack_rhs else "null",
        )

    def _matrix(self, b: TextBuilder, view: MatrixView, batch: str) -> str:
        """The address of a matrix of the batch."""
        made = (view is self.spec.lhs and self.make_rows) or (view is self.spec.rhs and self.make_panel)
        if made:
            return "null"
        return matrix_address(b, view, self.spec.batch, batch)

    def first_row(self, b: TextBuilder, tile: str) -> str:
        """The row a tile begins with."""
        taller = b.minimum(tile, self.schedule.taller_tiles) if self.schedule.taller_tiles else "0"
        return b.add(b.mul(tile, self.schedule.tile_rows), taller, "row")

    def pack_panels(self, b: TextBuilder, place: Place, depth: Depth, first: str, end: str) -> None:
        """Packs panels `first` to `end` of the right operand."""
        rhs, tile = self.spec.rhs, self.schedule.tile
        with b.loop(first, end, hint="pack") as panel:
            to = b.gep(place.panels, b.mul(b.sub(panel, first), self._panel_bytes()))
            column = b.mul(panel, tile.columns)
            columns = b.minimum(b.sub(self.spec.n, column), tile.columns)
            origin = b.gep(place.rhs, b.mul(column, rhs.column_stride * rhs.element_bytes))
            if self.make_panel is not None:
                self.make_panel(b, to, place.batch, column, columns)
            elif self.rhs_levels:
                self._pack_level(b, to, origin, columns, self.rhs_levels)
            else:
                origin = b.gep(origin, b.mul(depth.first, rhs.row_stride * rhs.element_bytes))
                self._pack_level(b, to, origin, columns, ((depth.count, rhs.row_stride),))

    def _pack_level(
        self, b: TextBuilder, to: str, origin: str, columns: str, levels: tuple[tuple[Value, int], ...]
    ) -> None:
        """Packs the rows of one panel that `levels` step through."""
        rhs, spec, tile = self.spec.rhs, self.spec, self.schedule.tile
        (size, stride), inner = levels[0], levels[1:]
        line = tile.columns * spec.accumulate_bytes
        if inner:
            below = math.prod(int(size) for size, _ in inner)
            with b.loop(0, size, hint="level") as at:
                further = b.gep(to, b.mul(at, below * line))
                self._pack_level(
                    b, further, b.gep(origin, b.mul(at, stride * rhs.element_bytes)), columns, inner
                )
            return
        order = memory_order(stride, rhs.column_stride)
        copy = self.use(emit_copy(rhs.element, spec.accumulate, order, tile.lanes))
        strides = (stride * rhs.element_bytes, rhs.column_stride * rhs.element_bytes)
        call_copy(b, copy, to, line, origin, size, columns, *strides)

    def copy_rows(self, b: TextBuilder, place: Place, depth: Depth, first: str, end: str) -> None:
        """Copies the rows of tiles `first` to `end` of the left operand."""
        lhs, spec, schedule = self.spec.lhs, self.spec, self.schedule
        row = self.first_row(b, first)
        rows = b.sub(self.first_row(b, end), row)
        if self.make_rows is not None:
            self.make_rows(b, place.copies, place.batch, row, rows, schedule.lhs_stride)
            return
        order = memory_order(lhs.row_stride, lhs.column_stride)
        copy = self.use(emit_copy(lhs.element, spec.accumulate, order, schedule.tile.lanes))
        size = lhs.element_bytes
        origin = b.gep(place.lhs, b.mul(row, lhs.row_stride * size))
        origin = b.gep(origin, b.mul(depth.first, lhs.column_stride * size))
        strides = (lhs.row_stride * size, lhs.column_stride * size)
        call_copy(b, copy, place.copies, schedule.lhs_stride, origin, rows, depth.count, *strides)

    def panel_address(self, b: TextBuilder, place: Place, depth: Depth, panel: str, first: str) -> str:
        """Where panel `panel` is, `first` being the first one that was packed."""
        if self.schedule.pack_rhs:
            return b.gep(place.panels, b.mul(b.sub(panel, first), self._panel_bytes()))
        rhs = self.spec.rhs
        line = b.gep(place.rhs, b.mul(depth.first, rhs.row_stride * rhs.element_bytes))
        return b.gep(line, b.mul(panel, self.schedule.tile.columns * rhs.element_bytes))

    def row_address(self, b: TextBuilder, place: Place, depth: Depth, row: str, block: str) -> str:
        """Where row `row` of the left operand is, tile `block` being the first one that was copied."""
        schedule = self.schedule
        if schedule.copy_lhs:
            return b.gep(place.copies, b.mul(b.sub(row, self.first_row(b, block)), schedule.lhs_stride))
        lhs = b.gep(place.lhs, b.mul(row, schedule.lhs_stride))
        return b.gep(lhs, b.mul(depth.first, self.spec.lhs.element_bytes))

    @property
    def rhs_stride(self) -> int:
        """Bytes between the rows of a panel."""
        if self.schedule.pack_rhs:
            return self.schedule.tile.columns * self.spec.accumulate_bytes
        stride = self.rhs_levels[0][1] if self.rhs_levels else self.spec.rhs.row_stride
        return stride * self.spec.rhs.element_bytes
