"""Kernels with their instructions, and for each the edges that were considered: fused or not, at what cost, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from compiler.decisions.log import Choice
from compiler.ir.hlo_text import format_instruction, shape_text
from compiler.ir.location import source_line
from compiler.ir.program import Instruction
from explorer.fusion_report import Edge, FusionGroup, fusion_report
from explorer.trace import Trace
from views.highlight import highlight, visible
from views.tui.decision_rows import choice_text, source_lines
from views.tui.line_list import LineList
from views.tui.messages import InstructionChosen, ScreenWanted
from views.tui.trace_screen import TraceScreen


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the list: a kernel, one of its instructions, or one of its edges."""

    group: FusionGroup
    instruction: Instruction | None = None
    edge: Edge | None = None
    onward: bool = False

    def target(self, trace: Trace) -> tuple[str, str, str]:
        """Computation, name and stage to go to: edges name instructions from before fusion."""
        if self.edge is not None:
            name = self.edge.consumer if self.onward else self.edge.producer
            if trace.final.find(name) is None:
                return self.group.computation, name, self.edge.decision.stage
            return self.group.body, name, ""
        if self.instruction is not None and self.group.body:
            return self.group.body, self.instruction.name, ""
        return self.group.computation, self.group.instruction.name, ""


class FusionScreen(TraceScreen):
    """See the module's docstring. `space` opens and closes a kernel, `e` all of them."""

    HEADING = "fusion"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "open_close", "open/close"),
        Binding("e", "toggle_all", "all"),
        Binding("right_square_bracket", "group(1)", "next kernel", key_display="]"),
        Binding("left_square_bracket", "group(-1)", "previous kernel", show=False),
        Binding("y", "why", "overrule"),
    ]

    def __init__(self, trace: Trace, selected: tuple[str, str] = ("", "")) -> None:
        super().__init__(trace, selected)
        self.groups = fusion_report(trace)
        self.closed: frozenset[str] = frozenset()
        self.lines: list[Line] = []

    def compose_body(self) -> ComposeResult:
        """The list and the detail of its line."""
        yield LineList(id="kernels")
        yield Static(id="kernel", markup=False)

    def on_mount(self) -> None:
        """The cursor stands on the kernel of the selected instruction."""
        self._refill(self.selected[1])
        self.query_one(LineList).focus()

    def show_trace(self, trace: Trace) -> None:
        """Takes a new recording."""
        super().show_trace(trace)
        self.groups = fusion_report(trace)
        self._refill(self.selected[1])

    # ---- drawing ---------------------------------------------------------------------------------------------------

    def _refill(self, name: str = "") -> None:
        self.lines = [line for group in self.groups for line in self._lines_of(group)]
        edges = [edge for group in self.groups for edge in group.into]
        fused = sum(edge.fused for edge in edges)
        self.set_state(
            f"{len(self.groups):,} kernels",
            f"{fused:,} of {len(edges):,} edges fused" if edges else "the recording has no fusion decisions",
        )
        cursor = self._place_of(name)
        self.query_one(LineList).show(len(self.lines), self._line, cursor)
        if not self.lines:
            self.query_one("#kernel", Static).update("the program has no kernels")

    def _lines_of(self, group: FusionGroup) -> list[Line]:
        lines = [Line(group)]
        if group.instruction.name in self.closed:
            return lines
        if group.body:
            lines += [Line(group, instruction) for instruction in group.members]
        lines += [Line(group, None, edge) for edge in group.into]
        return lines + [Line(group, None, edge, True) for edge in group.onward]

    def _place_of(self, name: str) -> int:
        for number, line in enumerate(self.lines):
            if line.edge is None and (line.instruction or line.group.instruction).name == name:
                return number
        return 0

    def _line(self, index: int, width: int) -> Text:
        line = self.lines[index]
        if line.edge is not None:
            return _edge_line(line.edge, line.onward, width)
        if line.instruction is not None:
            text = Text("    ")
            text.append_text(highlight(format_instruction(line.instruction)))
            return text
        return self._heading(line.group)

    def _heading(self, group: FusionGroup) -> Text:
        text = Text("▸ " if group.instruction.name in self.closed else "▾ ", style="bold")
        text.append(visible(group.instruction.name), style="bold cyan")
        text.append(f"  {visible(group.kind)}  ", style="magenta")
        count = len(group.members)
        text.append(f"{count} instruction{'s' * (count != 1)}  ", style="grey70")
        kept = sum(not edge.fused for edge in (*group.into, *group.onward))
        text.append(f"{kept} kept apart  " if kept else "", style="yellow")
        text.append(visible(shape_text(group.instruction.type, False)), style="yellow")
        text.append(f"  in {visible(group.computation)}", style="grey58")
        return text

    @on(LineList.Moved, "#kernels")
    def _moved(self, event: LineList.Moved) -> None:
        if event.index >= len(self.lines):
            return
        line = self.lines[event.index]
        self.query_one("#kernel", Static).update(self._detail(line))
        computation, name, _ = line.target(self.trace)
        self.selected = (computation, name)
        self.post_message(InstructionChosen(computation, name, False))

    def _detail(self, line: Line) -> Text:
        text = Text()
        if line.edge is not None:
            decision = line.edge.decision
            text.append(visible(decision.id), style="bold cyan")
            text.append(
                f"  {visible(decision.chosen)}", style="bold green" if line.edge.fused else "bold yellow"
            )
            text.append("" if decision.by == "policy" else f"  ({decision.by})", style="magenta")
            text.append(f"\n{'' if line.edge.fused else 'why not: '}{visible(decision.reason)}\n")
            for choice in decision.choices:
                text.append_text(choice_text(choice, choice.name == decision.chosen, told=decision.reason))
                text.append("   ")
            text.append("\n")
            text.append(visible("  ".join(source_lines(self.trace, decision))), style="grey70")
            return text
        shown = line.instruction or line.group.instruction
        text.append(visible(shown.name), style="bold cyan")
        text.append(f"  {visible(shown.opcode)}  {visible(shape_text(shown.type))}\n")
        text.append("operands ", style="grey58")
        text.append(visible(", ".join(shown.operands) or "none") + "\n")
        place = source_line(shown.location)
        text.append("source   ", style="grey58")
        text.append(visible(str(place)) if place is not None else "unknown")
        return text

    # ---- keys --------------------------------------------------------------------------------------------------------

    @property
    def line(self) -> Line | None:
        """The line under the cursor."""
        cursor = self.query_one(LineList).cursor
        return self.lines[cursor] if cursor < len(self.lines) else None

    def action_open_close(self) -> None:
        """Opens or closes the kernel under the cursor."""
        if self.line is not None:
            name = self.line.group.instruction.name
            self.closed ^= {name}
            self._refill(name)

    def action_toggle_all(self) -> None:
        """Opens all kernels, or closes all."""
        line = self.line
        everything = frozenset(group.instruction.name for group in self.groups)
        self.closed = frozenset() if self.closed else everything
        self._refill(line.group.instruction.name if line else "")

    def action_group(self, direction: int) -> None:
        """To the next or previous kernel."""
        lines = self.query_one(LineList)
        heads = [n for n, line in enumerate(self.lines) if line.instruction is None and line.edge is None]
        places = [n for n in heads if (n > lines.cursor if direction > 0 else n < lines.cursor)]
        if places:
            lines.move_to(places[0] if direction > 0 else places[-1])

    def action_why(self) -> None:
        """To the decision about the edge, where it can be overruled."""
        if self.line is None or self.line.edge is None:
            self.notify("the cursor is on no edge", timeout=3)
            return
        self.post_message(ScreenWanted("decisions", self.line.edge.decision.id))

    @on(LineList.Entered, "#kernels")
    def _entered(self) -> None:
        if self.line is not None:
            self.go_to(*self.line.target(self.trace))


def _edge_line(edge: Edge, onward: bool, width: int) -> Text:
    text = Text("    ")
    text.append("✓ " if edge.fused else "✗ ", style="bold green" if edge.fused else "bold yellow")
    other = f"→ {edge.consumer}" if onward else f"← {edge.producer}"
    room = 26 if width < 100 else 34
    text.append(f"{visible(other):<{room}.{room}} ")
    estimates = "  ".join(_estimate(choice) for choice in edge.decision.choices)
    if width >= 100:
        text.append(f"{visible(estimates):<40} ", style="yellow")
    text.append(visible(edge.decision.reason), style="grey70")
    return text


def _estimate(choice: Choice) -> str:
    if choice.forbidden:
        return f"{choice.name} not possible"
    return choice.name if choice.estimate is None else f"{choice.name} {choice.estimate:,.6g} {choice.unit}"
