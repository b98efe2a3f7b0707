"""Where an instruction came from in the user's program, as MLIR's `loc(...)` and HLO's `metadata` tell it.

Read by the frontends, kept by every instruction, shown by every view.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A place in a text file; line and column count from 1, 0 is unknown."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class NameLocation:
    """A framework's name for the place (`jit(f)/dot_general`), perhaps with a further location inside."""

    name: str
    child: Location | None = None

    def __str__(self) -> str:
        return f'"{self.name}"({self.child})' if self.child else f'"{self.name}"'


@dataclass(frozen=True, slots=True)
class CallSite:
    """An inlined callee's location together with its caller's."""

    callee: Location
    caller: Location

    def __str__(self) -> str:
        return f"callsite({self.callee} at {self.caller})"


@dataclass(frozen=True, slots=True)
class FusedLocation:
    """Several locations that one instruction stands for."""

    children: tuple[Location, ...]
    metadata: str = ""

    def __str__(self) -> str:
        tag = f"<{self.metadata}>" if self.metadata else ""
        return f"fused{tag}[{', '.join(map(str, self.children))}]"


Location = FileLocation | NameLocation | CallSite | FusedLocation


def source_line(location: Location | None) -> FileLocation | None:
    """The innermost file position: the user's own line, if any is known."""
    while location is not None:
        if isinstance(location, FileLocation):
            return location
        if isinstance(location, NameLocation):
            location = location.child
        elif isinstance(location, CallSite):
            found = source_line(location.callee)
            if found is not None:
                return found
            location = location.caller
        else:
            for child in location.children:
                found = source_line(child)
                if found is not None:
                    return found
            return None
    return None


def scope_name(location: Location | None) -> str:
    """The framework's name for the place (`jit(f)/mlp/dot_general`), or the empty string."""
    if isinstance(location, NameLocation):
        return location.name
    if isinstance(location, CallSite):
        return scope_name(location.callee) or scope_name(location.caller)
    if isinstance(location, FusedLocation):
        return next((name for child in location.children if (name := scope_name(child))), "")
    return ""
