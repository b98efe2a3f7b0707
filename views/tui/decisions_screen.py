"""The decision log: what was chosen, among what, why; overrule a choice, recompile, compare, keep it in a file.

The screen holds a trace and the user's choices, both frozen; it tells the app what the user wants and is told what came
of it.
"""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Input, Static

from compiler.decisions.log import Decision
from compiler.decisions.overrides import OverrideError, nearest
from explorer.overruling import Overruling
from explorer.trace import Trace
from views.highlight import visible
from views.tui.decision_dialogs import Answer, ChoiceScreen, ConfirmScreen
from views.tui.decision_rows import (
    FILTER_HELP,
    DecisionLog,
    decision_detail,
    decision_line,
    subject_names,
    unmatched_line,
)
from views.tui.line_list import LineList
from views.tui.messages import InstructionChosen, OverrulingChanged, RecompileWanted
from views.tui.trace_screen import TraceScreen


class DecisionsScreen(TraceScreen):
    """See the module's docstring."""

    HEADING = "decisions"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "overrule", "overrule", key_display="enter"),
        Binding("r", "recompile", "recompile"),
        Binding("z", "undo", "undo"),
        Binding("S", "save", "save"),
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("i", "instruction", "instruction"),
        Binding("x", "app.cancel_compile", "stop", show=False),
    ]

    def __init__(
        self, trace: Trace, overruling: Overruling, selected: tuple[str, str] = ("", ""), at: str = ""
    ) -> None:
        super().__init__(trace, selected)
        self._at = at
        self.overruling = overruling
        self.log_ = DecisionLog(trace.decisions)
        self.shown: list[int] = []
        self.unmatched: list[str] = []
        self._progress = ""

    def compose_body(self) -> ComposeResult:
        """The list, the detail of its line, the filter."""
        yield LineList(id="decisions")
        with VerticalScroll(id="detail"):
            yield Static(id="detail-text", markup=False)
        yield Input(placeholder=FILTER_HELP, id="filter")

    def on_mount(self) -> None:
        """The cursor stands on the decision asked for, else on the first about the selected instruction."""
        self.query_one("#filter").display = False
        number = self.log_.number_of(self._at)
        self._refill(self.log_.about(self.selected[1]) if number is None else number)
        self.query_one(LineList).focus()

    # ---- what others tell ------------------------------------------------------------------------------------------

    def show_trace(self, trace: Trace) -> None:
        """Takes a new recording; the cursor stays on its decision."""
        here = self.decision
        super().show_trace(trace)
        self.log_ = DecisionLog(trace.decisions)
        self._refill(self.log_.number_of(here.id) if here else None)

    def show_overruling(self, overruling: Overruling) -> None:
        """Takes the user's choices as they are now."""
        self.overruling = overruling
        self._refill()

    def show_progress(self, text: str) -> None:
        """How far a recompile is; empty when none is running."""
        self._progress = text
        self._title()

    # ---- drawing ---------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> dict[str, str]:
        """Choices that no compile has been told yet."""
        return self.overruling.pending(self.trace.overrides)

    @property
    def decision(self) -> Decision | None:
        """The decision under the cursor."""
        place = self.query_one(LineList).cursor - len(self.unmatched)
        return self.log_.decisions[self.shown[place]] if 0 <= place < len(self.shown) else None

    def _refill(self, number: int | None = None) -> None:
        pending = self.pending
        text = self.query_one("#filter", Input).value
        self.shown = self.log_.matching(text, pending)
        self.unmatched = [] if text else [n for n in self.trace.overrides if self.log_.number_of(n) is None]
        above = len(self.unmatched)

        def draw(index: int, width: int) -> Text:
            if index < above:
                identity = self.unmatched[index]
                return unmatched_line(identity, identity in pending)
            decision = self.log_.decisions[self.shown[index - above]]
            return decision_line(decision, pending.get(decision.id), width)

        cursor = None
        if number is not None and number in self.shown:
            cursor = above + self.shown.index(number)
        self.query_one(LineList).show(above + len(self.shown), draw, cursor)
        self._title()
        self._detail()

    def _title(self) -> None:
        total, count = len(self.log_.decisions), len(self.shown)
        number = f"{total:,}" if count == total else f"{count:,} of {total:,}"
        overruled = sum(decision.by == "override" for decision in self.log_.decisions)
        filtered = self.query_one("#filter", Input).value
        waiting = len(self.pending)
        warning = self._progress or (f"{waiting} pending: r recompiles" if waiting else "")
        self.set_state(
            number,
            f"{overruled} overruled" if overruled else "",
            f"{len(self.unmatched)} matched nothing" if self.unmatched else "",
            "" if self.overruling.saved else "not saved",
            f"filter: {filtered}" if filtered else "",
            warning=warning,
        )

    def _detail(self) -> None:
        decision = self.decision
        panel = self.query_one("#detail-text", Static)
        self.query_one("#detail").scroll_to(0, 0, animate=False)
        if decision is not None:
            entry = self.overruling.entry(decision.id)
            wanted = self.pending.get(decision.id)
            panel.update(decision_detail(self.trace, decision, entry, wanted))
            return
        cursor = self.query_one(LineList).cursor
        if cursor < len(self.unmatched):
            panel.update(self._unmatched_detail(self.unmatched[cursor]))
            return
        panel.update("no decision matches the filter" if self.log_.decisions else "nothing was decided")

    def _unmatched_detail(self, identity: str) -> Text:
        why = "no decision has this id, so the override did nothing"
        if self.trace.error and identity not in self.trace.unmatched_overrides:
            why = f"the compile ended before this was decided: {self.trace.error.splitlines()[0]}"
        text = Text()
        text.append(visible(identity), style="bold red")
        text.append(f"\n  {visible(why)}\n  enter takes the override back\n")
        close = nearest(identity, [decision.id for decision in self.log_.decisions])
        text.append("  nearest: " + visible(", ".join(close) or "none is like it"), style="grey70")
        return text

    @on(LineList.Moved, "#decisions")
    def _moved(self) -> None:
        self._detail()
        decision = self.decision
        names = subject_names(decision) if decision else []
        if decision and names:
            self.selected = (decision.subject.partition("/")[0], names[0])
            self.post_message(InstructionChosen(*self.selected, False))

    # ---- keys --------------------------------------------------------------------------------------------------------

    @on(LineList.Entered, "#decisions")
    def _entered(self) -> None:
        self.action_overrule()

    def action_overrule(self) -> None:
        """Opens the choices of the decision under the cursor; takes back an override that matched nothing."""
        decision = self.decision
        if decision is None:
            cursor = self.query_one(LineList).cursor
            if cursor < len(self.unmatched):
                self._change(self.overruling.leave(self.unmatched[cursor]))
            return
        identity = decision.id

        def answered(answer: Answer | None) -> None:
            if answer is not None:
                choice, because = answer
                changed = self.overruling.overrule(identity, choice, because) if choice else None
                self._change(changed or self.overruling.leave(identity))

        self.app.push_screen(ChoiceScreen(decision, self.overruling.entry(identity)), answered)

    def _change(self, overruling: Overruling) -> None:
        self.show_overruling(overruling)
        self.post_message(OverrulingChanged(overruling))

    def action_undo(self) -> None:
        """Takes the last change back."""
        if not self.overruling.past:
            self.notify("nothing to undo", timeout=3)
            return
        self._change(self.overruling.undo())

    def action_recompile(self) -> None:
        """Compiles again with the overrides as they stand."""
        if not self.pending:
            self.notify("nothing is pending: enter overrules a decision", timeout=3)
            return
        self.post_message(RecompileWanted())

    def action_save(self) -> None:
        """Writes the override file; asks where something would be lost."""
        try:
            danger = self.overruling.danger()
        except OverrideError as error:
            self.notify(visible(str(error)), severity="error", markup=False)
            return
        if not danger:
            self._save(True)
            return
        self.app.push_screen(ConfirmScreen(f"Overwrite {self.overruling.path}?", danger), self._save)

    def _save(self, agreed: bool | None) -> None:
        if not agreed:
            return
        try:
            saved = self.overruling.save()
        except OverrideError as error:
            self.notify(visible(str(error)), severity="error", markup=False)
            return
        self._change(saved)
        count = len(saved.overrides.entries)
        self.notify(visible(f"{count} override{'s' * (count != 1)} in {saved.path}"), markup=False)

    def action_instruction(self) -> None:
        """To the decision's instruction, in the program before the stage decided."""
        decision = self.decision
        names = subject_names(decision) if decision else []
        if decision is None or not names:
            self.notify("this decision is about no single instruction", timeout=3)
            return
        self.go_to(decision.subject.partition("/")[0], names[0], decision.stage)

    # ---- the filter --------------------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Opens the filter line."""
        line = self.query_one("#filter", Input)
        line.display = True
        line.focus()

    @on(Input.Changed, "#filter")
    def _typing(self) -> None:
        self._refill()

    @on(Input.Submitted, "#filter")
    def _submitted(self) -> None:
        self.query_one("#filter").display = False
        self.query_one(LineList).focus()

    def action_back(self) -> None:
        """Clears the filter first, then goes back."""
        line = self.query_one("#filter", Input)
        if line.display or line.value:
            here = self.decision
            line.value = ""
            line.display = False
            self.query_one(LineList).focus()
            self._refill(self.log_.number_of(here.id) if here else None)
            return
        super().action_back()
