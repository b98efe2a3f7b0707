"""The tables of an artifact that everything else refers to by index: strings, dialects, operation names, attributes, types.

Attributes and types are decoded when they are first asked for. Each dialect has an encoding of its own (`builtin_encoding`,
`vhlo_encoding`); entries that stand in the file as text are read by the reader of MLIR text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from compiler.frontend.bytecode.stream import ByteStream, decoded
from compiler.frontend.errors import SourceError

_EAGER_DEPTH = 24
_MAX_RESTARTS = 20_000
_ATTRIBUTE, _TYPE = 0, 1
_KINDS = ("attribute", "type")


@dataclass(frozen=True, slots=True)
class OperationName:
    """The full name of an operation; `is_registered` tells how its properties are encoded."""

    name: str
    is_registered: bool


@dataclass(frozen=True, slots=True)
class _Entry:
    dialect: str
    is_custom: bool
    start: int
    end: int


class _Pending(Exception):
    """An entry needs another one that is too deep to be decoded on the spot."""

    def __init__(self, kind: int, index: int) -> None:
        super().__init__()
        self.key = (kind, index)


class EntryReader(ByteStream):
    """What a dialect's encoding is given: the bytes of one entry and the tables."""

    __slots__ = ("depth", "tables")

    def __init__(self, tables: Tables, start: int, end: int, depth: int) -> None:
        whole = tables.stream
        super().__init__(whole.data, whole.filename, start, end, whole.base)
        self.tables = tables
        self.depth = depth

    def text(self) -> str:
        """A string of the string table."""
        return self.tables.string(self)

    def attribute(self) -> Any:
        """Another attribute."""
        return self.tables.entry(_ATTRIBUTE, self.varint(), self.depth + 1, self)

    def optional_attribute(self) -> Any:
        """Another attribute, or None."""
        index, is_there = self.flagged()
        return self.tables.entry(_ATTRIBUTE, index, self.depth + 1, self) if is_there else None

    def type(self) -> Any:
        """Another type."""
        return self.tables.entry(_TYPE, self.varint(), self.depth + 1, self)

    def attributes(self) -> tuple[Any, ...]:
        """A count and as many attributes."""
        return tuple(self.attribute() for _ in range(self.count("attributes")))

    def types(self) -> tuple[Any, ...]:
        """A count and as many types."""
        return tuple(self.type() for _ in range(self.count("types")))

    def blob(self) -> bytes:
        """A length and as many bytes."""
        return self.take(self.varint())


Decoder = Callable[[EntryReader], Any]


