"""A panel of program lines with a cursor: draws only what is visible, whatever the number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from views.highlight import MARKS, highlight, visible
from views.tui.messages import InstructionChosen
from views.tui.rows import Row, change_positions, differing_spans, row_text

_HEADING = Style(bold=True, color="bright_white", bgcolor="#24324a")
_GAP = Style(color="grey50", italic=True)
_NOTE = Style(color="grey70")
_MATCH = Style(bgcolor="#5a4a00", bold=True)
_DIFFERING = Style(bold=True, underline=True)
_CURSOR = Style(bgcolor="#3b4a6b")
GUTTER = 2
MAX_LINE = 2000
"""Characters of a line that are drawn; a longer one ends in an ellipsis."""


@lru_cache(maxsize=4000)
def _segments(
    kind: str, text: str, needle: str, differing: tuple[tuple[int, int], ...] = ()
) -> tuple[Segment, ...]:
    """A row's coloured pieces."""
    if kind == "h":
        return (Segment(f" {visible(text)} ", _HEADING),)
    if kind in "gn":
        return (Segment("  " + visible(text), _GAP if kind == "g" else _NOTE),)
    base = MARKS.get(kind, Style())
    shown = text if len(text) <= MAX_LINE else text[: MAX_LINE - 1] + "…"
    line = highlight(shown, base)
    for start, end in differing:
        line.stylize(_DIFFERING, start, end)
    if needle:
        line.highlight_words([needle], _MATCH, case_sensitive=False)
    mark = Segment(f"{kind} ", base + Style(bold=True))
    return (mark, *(Segment(s.text, s.style) for s in _flat(line)))


def _flat(line: object) -> list[Segment]:
    from rich.console import Console
    from rich.text import Text

    assert isinstance(line, Text)
    console = Console(width=MAX_LINE + 10, color_system="truecolor", legacy_windows=False)
    return [Segment(s.text, s.style) for s in line.render(console)]


class CodeView(ScrollView, can_focus=True):
    """See the module's docstring."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "page up", show=False),
        Binding("pagedown,space", "page(1)", "page down", show=False),
        Binding("home,g", "edge(-1)", "top", show=False),
        Binding("end,G", "edge(1)", "bottom", show=False),
        Binding("right,l", "sideways(8)", "right", show=False),
        Binding("left", "sideways(-8)", "left", show=False),
        Binding("right_square_bracket", "change(1)", "next change", show=False),
        Binding("left_square_bracket", "change(-1)", "previous change", key_display="[", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: list[Row] = []
        self.cursor = 0
        self.needle = ""
        self._changes: list[int] = []

    def show(self, rows: list[Row], cursor: int = 0) -> None:
        """Replaces all rows."""
        self.rows = rows
        self._changes = change_positions(rows)
        self.cursor = min(cursor, max(len(rows) - 1, 0))
        self.virtual_size = Size(self._width(), len(rows))
        self.scroll_to(0, 0, animate=False)
        self._after_move()

    def _width(self) -> int:
        """Wide enough for what is near; long lines widen it as they come into view."""
        return 200

    def render_line(self, y: int) -> Strip:
        """Draws one visible line."""
        scroll_x, scroll_y = self.scroll_offset
        index = y + scroll_y
        width = self.size.width
        if index >= len(self.rows):
            return Strip.blank(width, self.rich_style)
        row = self.rows[index]
        strip = Strip(_segments(row.kind, row_text(row), self.needle, differing_spans(row)))
        if strip.cell_length > self.virtual_size.width:
            self.virtual_size = Size(strip.cell_length + 1, len(self.rows))
        if row.kind == "h":
            strip = strip.extend_cell_length(width + scroll_x, _HEADING)
        elif row.kind in MARKS:
            strip = strip.extend_cell_length(width + scroll_x, MARKS[row.kind])
        strip = strip.apply_style(self.rich_style).crop_extend(scroll_x, scroll_x + width, self.rich_style)
        if index == self.cursor and self.has_focus:
            strip = Strip([Segment(s.text, (s.style or Style()) + _CURSOR) for s in strip], width)
        return strip

    # ---- moving ----------------------------------------------------------------------------------------------------

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.rows else None

    def move_to(self, index: int) -> None:
        """Puts the cursor on a row and makes it visible."""
        if not self.rows:
            return
        self.cursor = max(0, min(index, len(self.rows) - 1))
        x = self.scroll_offset.x
        self.scroll_to_region(Region(x, self.cursor, 1, 1), animate=False, force=True)
        self._after_move()

    def _after_move(self) -> None:
        self.refresh()
        row = self.row
        if row is not None:
            computation = row.computation.name if row.computation else ""
            self.post_message(InstructionChosen(computation, row.name, row.kind == "-"))

    def action_move(self, by: int) -> None:
        """Up or down."""
        self.move_to(self.cursor + by)

    def action_page(self, direction: int) -> None:
        """A screenful."""
        self.move_to(self.cursor + direction * max(self.size.height - 1, 1))

    def action_edge(self, direction: int) -> None:
        """Top or bottom."""
        self.move_to(0 if direction < 0 else len(self.rows) - 1)

    def action_sideways(self, by: int) -> None:
        """Scrolls long lines."""
        self.scroll_to(max(0, self.scroll_offset.x + by), self.scroll_offset.y, animate=False)

    def action_change(self, direction: int) -> None:
        """To the next or previous run of changes."""
        places = [p for p in self._changes if (p > self.cursor if direction > 0 else p < self.cursor)]
        if places:
            self.move_to(places[0] if direction > 0 else places[-1])
        else:
            self.app.bell()

    def find(self, needle: str, direction: int = 1, *, from_here: bool = False) -> bool:
        """Moves to the next row that holds a text (ignoring case); tells whether there was one."""
        self.needle = needle
        self.refresh()
        if not needle or not self.rows:
            return False
        wanted = needle.lower()
        count = len(self.rows)
        start = self.cursor if from_here else self.cursor + direction
        for step in range(count):
            index = (start + direction * step) % count
            if wanted in row_text(self.rows[index]).lower():
                self.move_to(index)
                return True
        return False

    def place_of(self, name: str) -> int | None:
        """The row of an instruction."""
        return next((index for index, row in enumerate(self.rows) if row.name == name), None)

    def on_click(self, event: events.Click) -> None:
        """Puts the cursor where the mouse is."""
        self.focus()
        self.move_to(event.y + self.scroll_offset.y)

    def on_focus(self) -> None:
        """The cursor shows only with the focus."""
        self.refresh()

    def on_blur(self) -> None:
        """See `on_focus`."""
        self.refresh()


def texts(rows: Sequence[Row]) -> list[str]:
    """All rows as plain text with their marks."""
    return [f"{row.kind if row.kind in '+-~ ' else ' '} {row_text(row)}" for row in rows]
