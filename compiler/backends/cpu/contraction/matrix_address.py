"""Where the matrices of a batched product start, as emitted code."""

from __future__ import annotations

from compiler.backends.cpu.contraction.spec import MatrixView
from compiler.backends.cpu.text_builder import TextBuilder


def matrix_address(b: TextBuilder, view: MatrixView, sizes: tuple[int, ...], batch: str) -> str:
    """The address of matrix number `batch`, counted row-major over the batch dimensions."""
    address = b.load("ptr", b.gep("%buffers", view.buffer, "ptr"), 8, hint="matrix")
    offset = str(view.offset)
    for size, stride in zip(reversed(sizes), reversed(view.batch_strides), strict=True):
        offset = b.add(offset, b.mul(b.rem(batch, size), stride))
        batch = b.div(batch, size)
    return b.gep(address, b.mul(offset, view.element_bytes))