class Tables:
    """The tables of one artifact. `decoders` holds (attributes, types) for each dialect with an encoding of its own."""

    def __init__(
        self,
        stream: ByteStream,
        decoders: Mapping[str, tuple[Decoder, Decoder]],
        parse_text: tuple[Callable[[str], Any], Callable[[str], Any]],
    ) -> None:
        self.stream = stream
        self.strings: list[str] = []
        self.dialects: list[str] = []
        self.operations: list[OperationName] = []
        self.properties: list[tuple[int, int]] = []
        self.resources: list[bytes | None] = []
        self._decoders = decoders
        self._parse_text = parse_text
        self._entries: tuple[list[_Entry], list[_Entry]] = ([], [])
        self._known: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
        self._restarts = 0

    # ---- reading the sections --------------------------------------------------------------------------------------

    def read_strings(self, stream: ByteStream) -> None:
        """The string section: lengths (with the closing null) in reverse order, then the bytes of all strings."""
        count = stream.count("strings")
        places = []
        stop = stream.end
        for _ in range(count):
            length = stream.varint()
            if not 0 < length <= stop - stream.at:
                stream.fail("the strings do not fit in their section")
            places.append((stop - length, stop - 1))
            stop -= length
        if stop != stream.at:
            stream.fail("the strings do not fill their section")
        self.strings = [decoded(stream, start, end) for start, end in reversed(places)]

    def read_dialects(self, stream: ByteStream, version: int) -> None:
        """The dialect section: names of dialects and of their operations."""
        for _ in range(stream.count("dialects")):
            if version < 1:
                self.dialects.append(self.string(stream))
                continue
            index, has_version = stream.flagged()
            self.dialects.append(self._string_at(index, stream))
            if has_version:
                stream.section()
        if version >= 4:
            stream.varint()
        while stream.left:
            dialect = self._dialect(stream)
            for _ in range(stream.count("operation names")):
                index, is_registered = stream.flagged() if version >= 5 else (stream.varint(), True)
                name = f"{dialect}.{self._string_at(index, stream)}"
                self.operations.append(OperationName(name, is_registered))

    def read_offsets(self, stream: ByteStream, data: ByteStream) -> None:
        """The offset section: sizes of the entries of the attribute and type section, grouped by dialect."""
        counts = [stream.count("attributes"), stream.count("types")]
        at = data.at
        for kind, count in enumerate(counts):
            found = self._entries[kind]
            while len(found) < count:
                dialect = self._dialect(stream)
                for _ in range(stream.count("entries")):
                    size, is_custom = stream.flagged()
                    if size > data.end - at:
                        stream.fail(f"this {_KINDS[kind]} reaches beyond its section")
                    found.append(_Entry(dialect, is_custom, at, at + size))
                    at += size
            if len(found) != count:
                stream.fail(f"{len(found)} {_KINDS[kind]}s are listed, {count} are announced")

    def read_properties(self, stream: ByteStream) -> None:
        """The properties section: a list of blobs."""
        for _ in range(stream.count("properties")):
            size = stream.varint()
            start = stream.skip(size)
            self.properties.append((start, start + size))

    def read_resources(self, stream: ByteStream, data: ByteStream) -> None:
        """The resource sections: blobs of `dense_resource` constants; those of other providers are skipped."""
        for _ in range(stream.count("resource groups")):
            self.string(stream)
            self._resource_group(stream, data)
        while stream.left:
            self._dialect(stream)
            self.resources += self._resource_group(stream, data)

    def _resource_group(self, stream: ByteStream, data: ByteStream) -> list[bytes | None]:
        found: list[bytes | None] = []
        for _ in range(stream.count("resources")):
            self.string(stream)
            size = stream.varint()
            kind = stream.byte()
            start = data.skip(size)
            inner = data.window(start, start + size)
            if kind != 0 or size == 0:
                found.append(None)
                continue
            alignment, length = inner.varint(), inner.varint()
            inner.align(alignment)
            found.append(inner.take(length))
        return found

    # ---- looking things up -----------------------------------------------------------------------------------------

    def string(self, stream: ByteStream) -> str:
        """The string whose index stands here."""
        return self._string_at(stream.varint(), stream)

    def _string_at(self, index: int, stream: ByteStream) -> str:
        if index >= len(self.strings):
            stream.fail(f"there is no string {index}")
        return self.strings[index]

    def _dialect(self, stream: ByteStream) -> str:
        index = stream.varint()
        if index >= len(self.dialects):
            stream.fail(f"there is no dialect {index}")
        return self.dialects[index]

    def operation(self, stream: ByteStream) -> OperationName:
        """The operation name whose index stands here."""
        index = stream.varint()
        if index >= len(self.operations):
            stream.fail(f"there is no operation name {index}")
        return self.operations[index]

    def attribute(self, stream: ByteStream) -> Any:
        """The attribute whose index stands here."""
        return self.resolve(_ATTRIBUTE, stream.varint(), stream)

    def type(self, stream: ByteStream) -> Any:
        """The type whose index stands here."""
        return self.resolve(_TYPE, stream.varint(), stream)

    def type_at(self, index: int, stream: ByteStream) -> Any:
        """The type of an index that was read before."""
        return self.resolve(_TYPE, index, stream)

    def resolve(self, kind: int, index: int, stream: ByteStream) -> Any:
        """An entry with all it refers to, however deep.

        Raises:
            SourceError: when there is none, it is damaged, or it refers to itself.
        """
        known = self._known[kind]
        if index in known:
            return known[index]
        waiting = [(kind, index)]
        while waiting:
            try:
                self.entry(*waiting[-1], 0, stream)
                waiting.pop()
            except _Pending as pending:
                self._restarts += 1
                if pending.key in waiting or self._restarts > _MAX_RESTARTS:
                    self._circle(kind, index, stream)
                waiting.append(pending.key)
        return known[index]

    def _circle(self, kind: int, index: int, stream: ByteStream) -> NoReturn:
        stream.fail(f"{_KINDS[kind]} {index} refers to itself or is nested too deeply")

    def entry(self, kind: int, index: int, depth: int, stream: ByteStream) -> Any:
        """An entry; raises `_Pending` beyond some depth, for `resolve` to go on without recursion."""
        known = self._known[kind]
        if index in known:
            return known[index]
        entries = self._entries[kind]
        if index >= len(entries):
            stream.fail(f"there is no {_KINDS[kind]} {index}")
        if depth > _EAGER_DEPTH:
            raise _Pending(kind, index)
        found = self._decode(kind, entries[index], depth)
        known[index] = found
        return found

    def _decode(self, kind: int, entry: _Entry, depth: int) -> Any:
        reader = EntryReader(self, entry.start, entry.end, depth)
        try:
            if not entry.is_custom:
                return self._of_text(kind, reader)
            if entry.dialect not in self._decoders:
                reader.fail(f"the encoding of {_KINDS[kind]}s of the dialect '{entry.dialect}' is not known")
            return self._decoders[entry.dialect][kind](reader)
        except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
            reader.fail(f"this {_KINDS[kind]} cannot be read: {error}", entry.start)

    def _of_text(self, kind: int, reader: EntryReader) -> Any:
        """An entry that stands in the file as MLIR text."""
        start = reader.at
        text = reader.terminated()
        try:
            return self._parse_text[kind](text)
        except SourceError as error:
            reader.fail(f"the text of this {_KINDS[kind]} cannot be read: {error.message}", start)
