"""Matrix products: the loops around the microkernels.

A task is a rectangle of tiles of one product of the batch. Inside it, panels of the right operand are
packed a block at a time, rows of the left one are copied a block at a time where they would collide in the
cache or need converting, and each tile is one call of a microkernel, which also applies the epilogue and
stores.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.backends.cpu.contraction.dot import emit_dot, suits_dot
from compiler.backends.cpu.contraction.epilogue import EpilogueEmitter
from compiler.backends.cpu.contraction.operands import Depth, Operands, PanelMaker, Place, RowMaker
from compiler.backends.cpu.contraction.schedule import Schedule, plan
from compiler.backends.cpu.contraction.spec import GemmSpec
from compiler.backends.cpu.contraction.tiles import TileCaller
from compiler.backends.cpu.kernel_code import KernelCode, SharedFunction
from compiler.backends.cpu.target import Target
from compiler.backends.cpu.text_builder import TextBuilder

_KERNEL_PARAMETERS = (("ptr noalias", "buffers"), ("i64", "begin"), ("i64", "end"))


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
        operands = Operands(spec, schedule, self.shared, self.make_rows, self.make_panel, self.rhs_levels)
        tiles = TileCaller(operands, self.target, self.epilogue, self.swapped)
        b = TextBuilder(self.name, _KERNEL_PARAMETERS)
        tasks = schedule.tile_tasks * schedule.panel_tasks * -(-spec.batch_size // schedule.products_per_task)
        if tasks:
            scratch = operands.scratch(b)
            with b.loop("%begin", "%end", hint="task") as task:
                self._emit_task(b, task, operands, tiles, scratch)
        b.ret()
        return KernelCode(
            self.name,
            b.text(),
            tasks,
            operands.task_scratch_bytes() * tasks,
            shared=tuple(self.shared.values()),
            declarations=tuple(sorted(b.declarations)),
        )

    def _emit_task(
        self, b: TextBuilder, task: str, operands: Operands, tiles: TileCaller, scratch: str
    ) -> None:
        schedule = self.schedule
        tile_task = b.rem(task, schedule.tile_tasks)
        rest = b.div(task, schedule.tile_tasks)
        panel_task = b.rem(rest, schedule.panel_tasks)
        first_tile = b.mul(tile_task, schedule.tiles_per_task)
        first_panel = b.mul(panel_task, schedule.panels_per_task)
        tile_range = first_tile, b.minimum(b.add(first_tile, schedule.tiles_per_task), schedule.tiles)
        panel_range = first_panel, b.minimum(b.add(first_panel, schedule.panels_per_task), schedule.panels)
        first = b.mul(b.div(rest, schedule.panel_tasks), schedule.products_per_task)
        end = b.minimum(b.add(first, schedule.products_per_task), self.spec.batch_size)
        with b.loop(first, end, hint="product") as batch:
            place = operands.place(b, batch, scratch)
            self._emit_product(b, place, operands, tiles, tile_range, panel_range)

    def _emit_product(
        self,
        b: TextBuilder,
        place: Place,
        operands: Operands,
        tiles: TileCaller,
        tile_range: tuple[str, str],
        panel_range: tuple[str, str],
    ) -> None:
        """The task's share of one product of the batch."""
        schedule, k_block = self.schedule, self.schedule.k_block
        first, last = panel_range
        with b.loop(first, last, schedule.panels_per_block, "panels") as panels:
            end = b.minimum(b.add(panels, schedule.panels_per_block), last)
            # A sum of nothing is zero, which somebody has to store.
            with b.loop(0, max(self.spec.k, 1), max(k_block, 1), "k") as k:
                depth = Depth(k, b.minimum(b.sub(self.spec.k, k), k_block))
                if schedule.pack_rhs:
                    operands.pack_panels(b, place, depth, panels, end)
                self._emit_block(b, place, depth, operands, tiles, tile_range, (panels, end))

    def _emit_block(
        self,
        b: TextBuilder,
        place: Place,
        depth: Depth,
        operands: Operands,
        tiles: TileCaller,
        tile_range: tuple[str, str],
        panel_range: tuple[str, str],
    ) -> None:
        """The product of some tiles with some panels, as far as the block of the sums goes."""
        first, last = tile_range
        with b.loop(first, last, self.schedule.tiles_per_block, "tiles") as block:
            end = b.minimum(b.add(block, self.schedule.tiles_per_block), last)
            if self.schedule.copy_lhs:
                operands.copy_rows(b, place, depth, block, end)
            with b.loop(*panel_range, hint="panel") as panel:
                rhs = operands.panel_address(b, place, depth, panel, panel_range[0])
                with b.loop(block, end, hint="tile") as tile:
                    tiles.emit(b, place, depth, tile, block, panel, rhs)
