"""What a fusion does to each element of a product before it is stored.

An epilogue writes its code into the microkernel, where the sums are still in registers. It sees a vector of
neighbouring output elements and says what to store in their place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from compiler.backends.cpu.text_builder import TextBuilder, llvm_type


@dataclass(frozen=True, slots=True)
class TileVector:
    """Where a vector of the output lies. Names are SSA values of type ``i64`` unless said otherwise.

    Attributes:
        buffers: ``ptr``, the kernel's array of buffers, for operands of the epilogue's own.
        batch: the number of the product in the batch, counted row-major over the batch dimensions.
        row: row of the first lane.
        column: column of the first lane.
        lanes: how many elements; 1 means a scalar, not a vector of one.
        axis: along which index the lanes run on; the other one is the same for all.
        mask: ``<lanes x i1>``, false in lanes beyond the edge of the output; None where all are inside.
            Nothing may be read for a masked lane.
        element: the type of the sums, ``f32`` or ``f64``.
    """

    buffers: str
    batch: str
    row: str
    column: str
    lanes: int
    axis: Literal["row", "column"]
    mask: str | None
    element: str

    def buffer(self, b: TextBuilder, number: int) -> str:
        """The address of one of the kernel's buffers."""
        return b.load("ptr", b.gep(self.buffers, number, "ptr"), 8, hint="buffer")

    def load(self, b: TextBuilder, base: str, index: str, stride: int, element: str) -> str:
        """Elements ``base[index + lane * stride]``, 0 where masked; `stride` is 0 (the same for all) or 1."""
        scalar = llvm_type(element)
        size = _bytes(element)
        address = b.gep(base, index, scalar)
        if self.lanes == 1:
            return b.load(scalar, address, size)
        if stride == 0:
            return b.splat(scalar, b.load(scalar, address, size), self.lanes)
        if stride != 1:
            raise ValueError(f"a tile vector is loaded with a stride of 0 or 1, not {stride}")
        if self.mask is not None:
            return b.masked_load(scalar, self.lanes, address, self.mask, size)
        return b.load(f"<{self.lanes} x {scalar}>", address, size)


def _bytes(element: str) -> int:
    bits = int("".join(character for character in element if character.isdigit()) or "8")
    return max(1, bits // 8)


class EpilogueEmitter(Protocol):
    """Emits what happens to the sums of a product.

    Attributes:
        key: tells epilogues with different code apart; two with equal keys may share microkernels within a
            module.
    """

    @property
    def key(self) -> str:
        """See the class."""
        ...

    def emit(self, b: TextBuilder, value: str, where: TileVector) -> str:
        """Emits code that turns the sums `value` into what is stored.

        `value` has type `where.element`; the result has the element type of the product's output.
        """
        ...
