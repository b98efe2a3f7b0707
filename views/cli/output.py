"""What every command's output has in common: tables that fit a terminal, sizes and times in words, JSON, colours.

Text from models and files is made visible (`views.highlight.visible`) before it is printed; colours are used only where
standard output is a terminal.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

JSON_VERSION = 1
"""Version of every command's JSON; it goes up when a field changes its meaning or goes away."""

GAP = "  "
MIN_SHRUNK = 16
"""Columns are not made narrower than this."""


def print_json(command: str, **fields: Any) -> None:
    """Prints one document: version, command, and the fields. Numbers that JSON lacks become strings."""
    document = {"version": JSON_VERSION, "command": command, **fields}
    sys.stdout.write(json.dumps(plain(document), indent=1, ensure_ascii=True) + "\n")


def plain(value: Any) -> Any:
    """A value as JSON has it: infinities and NaN as text, mappings with text keys, anything unknown as its text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [plain(entry) for entry in value]
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return plain(value.item())
    return str(value)


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = (), shrink: int = -1
) -> list[str]:
    """Lines of a table: columns padded to their widest cell, `right` ones to the right.

    On a terminal lines are made to fit: cells of the column `shrink` lose their middle, then lines their end. Elsewhere
    nothing is cut, since scripts want names whole.
    """
    from views.highlight import visible

    cells = [list(header), *([visible(cell) for cell in row] for row in rows)]
    room = terminal_width()
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - room
    if room and shrink >= 0 and excess > 0:
        widths[shrink] = max(widths[shrink] - excess, min(widths[shrink], MIN_SHRUNK))
        for row in cells:
            row[shrink] = _without_middle(row[shrink], widths[shrink])
    rightward = set(right)
    lines = []
    for row in cells:
        padded = [
            cell.rjust(width) if column in rightward else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        line = GAP.join(padded).rstrip()
        lines.append(line if not room or len(line) <= room else line[: room - 1] + "…")
    return lines


def _without_middle(text: str, width: int) -> str:
    """The text, or its two ends with an ellipsis between."""
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def terminal_width() -> int:
    """The terminal's width, or 0 where standard output is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def print_lines(lines: Iterable[str]) -> None:
    """Prints lines that are visible already."""
    for line in lines:
        sys.stdout.write(line + "\n")


def size_text(count: float) -> str:
    """Bytes in words: `512 B`, `1.5 KB`, `3.2 GB` (of 1024)."""
    if count < 1024:
        return f"{int(count)} B"
    for unit in ("KB", "MB", "GB", "TB"):
        count /= 1024
        if count < 1024 or unit == "TB":
            break
    return f"{count:.1f} {unit}" if count < 100 else f"{count:.0f} {unit}"


def duration_text(seconds: float) -> str:
    """A time in words: `12 µs`, `3.4 ms`, `5.67 s`."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def plural(count: int, noun: str) -> str:
    """`1 rewrite`, `2 rewrites`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def colours() -> bool:
    """True where output may be coloured."""
    import os

    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def console() -> Console:
    """A console on standard output; it writes no escape sequences where that is no terminal."""
    from rich.console import Console

    return Console(
        file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True, no_color=not colours()
    )


def print_text(target: Console | None, text: Text) -> None:
    """Prints one styled line, plainly where there is no console for colours."""
    if target is None:
        sys.stdout.write(text.plain + "\n")
    else:
        target.print(text)
