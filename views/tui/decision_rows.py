"""The decision log as lines and as a detail panel, and the filter over it. Text only; the screen owns the state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from rich.text import Text

from compiler.decisions.log import Choice, Decision
from compiler.decisions.overrides import Override
from compiler.ir.location import source_line
from explorer.trace import Trace
from views.highlight import visible

FILTER_HELP = "kind:fusion  subject:main/*  stage:S  is:overruled  is:pending, or any text"
POLICY = "what the policy says"
PENDING, OVERRULED, REFUSED = "*", "!", "⊘"


class DecisionLog:
    """All decisions of a trace with the text that a filter searches, made once."""

    def __init__(self, decisions: Sequence[Decision]) -> None:
        self.decisions = tuple(decisions)
        self._numbers = {decision.id: number for number, decision in enumerate(self.decisions)}
        self._texts = [f"{d.id} {d.chosen} {d.stage} {d.reason}".lower() for d in self.decisions]

    def matching(self, text: str, pending: Iterable[str]) -> list[int]:
        """Numbers of the decisions that hold every word of the filter."""
        words = text.split()
        found = range(len(self.decisions))
        waiting = frozenset(pending)
        return [number for number in found if all(self._has(number, word, waiting) for word in words)]

    def _has(self, number: int, word: str, waiting: frozenset[str]) -> bool:
        decision = self.decisions[number]
        key, colon, value = word.partition(":")
        if colon and key == "kind":
            return decision.kind.startswith(value)
        if colon and key == "stage":
            return decision.stage.startswith(value)
        if colon and key == "subject":
            return fnmatchcase(decision.subject, value if "*" in value else f"*{value}*")
        if colon and key == "is":
            return _is(decision, value, waiting)
        return word.lower() in self._texts[number]

    def number_of(self, identity: str) -> int | None:
        """Number of the decision with an id."""
        return self._numbers.get(identity)

    def about(self, name: str) -> int | None:
        """Number of the first decision about an instruction."""
        if not name:
            return None
        for number, decision in enumerate(self.decisions):
            if name in subject_names(decision):
                return number
        return None


def _is(decision: Decision, value: str, waiting: frozenset[str]) -> bool:
    if value.startswith("pend"):
        return decision.id in waiting
    if value.startswith("over"):
        return decision.by == "override" or decision.id in waiting
    return decision.by.startswith(value)


def subject_names(decision: Decision) -> list[str]:
    """Names of the instructions that a subject speaks of: `main/a.1->b.2` gives `a.1` and `b.2`."""
    return [part for part in decision.subject.partition("/")[2].split("->") if part]


def decision_line(decision: Decision, wanted: str | None, width: int) -> Text:
    """`mark kind choice subject reason`. `wanted` is the pending choice (empty: the policy's), None if none is."""
    text = Text()
    if wanted is not None:
        mark, style = PENDING, "bold yellow"
    elif decision.by == "override":
        mark, style = OVERRULED, "bold magenta"
    else:
        mark, style = (REFUSED if decision.by == "refused" else " "), "grey58"
    text.append(f"{mark} ", style=style)
    text.append(f"{visible(decision.kind):<9.9} ", style="cyan")
    shown = decision.chosen if wanted is None else f"→{wanted or decision.policy}"
    text.append(f"{visible(shown):<14.14} ", style=style if mark.strip() else "green")
    subject = visible(decision.subject)
    if width >= 110:
        room = min(max(width // 3, 40), 60)
        text.append(f"{subject:<{room}.{room}}  ")
        text.append(visible(decision.reason), style="grey58")
    else:
        text.append(subject)
    return text


def unmatched_line(identity: str, removed: bool) -> Text:
    """A line for an override that no decision asked for."""
    text = Text()
    text.append(f"{PENDING if removed else '?'} ", style="bold red")
    text.append(f"{'taken back' if removed else 'unmatched':<10}", style="red")
    text.append(visible(identity))
    return text


def decision_detail(trace: Trace, decision: Decision, entry: Override | None, wanted: str | None) -> Text:
    """Everything about one decision; what is needed to overrule it comes first."""
    text = Text()
    text.append(visible(decision.id), style="bold cyan")
    text.append(f"  decided in {visible(decision.stage)}\n", style="grey58")
    _verdict(text, decision, entry, wanted)
    for choice in decision.choices:
        taken = choice.name == decision.chosen
        text.append("  ▸ " if taken else "    ", style="bold green")
        text.append_text(choice_text(choice, taken, told=decision.reason))
        text.append("\n")
    for line in source_lines(trace, decision):
        text.append(f"  at {visible(line)}\n", style="grey70")
    if decision.evidence:
        facts = "  ".join(f"{key} {_number(value)}" for key, value in decision.evidence.items())
        text.append(f"  {visible(facts)}\n", style="grey58")
    return text


def _verdict(text: Text, decision: Decision, entry: Override | None, wanted: str | None) -> None:
    if wanted is not None:
        text.append(f"  pending: {visible(wanted or POLICY)}", style="bold yellow")
        text.append("   press r to recompile, z to undo\n", style="yellow")
    if decision.by == "override":
        because = f", because {entry.because}" if entry is not None and entry.because else ""
        text.append("  overruled by you", style="bold magenta")
        text.append(visible(f" (the policy says {decision.policy}){because}") + "\n", style="magenta")
    elif decision.by == "refused":
        text.append(f"  refused by bisection (the policy says {visible(decision.policy)})\n", style="magenta")
    whose = "" if decision.by == "policy" else "the policy's reason: "
    text.append(f"  {whose}{visible(decision.reason)}\n", style="grey85")


def choice_text(choice: Choice, taken: bool = False, told: str = "") -> Text:
    """`name  estimate`, or the rule that forbids it unless it has just been `told`."""
    text = Text()
    text.append(
        visible(choice.name), style="bold green" if taken else "strike grey58" if choice.forbidden else ""
    )
    if choice.forbidden:
        rule = "" if choice.forbidden == told else f": {visible(choice.forbidden)}"
        text.append(f"  not possible{rule}", style="grey58")
    elif choice.estimate is not None:
        text.append(f"  {choice.estimate:,.6g} {visible(choice.unit)}".rstrip(), style="yellow")
    return text


def source_lines(trace: Trace, decision: Decision) -> list[str]:
    """The user's lines that a decision is about, with their text where the trace holds it."""
    found: dict[str, None] = {}
    for location in decision.locations:
        line = source_line(location)
        if line is None:
            continue
        source = trace.sources.get(line.file, "").split("\n", line.line) if line.line > 0 else []
        code = f"   {source[line.line - 1].strip()}" if len(source) >= line.line else ""
        found[f"{line}{code}"] = None
    return list(found)


def _number(value: object) -> str:
    return f"{value:,.6g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
