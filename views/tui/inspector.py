"""The panel about one instruction: type, operands, users, source line, where it came from."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static

from compiler.ir.hlo_text import shape_text
from compiler.ir.location import scope_name, source_line
from compiler.ir.program import Computation, Instruction, Module
from explorer.provenance import Provenance
from explorer.trace import Trace
from views.highlight import visible


class Inspector(Static):
    """Shows one instruction in a few lines; `h` on the screen opens the whole history."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._users: dict[int, tuple[Computation, dict[str, list[str]]]] = {}

    def show_nothing(self, text: str = "") -> None:
        """Clears the panel, or shows a remark."""
        self.update(Text(text, style="grey58"))

    def show(
        self, trace: Trace, module: Module, computation: str, name: str, provenance: Provenance | None
    ) -> None:
        """Shows one instruction of a program."""
        owner = module.computations.get(computation)
        found = owner.instructions.get(name) if owner else None
        if owner is None or found is None:
            place = module.find(name)
            if place is None:
                self.show_nothing(f"{name} is not in this program")
                return
            owner, found = place
        self.update(self._text(trace, owner, found, provenance))

    def _text(
        self, trace: Trace, owner: Computation, found: Instruction, provenance: Provenance | None
    ) -> Text:
        text = Text(no_wrap=False)
        text.append(found.name, style="bold cyan")
        text.append(f"  {found.opcode}  ")
        text.append(shape_text(found.type), style="yellow")
        text.append(f"  in {owner.name}\n", style="grey58")
        users = self.users_of(owner).get(found.name, [])
        _field(text, "operands", ", ".join(found.operands) or "none")
        _field(text, "users", ", ".join(users) or ("returned" if owner.root == found.name else "none"))
        _field(text, "source", source_text(trace, found))
        _field(text, "history", _history(found.name, provenance), last=True)
        return text

    def users_of(self, owner: Computation) -> dict[str, list[str]]:
        """Readers of every value of a computation; kept while the computation is looked at."""
        kept = self._users.get(id(owner))
        if kept is not None:
            return kept[1]
        users: dict[str, list[str]] = {}
        for instruction in owner:
            for operand in dict.fromkeys(instruction.operands):
                users.setdefault(operand, []).append(instruction.name)
        if len(self._users) > 8:
            self._users.clear()
        self._users[id(owner)] = (owner, users)
        return users


def _field(text: Text, label: str, value: str, last: bool = False) -> None:
    text.append(f"{label:<9}", style="grey58")
    shown = value if len(value) <= 400 else value[:399] + "…"
    text.append(visible(shown) + ("" if last else "\n"))


def source_text(trace: Trace, found: Instruction) -> str:
    """The user's line: its place, the framework's name for it, and its text if the trace holds it."""
    parts = []
    line = source_line(found.location)
    if line is not None:
        parts.append(str(line))
        source = trace.sources.get(line.file)
        if source is not None and line.line > 0:
            lines = source.split("\n", line.line)
            if len(lines) >= line.line:
                parts.append(lines[line.line - 1].strip())
    scope = scope_name(found.location)
    if scope:
        parts.insert(0, scope)
    return "  ".join(parts) or "unknown"


def _history(name: str, provenance: Provenance | None) -> str:
    if provenance is None:
        return "still compiling"
    origin = provenance.origin(name)
    events = provenance.events(name)
    start = f"made by {origin.stage.id} / {origin.rewrite.rule.id}" if origin else "read from the file"
    later = [event for event in events if event.kind != "made"]
    more = ", ".join(f"{event.kind} by {event.stage.id}" for event in later[:3])
    rest = f" and {len(later) - 3} more" if len(later) > 3 else ""
    return f"{start}; {more}{rest}" if later else start
