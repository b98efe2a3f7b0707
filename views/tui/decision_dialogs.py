"""Boxes of the overruling loop: which choice instead, what a recompile changed, and whether to overwrite a file."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label, OptionList, Static
from textual.widgets.option_list import Option

from compiler.decisions.log import Decision
from compiler.decisions.overrides import Override
from explorer.compare import Comparison, DecisionChange, Figure
from views.cli.output import size_text
from views.highlight import visible
from views.tui.code_view import CodeView
from views.tui.decision_rows import choice_text
from views.tui.rows import Row, rows_of_diff

Answer = tuple[str, str]
"""(choice, because); an empty choice leaves the decision to the policy."""


class ChoiceScreen(ModalScreen[Answer | None]):
    """The choices of one decision. Forbidden ones can be read, not taken."""

    BINDINGS = [Binding("escape", "dismiss(None)", "close")]  # noqa: RUF012 - the base class's own kind of table

    def __init__(self, decision: Decision, entry: Override | None) -> None:
        super().__init__()
        self._decision = decision
        self._entry = entry

    def compose(self) -> ComposeResult:
        """The question, the choices, and room for a reason."""
        with Vertical(classes="dialog small"):
            yield Label(visible(self._decision.id), classes="dialog-title", markup=False)
            yield Static(visible(self._decision.reason), classes="dialog-note", markup=False)
            yield OptionList(*self._options(), id="choices")
            yield Input(
                self._entry.because if self._entry else "",
                placeholder="because … (tab; kept in the override file)",
                id="because",
            )
            yield Label(
                "enter takes the choice   tab to the reason   escape leaves it", classes="dialog-keys"
            )

    def _options(self) -> list[Option]:
        options = []
        for number, choice in enumerate(self._decision.choices):
            text = Text(
                "policy's  " if choice.name == self._decision.policy else "          ", style="grey58"
            )
            text.append_text(choice_text(choice, choice.name == self._decision.chosen))
            options.append(Option(text, id=str(number), disabled=bool(choice.forbidden)))
        return options

    def on_mount(self) -> None:
        """The cursor stands on the first choice that would change something."""
        choices = self.query_one("#choices", OptionList)
        choices.focus()
        current = self._entry.choice if self._entry else self._decision.chosen
        for number, choice in enumerate(self._decision.choices):
            if choice.name != current and not choice.forbidden:
                choices.highlighted = number
                break

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answers with the choice; the policy's own choice takes the override back."""
        self._answer(int(event.option_id or 0))

    def on_input_submitted(self) -> None:
        """Enter in the reason takes the choice under the cursor."""
        highlighted = self.query_one("#choices", OptionList).highlighted
        if highlighted is not None:
            self._answer(highlighted)

    def _answer(self, number: int) -> None:
        name = self._decision.choices[number].name
        because = self.query_one("#because", Input).value.strip()
        self.dismiss(("", "") if name == self._decision.policy else (name, because))


class ConfirmScreen(ModalScreen[bool]):
    """A question with yes and no; no is the answer of escape."""

    BINDINGS = [  # noqa: RUF012 - the base class's own kind of table
        Binding("y", "dismiss(True)", "yes"),
        Binding("n,escape,q", "dismiss(False)", "no"),
    ]

    def __init__(self, question: str, details: str = "") -> None:
        super().__init__()
        self._question = question
        self._details = details

    def compose(self) -> ComposeResult:
        """Question, details, keys."""
        with Vertical(classes="dialog small"):
            yield Label(visible(self._question), classes="dialog-title", markup=False)
            yield Static(visible(self._details), markup=False)
            yield Label("y yes   n no", classes="dialog-keys")


class ComparisonScreen(ModalScreen[None]):
    """What a recompile changed: numbers, decisions, and the difference of the final programs."""

    BINDINGS = [Binding("escape,q,enter", "dismiss(None)", "close")]  # noqa: RUF012 - see above

    def __init__(self, comparison: Comparison) -> None:
        super().__init__()
        self._comparison = comparison

    def compose(self) -> ComposeResult:
        """One scrolling panel of lines."""
        with Vertical(classes="dialog"):
            yield Label("Before and after the recompile", classes="dialog-title", markup=False)
            yield CodeView(id="comparison")
            yield Label("↑ ↓ move   [ ] changes   escape closes", classes="dialog-keys")

    def on_mount(self) -> None:
        """Makes the lines."""
        panel = self.query_one(CodeView)
        panel.show(rows_of_comparison(self._comparison))
        panel.focus()


def rows_of_comparison(comparison: Comparison) -> list[Row]:
    """All of a comparison as rows."""
    rows = [Row("h", f"{'':<20}{'before':>12}{'after':>12}{'difference':>14}")]
    rows += [Row("n", _figure(figure)) for figure in comparison.figures]
    if comparison.unmatched:
        rows.append(Row("h", "overrides that matched no decision"))
        for identity, close in comparison.unmatched:
            rows.append(Row("n", identity + (f"   nearest: {', '.join(close)}" if close else "")))
    count = len(comparison.decisions)
    rows.append(Row("h", f"{count} decision{'s' * (count != 1)} came out differently"))
    rows += [Row("n", _change(change)) for change in comparison.decisions]
    rows.append(Row("h", "the final program, before and after"))
    return rows + rows_of_diff(comparison.diff)


def _figure(figure: Figure) -> str:
    def shown(value: int | None) -> str:
        if value is None:
            return "?"
        return size_text(value) if figure.unit == "bytes" else f"{value:,}"

    difference = ""
    if figure.before is not None and figure.after is not None:
        change = figure.after - figure.before
        sign = "+" if change > 0 else "-"
        amount = size_text(abs(change)) if figure.unit == "bytes" else f"{abs(change):,}"
        difference = f"{sign}{amount}" if change else "="
    return f"{figure.name:<18}{shown(figure.before):>12}{shown(figure.after):>12}{difference:>14}"


def _change(change: DecisionChange) -> str:
    before, after = change.before, change.after
    if before is None:
        assert after is not None
        verdict = f"new: {after.chosen}"
    elif after is None:
        verdict = f"gone: {before.chosen}"
    else:
        by = "" if after.by == before.by else f" ({'you' if after.by == 'override' else after.by})"
        verdict = f"{before.chosen} → {after.chosen}{by}"
    return f"{verdict:<24}  {change.id}"
