"""The sections of an MLIR bytecode file, put together: magic, version, producer, tables, operations.

Source: MLIR's "Bytecode Format" document, versions 0 to 6.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from compiler.frontend.bytecode import builtin_encoding, sdy_encoding, vhlo_encoding
from compiler.frontend.bytecode.operations import OperationReader
from compiler.frontend.bytecode.stream import MAGIC, ByteStream
from compiler.frontend.bytecode.tables import Tables
from compiler.frontend.mlir.tree import Operation

_VERSIONS = 6
_STRINGS, _DIALECTS, _ENTRIES, _OFFSETS, _IR, _RESOURCES, _RESOURCE_OFFSETS, _, _PROPERTIES = range(9)
_NAMES = ("strings", "dialects", "attributes and types", "offsets", "operations")
_DECODERS = MappingProxyType(
    {
        "builtin": (builtin_encoding.read_attribute, builtin_encoding.read_type),
        "sdy": (sdy_encoding.read_attribute, sdy_encoding.read_type),
        "vhlo": (vhlo_encoding.read_attribute, vhlo_encoding.read_type),
    }
)


def read_operations(stream: ByteStream) -> list[Operation]:
    """The operations at the top of an artifact, in the dialects it was written in.

    Raises:
        SourceError: when it is damaged or of a version or dialect that cannot be read.
    """
    if stream.take(len(MAGIC)) != MAGIC:
        stream.fail("this is not MLIR bytecode", stream.base)
    version = stream.varint()
    if version > _VERSIONS:
        stream.fail(f"version {version} of MLIR bytecode is newer than can be read ({_VERSIONS})")
    stream.terminated()
    sections = _sections(stream)
    tables = Tables(stream, _DECODERS, (_attribute_of_text, _type_of_text))
    tables.read_strings(sections[_STRINGS])
    tables.read_dialects(sections[_DIALECTS], version)
    tables.read_offsets(sections[_OFFSETS], sections[_ENTRIES])
    if _RESOURCES in sections and _RESOURCE_OFFSETS in sections:
        tables.read_resources(sections[_RESOURCE_OFFSETS], sections[_RESOURCES])
    if _PROPERTIES in sections:
        tables.read_properties(sections[_PROPERTIES])
    return OperationReader(tables, version).top(sections[_IR])


def _sections(stream: ByteStream) -> dict[int, ByteStream]:
    found: dict[int, ByteStream] = {}
    while stream.left:
        at = stream.at
        kind, window = stream.section()
        if kind > _PROPERTIES:
            stream.fail(f"there is no section of kind {kind}", at)
        if kind in found:
            stream.fail(f"section {kind} stands here a second time", at)
        found[kind] = window
    for kind, name in enumerate(_NAMES):
        if kind not in found:
            stream.fail(f"the section of {name} is missing")
    return found


def _attribute_of_text(text: str) -> Any:
    """An attribute that stands in the file as MLIR text."""
    from compiler.frontend.mlir.reader import Reader

    return Reader(text, "the artifact's text").attribute()


def _type_of_text(text: str) -> Any:
    """A type that stands in the file as MLIR text."""
    from compiler.frontend.mlir.reader import Reader

    return Reader(text, "the artifact's text").type()
