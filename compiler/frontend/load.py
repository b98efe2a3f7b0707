"""Opening a model whose format nobody has said: looks at its first bytes and calls the right reader.

The one entry for every command. A file that is missing, empty, binary, noise or too large gets one line.
"""

from __future__ import annotations

import re
from pathlib import Path

from compiler.frontend.bytecode.exported import looks_exported
from compiler.frontend.errors import SourceError
from compiler.frontend.parsed import Parsed

MLIR, BYTECODE, HLO, TRACE, DUMP, UNKNOWN = "mlir", "mlirbc", "hlo", "trace", "dump", "unknown"

MAX_TEXT_BYTES = 4 << 30
_SAMPLE = 1 << 16
_MLIR_START = re.compile(
    r"\s*(?:(?://[^\n]*\n|\s)*)(?:module\b|builtin\.module\b|func\.func\b|func\b|#[\w.$-]+\s*=|![\w.$-]+\s*=|\"builtin\.module\"|\"func\.func\"|\{-#|sdy\.)"
)
_HLO_START = re.compile(r"\s*(?:(?://[^\n]*\n|\s)*)HloModule\b")


def detect(head: bytes) -> str:
    """The format of a file by its first bytes."""
    if head.startswith(b"ML\xefR") or looks_exported(head):
        return BYTECODE
    if head.startswith(b"PK\x03\x04"):
        return TRACE
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4 or b"\0" in head:
            return UNKNOWN
        text = head[: error.start].decode("utf-8")
    if "\0" in text:
        return UNKNOWN
    if _HLO_START.match(text):
        return HLO
    if _MLIR_START.match(text):
        return MLIR
    only_comments = not re.sub(r"//[^\n]*(?:\n|\Z)|\s", "", text)
    return MLIR if only_comments and text.strip() else UNKNOWN


def is_dump(path: str) -> bool:
    """True for a folder that holds XLA's own dumps (`module_0000.NAME.….txt`)."""
    folder = Path(path)
    return folder.is_dir() and next(folder.glob("module_*.*.txt"), None) is not None


def format_of(path: str) -> str:
    """The format of a file or folder: one of `MLIR`, `BYTECODE`, `HLO`, `TRACE`, `DUMP`, `UNKNOWN`.

    Raises:
        SourceError: when it cannot be read or is empty.
    """
    return DUMP if is_dump(path) else detect(read_head(path))


def read_head(path: str) -> bytes:
    """The first bytes of a file.

    Raises:
        SourceError: when it cannot be read or is empty.
    """
    file = Path(path)
    try:
        if file.is_dir():
            what = "a folder of XLA's dumps" if is_dump(path) else "a folder"
            raise SourceError(path, 0, 0, f"is {what}, not a model")
        with file.open("rb") as stream:
            head = stream.read(_SAMPLE)
    except FileNotFoundError:
        raise SourceError(path, 0, 0, "no such file") from None
    except OSError as error:
        raise SourceError(path, 0, 0, error.strerror or str(error)) from None
    if not head:
        raise SourceError(path, 0, 0, "the file is empty")
    return head


def load(path: str) -> Parsed:
    """Reads a model.

    Raises:
        SourceError: when the file is no model, or a model with a mistake.
    """
    form = detect(read_head(path))
    if form == MLIR:
        from compiler.frontend.mlir import parse

        return parse(read_text(path), path)
    if form == HLO:
        from compiler.frontend.hlo import parse_hlo

        return parse_hlo(read_text(path), path)
    if form == BYTECODE:
        from compiler.frontend.bytecode import parse as parse_artifact

        return parse_artifact(read_bytes(path), path)
    if form == TRACE:
        raise SourceError(path, 0, 0, "is an archive (a saved trace?), not a model that can be compiled")
    raise SourceError(path, 0, 0, "is neither StableHLO text, nor HLO text, nor an artifact, nor a trace")


def read_bytes(path: str) -> bytes:
    """A file's content.

    Raises:
        SourceError: when it is larger than can be read.
    """
    file = Path(path)
    if file.stat().st_size > MAX_TEXT_BYTES:
        raise SourceError(path, 0, 0, f"is larger than {MAX_TEXT_BYTES >> 30} GB")
    return file.read_bytes()


def read_text(path: str) -> str:
    """A text file's content.

    Raises:
        SourceError: when it is not UTF-8, with the line of the first bad byte, or is larger than can be read.
    """
    raw = read_bytes(path)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise SourceError(path, line, column, "is not UTF-8 text from here on") from None
