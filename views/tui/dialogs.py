"""Small screens over the main one: help, an instruction's history, a text to read."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Label, OptionList, Static
from textual.widgets.option_list import Option

from compiler.ir.hlo_text import format_instruction
from explorer.provenance import Provenance
from views.highlight import highlight, visible

HELP = """\
[b]Screens[/b]   escape goes back; the selected instruction goes along
  D  decisions     M  memory        F  fusion         ctrl+p  all commands by name

[b]Main screen[/b]
  tab, shift+tab   between the stages and the program
  ↑ ↓  j k         move            page up/down, space   a screenful
  home end  g G    top, bottom     ← → l                 long lines
  u                hide or show stages that changed nothing
                   ● changed  ○ did not  ⊘ skipped  12× rewrites  3? decisions
  [ ]              previous, next change
  a                changes only, or every line
  w                step through the stage's rewrites    < >  , .  previous, next
  p                the whole program after the stage
  d                the stage's decisions, each with its choices and reason
  /                search          n N                   next, previous match
  enter  h         history of the instruction under the cursor
  o                go to the stage that made it

[b]Decisions[/b]      * pending  ! overruled  ? matched nothing  ⊘ refused
  enter, space     choose otherwise (the policy's choice takes an override back)
  r                recompile with what is pending, and compare      x  stop it
  z                undo the last change       S  save the override file
  /                filter: kind:fusion subject:main/* stage:S is:pending, any text
  i                go to the instruction

[b]Memory[/b]
  ← →              a step          shift+← →  a leap     p  the peak
  a                parameters, results and constants too
  enter            go to the instruction

[b]Fusion[/b]
  space, e         open or close a kernel, all kernels   [ ]  previous, next kernel
  y                the edge's decision, to overrule it
  enter            go to the instruction

[b]Everywhere[/b]
  x                stop the compile       ?  this page       q  back, or quit
"""


class _Dialog(ModalScreen[str | None]):
    """A box over the screen; escape closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss_none", "close")]

    def action_dismiss_none(self) -> None:
        """Closes without an answer."""
        self.dismiss(None)


class HelpScreen(_Dialog):
    """The keys."""

    def compose(self) -> ComposeResult:
        """One scrolling text."""
        with VerticalScroll(classes="dialog"):
            yield Label("Keys", classes="dialog-title")
            yield Static(HELP)


class TextScreen(_Dialog):
    """A title and a text."""

    def __init__(self, title: str, text: Text | str) -> None:
        super().__init__()
        self._heading = title
        self._body = text

    def compose(self) -> ComposeResult:
        """One scrolling text."""
        with VerticalScroll(classes="dialog"):
            yield Label(visible(self._heading), classes="dialog-title", markup=False)
            yield Static(self._body, markup=False)


class HistoryScreen(_Dialog):
    """An instruction's past and future, a line a rewrite; enter goes to the stage."""

    def __init__(self, provenance: Provenance, name: str) -> None:
        super().__init__()
        self._provenance = provenance
        self._instruction = name

    def compose(self) -> ComposeResult:
        """The list of events."""
        with VerticalScroll(classes="dialog"):
            yield Label(f"History of {visible(self._instruction)}", classes="dialog-title", markup=False)
            yield OptionList(*self._options(), id="history")

    def _options(self) -> list[Option]:
        options: list[Option] = []
        for ancestor in reversed(self._provenance.ancestors(self._instruction, limit=60)):
            text = Text(no_wrap=True)
            text.append("  " * min(ancestor.depth, 8))
            if ancestor.event is None:
                text.append("read from the file  ", style="green")
            else:
                event = ancestor.event
                text.append(f"{event.stage.id} / {event.rewrite.rule.id}  ", style="magenta")
            if ancestor.instruction is not None:
                text.append_text(highlight(format_instruction(ancestor.instruction)))
            else:
                text.append(ancestor.name)
            stage = ancestor.event.stage.id if ancestor.event else None
            options.append(Option(text, id=f"{len(options)}:{stage or ''}"))
        for event in self._provenance.descendants(self._instruction):
            text = Text(no_wrap=True)
            text.append(f"{event.kind:<8}", style="yellow")
            text.append(f"{event.stage.id} / {event.rewrite.rule.id}  ", style="magenta")
            shown = event.after or event.before
            if shown is not None:
                text.append_text(highlight(format_instruction(shown)))
            options.append(Option(text, id=f"{len(options)}:{event.stage.id}"))
        return options or [Option("nothing is known of it")]

    def on_mount(self) -> None:
        """The list has the focus."""
        self.query_one(OptionList).focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answers with the stage's id."""
        stage = (event.option_id or "").partition(":")[2]
        self.dismiss(stage or None)
