"""The IR section: operations, blocks and regions of an artifact as the tree that the reader of MLIR text makes too.

Values are numbered in the order of their definition from the start of the innermost region that is isolated from above; those of
a nested region follow all of the enclosing one's. Use-list orders are read and dropped: they carry no meaning.
"""

from __future__ import annotations

from typing import Any

from compiler.frontend.bytecode.properties import OPTIONAL, REQUIRED
from compiler.frontend.bytecode.stream import ByteStream
from compiler.frontend.bytecode.tables import EntryReader, OperationName, Tables
from compiler.frontend.bytecode.values import value_type
from compiler.frontend.mlir.cursor import MAX_DEPTH
from compiler.frontend.mlir.tree import Block, Operation
from compiler.ir.location import CallSite, FileLocation, FusedLocation, NameLocation
from compiler.ir.types import Type

_ATTRIBUTES, _RESULTS, _OPERANDS, _SUCCESSORS, _REGIONS, _USE_LISTS, _PROPERTIES = (
    1 << bit for bit in range(7)
)
_IR_SECTION = 4
_CAST = "builtin.unrealized_conversion_cast"
"""Stands where a dialect without a stable form meets VHLO's types. Here both have the same types: it changes nothing."""
_LOCATIONS = FileLocation | NameLocation | CallSite | FusedLocation


class _Values:
    """The values of an isolated region: types and names by number, and how many numbers are in use."""

    def __init__(self) -> None:
        self.types: dict[int, Type] = {}
        self.names: dict[int, str] = {}
        self.size = 0

    def leave(self, first: int) -> None:
        """Forgets the values of a nested region, so that the next one numbers its own from `first` again."""
        for number in range(first, self.size):
            self.types.pop(number, None)
            self.names.pop(number, None)
        self.size = first


class OperationReader:
    """Reads the IR section of one artifact."""

    def __init__(self, tables: Tables, version: int) -> None:
        self.tables = tables
        self.version = version
        self.depth = 0

    def top(self, stream: ByteStream) -> list[Operation]:
        """The operations of the section's one block."""
        return self._block(stream, _Values(), 0)[0].operations

    def _block(self, stream: ByteStream, values: _Values, following: int) -> tuple[Block, int]:
        """A block whose first value has the number `following`; gives also the number after its last value."""
        count, has_arguments = stream.flagged()
        stream.held(count, "operations", stream.at)
        block = Block()
        if has_arguments:
            following = self._arguments(stream, block, values, following)
        for _ in range(count):
            first = following
            made, following = self._operation(stream, values, first)
            if made.name == _CAST and len(made.operands) == len(made.results):
                values.names.update(enumerate(made.operands, first))
            else:
                block.operations.append(made)
        return block, following

    def _arguments(self, stream: ByteStream, block: Block, values: _Values, following: int) -> int:
        for _ in range(stream.count("arguments")):
            index, is_located = stream.flagged() if self.version >= 4 else (stream.varint(), True)
            kind = value_type(self.tables.type_at(index, stream), stream)
            location = self.tables.attribute(stream) if is_located else None
            name = self._define(stream, values, following, kind)
            block.arguments.append((name, kind, location if isinstance(location, _LOCATIONS) else None))
            following += 1
        if self.version >= 3 and stream.byte():
            self._use_lists(stream, len(block.arguments))
        return following

    def _define(self, stream: ByteStream, values: _Values, number: int, kind: Type) -> str:
        if number >= values.size:
            stream.fail(f"value {number} is defined, but only {values.size} are announced")
        values.types[number] = kind
        values.names[number] = name = f"%{number}"
        return name

    def _operation(self, stream: ByteStream, values: _Values, following: int) -> tuple[Operation, int]:
        offset = stream.at
        name = self.tables.operation(stream)
        made = Operation(name.name, offset)
        mask = stream.byte()
        location = self.tables.attribute(stream)
        made.location = location if isinstance(location, _LOCATIONS) else None
        if mask & _ATTRIBUTES:
            made.attributes.update(self._dictionary(stream))
        if mask & _PROPERTIES:
            made.attributes.update(self._property(stream, name))
        if mask & _RESULTS:
            for _ in range(stream.count("results")):
                kind = value_type(self.tables.type(stream), stream)
                made.result_types.append(kind)
                made.results.append(self._define(stream, values, following, kind))
                following += 1
        if mask & _OPERANDS:
            self._operands(stream, made, values)
        if mask & _SUCCESSORS:
            stream.fail(f"{made.name} jumps to other blocks, which is not supported")
        if mask & _USE_LISTS and self.version >= 3:
            self._use_lists(stream, len(made.results))
        if mask & _REGIONS:
            self._regions(stream, made, values)
        return made, following

    def _dictionary(self, stream: ByteStream) -> dict[str, Any]:
        found = self.tables.attribute(stream)
        if not isinstance(found, dict):
            stream.fail("an operation's attributes must be a dictionary")
        return found

    def _property(self, stream: ByteStream, name: OperationName) -> dict[str, Any]:
        """Inherent attributes: a dictionary for operations that were not registered, else each operation's own form."""
        if not name.is_registered:
            return self._dictionary(stream)
        index = stream.varint()
        if index >= len(self.tables.properties):
            stream.fail(f"there are no properties {index}")
        inner = EntryReader(self.tables, *self.tables.properties[index], 0)
        if name.name in OPTIONAL:
            found = {key: inner.optional_attribute() for key in OPTIONAL[name.name]}
            return {key: value for key, value in found.items() if value is not None}
        if name.name not in REQUIRED:
            stream.fail(f"the properties of {name.name} are not known")
        return {key: self.tables.attribute(inner) for key in REQUIRED[name.name]}

    def _operands(self, stream: ByteStream, made: Operation, values: _Values) -> None:
        types = values.types
        for _ in range(stream.count("operands")):
            at = stream.at
            number = stream.varint()
            if number not in types:
                stream.fail(f"{made.name} reads value {number}, which is not defined before", at)
            made.operands.append(values.names[number])
            made.operand_types.append(types[number])

    def _use_lists(self, stream: ByteStream, count: int) -> None:
        for _ in range(stream.count("use lists") if count > 1 else 1):
            if count > 1:
                stream.varint()
            for _ in range(stream.held(stream.flagged()[0], "uses", stream.at)):
                stream.varint()

    def _regions(self, stream: ByteStream, made: Operation, values: _Values) -> None:
        at = stream.at
        count, is_isolated = stream.flagged()
        stream.held(count, "regions", at)
        self.depth += 1
        if self.depth > MAX_DEPTH // 4:
            stream.fail(f"regions are nested more than {MAX_DEPTH // 4} deep")
        if is_isolated and self.version >= 2:
            kind, stream = stream.section()
            if kind != _IR_SECTION:
                stream.fail("the region of an isolated operation must be a section of operations", at)
        for _ in range(count):
            region = self._region(stream, _Values() if is_isolated else values)
            if region is not None:
                made.regions.append(region)
        self.depth -= 1

    def _region(self, stream: ByteStream, values: _Values) -> Block | None:
        at = stream.at
        blocks = stream.varint()
        if blocks == 0:
            return None
        if blocks > 1:
            stream.fail("a region of several blocks is not supported: StableHLO regions have one", at)
        first = values.size
        values.size += stream.count("values")
        block, _ = self._block(stream, values, first)
        values.leave(first)
        return block
