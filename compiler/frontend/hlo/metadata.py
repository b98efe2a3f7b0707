"""Where instructions came from: `metadata={…}` and the tables of stack frames at the top of newer dumps, to locations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from compiler.frontend.hlo.lexer import unquote
from compiler.ir.location import CallSite, FileLocation, Location, NameLocation

_FIELD = re.compile(r'(\w+)\s*=\s*("(?:[^"\\]|\\.)*+"|\{[^{}]*\}|-?[\w.]+)')
MAX_FRAMES = 100
"""Frames kept of one stack."""


def fields(text: str) -> dict[str, str]:
    """The `key=value` pairs of a text, strings without their quotes."""
    return {key: unquote(value) if value[0] == '"' else value for key, value in _FIELD.findall(text)}


@dataclass
class FrameTables:
    """`FileNames`, `FunctionNames`, `FileLocations` and `StackFrames`, each by the number its lines begin with."""

    files: dict[int, str] = field(default_factory=dict)
    functions: dict[int, str] = field(default_factory=dict)
    locations: dict[int, Mapping[str, str]] = field(default_factory=dict)
    frames: dict[int, Mapping[str, str]] = field(default_factory=dict)
    _stacks: dict[int, Location | None] = field(default_factory=dict)

    def stack(self, number: int) -> Location | None:
        """A frame as a location, its callers after it; None for a number that the tables do not have."""
        if number not in self._stacks:
            self._stacks[number] = self._stack(number)
        return self._stacks[number]

    def _stack(self, number: int) -> Location | None:
        chain: list[Location] = []
        while number in self.frames and len(chain) < MAX_FRAMES:
            frame = self.frames[number]
            place = self._place(_number(frame.get("file_location_id")))
            if place is not None:
                chain.append(place)
            parent = _number(frame.get("parent_frame_id")) - self._shift
            if parent == number:
                break
            number = parent
        if not chain:
            return None
        found = chain.pop()
        while chain:
            found = CallSite(chain.pop(), found)
        return found

    @property
    def _shift(self) -> int:
        """1 when parents are written one too high: the first frame, which has none, then names itself."""
        first = min(self.frames)
        return 1 if _number(self.frames[first].get("parent_frame_id")) == first else 0

    def _place(self, number: int) -> Location | None:
        entry = self.locations.get(number)
        if entry is None:
            return None
        file = self.files.get(_number(entry.get("file_name_id")), "")
        place = FileLocation(file, _number(entry.get("line")), _number(entry.get("column")))
        function = self.functions.get(_number(entry.get("function_name_id")), "")
        return NameLocation(function, place) if function else place


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else 0


def location_of(text: str, tables: FrameTables) -> Location | None:
    """The location that a `metadata={…}` token stands for; None when it says nothing about a place."""
    found = fields(text[text.index("{") + 1 :])
    place: Location | None = None
    if "stack_frame_id" in found:
        place = tables.stack(_number(found["stack_frame_id"]))
    if place is None and found.get("source_file"):
        line, column = _number(found.get("source_line")), _number(found.get("source_column"))
        place = FileLocation(found["source_file"], line, column)
    name = found.get("op_name", "")
    return NameLocation(name, place) if name else place
