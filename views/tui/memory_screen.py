"""The memory plan: live bytes over the schedule, and at a chosen step the buffers that make them up."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from compiler.ir.location import source_line
from explorer.memory import Buffer, MemoryReport, memory_report
from explorer.reuse import Reuse
from explorer.trace import Trace
from views.cli.output import size_text
from views.highlight import visible
from views.tui.line_list import LineList
from views.tui.memory_chart import MemoryChart, lifetime_bar
from views.tui.messages import InstructionChosen
from views.tui.trace_screen import TraceScreen


class MemoryScreen(TraceScreen):
    """See the module's docstring. The trace has a plan."""

    HEADING = "memory"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", "step", key_display="← →", priority=True),
        Binding("right", "step(1)", "next step", show=False, priority=True),
        Binding("shift+left", "leap(-1)", "back", show=False, priority=True),
        Binding("shift+right", "leap(1)", "on", show=False, priority=True),
        Binding("p", "peak", "peak"),
        Binding("a", "everything", "all places"),
    ]

    def __init__(self, trace: Trace, selected: tuple[str, str] = ("", "")) -> None:
        super().__init__(trace, selected)
        self.everything = False
        self.step = 0
        self.live: list[Buffer] = []
        self._take(trace)

    def _take(self, trace: Trace) -> None:
        report = memory_report(trace)
        assert report is not None
        self.report: MemoryReport = report
        self._reuse = Reuse(trace)
        self.step = self._first_step()

    def _first_step(self) -> int:
        """The selected instruction's step when it runs as such, else the peak."""
        if self.selected in self.report.steps:
            return self.report.steps.index(self.selected)
        return max(self.report.peak_step, 0)

    def compose_body(self) -> ComposeResult:
        """Chart, the step in words, its buffers, one buffer."""
        yield MemoryChart(id="chart")
        yield Static(id="step", markup=False)
        yield LineList(id="buffers")
        yield Static(id="buffer", markup=False)

    def on_mount(self) -> None:
        """The buffers have the focus."""
        self._draw()
        self.query_one(LineList).focus()

    def show_trace(self, trace: Trace) -> None:
        """Takes a new recording, if it has a plan."""
        if trace.plan is None:
            return
        super().show_trace(trace)
        self._take(trace)
        self._draw()

    # ---- drawing ---------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        report = self.report
        self.set_state(
            f"arena {size_text(report.arena_bytes)}",
            f"peak {size_text(report.peak_bytes)} at step {report.peak_step}"
            if report.peak_step >= 0
            else "",
            f"parameters {size_text(report.parameter_bytes)}",
            f"results {size_text(report.result_bytes)}",
            f"constants {size_text(report.constant_bytes)}",
            f"placed {report.strategy}" if report.strategy else "",
        )
        self.query_one(MemoryChart).show(report.live_bytes, self.step, report.peak_step)
        self.query_one("#step", Static).update(self._step_text())
        self.live = sorted(
            (
                buffer
                for buffer in report.buffers
                if buffer.first <= self.step <= buffer.last
                and buffer.bytes
                and (self.everything or buffer.kind == "arena")
            ),
            key=lambda buffer: (-buffer.bytes, buffer.first),
        )
        self.query_one(LineList).show(len(self.live), self._line, 0)
        if not self.live:
            self.query_one("#buffer", Static).update("no temporary is live here (a shows all places)")

    def _step_text(self) -> Text:
        report = self.report
        text = Text(no_wrap=True, overflow="ellipsis")
        computation, name = self._at(self.step)
        text.append(f" step {self.step:,} of {len(report.steps):,}  ", style="bold")
        text.append(visible(name or "the end"), style="cyan")
        text.append(f" in {visible(computation)}  " if computation else "  ", style="grey58")
        live = report.live_bytes[self.step] if self.step < len(report.live_bytes) else 0
        text.append(f"{size_text(live)} live", style="yellow")
        if self.step == report.peak_step:
            text.append("  the peak", style="bold red")
        text.append(f"  {self._source(computation, name)}", style="grey70")
        return text

    def _at(self, step: int) -> tuple[str, str]:
        return self.report.steps[step] if 0 <= step < len(self.report.steps) else ("", "")

    def _source(self, computation: str, name: str) -> str:
        owner = self.trace.final.computations.get(computation)
        found = owner.instructions.get(name) if owner else None
        line = source_line(found.location) if found else None
        return visible(str(line)) if line is not None else ""

    def _line(self, index: int, width: int) -> Text:
        buffer = self.live[index]
        bar = 16 if width < 100 else 30 if width < 150 else 60
        path = "".join(f"[{part}]" for part in buffer.path)
        text = Text(f"{size_text(buffer.bytes):>8}  ", style="yellow")
        text.append_text(lifetime_bar(buffer.first, buffer.last, self.step, len(self.report.live_bytes), bar))
        text.append(f"  {visible(buffer.instruction)}{path}  ", style="cyan")
        text.append(f"{buffer.first}-{buffer.last}  ", style="grey70")
        if buffer.kind != "arena":
            text.append(f"{buffer.kind}  ", style="magenta")
        text.append(visible(buffer.source), style="grey58")
        return text

    @on(LineList.Moved, "#buffers")
    def _moved(self, event: LineList.Moved) -> None:
        if event.index < len(self.live):
            buffer = self.live[event.index]
            self.selected = (buffer.computation, buffer.instruction)
            self.query_one("#buffer", Static).update(self._detail(buffer))
            self.post_message(InstructionChosen(*self.selected, False))

    def _detail(self, buffer: Buffer) -> Text:
        text = Text()
        text.append(visible(buffer.instruction), style="bold cyan")
        place = f"arena + {buffer.offset:,}" if buffer.kind == "arena" else f"{buffer.kind} buffer"
        text.append(f"  {visible(buffer.type)}  {buffer.bytes:,} bytes at {place}\n")
        text.append("live    ", style="grey58")
        made = self._at(buffer.first)[1] or "the start"
        text.append(f"from {visible(made)} (step {buffer.first}) to {visible(buffer.last_reader)}")
        text.append(f" (step {buffer.last})\n")
        text.append("shared  ", style="grey58")
        text.append(visible(f"with {', '.join(buffer.shared)}" if buffer.shared else "with no other value"))
        text.append("\n")
        reasons = self._reuse.reasons(buffer)
        if reasons:
            text.append("because ", style="grey58")
            text.append(visible("; ".join(reasons)) + "\n")
        text.append("source  ", style="grey58")
        text.append(visible(buffer.source or "unknown"))
        return text

    # ---- keys --------------------------------------------------------------------------------------------------------

    def _move(self, step: int) -> None:
        self.step = max(0, min(step, len(self.report.live_bytes) - 1))
        self._draw()

    def action_step(self, by: int) -> None:
        """To the next or previous step."""
        self._move(self.step + by)

    def action_leap(self, direction: int) -> None:
        """A twentieth of the schedule."""
        self._move(self.step + direction * max(len(self.report.live_bytes) // 20, 1))

    def action_peak(self) -> None:
        """To the peak."""
        self._move(max(self.report.peak_step, 0))

    def action_everything(self) -> None:
        """Parameters, results and constants too, or only temporaries."""
        self.everything = not self.everything
        self._draw()

    @on(LineList.Entered, "#buffers")
    def _entered(self, event: LineList.Entered) -> None:
        if event.index < len(self.live):
            buffer = self.live[event.index]
            self.go_to(buffer.computation, buffer.instruction)
