"""Products of a few rows with a matrix whose columns are contiguous: dot products along memory.

Neither packing nor tiles pay here: every element of the right operand is used only a few times, so it is
read once, in order, and each sum is a vector that is added up at the end.
"""

from __future__ import annotations

from typing import Literal

from compiler.backends.cpu.contraction.conversion import narrow, storage_type
from compiler.backends.cpu.contraction.copying import call_scatter, emit_scatter
from compiler.backends.cpu.contraction.epilogue import EpilogueEmitter, TileVector
from compiler.backends.cpu.contraction.matrix_address import matrix_address
from compiler.backends.cpu.contraction.microkernel import multiply_add, store_form
from compiler.backends.cpu.contraction.spec import ELEMENT_BYTES, GemmSpec
from compiler.backends.cpu.kernel_code import KernelCode, SharedFunction
from compiler.backends.cpu.target import Target
from compiler.backends.cpu.text_builder import TextBuilder, llvm_type

_MOST_ROWS = 4
_COLUMNS_AT_ONCE = 4
_CHUNK = 64
_FLOPS_PER_TASK = 200_000

_PARAMETERS = (
    ("ptr", "lhs"),
    ("i64", "lhs_stride"),
    ("ptr", "rhs"),
    ("i64", "rhs_stride"),
    ("i64", "k"),
    ("ptr", "sums"),
)


def suits_dot(spec: GemmSpec, target: Target) -> bool:
    """Whether the product is a few rows times contiguous columns, with nothing to convert."""
    same = spec.lhs.element == spec.rhs.element == spec.accumulate
    along = spec.rhs.row_stride == 1 and (spec.lhs.column_stride == 1 or spec.k <= 1)
    worthwhile = spec.rhs.column_stride != 1 or spec.n == 1
    return same and along and worthwhile and 0 < spec.m <= _MOST_ROWS and spec.k > 0


