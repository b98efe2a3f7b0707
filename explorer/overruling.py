"""The user's choices while a model is open: what is overruled, what of it no compile has seen yet, undo, and the file.

A frozen value: each change gives a new one that remembers the old. The recording says which overrides it was made with,
so "pending" is a comparison, not a flag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from compiler.decisions.overrides import (
    Override,
    OverrideError,
    Overrides,
    format_overrides,
    load_overrides,
    save_overrides,
)
from explorer.trace import Trace

MAX_UNDO = 200


@dataclass(frozen=True)
class Overruling:
    """`path` is the file to save to; `on_disk` its text as last read or written (None: never)."""

    path: str
    overrides: Overrides = field(default_factory=Overrides)
    on_disk: str | None = None
    past: tuple[Overrides, ...] = ()

    @property
    def choices(self) -> dict[str, str]:
        """Decision id to choice: what the next compile is to be given."""
        return self.overrides.choices

    def entry(self, decision: str) -> Override | None:
        """The user's choice about a decision."""
        return next((found for found in self.overrides.entries if found.decision == decision), None)

    def overrule(self, decision: str, choice: str, because: str = "") -> Overruling:
        """With this choice."""
        return self._with(self.overrides.having(Override(decision, choice, because)))

    def leave(self, decision: str) -> Overruling:
        """With this decision left to the policy again."""
        return self._with(self.overrides.without(decision))

    def _with(self, overrides: Overrides) -> Overruling:
        if overrides == self.overrides:
            return self
        return replace(self, overrides=overrides, past=(*self.past, self.overrides)[-MAX_UNDO:])

    def undo(self) -> Overruling:
        """Before the last change; itself when there is none."""
        if not self.past:
            return self
        return replace(self, overrides=self.past[-1], past=self.past[:-1])

    def pending(self, compiled_with: Mapping[str, str]) -> dict[str, str]:
        """Decisions that the next compile would be told otherwise; an empty choice stands for the policy's."""
        wanted = self.choices
        changed = {name: choice for name, choice in wanted.items() if compiled_with.get(name) != choice}
        return changed | {name: "" for name in compiled_with if name not in wanted}

    @property
    def saved(self) -> bool:
        """True when the file holds just these choices as far as is known."""
        if self.on_disk is None:
            return not self.overrides.entries
        return format_overrides(self.overrides) == self.on_disk or not self.past

    def danger(self) -> str:
        """Why saving would destroy something, in words; empty when it would not.

        Raises:
            OverrideError: when the file cannot be looked at.
        """
        found = _text(self.path)
        if found is None:
            return ""
        if self.on_disk is None:
            return "the file exists, and was not read"
        if found != self.on_disk:
            return "the file has changed since it was read"
        if found != format_overrides(self.overrides) and any(
            line.lstrip().startswith("#") for line in found.splitlines()
        ):
            return "the comments in the file will be lost"
        return ""

    def save(self) -> Overruling:
        """Writes the file, as a whole or not at all.

        Raises:
            OverrideError: when it cannot be written; one line.
        """
        try:
            save_overrides(self.path, self.overrides)
        except OSError as error:
            raise OverrideError(f"{self.path}: {error.strerror or error}") from None
        return replace(self, on_disk=format_overrides(self.overrides), past=())


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return ""
    except OSError as error:
        raise OverrideError(f"{path}: {error.strerror or error}") from None


def overruling_of(model: str, trace: Trace, file: str = "") -> Overruling:
    """The choices that a recording was made with; `file` is the override file they came from, if any.

    Raises:
        OverrideError: when the file cannot be read.
    """
    if file:
        return Overruling(file, load_overrides(file), _text(file))
    entries = tuple(Override(decision, choice) for decision, choice in trace.overrides.items())
    return Overruling(f"{model}.overrides.toml", Overrides({}, entries))
