"""What the screens beside the main one share: they draw one trace, have a title line, and lead back to an instruction."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, Static

from explorer.trace import Trace
from views.highlight import visible
from views.tui.dialogs import HelpScreen
from views.tui.messages import InstructionWanted, ScreenWanted


class TraceScreen(Screen[None]):
    """Base of the decisions, memory and fusion screens. `selected` is the (computation, name) all screens share."""

    HEADING = ""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("D", "other('decisions')", "decisions", show=False),
        Binding("M", "other('memory')", "memory", show=False),
        Binding("F", "other('fusion')", "fusion", show=False),
        Binding("escape,q", "back", "back", key_display="esc"),
        Binding("question_mark", "help", "help", key_display="?"),
    ]

    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - the base class's own kind of table
        (0, "-narrow"),
        (100, "-normal"),
        (150, "-wide"),
    ]

    def __init__(self, trace: Trace, selected: tuple[str, str] = ("", "")) -> None:
        super().__init__()
        self.trace = trace
        self.selected = selected

    def compose(self) -> ComposeResult:
        """The title, the body, the keys."""
        yield Static(id="title", markup=False)
        yield from self.compose_body()
        yield Footer(compact=True)

    def compose_body(self) -> ComposeResult:
        """What stands between the title and the keys."""
        yield from ()

    def show_trace(self, trace: Trace) -> None:
        """Takes a new recording."""
        self.trace = trace

    def set_state(self, *parts: str, warning: str = "") -> None:
        """The first line: the screen's name, the facts, and what is going on."""
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f" {self.HEADING} ", style="bold reverse")
        if warning:
            text.append(f" {visible(warning)} ", style="bold yellow")
        text.append("  " + "   ".join(visible(part) for part in parts if part), style="grey70")
        self.query_one("#title", Static).update(text)

    def action_help(self) -> None:
        """The keys."""
        self.app.push_screen(HelpScreen())

    def action_back(self) -> None:
        """To the main screen."""
        self.dismiss(None)

    def action_other(self, name: str) -> None:
        """To another screen, in place of this one."""
        self.post_message(ScreenWanted(name))

    def go_to(self, computation: str, name: str, stage: str = "") -> None:
        """Back to the main screen, with the cursor on an instruction (of the last program, or after a stage)."""
        self.post_message(InstructionWanted(computation, name, stage))
