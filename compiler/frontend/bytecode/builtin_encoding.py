"""The builtin dialect's encoding of types, attributes and locations, in artifacts that mix dialects and in all locations.

Source: MLIR, `BuiltinDialectBytecode.td`; the codes are positions in its lists and never change.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from compiler.frontend.bytecode.tables import Decoder, EntryReader
from compiler.frontend.bytecode.values import (
    INDEX,
    Bounds,
    constant,
    integer,
    integer_type,
    real,
    sizes,
    tensor_element,
    value_type,
)
from compiler.frontend.mlir.tree import Symbol, Word
from compiler.frontend.mlir.type_text import check_bounds
from compiler.ir.location import CallSite, FileLocation, FusedLocation, Location, NameLocation
from compiler.ir.program import Attributes
from compiler.ir.types import ELEMENTS, ElementType, QuantizedType, TensorType, TupleType

# ---- types ---------------------------------------------------------------------------------------------------------


def _integer_type(reader: EntryReader) -> ElementType:
    raw = reader.varint()
    return integer_type(raw >> 2, raw & 3, reader)


def _function(reader: EntryReader) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    inputs = tuple(value_type(kind, reader) for kind in reader.types())
    return inputs, tuple(value_type(kind, reader) for kind in reader.types())


def _complex(reader: EntryReader) -> ElementType:
    name = f"complex<{reader.type()}>"
    if name not in ELEMENTS:
        reader.fail(f"{name} is not supported")
    return ELEMENTS[name]


def _tensor(reader: EntryReader) -> TensorType:
    shape = sizes(reader.signed_list(), reader)
    return TensorType(tensor_element(reader.type(), reader), shape)


def _encoded_tensor(reader: EntryReader) -> TensorType:
    bounds = reader.attribute()
    plain = _tensor(reader)
    if not isinstance(bounds, Bounds):
        return plain
    check_bounds(plain.shape, bounds)
    return TensorType(plain.element, plain.shape, None, tuple(bounds))


def _tuple(reader: EntryReader) -> TupleType:
    return TupleType(tuple(value_type(kind, reader) for kind in reader.types()))


_TYPES: Mapping[int, Decoder] = MappingProxyType(
    {
        0: _integer_type,
        1: lambda reader: INDEX,
        2: _function,
        3: lambda reader: ELEMENTS["bf16"],
        4: lambda reader: ELEMENTS["f16"],
        5: lambda reader: ELEMENTS["f32"],
        6: lambda reader: ELEMENTS["f64"],
        9: _complex,
        12: lambda reader: Word("none"),
        13: _tensor,
        14: _encoded_tensor,
        15: _tuple,
    }
)


def read_type(reader: EntryReader) -> Any:
    """One type."""
    at = reader.at
    code = reader.varint()
    if code not in _TYPES:
        reader.fail(f"the builtin type with the code {code} is not supported", at)
    return _TYPES[code](reader)


# ---- attributes ----------------------------------------------------------------------------------------------------


def _text(reader: EntryReader) -> str:
    found = reader.attribute()
    if not isinstance(found, str):
        reader.fail("expected a string attribute")
    return str(found)


def _dictionary(reader: EntryReader) -> Attributes:
    found = {}
    for _ in range(reader.count("attributes")):
        name = _text(reader)
        found[name] = reader.attribute()
    return Attributes(found)


def _typed_string(reader: EntryReader) -> str:
    found = reader.text()
    reader.type()
    return found


def _nested_symbol(reader: EntryReader) -> Symbol:
    names = [_text(reader), *(str(name) for name in reader.attributes())]
    return Symbol(names[-1])


def _type_attribute(reader: EntryReader) -> Any:
    found = reader.type()
    return TensorType(found, ()) if isinstance(found, ElementType | QuantizedType) else found


def _array(reader: EntryReader) -> tuple[Any, ...]:
    kind, size, raw = reader.type(), reader.varint(), reader.blob()
    if not isinstance(kind, ElementType) or len(raw) != size * kind.storage_bytes:
        reader.fail(f"{len(raw)} bytes cannot hold {size} elements of {kind}")
    return tuple(np.frombuffer(raw, kind.dtype).tolist())


def _constant(reader: EntryReader) -> Any:
    kind = reader.type()
    return constant(kind, reader.blob(), reader)


def _resource(reader: EntryReader) -> Any:
    kind, index = reader.type(), reader.varint()
    resources = reader.tables.resources
    raw = resources[index] if index < len(resources) else None
    if raw is None:
        reader.fail(f"there is no data for resource {index}")
    return constant(kind, raw, reader)


# ---- locations -----------------------------------------------------------------------------------------------------


def _location(reader: EntryReader) -> Location | None:
    found = reader.attribute()
    if found is not None and not isinstance(found, FileLocation | NameLocation | CallSite | FusedLocation):
        reader.fail("expected a location")
    return found


def _call_site(reader: EntryReader) -> Location | None:
    callee, caller = _location(reader), _location(reader)
    return CallSite(callee, caller) if callee and caller else callee or caller


def _file_location(reader: EntryReader) -> FileLocation:
    name = _text(reader)
    return FileLocation(name, reader.varint(), reader.varint())


def _fused(reader: EntryReader) -> Location | None:
    found = [_location(reader) for _ in range(reader.count("locations"))]
    known = tuple(child for child in found if child is not None)
    return FusedLocation(known) if known else None


def _fused_with_metadata(reader: EntryReader) -> Location | None:
    found = _fused(reader)
    metadata = str(reader.attribute())
    return FusedLocation(found.children, metadata) if isinstance(found, FusedLocation) else None


def _named(reader: EntryReader) -> NameLocation:
    return NameLocation(_text(reader), _location(reader))


def _file_range(reader: EntryReader) -> FileLocation:
    name = _text(reader)
    numbers = [reader.varint() for _ in range(reader.count("numbers"))]
    return FileLocation(name, *[*numbers, 0, 0][:2])


_ATTRIBUTES: Mapping[int, Decoder] = MappingProxyType(
    {
        0: EntryReader.attributes,
        1: _dictionary,
        2: EntryReader.text,
        3: _typed_string,
        4: lambda reader: Symbol(_text(reader)),
        5: _nested_symbol,
        6: _type_attribute,
        7: lambda reader: True,
        8: lambda reader: integer(reader, reader.type()),
        9: lambda reader: real(reader, reader.type()),
        10: _call_site,
        11: _file_location,
        12: _fused,
        13: _fused_with_metadata,
        14: _named,
        15: lambda reader: None,
        16: _resource,
        17: _array,
        18: _constant,
        22: _file_range,
    }
)


def read_attribute(reader: EntryReader) -> Any:
    """One attribute, as the reader of text would give it; a location that is not known is None."""
    at = reader.at
    code = reader.varint()
    if code not in _ATTRIBUTES:
        reader.fail(f"the builtin attribute with the code {code} is not supported", at)
    return _ATTRIBUTES[code](reader)
