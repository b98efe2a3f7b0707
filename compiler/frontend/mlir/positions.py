"""What the importer asks of the file it imports from, and offsets into a text as lines and columns."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NoReturn, Protocol

from compiler.ir.location import Location


class Source(Protocol):
    """A file that operations were read from: text, or bytes (whose text is empty)."""

    text: str
    filename: str
    line_offset: int

    def fail(self, message: str, offset: int | None = None) -> NoReturn:
        """Raises the error at an offset."""

    def resolve(self, raw: Any, depth: int = 0) -> Location | None:
        """The location that the reader noted at an operation, without aliases."""


class Lines:
    """Finds line and column (from 1) of an offset in logarithmic time."""

    def __init__(self, text: str, filename: str, line_offset: int = 0) -> None:
        self.filename = filename
        self._offset = line_offset
        self._starts = [0]
        start = text.find("\n")
        while start >= 0:
            self._starts.append(start + 1)
            start = text.find("\n", start + 1)

    def at(self, offset: int) -> tuple[int, int]:
        """Line and column."""
        index = bisect_right(self._starts, offset)
        return index + self._offset, offset - self._starts[index - 1] + 1
