"""What reading a file gives: the module, and where each instruction stood in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compiler.ir.program import Module


@dataclass(frozen=True)
class Parsed:
    """A module and, by instruction name, the line and column of the operation in the file it was read from."""

    module: Module
    positions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    filename: str = ""
