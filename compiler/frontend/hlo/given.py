"""The attributes of one instruction as written, read as what each of them should be.

Every reading marks its attribute as used, so that the importer can tell which it did not understand.
"""

from __future__ import annotations

import re
from typing import NoReturn

from compiler.frontend.hlo.groups import replica_groups
from compiler.frontend.hlo.lexer import unquote
from compiler.frontend.hlo.tree import Written

_INTEGER = re.compile(r"-?\d{1,18}\Z", re.ASCII)
_NAMES = re.compile(r"%?([A-Za-z_][\w.\-]*)\Z")


class BadAttribute(ValueError):
    """A value that cannot be understood, with the offset where it stands."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


class Given:
    """Attributes by key, taken one by one."""

    __slots__ = ("_found", "_offset", "used")

    def __init__(self, found: dict[str, Written], offset: int) -> None:
        self._found = found
        self._offset = offset
        self.used: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._found

    def refuse(self, message: str, key: str = "") -> NoReturn:
        """Raises the error at an attribute, or at the instruction."""
        raise BadAttribute(message, self._found[key][1] if key in self._found else self._offset)

    def raw(self, key: str, default: str | None = None) -> str:
        """The value as written; an attribute without a default must be there."""
        found = self._found.get(key)
        if found is None:
            if default is None:
                self.refuse(f"attribute {key} is missing")
            return default
        self.used.add(key)
        return found[0]

    def optional(self, key: str) -> str | None:
        """The value as written, if it is there."""
        return self.raw(key) if key in self._found else None

    def left(self) -> list[str]:
        """Keys that nobody has read."""
        return [key for key in self._found if key not in self.used]

    def text(self, key: str, default: str | None = None) -> str:
        """A string's content; other values as written."""
        value = self.raw(key, default)
        return unquote(value) if value[:1] == '"' and len(value) > 1 else value

    def integer(self, key: str, default: int | None = None) -> int:
        """A whole number."""
        value = self.raw(key, None if default is None else str(default))
        if _INTEGER.match(value) is None:
            self.refuse(f"{key} must be a whole number, not '{value[:40]}'", key)
        return int(value)

    def number(self, key: str) -> float:
        """A number."""
        value = self.raw(key)
        try:
            return float(value)
        except ValueError:
            self.refuse(f"{key} must be a number, not '{value[:40]}'", key)

    def flag(self, key: str, default: bool = False) -> bool:
        """`true` or `false`."""
        value = self.raw(key, "true" if default else "false")
        if value not in ("true", "false"):
            self.refuse(f"{key} must be true or false, not '{value[:40]}'", key)
        return value == "true"

    def integers(self, key: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """`{0,1}`."""
        if default is not None and key not in self._found:
            return default
        words = self.words(key)
        for word in words:
            if _INTEGER.match(word) is None:
                self.refuse(f"{key} must hold whole numbers, not '{word[:40]}'", key)
        return tuple(map(int, words))

    def one_of_list(self, key: str) -> int:
        """`{1}`: a list of exactly one number."""
        found = self.integers(key)
        if len(found) != 1:
            self.refuse(f"{key} must hold one number, not {len(found)}", key)
        return found[0]

    def words(self, key: str) -> list[str]:
        """`{a, b}`, as texts."""
        value = self.raw(key)
        if value[:1] != "{" or value[-1:] != "}":
            self.refuse(f"{key} must be a list in braces, not '{value[:40]}'", key)
        inner = value[1:-1].strip()
        return [word.strip() for word in inner.split(",")] if inner else []

    def name(self, key: str) -> str:
        """The name of a computation."""
        match = _NAMES.match(self.raw(key))
        if match is None:
            self.refuse(f"{key} must name a computation", key)
        return match[1]

    def names(self, key: str) -> tuple[str, ...]:
        """Names of computations in braces."""
        found = [_NAMES.match(word) for word in self.words(key)]
        if any(match is None for match in found):
            self.refuse(f"{key} must name computations", key)
        return tuple(match[1] for match in found if match is not None)

    def groups(self, key: str) -> tuple[tuple[int, ...], ...]:
        """Groups of devices, in any of the three forms; short groups are filled up with -1."""
        value = self.raw(key, "{}")
        try:
            rows = replica_groups(value)
        except ValueError as error:
            self.refuse(f"{key}: {error}", key)
        width = max((len(row) for row in rows), default=0)
        return tuple((*row, *(-1,) * (width - len(row))) for row in rows)