def emit_dot_products(element: str, rows: int, columns: int, target: Target) -> SharedFunction:
    """``void (lhs, lhs_stride, rhs, rhs_stride, k, sums)``: `rows` rows times `columns` columns.

    Strides are in bytes; the sums go to ``sums[row * 64 + column]``.
    """
    name = f"xe.dot.{element}.{rows}x{columns}"
    b = TextBuilder(name, _PARAMETERS, linkage="internal")
    lanes, size = target.lanes(8 * ELEMENT_BYTES[element]), ELEMENT_BYTES[element]
    scalar, vector = llvm_type(element), llvm_type(element, lanes)
    depth = max(1, 8 // (rows * columns))
    left = [b.gep("%lhs", b.mul("%lhs_stride", row)) for row in range(rows)]
    right = [b.gep("%rhs", b.mul("%rhs_stride", column)) for column in range(columns)]
    count = rows * columns

    def step(at: str, sums: list[str], width: int) -> list[str]:
        kind = llvm_type(element, width)
        lefts = [b.load(kind, b.gep(pointer, at, scalar), size) for pointer in left]
        rights = [b.load(kind, b.gep(pointer, at, scalar), size) for pointer in right]
        pairs = [(row, column) for row in lefts for column in rights]
        return [
            multiply_add(b, target, element, width, row, column, total)
            for (row, column), total in zip(pairs, sums, strict=True)
        ]

    deep = b.mul(b.div("%k", lanes * depth), lanes * depth)
    with b.carried_loop(0, deep, [(vector, "zeroinitializer")] * (count * depth), lanes * depth, "k") as loop:
        for level in range(depth):
            at = b.add(loop.index, level * lanes)
            loop.next += step(at, loop.values[level * count : (level + 1) * count], lanes)
    sums = loop.results[:count]
    for level in range(1, depth):
        more = loop.results[level * count : (level + 1) * count]
        sums = [b.op(f"fadd {vector} {one}, {two}") for one, two in zip(sums, more, strict=True)]
    whole = b.mul(b.div("%k", lanes), lanes)
    with b.carried_loop(deep, whole, [(vector, total) for total in sums], lanes, "vectors") as vectors:
        vectors.next = step(vectors.index, vectors.values, lanes)
    totals = [_add_up(b, element, lanes, total) for total in vectors.results]
    with b.carried_loop(whole, "%k", [(scalar, total) for total in totals], 1, "rest") as rest:
        rest.next = step(rest.index, rest.values, 1)
    for row in range(rows):
        for column in range(columns):
            place = b.gep("%sums", row * _CHUNK + column, scalar)
            b.store(scalar, rest.results[row * columns + column], place, size)
    b.ret()
    return SharedFunction(name, b.text(), tuple(sorted(b.declarations)))


def _add_up(b: TextBuilder, element: str, lanes: int, vector: str) -> str:
    if lanes == 1:
        return vector
    scalar, kind, name = (
        llvm_type(element),
        llvm_type(element, lanes),
        f"llvm.vector.reduce.fadd.v{lanes}{element}",
    )
    b.declare(f"declare {scalar} @{name}({scalar}, {kind})")
    return b.op(f"call reassoc {scalar} @{name}({scalar} -0.0, {kind} {vector})")


def emit_dot(
    name: str,
    spec: GemmSpec,
    target: Target,
    epilogue: EpilogueEmitter | None,
    threads: int,
    *,
    swapped: bool,
) -> KernelCode:
    """The kernel; a task is one chunk of columns (or several) of one product of the batch."""
    chunks = -(-spec.n // _CHUNK)
    wanted = min(4 * threads, spec.flops // _FLOPS_PER_TASK) if threads > 1 else 1
    side = max(1, min(chunks, -(-wanted // max(1, spec.batch_size))))
    chunks_per_task = -(-chunks // side) if chunks else 1
    side = -(-chunks // chunks_per_task)
    shared: dict[str, SharedFunction] = {}
    b = TextBuilder(name, (("ptr noalias", "buffers"), ("i64", "begin"), ("i64", "end")))
    tasks = side * spec.batch_size
    if tasks:
        sums = b.alloca("i8", spec.m * _CHUNK * spec.accumulate_bytes)
        with b.loop("%begin", "%end", hint="task") as task:
            batch = b.div(task, side)
            first = b.mul(b.rem(task, side), chunks_per_task * _CHUNK)
            end = b.minimum(b.add(first, chunks_per_task * _CHUNK), spec.n)
            with b.loop(first, end, _CHUNK, "chunk") as column:
                columns = b.minimum(b.sub(end, column), _CHUNK)
                _emit_chunk(b, spec, target, batch, column, columns, sums, shared)
                _emit_chunk_store(b, spec, target, epilogue, batch, column, columns, sums, shared, swapped)
    b.ret()
    return KernelCode(
        name, b.text(), tasks, shared=tuple(shared.values()), declarations=tuple(sorted(b.declarations))
    )


def _emit_chunk(
    b: TextBuilder,
    spec: GemmSpec,
    target: Target,
    batch: str,
    column: str,
    columns: str,
    sums: str,
    shared: dict[str, SharedFunction],
) -> None:
    """Fills `sums`, several columns at once as far as that goes, then one by one."""
    lhs = matrix_address(b, spec.lhs, spec.batch, batch)
    rhs = matrix_address(b, spec.rhs, spec.batch, batch)
    size = spec.accumulate_bytes
    stride = spec.rhs.column_stride * size
    together = b.mul(b.div(columns, _COLUMNS_AT_ONCE), _COLUMNS_AT_ONCE)
    for first, end, width in (("0", together, _COLUMNS_AT_ONCE), (together, columns, 1)):
        function = emit_dot_products(spec.accumulate, spec.m, width, target)
        shared[function.name] = function
        with b.loop(first, end, width, "columns") as at:
            b.call(
                "void",
                function.name,
                f"ptr {lhs}",
                f"i64 {spec.lhs.row_stride * size}",
                f"ptr {b.gep(rhs, b.mul(b.add(column, at), stride))}",
                f"i64 {stride}",
                f"i64 {spec.k}",
                f"ptr {b.gep(sums, at, llvm_type(spec.accumulate))}",
            )


def _emit_chunk_store(
    b: TextBuilder,
    spec: GemmSpec,
    target: Target,
    epilogue: EpilogueEmitter | None,
    batch: str,
    column: str,
    columns: str,
    sums: str,
    shared: dict[str, SharedFunction],
    swapped: bool,
) -> None:
    """Applies the epilogue to the chunk, vector by vector, and stores it."""
    out, element = spec.out, spec.accumulate
    lanes, scalar = target.lanes(8 * spec.accumulate_bytes), llvm_type(spec.accumulate)
    base = matrix_address(b, out, spec.batch, batch)
    base = b.gep(base, b.mul(b.mul(column, out.column_stride), out.element_bytes))
    direct = out.column_stride == 1
    staged = "" if direct else b.alloca("i8", _CHUNK * out.element_bytes)
    kind = storage_type(out.element, 1)
    for row in range(spec.m):
        line = b.gep(base, row * out.row_stride * out.element_bytes) if direct else staged
        with b.loop(0, columns, lanes, "part") as part:
            mask = b.lane_mask(b.sub(columns, part), lanes) if lanes > 1 else None
            address = b.gep(sums, b.add(part, row * _CHUNK), scalar)
            value = b.load(llvm_type(element, lanes), address, spec.accumulate_bytes)
            if epilogue is None:
                value = narrow(b, value, element, out.element, lanes)
            else:
                across = b.add(column, part)
                place = (across, str(row)) if swapped else (str(row), across)
                axis: Literal["row", "column"] = "row" if swapped else "column"
                where = TileVector("%buffers", batch, *place, lanes, axis, mask, element)
                value = store_form(b, epilogue.emit(b, value, where), out.element, lanes)
            to = b.gep(line, part, kind)
            if mask is not None:
                b.masked_store(kind, lanes, value, to, mask, out.element_bytes)
            else:
                b.store(kind, value, to, out.element_bytes)
        if not direct:
            scatter = emit_scatter(out.element)
            shared[scatter.name] = scatter
            target_row = b.gep(base, row * out.row_stride * out.element_bytes)
            call_scatter(b, scatter, staged, _CHUNK * out.element_bytes, target_row, 1, columns, out)
