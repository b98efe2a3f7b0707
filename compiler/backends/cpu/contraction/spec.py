"""What a matrix product is, to the emitters: sizes, element types, and where each matrix lies.

``out[b, i, j] = epilogue(sum over k of lhs[b, i, k] * rhs[b, k, j])``. Everything is known when code is
emitted; what depends on no size (microkernels, copies) takes its sizes at run time and is shared between
products.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

ELEMENT_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}


@dataclass(frozen=True, slots=True)
class MatrixView:
    """A (batch of) matrix inside a buffer. Strides and offset count elements; strides may be 0 or negative.

    Attributes:
        buffer: which of the kernel's buffers it is in.
        element: ``f16``, ``bf16``, ``f32`` or ``f64``.
        row_stride: distance of an element to the one below it.
        column_stride: distance of an element to the one on its right.
        batch_strides: one for each batch dimension.
        offset: where the first element is.
    """

    buffer: int
    element: str
    row_stride: int
    column_stride: int
    batch_strides: tuple[int, ...] = ()
    offset: int = 0

    @property
    def element_bytes(self) -> int:
        """The size of an element."""
        return ELEMENT_BYTES[self.element]

    @property
    def transposed(self) -> MatrixView:
        """The same elements with rows and columns exchanged."""
        return replace(self, row_stride=self.column_stride, column_stride=self.row_stride)


@dataclass(frozen=True, slots=True)
class GemmSpec:
    """A batch of matrix products.

    Attributes:
        m: rows of the output.
        n: columns of the output.
        k: length of the sums; 0 makes them all zero.
        lhs: ``m x k``.
        rhs: ``k x n``.
        out: ``m x n``; its elements must not overlap one another or the operands.
        batch: sizes of the batch dimensions.
        accumulate: the type sums are kept in, ``f32`` or ``f64``.
        scratch_buffer: which of the kernel's buffers the scratch is, if one is needed.
    """

    m: int
    n: int
    k: int
    lhs: MatrixView
    rhs: MatrixView
    out: MatrixView
    batch: tuple[int, ...] = ()
    accumulate: str = "f32"
    scratch_buffer: int = 3

    def __post_init__(self) -> None:
        """Refuses what no code can be emitted for."""
        if self.accumulate not in ("f32", "f64"):
            raise ValueError(f"sums are kept in f32 or f64, not {self.accumulate}")
        for view in (self.lhs, self.rhs, self.out):
            if view.element not in ELEMENT_BYTES:
                raise ValueError(f"no matrix product of {view.element}")
            if len(view.batch_strides) != len(self.batch):
                raise ValueError(f"{len(self.batch)} batch dimensions, {len(view.batch_strides)} strides")

    @property
    def batch_size(self) -> int:
        """How many products there are."""
        return math.prod(self.batch)

    @property
    def accumulate_bytes(self) -> int:
        """The size of a sum."""
        return ELEMENT_BYTES[self.accumulate]

    @property
    def flops(self) -> int:
        """Additions and multiplications."""
        return 2 * self.batch_size * self.m * self.n * self.k

    @property
    def transposed(self) -> GemmSpec:
        """The product of the transposed operands in reverse order, which is the transposed output."""
        return replace(
            self,
            m=self.n,
            n=self.m,
            lhs=self.rhs.transposed,
            rhs=self.lhs.transposed,
            out=self.out.transposed,
        )
