"""The VHLO dialect's encoding of types and attributes: StableHLO's stable form, whose numbers never change.

Values come out as the reader of StableHLO text would give them, so that what follows is the same for both.
Source: StableHLO, `VhloBytecode.cpp` (codes), `VhloEnums.td` (members of enumerations), "StableHLO Compatibility".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from compiler.frontend.bytecode.tables import Decoder, EntryReader
from compiler.frontend.bytecode.values import (
    INDEX,
    Bounds,
    constant,
    double,
    integer,
    integer_type,
    real,
    sizes,
    tensor_element,
    value_type,
)
from compiler.frontend.mlir.tree import Raw, Word
from compiler.frontend.mlir.type_text import check_bounds
from compiler.ir.program import Attributes
from compiler.ir.types import (
    ELEMENTS,
    TOKEN,
    BufferType,
    ElementType,
    FutureType,
    QuantizedType,
    TensorType,
    TupleType,
)

# ---- types ---------------------------------------------------------------------------------------------------------

_SCALARS = MappingProxyType(
    {
        0: "i1", 2: "bf16", 3: "f16", 4: "f32", 5: "f64", 6: "f8E4M3FN", 7: "f8E5M2",
        10: "i4", 11: "i8", 12: "i16", 13: "i32", 14: "i64",
        15: "ui4", 16: "ui8", 17: "ui16", 18: "ui32", 19: "ui64",
        27: "f8E4M3FNUZ", 28: "f8E5M2FNUZ", 29: "f8E4M3B11FNUZ", 31: "i2", 32: "ui2",
        35: "f8E4M3", 36: "f8E3M4", 37: "f4E2M1FN", 38: "f6E2M3FN", 39: "f6E3M2FN", 40: "f8E8M0FNU",
    }
)  # fmt: skip
_WORDS = MappingProxyType({9: INDEX, 26: Word("witness"), 33: Word("none"), 34: Word("tf32")})


def _complex(reader: EntryReader) -> ElementType:
    part = reader.type()
    name = f"complex<{part}>"
    if name not in ELEMENTS:
        reader.fail(f"complex numbers of {part} are not supported")
    return ELEMENTS[name]


def _function(reader: EntryReader) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    inputs = tuple(value_type(kind, reader) for kind in reader.types())
    return inputs, tuple(value_type(kind, reader) for kind in reader.types())


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


def _buffer(reader: EntryReader) -> BufferType:
    plain = _tensor(reader)
    return BufferType(plain.element, plain.shape)


def _tuple(reader: EntryReader) -> TupleType:
    return TupleType(tuple(value_type(kind, reader) for kind in reader.types()))


def _future(reader: EntryReader) -> FutureType:
    return FutureType(tuple(value_type(kind, reader) for kind in reader.types()))


def _storage(reader: EntryReader, flags: int) -> ElementType:
    found = reader.type()
    if not isinstance(found, ElementType) or not found.is_integer:
        reader.fail(f"{found} cannot store quantised values")
    return integer_type(found.bits, 1 if flags & 1 else 2, reader)


def _expressed(reader: EntryReader) -> ElementType:
    found = reader.type()
    if not isinstance(found, ElementType) or not found.is_float:
        reader.fail(f"quantised values cannot express {found}")
    return found


def _quantized(reader: EntryReader) -> QuantizedType:
    storage = _storage(reader, reader.varint())
    expressed = _expressed(reader)
    scale, zero = double(reader), reader.signed()
    return QuantizedType(storage, expressed, (scale,), (zero,), reader.signed(), reader.signed())


def _quantized_per_axis(reader: EntryReader) -> QuantizedType:
    storage = _storage(reader, reader.varint())
    expressed = _expressed(reader)
    axis, low, high = reader.varint(), reader.signed(), reader.signed()
    scales = tuple(double(reader) for _ in range(reader.count("scales")))
    zeros = reader.signed_list()
    if len(zeros) != len(scales):
        reader.fail(f"{len(scales)} scales, but {len(zeros)} zero points")
    return QuantizedType(storage, expressed, scales, zeros, low, high, axis)


def _unranked(reader: EntryReader) -> TensorType:
    reader.fail("tensors of unknown rank are not supported")


_TYPES: Mapping[int, Decoder] = MappingProxyType(
    {
        1: _complex,
        8: _function,
        20: _tensor,
        21: _encoded_tensor,
        23: _tuple,
        24: _quantized,
        25: _unranked,
        30: _quantized_per_axis,
        41: _buffer,
        42: _future,
    }
)


def read_type(reader: EntryReader) -> Any:
    """One type: an element type, a `Type`, a pair of tuples (function) or a word (`index`, `none`, `tf32`, `witness`)."""
    at = reader.at
    code = reader.varint()
    if code in _SCALARS:
        return ELEMENTS[_SCALARS[code]]
    if code == 22:
        return TOKEN
    if code in _WORDS:
        return _WORDS[code]
    if code not in _TYPES:
        reader.fail(f"VHLO has no type with the code {code}", at)
    return _TYPES[code](reader)


# ---- attributes ----------------------------------------------------------------------------------------------------


def _members(words: str, first: int = 0) -> Mapping[int, Word]:
    return MappingProxyType({index: Word(word) for index, word in enumerate(words.split(), first)})


def _enumeration(words: str, first: int = 0) -> Decoder:
    members = _members(words, first)

    def read(reader: EntryReader) -> Word:
        at = reader.at
        value = reader.varint()
        if value not in members:
            reader.fail(f"{value} is not one of {', '.join(members.values())}", at)
        return members[value]

    return read


def _boolean(reader: EntryReader) -> bool:
    value = reader.varint()
    if value > 1:
        reader.fail(f"{value} is no truth value")
    return bool(value)


def _api_version(reader: EntryReader) -> int:
    value = reader.varint()
    if value > 4:
        reader.fail(f"there is no version {value} of the custom call API")
    return value


def _dictionary(reader: EntryReader) -> Attributes:
    found = {}
    for _ in range(reader.count("attributes")):
        name = reader.attribute()
        if not isinstance(name, str):
            reader.fail("an attribute's name must be a string")
        found[str(name)] = reader.attribute()
    return Attributes(found)


def _type_attribute(reader: EntryReader) -> Any:
    found = reader.type()
    return TensorType(found, ()) if isinstance(found, ElementType | QuantizedType) else found


def _alias(reader: EntryReader) -> Attributes:
    outputs, operand = reader.signed_list(), reader.signed()
    return Attributes(
        output_tuple_indices=outputs, operand_index=operand, operand_tuple_indices=reader.signed_list()
    )


def _accuracy(reader: EntryReader) -> Attributes:
    """Absolute and relative tolerance, units in the last place, and how they are meant."""
    absolute, relative, ulps = double(reader), double(reader), reader.signed()
    return Attributes(atol=absolute, rtol=relative, ulps=ulps, mode=reader.attribute())


def _tensor_constant(reader: EntryReader) -> Any:
    kind = reader.type()
    return constant(kind, reader.blob(), reader)


def _sub_axis(reader: EntryReader) -> Raw:
    return Raw(f"({reader.signed()}){reader.signed()}")


def _axis(reader: EntryReader) -> Raw:
    name = reader.attribute()
    part = f", sub_axis_info = {reader.attribute()}" if reader.varint() else ""
    return Raw(f'#stablehlo.axis_ref<name = "{name}"{part}>')


def _mesh_axis(reader: EntryReader) -> Raw:
    name = reader.attribute()
    return Raw(f'"{name}"={reader.signed()}')


def _mesh(reader: EntryReader) -> Attributes:
    axes, devices = reader.attribute(), reader.optional_attribute()
    return Attributes(axes=axes) if devices is None else Attributes(axes=axes, device_ids=devices)


def _mesh_axes(reader: EntryReader) -> Attributes:
    mesh = reader.attribute()
    return Attributes(mesh=mesh, axes=reader.attribute())


_ATTRIBUTES: Mapping[int, Callable[[EntryReader], Any]] = MappingProxyType(
    {
        1: EntryReader.attributes,
        2: _boolean,
        3: _enumeration("EQ NE GE GT LE LT"),
        4: _enumeration("NOTYPE FLOAT TOTALORDER SIGNED UNSIGNED"),
        5: _api_version,
        6: _dictionary,
        7: _enumeration("FFT IFFT RFFT IRFFT"),
        8: lambda reader: real(reader, reader.type()),
        9: lambda reader: integer(reader, reader.type()),
        10: _alias,
        11: _enumeration("DEFAULT HIGH HIGHEST"),
        12: _enumeration("DEFAULT THREE_FRY PHILOX"),
        13: _enumeration("UNIFORM NORMAL", 1),
        14: EntryReader.text,
        15: _tensor_constant,
        16: _enumeration("TRANSPOSE_INVALID NO_TRANSPOSE TRANSPOSE ADJOINT"),
        17: _type_attribute,
        18: lambda reader: Bounds(sizes(reader.signed_list(), reader)),
        19: _enumeration("DEFAULT HIGHEST TOLERANCE"),
        20: _accuracy,
        21: _sub_axis,
        22: _axis,
        23: _mesh_axes,
        24: _mesh_axis,
        25: _mesh,
    }
)


def read_attribute(reader: EntryReader) -> Any:
    """One attribute, as the reader of text would give it."""
    at = reader.at
    code = reader.varint()
    if code not in _ATTRIBUTES:
        reader.fail(f"VHLO has no attribute with the code {code}", at)
    return _ATTRIBUTES[code](reader)
