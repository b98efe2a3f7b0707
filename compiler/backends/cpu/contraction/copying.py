"""Copies a matrix into scratch memory, row by row, converting and transposing on the way.

Both operands are packed with this one function: the left one into rows that lie apart by an odd number of
cache lines, the right one into panels as wide as a tile. What lies between the copied columns and the end
of a row of the copy is left as it was.
"""

from __future__ import annotations

from typing import Literal

from compiler.backends.cpu.contraction.conversion import storage_type, widen
from compiler.backends.cpu.contraction.spec import ELEMENT_BYTES, MatrixView
from compiler.backends.cpu.kernel_code import SharedFunction
from compiler.backends.cpu.text_builder import TextBuilder, llvm_type

Order = Literal["rows", "columns", "any"]

_PARAMETERS = (
    ("ptr", "to"),
    ("i64", "to_stride"),
    ("ptr", "from"),
    ("i64", "rows"),
    ("i64", "columns"),
    ("i64", "row_stride"),
    ("i64", "column_stride"),
)


def memory_order(row_stride: int, column_stride: int) -> Order:
    """Along which index neighbours in memory are neighbours in the matrix."""
    if column_stride == 1:
        return "rows"
    return "columns" if row_stride == 1 else "any"


def emit_copy(source: str, target: str, order: Order, lanes: int, *, masked: bool = False) -> SharedFunction:
    """``void (ptr to, i64 to_stride, ptr from, i64 rows, i64 columns, i64 row_stride, i64 column_stride)``.

    Strides are in bytes. The copy has elements of type `target` next to one another in each row.

    Args:
        source: element type of the matrix.
        target: element type of the copy.
        order: along which index neighbours of the matrix lie next to one another.
        lanes: elements of a vector.
        masked: whether masked vector loads may take the rest of a row.
    """
    masked = masked and lanes > 1 and source == target and order == "rows"
    name = f"xe.copy.{source}.{target}.{order}.{lanes}{'.masked' if masked else ''}"
    b = TextBuilder(name, _PARAMETERS, linkage="internal", attributes="nounwind noinline")
    if order == "rows":
        _emit_row_copies(b, source, target, lanes, masked)
    elif order == "columns" and lanes > 1:
        _emit_transposition(b, source, target, lanes)
    else:
        with b.loop(0, "%rows", hint="row") as row:
            _emit_elements(b, source, target, row, "0", "%columns")
    b.ret()
    return SharedFunction(name, b.text(), tuple(sorted(b.declarations)))


def _emit_elements(b: TextBuilder, source: str, target: str, row: str, begin: str, end: str) -> None:
    """Copies a part of one row element by element."""
    line = b.gep("%from", b.mul(row, "%row_stride"))
    to = b.gep("%to", b.mul(row, "%to_stride"))
    with b.loop(begin, end, hint="column") as column:
        value = b.load(
            storage_type(source, 1), b.gep(line, b.mul(column, "%column_stride")), ELEMENT_BYTES[source]
        )
        value = widen(b, value, source, target, 1)
        b.store(llvm_type(target), value, b.gep(to, column, llvm_type(target)), ELEMENT_BYTES[target])


def _emit_row_copies(b: TextBuilder, source: str, target: str, lanes: int, masked: bool) -> None:
    mask = b.lane_mask(b.op(f"and i64 %columns, {lanes - 1}"), lanes) if masked else ""
    whole = b.op(f"and i64 %columns, {-lanes}")
    with b.loop(0, "%rows", hint="row") as row:
        line = b.gep("%from", b.mul(row, "%row_stride"))
        to = b.gep("%to", b.mul(row, "%to_stride"))
        with b.loop(0, whole, lanes, hint="column") as column:
            address = b.gep(line, b.mul(column, ELEMENT_BYTES[source]))
            value = b.load(storage_type(source, lanes), address, ELEMENT_BYTES[source])
            value = widen(b, value, source, target, lanes)
            place = b.gep(to, column, llvm_type(target))
            b.store(llvm_type(target, lanes), value, place, ELEMENT_BYTES[target])
        if masked:
            scalar, size = llvm_type(target), ELEMENT_BYTES[target]
            rest = b.masked_load(scalar, lanes, b.gep(line, whole, scalar), mask, size)
            b.masked_store(scalar, lanes, rest, b.gep(to, whole, scalar), mask, size)
        else:
            _emit_elements(b, source, target, row, whole, "%columns")


