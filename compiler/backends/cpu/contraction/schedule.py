"""How a matrix product is cut up: register tiles, blocks that fit the caches, tasks for the threads.

The figures behind the choices were measured with these kernels; they are functions of the target, not of
one machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from compiler.backends.cpu.contraction.spec import GemmSpec, MatrixView
from compiler.backends.cpu.target import Target

_CACHE_LINE = 64
_L1_SETS = 64
# Tile rows that may fall into the same set of the first-level cache before they drive each other out.
_ROWS_PER_SET = 4
# Packing the right operand costs about as much as multiplying it with this many rows.
_ROWS_WORTH_PACKING = 192
_PANEL_BLOCK_BYTES = 2 << 20
_K_BLOCK_BYTES = 4096
_STREAMED_BYTES = 16 << 20
_STREAMED_ROWS = 16
# Less work than this is done before a sleeping thread has been woken.
_FLOPS_PER_TASK = 400_000
_TASKS_PER_THREAD = 4
# What it costs to copy an element of the left operand, and to pack one of the right, in steps of one vector
# each.
_COPY_STEPS = 0.6
_PACK_STEPS = 1.0
# The part of a task that some thread is expected to work alone at the end.
_LATENESS = 0.25


@dataclass(frozen=True, slots=True)
class TileShape:
    """A register tile: at most `rows` rows of `vectors` vectors with `lanes` elements."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        """Columns of a full tile."""
        return self.vectors * self.lanes


def tile_shape(target: Target, element_bits: int, m: int, n: int) -> TileShape:
    """The tile for an ``m x n`` output: sums fill the registers that operands leave."""
    lanes = target.lanes(element_bits)
    options: tuple[tuple[int, int], ...]
    if target.vector_registers >= 32 and target.vector_bits >= 512:
        options = ((1, 8), (2, 8), (6, 4), (13, 2), (13, 1))
    elif target.vector_registers >= 32:
        options = ((1, 8), (3, 6), (6, 4), (6, 2), (6, 1))
    else:
        options = ((1, 8), (2, 4), (6, 2), (6, 1))
    full = -(-n // lanes)
    for rows, vectors in options:
        if m <= rows and vectors <= max(full, 1):
            return TileShape(rows, vectors, lanes)
    for rows, vectors in options[-2:]:
        if vectors <= max(full, 1):
            return TileShape(rows, vectors, lanes)
    return TileShape(options[-1][0], 1, lanes)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The plan of one product: tiles cut the rows, panels the columns; blocks and tasks are so many of each.

    Attributes:
        tile: the register tile.
        tiles: how many tiles lie below one another.
        tile_rows: rows of a tile; the first `taller_tiles` have one more.
        taller_tiles: see above.
        panels: how many panels lie side by side.
        last_columns: columns of the last panel.
        copy_lhs: whether rows of the left operand are copied before use.
        pack_rhs: whether panels of the right operand are.
        k_block: how much of the sums is done at a time; the output holds what they have come to.
        lhs_stride: bytes from one row of the left operand, or of its copy, to the next.
        tiles_per_block: tiles between two copies of the left operand.
        panels_per_block: panels packed at a time.
        tiles_per_task: tiles of a task.
        panels_per_task: panels of a task.
        products_per_task: how many products of a large batch one task does, one after the other.
    """

    tile: TileShape
    tiles: int
    tile_rows: int
    taller_tiles: int
    panels: int
    last_columns: int
    copy_lhs: bool
    pack_rhs: bool
    k_block: int
    lhs_stride: int
    tiles_per_block: int
    panels_per_block: int
    tiles_per_task: int
    panels_per_task: int
    products_per_task: int

    @property
    def tile_tasks(self) -> int:
        """Tasks below one another."""
        return -(-self.tiles // self.tiles_per_task) if self.tiles else 0

    @property
    def panel_tasks(self) -> int:
        """Tasks side by side."""
        return -(-self.panels // self.panels_per_task) if self.panels else 0


def row_copy_stride(k: int, element_bytes: int) -> int:
    """Bytes between copied rows: an odd number of cache lines, so that rows spread over all sets."""
    lines = -(-k * element_bytes // _CACHE_LINE)
    return (lines | 1) * _CACHE_LINE


def plan(
    spec: GemmSpec,
    target: Target,
    threads: int,
    *,
    lhs_is_made: bool = False,
    rhs_levels: int = 1,
    rhs_is_made: bool = False,
) -> Schedule:
    """Cuts up a product for `threads` threads.

    Args:
        spec: the product.
        target: the processor.
        threads: how many threads will share the work.
        lhs_is_made: the left operand does not lie in memory; its rows are made when they are needed.
        rhs_levels: how many strides it takes to step through the rows of the right operand.
        rhs_is_made: the right operand does not lie in memory; its panels are made when they are needed.
    """
    size = spec.accumulate_bytes
    tile = tile_shape(target, 8 * size, spec.m, spec.n)
    tiles = -(-spec.m // tile.rows)
    panels = -(-spec.n // tile.columns)
    pack_rhs = (
        rhs_is_made or rhs_levels > 1 or _must_pack(spec, tile, target) or spec.m >= _ROWS_WORTH_PACKING
    )
    copy_lhs = lhs_is_made or _must_copy(spec.lhs, spec.accumulate) or _rows_collide(spec, tile.rows, panels)
    k_block = spec.k if lhs_is_made or rhs_is_made or rhs_levels > 1 else _k_block(spec, target)
    stride = row_copy_stride(k_block, size) if copy_lhs else spec.lhs.row_stride * spec.lhs.element_bytes
    row_bytes = max(1, k_block * size)
    tiles_per_task, panels_per_task = _task_size(spec, tile, tiles, panels, copy_lhs, pack_rhs, threads)
    tiles_per_block = max(1, target.l2_bytes // 2 // (row_bytes * tile.rows))
    panels_per_block = (
        max(1, _PANEL_BLOCK_BYTES // (row_bytes * tile.columns)) if pack_rhs else panels_per_task
    )
    return Schedule(
        tile=tile,
        tiles=tiles,
        tile_rows=spec.m // tiles if tiles else 0,
        taller_tiles=spec.m % tiles if tiles else 0,
        panels=panels,
        last_columns=spec.n - (panels - 1) * tile.columns if panels else 0,
        copy_lhs=copy_lhs,
        pack_rhs=pack_rhs,
        k_block=k_block,
        lhs_stride=stride,
        tiles_per_block=min(tiles_per_block, tiles_per_task),
        panels_per_block=max(1, min(panels_per_block, panels_per_task)),
        tiles_per_task=tiles_per_task,
        panels_per_task=panels_per_task,
        # Each task has scratch memory of its own: there should not be one for each product of a large batch.
        products_per_task=max(1, -(-spec.batch_size // (threads * _TASKS_PER_THREAD))),
    )


def _k_block(spec: GemmSpec, target: Target) -> int:
    """How much of the sums to do at a time: a tile's operands should stay in the second-level cache."""
    size = spec.accumulate_bytes
    if spec.out.element != spec.accumulate or spec.out.column_stride != 1:
        return spec.k
    if spec.m == 1:
        # Each element of the right operand is used once: read a few rows along, not all rows a few columns
        # wide.
        large = spec.k * spec.n * size > _STREAMED_BYTES
        return min(spec.k, _STREAMED_ROWS) if large else spec.k
    most = _K_BLOCK_BYTES // size
    if spec.k <= most + most // 2:
        return spec.k
    blocks = -(-spec.k // most)
    return -(-spec.k // blocks // 16) * 16


def _must_pack(spec: GemmSpec, tile: TileShape, target: Target) -> bool:
    rhs = spec.rhs
    contiguous = rhs.column_stride == 1 or spec.n == 1
    ragged = spec.n % tile.lanes != 0 and not target.has_masked_memory
    return rhs.element != spec.accumulate or not contiguous or ragged


def _must_copy(view: MatrixView, accumulate: str) -> bool:
    return view.element != accumulate or view.column_stride != 1


def _rows_collide(spec: GemmSpec, rows: int, panels: int) -> bool:
    """Whether the rows of a tile compete for a few sets of the first-level cache, often enough to care."""
    if panels < 2 or spec.m < 4:
        return False
    stride = abs(spec.lhs.row_stride) * spec.lhs.element_bytes
    if stride % _CACHE_LINE:
        return stride % 4096 < 32 and stride >= 4096
    sets = _L1_SETS // math.gcd(stride // _CACHE_LINE, _L1_SETS)
    return min(rows, spec.m) > _ROWS_PER_SET * sets


def _task_size(
    spec: GemmSpec, tile: TileShape, tiles: int, panels: int, copy_lhs: bool, pack_rhs: bool, threads: int
) -> tuple[int, int]:
    """Tiles and panels of a task: the split that should be done first.

    Smaller tasks keep all threads busy to the end, but each copies the rows and packs the panels it needs
    for itself.
    """
    tiles, panels = max(tiles, 1), max(panels, 1)
    wanted = min(threads * _TASKS_PER_THREAD, spec.flops // _FLOPS_PER_TASK) if threads > 1 else 1
    pieces = -(-max(wanted, 1) // max(spec.batch_size, 1))
    best, best_cost = (tiles, panels), math.inf
    for side in range(1, min(pieces, panels) + 1):
        for below in range(1, min(-(-pieces // side), tiles) + 1):
            size = (-(-tiles // below), -(-panels // side))
            rows, columns = min(size[0] * tile.rows, spec.m), min(size[1] * tile.columns, spec.n)
            steps = rows * columns / tile.lanes
            copied = _COPY_STEPS * rows * copy_lhs + _PACK_STEPS * columns * pack_rhs
            tasks = spec.batch_size * -(-tiles // size[0]) * -(-panels // size[1])
            cost = (-(-tasks // threads) + _LATENESS) * (steps + copied)
            if cost < best_cost:
                best, best_cost = size, cost
    return best
