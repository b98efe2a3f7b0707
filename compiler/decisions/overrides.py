"""The override file: a TOML file beside the model that holds the user's choices, written by hand or by the explorer.

[options]
disable = ["late-cse"]

[[override]]
decision = "fusion:main/exponential.4->reduce.7"
choice = "keep-apart"
because = "the reduce vectorises better alone"
"""

from __future__ import annotations

import difflib
import os
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class OverrideError(Exception):
    """An override file cannot be read or used; one line with the file's name."""


@dataclass(frozen=True)
class Override:
    """One choice of the user's."""

    decision: str
    choice: str
    because: str = ""


@dataclass(frozen=True)
class Overrides:
    """All of a file: compile options and choices. Immutable; `having` gives a changed copy."""

    options: Mapping[str, Any] = field(default_factory=dict)
    entries: tuple[Override, ...] = ()

    @property
    def choices(self) -> dict[str, str]:
        """Decision id to choice."""
        return {entry.decision: entry.choice for entry in self.entries}

    def having(self, entry: Override) -> Overrides:
        """A copy in which this decision is overruled so."""
        kept = tuple(old for old in self.entries if old.decision != entry.decision)
        return Overrides(self.options, (*kept, entry))

    def without(self, decision: str) -> Overrides:
        """A copy that leaves this decision to the policy."""
        return Overrides(self.options, tuple(old for old in self.entries if old.decision != decision))


def load_overrides(path: str) -> Overrides:
    """Reads an override file.

    Raises:
        OverrideError: when it is missing, is not TOML, or has entries of a wrong form.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise OverrideError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise OverrideError(f"{path}: {error}") from None
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise OverrideError(f"{path}: {error}") from None
    options, entries = data.pop("options", {}), data.pop("override", [])
    if data:
        raise OverrideError(f"{path}: unknown table {next(iter(data))!r}; known are options and override")
    if not isinstance(options, dict) or not isinstance(entries, list):
        raise OverrideError(f"{path}: [options] must be a table and [[override]] a list of tables")
    return Overrides(options, tuple(_entry(path, number, raw) for number, raw in enumerate(entries, 1)))


def _entry(path: str, number: int, raw: object) -> Override:
    known = {"decision", "choice", "because"}
    if not isinstance(raw, dict) or not all(isinstance(value, str) for value in raw.values()):
        raise OverrideError(f"{path}: override {number} must hold strings: decision, choice, because")
    if unknown := set(raw) - known:
        raise OverrideError(f"{path}: override {number}: unknown key {sorted(unknown)[0]!r}")
    if not raw.get("decision") or not raw.get("choice"):
        raise OverrideError(f"{path}: override {number} needs both decision and choice")
    return Override(raw["decision"], raw["choice"], raw.get("because", ""))


def save_overrides(path: str, overrides: Overrides) -> None:
    """Writes the file as a whole, or not at all (temporary file, then rename)."""
    write_atomically(path, format_overrides(overrides))


def format_overrides(overrides: Overrides) -> str:
    """The file's text."""
    lines: list[str] = []
    if overrides.options:
        lines.append("[options]")
        lines += [f"{toml_string(key)} = {_toml_value(value)}" for key, value in overrides.options.items()]
        lines.append("")
    for entry in overrides.entries:
        lines += ["[[override]]", f"decision = {toml_string(entry.decision)}"]
        lines.append(f"choice = {toml_string(entry.choice)}")
        if entry.because:
            lines.append(f"because = {toml_string(entry.because)}")
        lines.append("")
    return "\n".join(lines)


def toml_string(text: str) -> str:
    """A TOML basic string; control characters are escaped."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(_escaped(char, escapes) for char in text) + '"'


def _escaped(char: str, escapes: Mapping[str, str]) -> str:
    code = ord(char)
    if char in escapes:
        return escapes[char]
    return f"\\u{code:04X}" if code < 0x20 or 0x7F <= code < 0xA0 else char


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml_value(entry) for entry in value) + "]"
    return toml_string(str(value))


def nearest(wanted: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The ids most like a wanted one, for messages about overrides that matched nothing."""
    return difflib.get_close_matches(wanted, list(known), n=count, cutoff=0.5)


def write_atomically(path: str, text: str) -> None:
    """Writes a text file so that a reader sees the old or the new one, never a half."""
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise OverrideError(f"{path}: is not a regular file")
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
