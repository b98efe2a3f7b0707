"""The list of stages: which changed the program, by how much, how long they took. Fills in while the compile goes on."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from explorer.trace import StageRecord, Trace
from views.tui.messages import StageChosen

INPUT = "input"


class StageList(OptionList):
    """One option a stage. `u` hides the ones that changed nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
        Binding("g", "first", show=False),
        Binding("G", "last", show=False),
        Binding("u", "toggle_unchanged", "hide unchanged", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.hide_unchanged = False
        self._trace: Trace | None = None
        self._shown: tuple[str, ...] = ()
        self._user_moved = False

    def show(self, trace: Trace) -> None:
        """Takes a new state of the recording; the cursor stays on its stage."""
        self._trace = trace
        selected = self.selected_id
        shown = [self._option(stage) for stage in trace.stages if self._visible(stage)]
        for number, name in enumerate(trace.pending):
            running = not number and not trace.finished
            label = Text(f"{'▶' if running else '·'} {name}", style="grey50" if not running else "bold")
            shown.append(Option(label, id=f"pending:{name}", disabled=True))
        self.clear_options()
        self.add_options(shown)
        self._restore(selected)

    def _visible(self, stage: StageRecord) -> bool:
        return stage.changed or not self.hide_unchanged or bool(stage.decisions)

    def _option(self, stage: StageRecord) -> Option:
        return Option(stage_label(stage, max(self.size.width - 3, 22)), id=stage.id)

    @property
    def selected_id(self) -> str:
        """Id of the stage under the cursor; empty when there is none."""
        if self.highlighted is None or self.highlighted >= self.option_count:
            return ""
        return self.get_option_at_index(self.highlighted).id or ""

    def _restore(self, selected: str) -> None:
        if not self.option_count:
            return
        if not self._user_moved and self._trace is not None:
            first = next((stage.id for stage in self._trace.stages if stage.changed), "")
            if first and self._highlight(first):
                return
        if self._highlight(selected):
            return
        for index in range(self.option_count):
            if not self.get_option_at_index(index).disabled:
                self.highlighted = index
                return

    def on_key(self) -> None:
        """From now on the cursor is the user's."""
        self._user_moved = True

    def on_click(self) -> None:
        """See `on_key`."""
        self._user_moved = True

    def select(self, stage_id: str) -> bool:
        """Puts the cursor on a stage, if it is in the list, and leaves it there."""
        self._user_moved = True
        return self._highlight(stage_id)

    def _highlight(self, stage_id: str) -> bool:
        for index in range(self.option_count):
            if self.get_option_at_index(index).id == stage_id:
                self.highlighted = index
                return True
        return False

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Tells the screen which stage to draw."""
        event.stop()
        if self._trace is None or event.option_id is None:
            return
        try:
            self.post_message(StageChosen(self._trace.stage(event.option_id)))
        except KeyError:
            return

    def on_resize(self) -> None:
        """Labels are as wide as the panel."""
        if self._trace is not None:
            self.show(self._trace)

    def action_toggle_unchanged(self) -> None:
        """Hides or shows stages that changed nothing."""
        self.hide_unchanged = not self.hide_unchanged
        if self._trace is not None:
            self.show(self._trace)


def stage_label(stage: StageRecord, width: int) -> Text:
    """`● name   +2 -7 3ms`: a filled mark when the program changed, a hollow one when not."""
    delta = stage.instructions_after - stage.instructions_before
    if stage.skipped:
        mark, style = "⊘", "grey50"
    elif stage.changed:
        mark, style = "●", ""
    else:
        mark, style = "○", "grey50"
    facts = f"{delta:+d}" if delta else ""
    count = len(stage.rewrites)
    if count:
        facts = f"{count}× {facts}".strip()
    elif stage.decisions:
        facts = f"{len(stage.decisions)}? {facts}".strip()
    right = f"{facts} {_duration(stage.seconds):>5}"
    room = max(width - len(right) - 3, 8)
    name = stage.id if len(stage.id) <= room else stage.id[: room - 1] + "…"
    text = Text(f"{mark} {name}", style=style, no_wrap=True)
    text.append(" " * max(1, width - len(name) - len(right) - 2))
    text.append(right, style="grey58")
    return text


def _duration(seconds: float) -> str:
    if seconds >= 10:
        return f"{seconds:.0f}s"
    if seconds >= 1:
        return f"{seconds:.1f}s"
    return f"{seconds * 1e3:.0f}ms" if seconds >= 1e-3 else "<1ms"
