"""Locations in a text: `loc(…)` of every kind, and aliases that may be defined later."""

from __future__ import annotations

from typing import Any

from compiler.frontend.mlir.cursor import MAX_DEPTH, Cursor
from compiler.frontend.mlir.lexer import unquote
from compiler.ir.location import CallSite, FileLocation, FusedLocation, Location, NameLocation


class LocationReader(Cursor):
    """Reads locations; those that refer to aliases are resolved once the whole text is read."""

    def trailing_location(self) -> Any:
        """An optional `loc(…)`: a location, or the name of an alias that is resolved at the end."""
        if self.tokens[self.at] != "loc" or self.tokens[self.at + 1] != "(":
            return None
        self.at += 2
        found = self.location()
        self.expect(")")
        return found

    def location(self) -> Any:
        """What stands inside `loc(…)`. Aliases are given as their name."""
        self.enter()
        token = self.take()
        found: Any = None
        if token.startswith("#"):
            found = token
        elif token.startswith('"'):
            found = self._string_location(unquote(token))
        elif token == "callsite":
            self.expect("(")
            callee = self.location()
            self.expect("at")
            found = ("call", callee, self.location())
            self.expect(")")
        elif token == "fused":
            metadata = self.balanced()[1:-1] if self.tokens[self.at] == "<" else ""
            self.expect("[")
            found = ("fused", tuple(self.until("]", self.location)), metadata)
        elif token != "unknown":
            self.fail(f"unknown kind of location '{token[:40]}'", self.offsets[self.at - 1])
        self.depth -= 1
        return found

    def _string_location(self, name: str) -> Any:
        if self.accept(":"):
            line = self.integer()
            self.expect(":")
            column = self.integer()
            if self.accept("to"):
                while self.tokens[self.at] not in (")", ",", "]", "at", ""):
                    self.take()
            return FileLocation(name, line, column)
        if self.accept("("):
            child = self.location()
            self.expect(")")
            return ("name", name, child)
        return ("name", name, None)

    def resolve(self, raw: Any, depth: int = 0) -> Location | None:
        """A location without aliases. Raises SourceError on a circle."""
        if raw is None or isinstance(raw, FileLocation):
            return raw
        if depth > MAX_DEPTH:
            self.fail("the locations refer to each other in a circle", 0)
        if isinstance(raw, str):
            if raw not in self.location_aliases:
                self.fail(f"{raw} is not defined", 0)
            found = self.location_aliases[raw]
            resolved = self.resolve(found, depth + 1)
            self.location_aliases[raw] = resolved
            return resolved
        if isinstance(raw, NameLocation | CallSite | FusedLocation):
            return raw
        if raw[0] == "name":
            return NameLocation(raw[1], self.resolve(raw[2], depth + 1))
        if raw[0] == "call":
            callee, caller = self.resolve(raw[1], depth + 1), self.resolve(raw[2], depth + 1)
            return CallSite(callee, caller) if callee and caller else callee or caller
        children = [self.resolve(child, depth + 1) for child in raw[1]]
        known = tuple(child for child in children if child is not None)
        return FusedLocation(known, raw[2]) if known else None
