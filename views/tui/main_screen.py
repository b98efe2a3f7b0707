"""The first screen: stages on the left, what the chosen one did on the right, one instruction below."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Footer, Input, Static

from explorer.diff import diff_modules
from explorer.provenance import Provenance
from explorer.trace import StageRecord, Trace
from views.highlight import visible
from views.tui.code_view import CodeView
from views.tui.decision_text import decisions_text
from views.tui.dialogs import HelpScreen, HistoryScreen, TextScreen
from views.tui.inspector import Inspector
from views.tui.messages import InstructionChosen, ScreenWanted, StageChosen
from views.tui.prepared_rows import PreparedRows
from views.tui.rows import Row, rows_of_diff, rows_of_module, rows_of_rewrite
from views.tui.stage_list import StageList

CHANGES, EVERYTHING, REWRITES, PROGRAM = "changes", "every line", "rewrites", "program after"


def short_path(path: str, parts: int = 2) -> str:
    """The end of a path: enough to know the model by."""
    pieces = Path(path).parts
    return path if len(pieces) <= parts + 1 else "…/" + "/".join(pieces[-parts:])


class MainScreen(Screen[None]):
    """Draws one trace. Knows nothing of how it came about."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("D", "log", "decisions"),
        Binding("M", "memory", "memory"),
        Binding("F", "fusion", "fusion"),
        Binding("slash", "search", "search", key_display="/"),
        Binding("q", "app.quit", "quit"),
        Binding("w", "rewrites", "rewrites"),
        Binding("a", "everything", "all lines"),
        Binding("p", "program", "program"),
        Binding("h,enter", "history", "history", key_display="h"),
        Binding("n", "next_match(1)", "next match", show=False),
        Binding("N", "next_match(-1)", "previous match", show=False),
        Binding("full_stop,greater_than_sign", "step(1)", "next rewrite", show=False),
        Binding("comma,less_than_sign", "step(-1)", "previous rewrite", show=False),
        Binding("d", "decisions", "why", show=False),
        Binding("o", "origin", "origin", show=False),
        Binding("x", "stop", "stop compiling", show=False),
    ]

    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - the base class's own kind of table
        (0, "-narrow"),
        (100, "-normal"),
        (150, "-wide"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.trace: Trace | None = None
        self.stage: StageRecord | None = None
        self.mode = CHANGES
        self.rewrite_number = 0
        self._provenance: Provenance | None = None
        self._chosen: tuple[str, str, bool] = ("", "", False)
        self._rows: dict[tuple[int, int, str], list[Row]] = {}
        self._prepared = PreparedRows()

    def compose(self) -> ComposeResult:
        """Title, the two panels, the inspector, the search line, the keys."""
        yield Static(id="title", markup=False)
        with Horizontal(id="panels"):
            yield StageList(id="stages")
            with Vertical(id="right"):
                yield Static(id="caption", markup=False)
                yield CodeView(id="code")
        yield Inspector(id="inspector")
        yield Input(placeholder="search this view: a name, an operation, a shape, …", id="search")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """The search line appears when asked for."""
        self.query_one("#search").display = False
        self.query_one(StageList).focus()
        self.set_title("", "reading the model …")

    def on_unmount(self) -> None:
        """Ends the thread that makes rows ahead."""
        self._prepared.close()

    # ---- what others tell ------------------------------------------------------------------------------------------

    def show_trace(self, trace: Trace) -> None:
        """Takes a new state of the recording."""
        self.trace = trace
        self._prepared.prepare(trace)
        if trace.finished:
            self._rows.clear()
        self._provenance = Provenance(trace) if trace.finished else None
        self.query_one(StageList).show(trace)
        self.set_title(trace.model, self._state(trace))
        if self.stage is None and not trace.stages:
            self._show_input(trace)
        elif trace.finished:
            self._inspect()

    def _show_input(self, trace: Trace) -> None:
        code = self.query_one(CodeView)
        if not code.rows:
            code.show(rows_of_module(trace.input))
            count = trace.input.instruction_count
            self.query_one("#caption", Static).update(f"the program as it was read   {count:,} instructions")

    def _state(self, trace: Trace) -> str:
        count = len(trace.stages)
        if trace.error:
            return f"stopped: {trace.error.splitlines()[0]}"
        if not trace.finished:
            return f"{trace.running or 'compiling'} …  {count} of {count + len(trace.pending)} stages"
        changed = sum(stage.changed for stage in trace.stages)
        seconds = sum(stage.seconds for stage in trace.stages)
        parts = [f"{count} stages, {changed} changed the program, {seconds:.2f} s"]
        if trace.code is not None:
            parts.append(f"{len(trace.code.kernels)} kernels ({trace.code.backend})")
        if trace.unmatched_overrides:
            parts.append(f"{len(trace.unmatched_overrides)} overrides matched nothing")
        return "   ".join(parts)

    def show_progress(self, text: str) -> None:
        """What goes on in the background besides; empty when nothing does."""
        if self.trace is not None:
            self.set_title(self.trace.model, f"{text}   {self._state(self.trace)}".strip())

    def go_to_instruction(self, name: str, stage: str = "") -> None:
        """Shows an instruction in the program that a stage left, or was given where the stage took it away."""
        if self.trace is None or not self.trace.stages:
            return
        record = self.trace.stage(stage) if stage else self.trace.stages[-1]
        self.stage, self.rewrite_number = record, 0
        self.mode = PROGRAM if record.after.find(name) is not None else EVERYTHING
        self.query_one(StageList).select(record.id)
        self._draw()
        self._focus_on(name)

    def set_title(self, model: str, state: str) -> None:
        """The first line."""
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(" xla-explore ", style="bold reverse")
        text.append(f" {visible(short_path(model))}  ", style="bold")
        text.append(visible(state), style="grey70")
        self.query_one("#title", Static).update(text)

    @on(StageChosen)
    def _stage_chosen(self, event: StageChosen) -> None:
        if event.stage is self.stage:
            return
        self.stage = event.stage
        self.rewrite_number = 0
        self._draw()

    @on(InstructionChosen)
    def _instruction_chosen(self, event: InstructionChosen) -> None:
        self._chosen = (event.computation, event.name, event.removed)
        self._inspect()

    # ---- drawing ---------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        stage = self.stage
        if stage is None:
            return
        code = self.query_one(CodeView)
        key = (id(stage), self.rewrite_number if self.mode == REWRITES else 0, self.mode)
        if key not in self._rows:
            if len(self._rows) > 24:
                self._rows.clear()
            self._rows[key] = self._make_rows(stage)
        code.show(self._rows[key])
        if self.mode in (CHANGES, REWRITES):
            first = next((i for i, row in enumerate(code.rows) if row.kind in "+-~"), 0)
            code.move_to(first)
            code.scroll_to(0, max(0, first - 3), animate=False)
        self.query_one("#caption", Static).update(self._caption(stage))

    def _make_rows(self, stage: StageRecord) -> list[Row]:
        if self.mode == PROGRAM:
            return rows_of_module(stage.after)
        if self.mode == REWRITES:
            if not stage.rewrites:
                return [Row("n", "this stage made no rewrites")]
            return rows_of_rewrite(
                stage.rewrites[self.rewrite_number], self.rewrite_number, len(stage.rewrites)
            )
        if not stage.changed:
            remark = f"skipped: {stage.skipped}" if stage.skipped else "this stage changed nothing"
            more = [Row("n", f"{len(stage.decisions)} decisions: press d")] if stage.decisions else []
            return [Row("n", remark), *more]
        if self.mode == EVERYTHING:
            return rows_of_diff(diff_modules(stage.before, stage.after), everything=True)
        return self._prepared.rows(stage)

    def _caption(self, stage: StageRecord) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f" {stage.id}", style="bold")
        before, after = stage.instructions_before, stage.instructions_after
        counts = f"{before:,} → {after:,}" if before != after else f"{after:,}"
        text.append(
            f"  {counts} instructions  {len(stage.rewrites)} rewrites  [{self.mode}]  ", style="grey70"
        )
        text.append(visible(stage.why), style="italic grey70")
        return text

    def _inspect(self) -> None:
        computation, name, removed = self._chosen
        panel = self.query_one(Inspector)
        if self.trace is None or not name:
            panel.show_nothing("move the cursor in the program (tab) to an instruction")
            return
        stage = self.stage
        module = self.trace.input if stage is None else stage.before if removed else stage.after
        panel.show(self.trace, module, computation, name, self._provenance)

    # ---- keys --------------------------------------------------------------------------------------------------------

    def _set_mode(self, mode: str) -> None:
        self.mode = CHANGES if self.mode == mode else mode
        self._draw()

    def action_help(self) -> None:
        """The keys."""
        self.app.push_screen(HelpScreen())

    def action_everything(self) -> None:
        """Every line, or only the changes."""
        self._set_mode(EVERYTHING)

    def action_program(self) -> None:
        """The whole program after the stage."""
        self._set_mode(PROGRAM)

    def action_rewrites(self) -> None:
        """One rewrite at a time."""
        self._set_mode(REWRITES)

    def action_step(self, by: int) -> None:
        """To the next or previous rewrite of the stage."""
        if self.stage is None or not self.stage.rewrites:
            self.app.bell()
            return
        if self.mode != REWRITES:
            self.mode = REWRITES
        else:
            self.rewrite_number = max(0, min(self.rewrite_number + by, len(self.stage.rewrites) - 1))
        self._draw()

    def action_decisions(self) -> None:
        """The stage's decisions."""
        if self.stage is not None:
            title = f"Decisions of {self.stage.id}"
            self.app.push_screen(TextScreen(title, decisions_text(self.stage.decisions)))

    def action_log(self) -> None:
        """All decisions, on a screen of their own."""
        self.post_message(ScreenWanted("decisions"))

    def action_memory(self) -> None:
        """The memory plan, on a screen of its own."""
        self.post_message(ScreenWanted("memory"))

    def action_fusion(self) -> None:
        """Kernels and the edges between them, on a screen of their own."""
        self.post_message(ScreenWanted("fusion"))

    def action_history(self) -> None:
        """The instruction's past and future."""
        name = self._chosen[1]
        if not name or self._provenance is None:
            why = (
                "no instruction under the cursor" if not name else "history is ready when the compile is over"
            )
            self.notify(why, severity="warning", timeout=3)
            return
        self.app.push_screen(HistoryScreen(self._provenance, name), self._go_to(name))

    def _go_to(self, name: str) -> Callable[[str | None], None]:
        def go(stage: str | None) -> None:
            if stage and self.query_one(StageList).select(stage):
                self.call_after_refresh(self._focus_on, name)

        return go

    def _focus_on(self, name: str) -> None:
        code = self.query_one(CodeView)
        code.focus()
        place = code.place_of(name)
        if place is not None:
            code.move_to(place)

    def action_origin(self) -> None:
        """To the stage that made the instruction."""
        name = self._chosen[1]
        origin = self._provenance.origin(name) if self._provenance and name else None
        if origin is None:
            self.notify("it was read from the file" if name else "no instruction under the cursor", timeout=3)
            return
        self._go_to(name)(origin.stage.id)

    def action_stop(self) -> None:
        """Gives up the compile."""
        cancel = getattr(self.app, "action_cancel_compile", None)
        if cancel is not None:
            cancel()

    # ---- search ------------------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Opens the search line."""
        line = self.query_one("#search", Input)
        line.value = ""
        line.display = True
        line.focus()

    @on(Input.Changed, "#search")
    def _typing(self, event: Input.Changed) -> None:
        self.query_one(CodeView).find(event.value, from_here=True)

    @on(Input.Submitted, "#search")
    def _submitted(self, event: Input.Submitted) -> None:
        code = self.query_one(CodeView)
        if event.value and not code.find(event.value, from_here=True):
            self.notify(f"{event.value!r} is not in this view", severity="warning", timeout=3, markup=False)
        self._close_search()

    def _close_search(self) -> None:
        self.query_one("#search").display = False
        self.query_one(CodeView).focus()

    def key_escape(self) -> None:
        """Closes the search line, and forgets the match."""
        self.query_one(CodeView).needle = ""
        self._close_search()

    def action_next_match(self, direction: int) -> None:
        """To the next or previous match."""
        code = self.query_one(CodeView)
        if not code.needle:
            self.action_search()
        elif not code.find(code.needle, direction):
            self.app.bell()
