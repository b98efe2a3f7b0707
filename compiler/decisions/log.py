"""The one door for choices, and the log of what went through it.

Wherever a pass or a backend could do one thing or another it calls `Decider.decide`. The answer is the policy's, or
the user's override, or, during bisection, the kind's neutral choice. A decision's id is what it is about
(`fusion:main/exponential.4->reduce.7`), so it holds across recompiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from compiler.ir.location import Location


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of decision. `neutral` is the choice that changes least, used when a decision is refused."""

    name: str
    title: str
    neutral: str
    """Empty: the first legal choice."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to go. `estimate` is in the kind's own unit (`unit`), lower is better; None: not estimated.

    `forbidden` names the rule that makes the choice illegal; empty when it is legal.
    """

    name: str
    estimate: float | None = None
    unit: str = ""
    forbidden: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was chosen about one subject, among what, why, and by whom (`policy`, `override` or `refused`)."""

    id: str
    kind: str
    subject: str
    stage: str
    choices: tuple[Choice, ...]
    chosen: str
    policy: str
    by: str
    reason: str
    evidence: Mapping[str, object] = field(default_factory=dict)
    locations: tuple[Location, ...] = ()

    @property
    def overruled(self) -> bool:
        """True when the user's choice differs from the policy's."""
        return self.by == "override" and self.chosen != self.policy


class IllegalOverride(Exception):
    """An override asks for a choice that a rule forbids, or that does not exist."""


Gate = Callable[[str], bool]
Listener = Callable[[Decision], None]


class Decider:
    """Answers questions during one compile. `overrides` maps decision ids to choices."""

    def __init__(
        self,
        overrides: Mapping[str, str] | None = None,
        *,
        gate: Gate | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.overrides = dict(overrides or {})
        self.stage = ""
        self.log: list[Decision] = []
        self.matched: set[str] = set()
        self._gate = gate
        self._listener = listener

    def decide(
        self,
        kind: Kind,
        subject: str,
        choices: Sequence[Choice],
        policy: str,
        reason: str,
        *,
        evidence: Mapping[str, object] | None = None,
        locations: Sequence[Location | None] = (),
    ) -> str:
        """Returns the name of the choice to take. `policy` is what the compiler would do, and `reason` why.

        Raises:
            IllegalOverride: when the user's override names no legal choice; says which rule forbids it.
        """
        identity = f"{kind.name}:{subject}"
        chosen, by = policy, "policy"
        if identity in self.overrides:
            chosen, by = self.overrides[identity], "override"
            self.matched.add(identity)
            _check_legal(identity, chosen, choices)
        elif self._gate is not None and not self._gate(identity):
            legal = [choice.name for choice in choices if not choice.forbidden]
            chosen = kind.neutral if kind.neutral in legal else legal[0]
            by = "refused"
        decision = Decision(
            identity,
            kind.name,
            subject,
            self.stage,
            tuple(choices),
            chosen,
            policy,
            by,
            reason,
            dict(evidence or {}),
            tuple(found for found in locations if found is not None),
        )
        self.log.append(decision)
        if self._listener is not None:
            self._listener(decision)
        return chosen

    @property
    def unmatched(self) -> list[str]:
        """Overrides that no question asked for, once the compile is over."""
        return [identity for identity in self.overrides if identity not in self.matched]


def _check_legal(identity: str, chosen: str, choices: Sequence[Choice]) -> None:
    for choice in choices:
        if choice.name == chosen:
            if choice.forbidden:
                raise IllegalOverride(f"{identity}: {chosen!r} is not possible: {choice.forbidden}")
            return
    names = ", ".join(choice.name for choice in choices)
    raise IllegalOverride(f"{identity}: there is no choice {chosen!r}; the choices are {names}")
