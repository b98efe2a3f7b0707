"""HLO text as written, between reader and importer: computations of instructions, attributes still as text."""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.frontend.hlo.metadata import FrameTables
from compiler.ir.types import Type

Written = tuple[str, int]
"""A piece of text and its offset in the file."""


@dataclass(slots=True)
class WrittenInstruction:
    """`ROOT name = kind opcode(operands), attributes`; `literal` is what stands in the parentheses of a constant."""

    name: str
    offset: int
    kind: Type
    opcode: str
    opcode_offset: int
    operands: list[Written]
    attributes: dict[str, Written]
    literal: Written | None = None
    number: int | None = None
    """The index of a parameter."""


@dataclass(slots=True)
class WrittenComputation:
    """A computation's instructions in their order; `signature` holds the parameters' shapes where they are given."""

    name: str
    offset: int
    is_entry: bool
    instructions: list[WrittenInstruction] = field(default_factory=list)
    root: str = ""
    signature: list[tuple[Type, int]] | None = None


@dataclass(slots=True)
class WrittenModule:
    """A whole file."""

    name: str
    attributes: dict[str, Written]
    computations: list[WrittenComputation]
    tables: FrameTables