def _emit_transposition(b: TextBuilder, source: str, target: str, lanes: int) -> None:
    """Blocks of `lanes` rows and columns go through registers; the edges element by element."""
    whole_rows = b.op(f"and i64 %rows, {-lanes}")
    whole_columns = b.op(f"and i64 %columns, {-lanes}")
    with b.loop(0, whole_rows, lanes, hint="row") as row:
        start = b.gep("%from", b.mul(row, "%row_stride"))
        to = b.gep("%to", b.mul(row, "%to_stride"))
        with b.loop(0, whole_columns, lanes, hint="column") as column:
            line = b.gep(start, b.mul(column, "%column_stride"))
            vectors = []
            for _ in range(lanes):
                loaded = b.load(storage_type(source, lanes), line, ELEMENT_BYTES[source])
                vectors.append(widen(b, loaded, source, target, lanes))
                line = b.gep(line, "%column_stride")
            place = b.gep(to, column, llvm_type(target))
            for value in transpose(b, vectors, llvm_type(target, lanes)):
                b.store(llvm_type(target, lanes), value, place, ELEMENT_BYTES[target])
                place = b.gep(place, "%to_stride")
        with b.loop(row, b.add(row, lanes), hint="edge") as inner:
            _emit_elements(b, source, target, inner, whole_columns, "%columns")
    with b.loop(whole_rows, "%rows", hint="last") as row:
        _emit_elements(b, source, target, row, "0", "%columns")


def transpose(b: TextBuilder, vectors: list[str], kind: str) -> list[str]:
    """A square of as many vectors as each has lanes, transposed: log2(lanes) rounds of interleaving."""
    lanes = len(vectors)
    half = lanes // 2
    low = ", ".join(f"i32 {lane // 2 + (lane % 2) * lanes}" for lane in range(lanes))
    high = ", ".join(f"i32 {half + lane // 2 + (lane % 2) * lanes}" for lane in range(lanes))
    rounds = lanes.bit_length() - 1
    for _ in range(rounds):
        mixed = []
        for at in range(half):
            pair = f"{kind} {vectors[at]}, {kind} {vectors[at + half]}"
            mixed.append(b.op(f"shufflevector {pair}, <{lanes} x i32> <{low}>"))
            mixed.append(b.op(f"shufflevector {pair}, <{lanes} x i32> <{high}>"))
        vectors = mixed
    return vectors


def call_copy(
    b: TextBuilder,
    copy: SharedFunction,
    to: str,
    to_stride: int,
    origin: str,
    rows: str | int,
    columns: str | int,
    row_stride: int,
    column_stride: int,
) -> None:
    """Calls a function of `emit_copy`; strides are in bytes."""
    b.call(
        "void",
        copy.name,
        f"ptr {to}",
        f"i64 {to_stride}",
        f"ptr {origin}",
        f"i64 {rows}",
        f"i64 {columns}",
        f"i64 {row_stride}",
        f"i64 {column_stride}",
    )


def emit_fill(element: str, lanes: int) -> SharedFunction:
    """``void (ptr to, i64 count)``: writes zeros."""
    name = f"xe.zero.{element}.{lanes}"
    b = TextBuilder(
        name, (("ptr", "to"), ("i64", "count")), linkage="internal", attributes="nounwind noinline"
    )
    whole = b.op(f"and i64 %count, {-lanes}")
    for first, end, width in (("0", whole, lanes), (whole, "%count", 1)):
        zero = "zeroinitializer" if width > 1 else "0.0"
        with b.loop(first, end, width) as at:
            b.store(
                llvm_type(element, width), zero, b.gep("%to", at, llvm_type(element)), ELEMENT_BYTES[element]
            )
    b.ret()
    return SharedFunction(name, b.text())


def emit_scatter(element: str) -> SharedFunction:
    """``void (ptr from, i64 from_stride, ptr to, i64 rows, i64 columns, i64 row_stride, i64 column_stride)``.

    The way back: elements next to one another in each row go to wherever the strides (in bytes) say.
    """
    name = f"xe.scatter.{element}"
    parameters = (("ptr", "from"), ("i64", "from_stride"), ("ptr", "to"), *_PARAMETERS[3:])
    b = TextBuilder(name, parameters, linkage="internal", attributes="nounwind noinline")
    kind, size = storage_type(element, 1), ELEMENT_BYTES[element]
    with b.loop(0, "%rows", hint="row") as row:
        line = b.gep("%from", b.mul(row, "%from_stride"))
        to = b.gep("%to", b.mul(row, "%row_stride"))
        with b.loop(0, "%columns", hint="column") as column:
            value = b.load(kind, b.gep(line, column, kind), size)
            b.store(kind, value, b.gep(to, b.mul(column, "%column_stride")), size)
    b.ret()
    return SharedFunction(name, b.text(), tuple(sorted(b.declarations)))


def call_scatter(
    b: TextBuilder,
    scatter: SharedFunction,
    origin: str,
    stride: int,
    to: str,
    rows: str | int,
    columns: str | int,
    out: MatrixView,
) -> None:
    """Calls a function of `emit_scatter` to write a tile into `out`, whose corner is at `to`."""
    b.call(
        "void",
        scatter.name,
        f"ptr {origin}",
        f"i64 {stride}",
        f"ptr {to}",
        f"i64 {rows}",
        f"i64 {columns}",
        f"i64 {out.row_stride * out.element_bytes}",
        f"i64 {out.column_stride * out.element_bytes}",
    )
