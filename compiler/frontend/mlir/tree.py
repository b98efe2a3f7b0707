"""The tree that the reader makes of a text: MLIR operations before they mean anything to the compiler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from compiler.ir.types import Type


class Symbol(str):
    """A symbol reference, `@name`."""

    __slots__ = ()


class Word(str):
    """A bare word or the member of an enumeration, such as `LT` or `HIGHEST`."""

    __slots__ = ()


class Raw(str):
    """An attribute of a dialect that is not taken apart, kept as its text."""

    __slots__ = ()


@dataclass(slots=True)
class Block:
    """A region's one block: its arguments with types and locations, and its operations."""

    arguments: list[tuple[str, Type, Any]] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)


@dataclass(slots=True)
class Operation:
    """One operation. `results` are the names it defines, one a value (`%0#1` is entry 1 of `%0:2`)."""

    name: str
    offset: int
    operands: list[str] = field(default_factory=list)
    operand_types: list[Type] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    result_types: list[Type] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    regions: list[Block] = field(default_factory=list)
    location: Any = None
