"""A window on the bytes of an artifact and a position in it: the primitives of MLIR's bytecode format.

The bottom of the bytecode reader. Every window knows where it stands in the file, so that whatever is wrong is reported with the
byte it is wrong at, and no count is believed that the bytes left could not hold: a damaged file can neither raise another error
than `SourceError` nor make the reader allocate more than a small multiple of the file's size.

Source: MLIR's "Bytecode Format" document (primitives, sections).
"""

from __future__ import annotations

from typing import NoReturn

from compiler.frontend.errors import SourceError

MAGIC = b"ML\xefR"
"""The first bytes of every artifact."""

_PADDING = 0xCB
_MASK = (1 << 64) - 1


class ByteStream:
    """Bytes `at` to `end` of a file. `base` is where the artifact starts in the file: alignments count from there."""

    __slots__ = ("at", "base", "data", "end", "filename")

    def __init__(
        self, data: bytes, filename: str, at: int = 0, end: int | None = None, base: int = 0
    ) -> None:
        self.data = data
        self.filename = filename
        self.at = at
        self.end = len(data) if end is None else end
        self.base = base

    def window(self, start: int, end: int) -> ByteStream:
        """Another window on the same file."""
        return ByteStream(self.data, self.filename, start, end, self.base)

    @property
    def left(self) -> int:
        """Bytes that have not been read."""
        return self.end - self.at

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raises the error at a byte: the present one by default."""
        raise byte_error(self.filename, self.at if at is None else at, message)

    def byte(self) -> int:
        """One byte."""
        at = self.at
        if at >= self.end:
            self.fail("the data ends too early")
        self.at = at + 1
        return self.data[at]

    def take(self, count: int) -> bytes:
        """That many bytes."""
        start = self.skip(count)
        return self.data[start : start + count]

    def skip(self, count: int) -> int:
        """Moves past that many bytes; gives where they start."""
        if count > self.end - self.at:
            self.fail(f"{count} bytes are announced, but only {self.left} are left")
        start = self.at
        self.at = start + count
        return start

    def varint(self) -> int:
        """An unsigned integer in prefix encoding: trailing zeros of the first byte tell how many bytes follow."""
        at = self.at
        if at >= self.end:
            self.fail("the data ends too early")
        first = self.data[at]
        if first & 1:
            self.at = at + 1
            return first >> 1
        length = 9 if first == 0 else (first & -first).bit_length()
        if at + length > self.end:
            self.fail("the data ends in the middle of a number")
        self.at = at + length
        if first == 0:
            return int.from_bytes(self.data[at + 1 : at + 9], "little")
        return int.from_bytes(self.data[at : at + length], "little") >> length

    def signed(self) -> int:
        """A signed 64-bit integer: a varint in zigzag encoding."""
        raw = self.varint()
        return (raw >> 1) ^ -(raw & 1)

    def flagged(self) -> tuple[int, bool]:
        """A varint whose low bit is a flag of its own."""
        raw = self.varint()
        return raw >> 1, bool(raw & 1)

    def count(self, what: str) -> int:
        """A number of things that follow, each of which takes a byte at least."""
        at = self.at
        return self.held(self.varint(), what, at)

    def held(self, number: int, what: str, at: int) -> int:
        """The same number, checked against the bytes that are left."""
        if number > self.end - self.at:
            self.fail(f"{number} {what} are announced, but only {self.left} bytes are left", at)
        return number

    def signed_list(self) -> tuple[int, ...]:
        """A count and as many signed integers."""
        return tuple(self.signed() for _ in range(self.count("numbers")))

    def terminated(self) -> str:
        """Text up to a null byte."""
        stop = self.data.find(b"\0", self.at, self.end)
        if stop < 0:
            self.fail("the text that starts here does not end")
        start, self.at = self.at, stop + 1
        return decoded(self, start, stop)

    def align(self, alignment: int) -> None:
        """Moves past padding to the next multiple of a power of two."""
        if alignment <= 0 or alignment & (alignment - 1):
            self.fail(f"an alignment of {alignment} is not a power of two")
        padding = -(self.at - self.base) % alignment
        start = self.skip(padding)
        for offset in range(start, start + padding):
            if self.data[offset] != _PADDING:
                self.fail("expected padding", offset)

    def section(self) -> tuple[int, ByteStream]:
        """The number of a section and a window on what it holds."""
        head = self.byte()
        length = self.varint()
        if head & 0x80:
            self.align(self.varint())
        start = self.skip(length)
        return head & 0x7F, self.window(start, start + length)


def byte_error(filename: str, at: int, message: str) -> SourceError:
    """The error for a byte of an artifact, which has no lines; names out of the file may hold any character."""
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in message[:500])
    return SourceError(filename, 0, 0, f"at byte {at}: {shown}")


def decoded(stream: ByteStream, start: int, stop: int) -> str:
    """Bytes of the file as text. Raises SourceError when they are not UTF-8."""
    try:
        return stream.data[start:stop].decode("utf-8")
    except UnicodeDecodeError as error:
        stream.fail("this is not UTF-8 text", start + error.start)


def integer_of_width(stream: ByteStream, bits: int, is_unsigned: bool) -> int:
    """An integer whose width both sides know: a byte up to 8 bits, a zigzag varint up to 64, 64-bit words beyond."""
    if bits <= 8:
        raw = stream.byte()
    elif bits <= 64:
        raw = stream.signed() & _MASK
    else:
        raw = 0
        for index in range(stream.held(stream.varint(), "words", stream.at)):
            raw |= (stream.signed() & _MASK) << (64 * index)
    raw &= (1 << bits) - 1
    return raw - (1 << bits) if not is_unsigned and bits > 1 and raw >> (bits - 1) else raw
