"""What an instruction becomes: kernels (or library calls) and the buffers that each is given.

Made by `compiler.backends.cpu.lowering`, put in sequence by `compiler.backends.cpu.program`.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.backends.cpu.kernel_code import KernelCode
from compiler.ir.literal import Literal
from compiler.kernel.loop_nest import LoopNest


@dataclass(frozen=True, slots=True)
class Operand:
    """Leaf number `index` of the instruction's operands, tuples taken apart."""

    index: int


@dataclass(frozen=True, slots=True)
class Result:
    """Leaf number `index` of the instruction's result."""

    index: int


@dataclass(frozen=True, slots=True)
class Temporary:
    """A buffer that only this instruction's kernels see."""

    index: int


@dataclass(frozen=True, slots=True)
class Embedded:
    """A constant inside a fusion."""

    literal: Literal


Buffer = Operand | Result | Temporary | Embedded


def numbered(operands: int, results: int) -> tuple[Buffer, ...]:
    """The instruction's own buffers in order: operands, then results."""
    inputs: list[Buffer] = [Operand(number) for number in range(operands)]
    return (*inputs, *(Result(number) for number in range(results)))


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """The operation's own NumPy rule, called back from compiled code; `body` and `instruction` say which."""

    computation: str
    instruction: str


@dataclass(frozen=True, slots=True)
class Move:
    """Bytes copied from one buffer to another, unless they are the same memory."""

    source: Buffer
    target: Buffer
    size: int


@dataclass(frozen=True, slots=True)
class Use:
    """One kernel on its buffers: operands, then results."""

    code: KernelCode | LibraryCall
    buffers: tuple[Buffer, ...]
    kind: str
    before: tuple[Move, ...] = ()
    """Copies to be made first: a kernel that changes a part of a buffer finds the rest in place."""
    nest: LoopNest | None = None


@dataclass(frozen=True, slots=True)
class Lowered:
    """One instruction. `temporaries` are sizes in bytes."""

    steps: tuple[Use | Move, ...]
    temporaries: tuple[int, ...] = ()
