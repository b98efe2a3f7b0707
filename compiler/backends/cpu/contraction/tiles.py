"""One tile of a matrix product: which microkernel computes it, and the call."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.backends.cpu.contraction.copying import call_scatter, emit_scatter
from compiler.backends.cpu.contraction.epilogue import EpilogueEmitter
from compiler.backends.cpu.contraction.microkernel import PARAMETERS, Microkernel, emit_microkernel
from compiler.backends.cpu.contraction.operands import Depth, Operands, Place
from compiler.backends.cpu.target import Target
from compiler.backends.cpu.text_builder import TextBuilder


@dataclass(frozen=True, slots=True)
class _Corner:
    """The upper left corner of a tile: its number, its position, the operands from there, the part of k."""

    tile: str
    row: str
    column: str
    lhs: str
    rhs: str
    depth: Depth


@dataclass(frozen=True, slots=True)
class TileCaller:
    """Emits the calls of microkernels.

    Attributes:
        operands: where the operands are.
        target: the processor.
        epilogue: what is done before a tile is stored.
        swapped: whether the product is the transposed form of what the epilogue knows.
    """

    operands: Operands
    target: Target
    epilogue: EpilogueEmitter | None
    swapped: bool

    def emit(
        self, b: TextBuilder, place: Place, depth: Depth, tile: str, block: str, panel: str, rhs: str
    ) -> None:
        """Computes tile `tile` of panel `panel`, whose right operand is at `rhs`."""
        schedule = self.operands.schedule
        row = self.operands.first_row(b, tile)
        lhs = self.operands.row_address(b, place, depth, row, block)
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

    def _emit_rows(self, b: TextBuilder, place: Place, corner: _Corner, columns: int) -> None:
        """Calls the microkernel for the tile's number of rows."""
        schedule = self.operands.schedule
        if not schedule.taller_tiles:
            self._emit_call(b, place, corner, schedule.tile_rows, columns)
            return
        tall = b.compare("slt", corner.tile, schedule.taller_tiles)
        with b.when(tall):
            self._emit_call(b, place, corner, schedule.tile_rows + 1, columns)
        with b.otherwise(tall):
            self._emit_call(b, place, corner, schedule.tile_rows, columns)

    def _emit_call(self, b: TextBuilder, place: Place, corner: _Corner, rows: int, columns: int) -> None:
        """One tile; the epilogue is applied with the last part of the sums."""
        spec, schedule = self.operands.spec, self.operands.schedule
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
        place: Place,
        corner: _Corner,
        kernel: Microkernel,
        columns: int,
        epilogue: EpilogueEmitter | None,
    ) -> None:
        schedule, out = self.operands.schedule, self.operands.spec.out
        function = self.operands.use(
            emit_microkernel(kernel, self.target, epilogue, "row" if self.swapped else "column")
        )
        offset = b.add(b.mul(corner.row, out.row_stride), b.mul(corner.column, out.column_stride))
        to = b.gep(place.out, b.mul(offset, out.element_bytes))
        direct = out.column_stride == 1
        line = kernel.vectors * kernel.lanes * out.element_bytes
        tile = to if direct else b.alloca("i8", kernel.rows * line)
        arguments = (
            corner.lhs,
            schedule.lhs_stride,
            corner.rhs,
            self.operands.rhs_stride,
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
            scatter = self.operands.use(emit_scatter(out.element))
            call_scatter(b, scatter, tile, line, to, kernel.rows, columns, out)
