"""The one way in which reading a file fails: a message with file, line and column, the line itself and a caret.

Raised by every frontend; printed as it is by every command, with exit status 2 (1 from `verify`).
"""

from __future__ import annotations


class SourceError(Exception):
    """Something is wrong at a place in a file, told in one line. Line and column count from 1; 0 when there is no place."""

    def __init__(self, file: str, line: int, column: int, message: str, source_line: str = "") -> None:
        self.file = file
        self.line = line
        self.column = column
        # What a message quotes from the text may go over several lines.
        self.message = " ".join(message.split()) if len(message.splitlines()) > 1 else message
        self.source_line = source_line
        super().__init__(self._text())

    def _text(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        text = f"{place}: error: {self.message}"
        if not self.source_line:
            return text
        shown, caret = _excerpt(self.source_line, self.column)
        return f"{text}\n  {shown}\n  {caret}"


def _excerpt(line: str, column: int, width: int = 160) -> tuple[str, str]:
    """The part of a line around a column, control characters made visible, and a caret under the column."""
    start = max(0, min(column - 1 - width // 2, len(line) - width))
    part = "".join(
        char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line[start : start + width]
    )
    return part, " " * max(0, column - 1 - start) + "^"


def error_at(file: str, text: str, offset: int, message: str) -> SourceError:
    """The error for an offset into a text."""
    offset = min(max(offset, 0), len(text))
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    line = text.count("\n", 0, offset) + 1
    return SourceError(file, line, offset - start + 1, message, text[start : end if end >= 0 else len(text)])
