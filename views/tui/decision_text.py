"""Decisions as coloured text: what was chosen, among what, at what estimate, and why."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from compiler.decisions.log import Decision
from views.highlight import visible

LIMIT = 400


def decisions_text(decisions: Sequence[Decision]) -> Text:
    """All decisions, one paragraph each."""
    text = Text()
    if not decisions:
        text.append("this stage had nothing to decide", style="grey58")
    for decision in decisions[:LIMIT]:
        _one(text, decision)
    if len(decisions) > LIMIT:
        text.append(
            f"\n… and {len(decisions) - LIMIT} more: xla-explore decisions MODEL shows all", style="grey58"
        )
    return text


def _one(text: Text, decision: Decision) -> None:
    text.append(visible(decision.id), style="bold cyan")
    text.append("\n  ")
    for choice in decision.choices:
        taken = choice.name == decision.chosen
        estimate = "" if choice.estimate is None else f" {choice.estimate:,.6g} {choice.unit}"
        label = f"{'▸ ' if taken else '  '}{choice.name}{estimate}   "
        text.append(
            visible(label), style="bold green" if taken else "strike grey58" if choice.forbidden else ""
        )
    by = "" if decision.by == "policy" else f"  ({decision.by}; the policy said {decision.policy})"
    text.append(f"\n  {visible(decision.reason)}{by}\n", style="grey70")
