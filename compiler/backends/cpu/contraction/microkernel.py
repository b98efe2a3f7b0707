"""The innermost loops of a matrix product: one tile of the output, held in registers.

A microkernel multiplies `rows` rows of the left operand with `vectors` vectors' worth of columns of the
right one. The length of the sums and all strides arrive at run time, so few of them serve all products of a
module.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from compiler.backends.cpu.contraction.conversion import narrow, storage_type
from compiler.backends.cpu.contraction.epilogue import EpilogueEmitter, TileVector
from compiler.backends.cpu.contraction.spec import ELEMENT_BYTES
from compiler.backends.cpu.kernel_code import SharedFunction
from compiler.backends.cpu.target import Target
from compiler.backends.cpu.text_builder import TextBuilder, llvm_type

_ROWS_PER_POINTER = 3
_CACHE_LINE = 64
_PREFETCH_ROWS = 32
# With fewer rows a step takes less time than the prefetch saves.
_PREFETCH_FROM_ROWS = 4

PARAMETERS = (
    ("ptr", "lhs"),
    ("i64", "lhs_stride"),
    ("ptr", "rhs"),
    ("i64", "rhs_stride"),
    ("i64", "k"),
    ("ptr", "out"),
    ("i64", "out_stride"),
    ("i64", "columns"),
    ("ptr", "buffers"),
    ("i64", "batch"),
    ("i64", "row"),
    ("i64", "column"),
    ("i64", "previous"),
)


@dataclass(frozen=True, slots=True)
class Microkernel:
    """Which microkernel.

    Attributes:
        element: the type of operands and sums, ``f32`` or ``f64``.
        out: the element type of the output.
        rows: rows of the tile.
        vectors: vectors in a row of the tile.
        lanes: elements in a vector.
        masked: whether the last vector may stick out of the output (``%columns`` says how far it is in use).
        rhs_masked: whether nothing may be read of the right operand beyond ``%columns``.
        adds: whether the sums start from what the output holds if ``%previous`` is not zero; `out` is then
            `element`.
    """

    element: str
    out: str
    rows: int
    vectors: int
    lanes: int
    masked: bool
    rhs_masked: bool
    adds: bool = False

    @property
    def name(self) -> str:
        """The symbol of the one without an epilogue."""
        edge = ".edge" if self.masked else ""
        inside = ".inside" if self.rhs_masked else ""
        adds = ".adds" if self.adds else ""
        return (
            f"xe.gemm.{self.element}.{self.out}.{self.rows}x{self.vectors}x{self.lanes}{edge}{inside}{adds}"
        )


def emit_microkernel(
    kernel: Microkernel,
    target: Target,
    epilogue: EpilogueEmitter | None = None,
    axis: Literal["row", "column"] = "column",
) -> SharedFunction:
    """The function of a microkernel; with an epilogue it is named after that too.

    Its parameters are `PARAMETERS`: addresses, strides in bytes, the length of the sums, how many columns
    are inside the output, and for the epilogue the buffers and the position of the tile. Elements along a
    row are next to one another in all three matrices.
    """
    if epilogue is None:
        return _without_epilogue(kernel, target)
    return _emit(f"{kernel.name}.{axis}.{epilogue.key}", kernel, target, epilogue, axis)


@lru_cache(maxsize=256)
def _without_epilogue(kernel: Microkernel, target: Target) -> SharedFunction:
    """Most products of a model use the same few."""
    return _emit(kernel.name, kernel, target, None, "column")


def _emit(
    name: str,
    kernel: Microkernel,
    target: Target,
    epilogue: EpilogueEmitter | None,
    axis: Literal["row", "column"],
) -> SharedFunction:
    b = TextBuilder(name, PARAMETERS, linkage="internal")
    mask = None
    if kernel.masked:
        mask = b.lane_mask(b.sub("%columns", (kernel.vectors - 1) * kernel.lanes), kernel.lanes)
    initial = (
        _emit_previous(b, kernel, mask)
        if kernel.adds
        else ["zeroinitializer"] * (kernel.rows * kernel.vectors)
    )
    sums = _emit_sums(b, kernel, target, initial, mask if kernel.rhs_masked else None)
    _emit_stores(b, kernel, sums, mask, epilogue, axis)
    b.ret()
    return SharedFunction(name, b.text(), tuple(sorted(b.declarations)))


def _emit_previous(b: TextBuilder, kernel: Microkernel, mask: str | None) -> list[str]:
    """The sums so far: what the output holds, or zeros if there is nothing yet."""
    size, scalar = ELEMENT_BYTES[kernel.element], llvm_type(kernel.element)
    vector = llvm_type(kernel.element, kernel.lanes)
    held, start, first = b.label("held"), b.label("start"), b.block
    b.branch_if(b.compare("ne", "%previous", 0), held, start)
    b.place(held)
    loaded, line = [], "%out"
    for row in range(kernel.rows):
        line = b.gep(line, "%out_stride") if row else line
        for part in range(kernel.vectors):
            address = b.gep(line, part * kernel.lanes * size)
            if mask is not None and part == kernel.vectors - 1 and kernel.lanes > 1:
                loaded.append(b.masked_load(scalar, kernel.lanes, address, mask, size))
            else:
                loaded.append(b.load(vector, address, size))
    b.branch(start)
    b.place(start)
    return [b.op(f"phi {vector} [ zeroinitializer, %{first} ], [ {value}, %{held} ]") for value in loaded]


def _emit_sums(
    b: TextBuilder, kernel: Microkernel, target: Target, initial: list[str], mask: str | None
) -> list[str]:
    """Runs over k; returns the sums row by row."""
    vector = llvm_type(kernel.element, kernel.lanes)
    groups = -(-kernel.rows // _ROWS_PER_POINTER)
    pointers = ["%lhs"]
    if groups > 1:
        step = b.mul("%lhs_stride", _ROWS_PER_POINTER)
        for _ in range(1, groups):
            pointers.append(b.gep(pointers[-1], step))
    offsets = ["0", "%lhs_stride", b.mul("%lhs_stride", 2)] if kernel.rows > 1 else ["0"]
    carried = [(vector, value) for value in initial]
    carried += [("ptr", pointer) for pointer in (*pointers, "%rhs")]
    # Not unrolled: there is work for more cycles in one step than the counting takes, and across two steps
    # the scheduler moves so many loads ahead that the sums no longer fit the registers.
    with b.carried_loop(0, "%k", carried, 1, "k") as loop:
        loop.next = _emit_step(b, kernel, target, mask, loop.values, offsets)
    return loop.results[: kernel.rows * kernel.vectors]


def _emit_step(
    b: TextBuilder,
    kernel: Microkernel,
    target: Target,
    mask: str | None,
    values: list[str],
    offsets: list[str],
) -> list[str]:
    """One rank-one update; takes and returns sums, pointers into the rows, pointer into the right operand."""
    count, size = kernel.rows * kernel.vectors, ELEMENT_BYTES[kernel.element]
    sums, pointers, rhs = values[:count], values[count:-1], values[-1]
    scalar, vector = llvm_type(kernel.element), llvm_type(kernel.element, kernel.lanes)
    if kernel.rows >= _PREFETCH_FROM_ROWS:
        _emit_prefetch(b, rhs, kernel.vectors * kernel.lanes * size)
    right = []
    for part in range(kernel.vectors):
        address = b.gep(rhs, part * kernel.lanes * size)
        if mask is not None and part == kernel.vectors - 1:
            right.append(b.masked_load(scalar, kernel.lanes, address, mask, size))
        else:
            right.append(b.load(vector, address, size))
    for row in range(kernel.rows):
        address = b.gep(pointers[row // _ROWS_PER_POINTER], offsets[row % _ROWS_PER_POINTER])
        left = b.splat(scalar, b.load(scalar, address, size), kernel.lanes)
        for part in range(kernel.vectors):
            at = row * kernel.vectors + part
            sums[at] = multiply_add(b, target, kernel.element, kernel.lanes, left, right[part], sums[at])
    return [*sums, *(b.gep(pointer, size) for pointer in pointers), b.gep(rhs, "%rhs_stride")]


def _emit_prefetch(b: TextBuilder, rhs: str, size: int) -> None:
    """Asks for a later row of the right operand: the processor does not foresee rows that lie far apart."""
    b.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    # Not inbounds: the address may lie behind the operand. A prefetch never faults.
    ahead = b.op(f"getelementptr i8, ptr {rhs}, i64 {b.op(f'mul i64 %rhs_stride, {_PREFETCH_ROWS}')}")
    for offset in range(0, size, _CACHE_LINE):
        line = b.op(f"getelementptr i8, ptr {ahead}, i64 {offset}")
        b.emit(f"call void @llvm.prefetch.p0(ptr {line}, i32 0, i32 3, i32 1)")


def multiply_add(
    b: TextBuilder, target: Target, element: str, lanes: int, left: str, right: str, addend: str
) -> str:
    """``left * right + addend``, in one instruction where the processor has it."""
    kind = llvm_type(element, lanes)
    if target.has_fma:
        name = f"llvm.fma.v{lanes}{element}" if lanes > 1 else f"llvm.fma.{element}"
        return b.intrinsic(kind, name, (kind, left), (kind, right), (kind, addend), hint="sum")
    return b.op(f"fadd {kind} {addend}, {b.op(f'fmul {kind} {left}, {right}')}", "sum")


def _emit_stores(
    b: TextBuilder,
    kernel: Microkernel,
    sums: list[str],
    mask: str | None,
    epilogue: EpilogueEmitter | None,
    axis: Literal["row", "column"],
) -> None:
    size = ELEMENT_BYTES[kernel.out]
    line = "%out"
    for row in range(kernel.rows):
        if row:
            line = b.gep(line, "%out_stride")
        along = b.add("%row", row) if epilogue is not None else ""
        for part in range(kernel.vectors):
            inside = mask if part == kernel.vectors - 1 else None
            value = sums[row * kernel.vectors + part]
            if epilogue is not None:
                across = b.add("%column", part * kernel.lanes)
                place = (across, along) if axis == "row" else (along, across)
                where = TileVector("%buffers", "%batch", *place, kernel.lanes, axis, inside, kernel.element)
                value = store_form(b, epilogue.emit(b, value, where), kernel.out, kernel.lanes)
            else:
                value = narrow(b, value, kernel.element, kernel.out, kernel.lanes)
            address = b.gep(line, part * kernel.lanes * size)
            if inside is not None:
                b.masked_store(storage_type(kernel.out, 1), kernel.lanes, value, address, inside, size)
            else:
                b.store(storage_type(kernel.out, kernel.lanes), value, address, size)


def store_form(b: TextBuilder, value: str, element: str, lanes: int) -> str:
    """What an epilogue returned (of LLVM's type for `element`) with the type it is stored as."""
    if element != "bf16":
        return value
    return b.op(f"bitcast {llvm_type(element, lanes)} {value} to {storage_type(element, lanes)}")
