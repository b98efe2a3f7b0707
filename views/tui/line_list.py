"""A list of lines with a cursor that asks for a line's text only when it is drawn: as fast with 10,000 lines as with ten."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

Draw = Callable[[int, int], Text]
"""(line number, width of the list in cells) to the line's text."""

_CURSOR = Style(bgcolor="#3b4a6b")
_CURSOR_AWAY = Style(bgcolor="#2a3040")


@lru_cache(maxsize=1)
def _console() -> Console:
    return Console(width=4000, color_system="truecolor", legacy_windows=False)


def _nothing(index: int, width: int) -> Text:
    return Text()


class LineList(ScrollView, can_focus=True):
    """See the module's docstring. Posts `Moved` when the cursor stands elsewhere, `Entered` on enter."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("home,g", "edge(-1)", "top", show=False),
        Binding("end,G", "edge(1)", "bottom", show=False),
        Binding("enter", "enter", "choose", show=False),
    ]

    class Moved(Message):
        """The cursor stands on another line."""

        def __init__(self, lines: LineList, index: int) -> None:
            super().__init__()
            self.lines = lines
            self.index = index

        @property
        def control(self) -> LineList:
            """The list, for `on` selectors."""
            return self.lines

    class Entered(Moved):
        """Enter was pressed on a line."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.count = 0
        self.cursor = 0
        self._draw: Draw = _nothing

    def show(self, count: int, draw: Draw, cursor: int | None = None) -> None:
        """Takes new lines; the cursor stays at its number unless one is given."""
        self.count = count
        self._draw = draw
        self.virtual_size = Size(self.size.width, count)
        self.move_to(self.cursor if cursor is None else cursor)
        self.refresh()

    def on_resize(self) -> None:
        """Lines are as wide as the list."""
        self.virtual_size = Size(self.size.width, self.count)

    def render_line(self, y: int) -> Strip:
        """Draws one visible line."""
        index = y + self.scroll_offset.y
        width = self.size.width
        if index >= self.count:
            return Strip.blank(width, self.rich_style)
        text = self._draw(index, width)
        text.no_wrap = True
        text.end = ""
        text.truncate(width, overflow="ellipsis")
        segments = [Segment(s.text, s.style) for s in text.render(_console()) if s.text]
        strip = Strip(segments).adjust_cell_length(width)
        if index == self.cursor:
            strip = strip.apply_style(_CURSOR if self.has_focus else _CURSOR_AWAY)
        return strip.apply_style(self.rich_style) if index != self.cursor else strip

    def move_to(self, index: int) -> None:
        """Puts the cursor on a line and tells the screen."""
        self.cursor = max(0, min(index, self.count - 1))
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)
        self.refresh()
        if self.count:
            self.post_message(self.Moved(self, self.cursor))

    def action_move(self, by: int) -> None:
        """Up or down."""
        self.move_to(self.cursor + by)

    def action_page(self, direction: int) -> None:
        """A screenful."""
        self.move_to(self.cursor + direction * max(self.size.height - 1, 1))

    def action_edge(self, direction: int) -> None:
        """Top or bottom."""
        self.move_to(0 if direction < 0 else self.count - 1)

    def action_enter(self) -> None:
        """Chooses the line under the cursor."""
        if self.count:
            self.post_message(self.Entered(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        """Puts the cursor where the mouse is; a double click chooses."""
        self.focus()
        index = event.y + self.scroll_offset.y
        if index >= self.count:
            return
        self.move_to(index)
        if event.chain > 1:
            self.action_enter()

    def on_focus(self) -> None:
        """The cursor is brighter with the focus."""
        self.refresh()

    def on_blur(self) -> None:
        """See `on_focus`."""
        self.refresh()
