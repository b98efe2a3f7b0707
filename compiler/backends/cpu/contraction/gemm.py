"""Matrix products: the loops around the microkernels.

A task is a rectangle of tiles of one product of the batch. Inside it, panels of the right operand are
packed a block at a time, rows of the left one are copied a block at a time where they would collide in the
cache or need converting, and each tile is one call of a microkernel, which also applies the epilogue and
stores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from compiler.backends.cpu.contraction.copying import (
    call_copy,
    call_scatter,
    emit_copy,
    emit_scatter,
    memory_order,
)
from compiler.backends.cpu.contraction.dot import emit_dot, suits_dot
from compiler.backends.cpu.contraction.epilogue import EpilogueEmitter
from compiler.backends.cpu.contraction.matrix_address import matrix_address
from compiler.backends.cpu.contraction.microkernel import PARAMETERS, Microkernel, emit_microkernel
from compiler.backends.cpu.contraction.schedule import Schedule, plan
from compiler.backends.cpu.contraction.spec import GemmSpec, MatrixView
from compiler.backends.cpu.kernel_code import KernelCode, SharedFunction
from compiler.backends.cpu.target import Target
from compiler.backends.cpu.text_builder import TextBuilder, Value

_KERNEL_PARAMETERS = (("ptr noalias", "buffers"), ("i64", "begin"), ("i64", "end"))

RowMaker = Callable[[TextBuilder, str, str, str, str, int], None]
"""Makes rows of a left operand: builder, destination, batch number, first row, row count, stride in bytes."""

PanelMaker = Callable[[TextBuilder, str, str, str, str], None]
"""Makes a panel of a right operand: builder, destination, batch number, first column, column count."""


def emit_gemm(
    name: str,
    spec: GemmSpec,
    target: Target,
    epilogue: EpilogueEmitter | None = None,
    threads: int | None = None,
) -> KernelCode:
    """The kernel of a matrix product.

    Args:
        name: its symbol.
        spec: the product.
        target: the processor.
        epilogue: what is done to each element before it is stored.
        threads: how many threads will share the work; the target's cores by default.
    """
    threads = target.cores if threads is None else threads
    axis_swapped = _better_transposed(spec)
    if axis_swapped:
        spec = spec.transposed
    if suits_dot(spec, target):
        return emit_dot(name, spec, target, epilogue, threads, swapped=axis_swapped)
    schedule = plan(spec, target, threads)
    return GemmEmitter(name, spec, target, schedule, epilogue, swapped=axis_swapped).emit()


def _better_transposed(spec: GemmSpec) -> bool:
    """Whether the transposed product has neighbours in its rows where this one has not."""
    if spec.n == 1 and spec.m > 1:
        return True
    return spec.m > 1 and spec.out.column_stride != 1 and spec.out.row_stride == 1


@dataclass(slots=True)
class GemmEmitter:
    """Writes the kernel of one product.

    Attributes:
        name: its symbol.
        spec: the product, as it is computed.
        target: the processor.
        schedule: how it is cut up.
        epilogue: what is done before a tile is stored.
        swapped: whether `spec` is the transposed form of what the epilogue knows.
        make_rows: what makes rows of the left operand that does not lie in memory.
        make_panel: what makes panels of the right operand that does not lie in memory.
        rhs_levels: sizes and strides that together step through the rows of the right operand, outermost
            first; empty where the one row stride does.
        shared: the functions the kernel calls.
    """

    name: str
    spec: GemmSpec
    target: Target
    schedule: Schedule
    epilogue: EpilogueEmitter | None = None
    swapped: bool = False
    make_rows: RowMaker | None = None
    make_panel: PanelMaker | None = None
    rhs_levels: tuple[tuple[int, int], ...] = ()
    shared: dict[str, SharedFunction] = field(default_factory=dict)

    def emit(self) -> KernelCode:
        """The finished kernel."""
        schedule, spec = self.schedule, self.spec
        b = TextBuilder(self.name, _KERNEL_PARAMETERS)
        tasks = schedule.tile_tasks * schedule.panel_tasks * -(-spec.batch_size // schedule.products_per_task)
        if tasks:
            scratch = self._scratch(b)
            with b.loop("%begin", "%end", hint="task") as task:
                self._emit_task(b, task, scratch)
        b.ret()
        return KernelCode(
            self.name,
            b.text(),
            tasks,
            self._task_scratch_bytes() * tasks,
            shared=tuple(self.shared.values()),
            declarations=tuple(sorted(b.declarations)),
        )

    def _use(self, function: SharedFunction) -> SharedFunction:
        return self.shared.setdefault(function.name, function)

    # Scratch memory: the copy of the left operand's rows, then the packed panels

    def _lhs_bytes(self) -> int:
        schedule = self.schedule
        if not schedule.copy_lhs:
            return 0
        rows = (schedule.tile_rows + (schedule.taller_tiles > 0)) * schedule.tiles_per_block
        return rows * schedule.lhs_stride

    def _panel_bytes(self) -> int:
        return self.schedule.k_block * self.schedule.tile.columns * self.spec.accumulate_bytes

    def _task_scratch_bytes(self) -> int:
        panels = self.schedule.panels_per_block * self._panel_bytes() if self.schedule.pack_rhs else 0
        return -(-(self._lhs_bytes() + panels) // 64) * 64

    def _scratch(self, b: TextBuilder) -> str:
        """The scratch of this call: ranges do not overlap, so the first task's part is nobody else's."""
        size = self._task_scratch_bytes()
        if size == 0:
            return "null"
        base = b.load("ptr", b.gep("%buffers", self.spec.scratch_buffer, "ptr"), 8, hint="scratch")
        return b.gep(base, b.mul("%begin", size))

    # Loops

    def _emit_task(self, b: TextBuilder, task: str, scratch: str) -> None:
        schedule = self.schedule
        tile_task = b.rem(task, schedule.tile_tasks)
        rest = b.div(task, schedule.tile_tasks)
        panel_task = b.rem(rest, schedule.panel_tasks)
        first = b.mul(b.div(rest, schedule.panel_tasks), schedule.products_per_task)
        end = b.minimum(b.add(first, schedule.products_per_task), self.spec.batch_size)
        with b.loop(first, end, hint="product") as batch:
            self._emit_product(b, batch, tile_task, panel_task, scratch)

    def _emit_product(
        self, b: TextBuilder, batch: str, tile_task: str, panel_task: str, scratch: str
    ) -> None:
        """The task's share of one product of the batch."""
        schedule = self.schedule
        place = _Place(
            batch,
            self._matrix(b, self.spec.lhs, batch),
            self._matrix(b, self.spec.rhs, batch),
            self._matrix(b, self.spec.out, batch),
            scratch,
            b.gep(scratch, self._lhs_bytes()) if schedule.pack_rhs else "null",
        )
        first_tile = b.mul(tile_task, schedule.tiles_per_task)
        last_tile = b.minimum(b.add(first_tile, schedule.tiles_per_task), schedule.tiles)
        first_panel = b.mul(panel_task, schedule.panels_per_task)
        last_panel = b.minimum(b.add(first_panel, schedule.panels_per_task), schedule.panels)
        with b.loop(first_panel, last_panel, schedule.panels_per_block, "panels") as panels:
            panels_end = b.minimum(b.add(panels, schedule.panels_per_block), last_panel)
            # A sum of nothing is zero, which somebody has to store.
            with b.loop(0, max(self.spec.k, 1), max(schedule.k_block, 1), "k") as k:
                depth = _Depth(k, b.minimum(b.sub(self.spec.k, k), schedule.k_block))
                if schedule.pack_rhs:
                    self._emit_packing(b, place, depth, panels, panels_end)
                self._emit_block(b, place, depth, (first_tile, last_tile), (panels, panels_end))

    def _emit_block(
        self,
        b: TextBuilder,
        place: _Place,
        depth: _Depth,
        tile_range: tuple[str, str],
        panel_range: tuple[str, str],
    ) -> None:
        """The product of some tiles with some panels, as far as the block of the sums goes."""
        schedule = self.schedule
        first, last = tile_range
        with b.loop(first, last, schedule.tiles_per_block, "tiles") as tiles:
            end = b.minimum(b.add(tiles, schedule.tiles_per_block), last)
            if schedule.copy_lhs:
                self._emit_row_copies(b, place, depth, tiles, end)
            with b.loop(*panel_range, hint="panel") as panel:
                rhs = self._panel_address(b, place, depth, panel, panel_range[0])
                with b.loop(tiles, end, hint="tile") as tile:
                    self._emit_tile(b, place, depth, tile, tiles, panel, rhs)

    def _matrix(self, b: TextBuilder, view: MatrixView, batch: str) -> str:
        """The address of a matrix of the batch."""
        made = (view is self.spec.lhs and self.make_rows) or (view is self.spec.rhs and self.make_panel)
        if made:
            return "null"
        return matrix_address(b, view, self.spec.batch, batch)

    def _first_row(self, b: TextBuilder, tile: str) -> str:
        taller = b.minimum(tile, self.schedule.taller_tiles) if self.schedule.taller_tiles else "0"
        return b.add(b.mul(tile, self.schedule.tile_rows), taller, "row")

    def _emit_packing(self, b: TextBuilder, place: _Place, depth: _Depth, first: str, end: str) -> None:
        rhs, tile = self.spec.rhs, self.schedule.tile
        with b.loop(first, end, hint="pack") as panel:
            to = b.gep(place.panels, b.mul(b.sub(panel, first), self._panel_bytes()))
            column = b.mul(panel, tile.columns)
            columns = b.minimum(b.sub(self.spec.n, column), tile.columns)
            origin = b.gep(place.rhs, b.mul(column, rhs.column_stride * rhs.element_bytes))
            if self.make_panel is not None:
                self.make_panel(b, to, place.batch, column, columns)
            elif self.rhs_levels:
                self._emit_level(b, to, origin, columns, self.rhs_levels)
            else:
                origin = b.gep(origin, b.mul(depth.first, rhs.row_stride * rhs.element_bytes))
                self._emit_level(b, to, origin, columns, ((depth.count, rhs.row_stride),))

    def _emit_level(
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
                self._emit_level(
                    b, further, b.gep(origin, b.mul(at, stride * rhs.element_bytes)), columns, inner
                )
            return
        order = memory_order(stride, rhs.column_stride)
        copy = self._use(emit_copy(rhs.element, spec.accumulate, order, tile.lanes))
        strides = (stride * rhs.element_bytes, rhs.column_stride * rhs.element_bytes)
        call_copy(b, copy, to, line, origin, size, columns, *strides)

    def _emit_row_copies(self, b: TextBuilder, place: _Place, depth: _Depth, first: str, end: str) -> None:
        lhs, spec, schedule = self.spec.lhs, self.spec, self.schedule
        row = self._first_row(b, first)
        rows = b.sub(self._first_row(b, end), row)
        if self.make_rows is not None:
            self.make_rows(b, place.copies, place.batch, row, rows, schedule.lhs_stride)
            return
        order = memory_order(lhs.row_stride, lhs.column_stride)
        copy = self._use(emit_copy(lhs.element, spec.accumulate, order, schedule.tile.lanes))
        size = lhs.element_bytes
        origin = b.gep(place.lhs, b.mul(row, lhs.row_stride * size))
        origin = b.gep(origin, b.mul(depth.first, lhs.column_stride * size))
        strides = (lhs.row_stride * size, lhs.column_stride * size)
        call_copy(b, copy, place.copies, schedule.lhs_stride, origin, rows, depth.count, *strides)

    def _panel_address(self, b: TextBuilder, place: _Place, depth: _Depth, panel: str, first: str) -> str:
        if self.schedule.pack_rhs:
            return b.gep(place.panels, b.mul(b.sub(panel, first), self._panel_bytes()))
        rhs = self.spec.rhs
        line = b.gep(place.rhs, b.mul(depth.first, rhs.row_stride * rhs.element_bytes))
        return b.gep(line, b.mul(panel, self.schedule.tile.columns * rhs.element_bytes))

    def _emit_tile(
        self, b: TextBuilder, place: _Place, depth: _Depth, tile: str, block: str, panel: str, rhs: str
    ) -> None:
        schedule = self.schedule
        row = self._first_row(b, tile)
        if schedule.copy_lhs:
            lhs = b.gep(place.copies, b.mul(b.sub(row, self._first_row(b, block)), schedule.lhs_stride))
        else:
            lhs = b.gep(place.lhs, b.mul(row, schedule.lhs_stride))
            lhs = b.gep(lhs, b.mul(depth.first, self.spec.lhs.element_bytes))
        column = b.mul(panel, schedule.tile.columns)
        full, last = schedule.tile.columns, schedule.last_columns
        corner = _Corner(tile, row, column, lhs, rhs, depth)
        if full == last or schedule.panels == 1:
            self._emit_rows(b, place, corner, last)
            return
        at_edge = b.compare("eq", panel, schedule.panels - 1)
        with b.when(at_edge):
            self._emit_rows(b, place, corner, last)
        with b.otherwise(at_edge):
            self._emit_rows(b, place, corner, full)

    def _emit_rows(self, b: TextBuilder, place: _Place, corner: _Corner, columns: int) -> None:
        """Calls the microkernel for the tile's number of rows."""
        schedule = self.schedule
        if not schedule.taller_tiles:
            self._emit_call(b, place, corner, schedule.tile_rows, columns)
            return
        tall = b.compare("slt", corner.tile, schedule.taller_tiles)
        with b.when(tall):
            self._emit_call(b, place, corner, schedule.tile_rows + 1, columns)
        with b.otherwise(tall):
            self._emit_call(b, place, corner, schedule.tile_rows, columns)

    def _emit_call(self, b: TextBuilder, place: _Place, corner: _Corner, rows: int, columns: int) -> None:
        """One tile; the epilogue is applied with the last part of the sums."""
        spec, schedule = self.spec, self.schedule
        masked = columns % schedule.tile.lanes != 0
        kernel = Microkernel(
            spec.accumulate,
            spec.out.element,
            rows,
            -(-columns // schedule.tile.lanes),
            schedule.tile.lanes,
            masked,
            masked and not schedule.pack_rhs,
            schedule.k_block < spec.k,
        )
        if self.epilogue is None or not kernel.adds:
            self._emit_microkernel_call(b, place, corner, kernel, columns, self.epilogue)
            return
        last = b.compare("sge", b.add(corner.depth.first, schedule.k_block), spec.k)
        with b.when(last):
            self._emit_microkernel_call(b, place, corner, kernel, columns, self.epilogue)
        with b.otherwise(last):
            self._emit_microkernel_call(b, place, corner, kernel, columns, None)

    def _emit_microkernel_call(
        self,
        b: TextBuilder,
        place: _Place,
        corner: _Corner,
        kernel: Microkernel,
        columns: int,
        epilogue: EpilogueEmitter | None,
    ) -> None:
        spec, schedule, out = self.spec, self.schedule, self.spec.out
        function = self._use(
            emit_microkernel(kernel, self.target, epilogue, "row" if self.swapped else "column")
        )
        offset = b.add(b.mul(corner.row, out.row_stride), b.mul(corner.column, out.column_stride))
        to = b.gep(place.out, b.mul(offset, out.element_bytes))
        direct = out.column_stride == 1
        line = kernel.vectors * kernel.lanes * out.element_bytes
        tile = to if direct else b.alloca("i8", kernel.rows * line)
        rhs = (self.rhs_levels[0][1] if self.rhs_levels else spec.rhs.row_stride) * spec.rhs.element_bytes
        if schedule.pack_rhs:
            rhs = schedule.tile.columns * spec.accumulate_bytes
        arguments = (
            corner.lhs,
            schedule.lhs_stride,
            corner.rhs,
            rhs,
            corner.depth.count,
            tile,
            out.row_stride * out.element_bytes if direct else line,
            columns,
            "%buffers",
            place.batch,
            corner.row,
            corner.column,
            corner.depth.first,
        )
        typed = (f"{kind} {value}" for (kind, _), value in zip(PARAMETERS, arguments, strict=True))
        b.call("void", function.name, *typed)
        if not direct:
            scatter = self._use(emit_scatter(out.element))
            call_scatter(b, scatter, tile, line, to, kernel.rows, columns, out)


@dataclass(frozen=True, slots=True)
class _Depth:
    """The part of the sums being done: from where, and how much."""

    first: str
    count: str


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a task works: the product of the batch, its matrices, the copied rows and the packed panels."""

    batch: str
    lhs: str
    rhs: str
    out: str
    copies: str
    panels: str


@dataclass(frozen=True, slots=True)
class _Corner:
    """The upper left corner of a tile: its number, its position, the operands from there, the part of k."""

    tile: str
    row: str
    column: str
    lhs: str
    rhs: str
    depth: _Depth
