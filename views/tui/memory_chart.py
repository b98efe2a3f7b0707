"""Live bytes over the schedule, in block characters, as wide and as high as there is room."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.widget import Widget

from views.cli.output import size_text

EIGHTHS = " ▁▂▃▄▅▆▇█"
AXIS = 10
"""Cells left of the bars: a size and the axis."""


def columns_of(count: int, width: int) -> list[tuple[int, int]]:
    """The steps (first, one past the last) that each of `width` columns stands for; few steps are stretched."""
    return [
        (column * count // width, max((column + 1) * count // width, column * count // width + 1))
        for column in range(width)
    ]


def chart(live: Sequence[int], step: int, peak: int, width: int, height: int) -> list[Text]:
    """Lines of the chart: bars (a column is the most of its steps), the axis, and marks of the peak and the step."""
    count = len(live)
    columns = columns_of(count, max(width - AXIS - 1, 1)) if count else []
    highest = max(live, default=0)
    rows = max(height - 2, 1)
    tops = [max(live[first:end]) for first, end in columns]
    lines = []
    for row in range(rows - 1, -1, -1):
        label = size_text(highest * (row + 1) / rows) if row == rows - 1 or (row % 2 and rows > 2) else ""
        line = Text(f"{label:>{AXIS - 1}} │", style="grey70")
        for (first, end), top in zip(columns, tops, strict=True):
            cell = min(8, max(0, -(-top * rows * 8 // max(highest, 1)) - row * 8))
            line.append(EIGHTHS[cell], style=_colour(first, end, step, peak))
        lines.append(line)
    axis = Text(f"{'':>{AXIS - 1}} └", style="grey70")
    for first, end in columns:
        axis.append("┴" if first <= step < end else "─", style=_colour(first, end, step, -1))
    return [*lines, axis, _marks(columns, count, step, peak)]


def _colour(first: int, end: int, step: int, peak: int) -> str:
    if first <= step < end:
        return "bold bright_white"
    return "red" if first <= peak < end else "blue"


def _marks(columns: Sequence[tuple[int, int]], count: int, step: int, peak: int) -> Text:
    """`0 … ▲ step 12 … ^ peak … 37` below the axis; the step's mark wins where they meet."""
    cells = [" "] * len(columns)

    def write(text: str, column: int) -> bool:
        start = max(0, min(column, len(cells) - len(text)))
        free = all(cell == " " for cell in cells[max(start - 1, 0) : start + len(text) + 1])
        if free:
            cells[start : start + len(text)] = text
        return free

    def column_of(wanted: int) -> int:
        return next((n for n, (first, end) in enumerate(columns) if first <= wanted < end), 0)

    write(f"▲ step {step}{' = peak' if step == peak else ''}", column_of(step))
    if peak >= 0 and step != peak:
        column = column_of(peak)
        if not write(f"^ peak {peak}", column) and not write(f"peak {peak} ^", column - len(f"peak {peak} ")):
            write("^", column)
    write("0", 0)
    write(str(max(count - 1, 0)), len(cells))
    return Text(" " * (AXIS + 1) + "".join(cells), style="grey70")


def lifetime_bar(first: int, last: int, step: int, count: int, width: int) -> Text:
    """A line as long as the schedule with the lifetime filled in and the step marked."""
    bar = Text()
    for start, end in columns_of(max(count, 1), width):
        alive = start <= last and first < end
        here = start <= step < end
        bar.append("█" if alive else "·", style="bright_white" if here else "blue" if alive else "grey30")
    return bar


class MemoryChart(Widget):
    """Draws a profile; the screen moves the step."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._live: tuple[int, ...] = ()
        self._step = 0
        self._peak = -1

    def show(self, live: tuple[int, ...], step: int, peak: int) -> None:
        """Takes a profile and the step."""
        self._live, self._step, self._peak = live, step, peak
        self.refresh()

    def render(self) -> Text:
        """All lines at the size there is."""
        return Text("\n").join(chart(self._live, self._step, self._peak, self.size.width, self.size.height))
