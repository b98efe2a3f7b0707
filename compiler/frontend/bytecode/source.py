"""What the importer asks of the file it imports from, answered for a file that has bytes instead of lines."""

from __future__ import annotations

from typing import Any, NoReturn

from compiler.frontend.bytecode.stream import byte_error
from compiler.ir.location import CallSite, FileLocation, FusedLocation, Location, NameLocation


class ArtifactSource:
    """The file of an artifact. Its places are columns of one line, counted from 1: column 1 is byte 0."""

    text = ""
    line_offset = 0

    def __init__(self, filename: str) -> None:
        self.filename = filename

    def fail(self, message: str, offset: int | None = None) -> NoReturn:
        """Raises the error at a byte."""
        raise byte_error(self.filename, offset or 0, message)

    def resolve(self, raw: Any, depth: int = 0) -> Location | None:
        """A location as it is: artifacts have no aliases."""
        return raw if isinstance(raw, FileLocation | NameLocation | CallSite | FusedLocation) else None
