"""What both encodings make of numbers, types and constants: the values that the reader of MLIR text would give."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from compiler.frontend.bytecode.stream import ByteStream, integer_of_width
from compiler.frontend.mlir.constant_text import from_bytes
from compiler.frontend.mlir.tree import Word
from compiler.frontend.mlir.type_text import MAX_RANK
from compiler.ir.attribute_values import TypedFloat, TypedInt
from compiler.ir.literal import Literal
from compiler.ir.types import (
    DYNAMIC,
    ELEMENTS,
    I64,
    AnyElement,
    ElementType,
    QuantizedType,
    TensorType,
    TokenType,
    TupleType,
    Type,
)

INDEX = Word("index")
"""The type `index`, which is 64 bits wide."""
_UNKNOWN_SIZE = -(1 << 63)


class Bounds(tuple[int, ...]):
    """Upper bounds of the dimensions of a tensor type."""

    __slots__ = ()


def sizes(raw: tuple[int, ...], stream: ByteStream) -> tuple[int, ...]:
    """Dimension sizes; the least 64-bit integer (in old artifacts -1) stands for one that is not known."""
    if len(raw) > MAX_RANK:
        stream.fail(f"a tensor of rank {len(raw)} is beyond what is supported ({MAX_RANK})")
    found = tuple(DYNAMIC if size in (_UNKNOWN_SIZE, -1) else size for size in raw)
    if any(size < DYNAMIC or size >= 1 << 62 for size in found):
        stream.fail("a dimension's size is beyond what can be addressed")
    return found


def tensor_element(found: Any, stream: ByteStream) -> AnyElement:
    """A type as the element of a tensor."""
    if isinstance(found, ElementType | QuantizedType):
        return found
    if found == INDEX:
        return I64
    stream.fail(f"{found} cannot be the element of a tensor")


def value_type(found: Any, stream: ByteStream) -> Type:
    """A type as that of a value: scalars are tensors of rank 0."""
    if isinstance(found, TensorType | TupleType | TokenType):
        return found
    return TensorType(tensor_element(found, stream), ())


def integer(stream: ByteStream, kind: Any) -> int:
    """The value of an integer attribute of a type."""
    if kind == INDEX:
        return integer_of_width(stream, 64, False)
    if not isinstance(kind, ElementType) or not (kind.is_integer or kind.kind == "bool"):
        stream.fail(f"{kind} is no integer type")
    value = integer_of_width(stream, kind.bits, kind.kind == "uint")
    if kind.kind == "bool":
        return bool(value & 1)
    return value if kind is I64 else TypedInt(value, kind.name)


def real(stream: ByteStream, kind: Any) -> float:
    """The value of a floating-point attribute of a type."""
    if not isinstance(kind, ElementType) or not kind.is_float:
        stream.fail(f"{kind} is no floating-point type")
    raw = integer_of_width(stream, kind.bits, True)
    value = float(np.frombuffer(raw.to_bytes(kind.storage_bytes, "little"), kind.dtype)[0])
    return value if kind.name == "f64" else TypedFloat(value, kind.name)


def double(stream: ByteStream) -> float:
    """A 64-bit floating-point number."""
    found: float = struct.unpack("<d", integer_of_width(stream, 64, True).to_bytes(8, "little"))[0]
    return found


def constant(kind: Any, raw: bytes, stream: ByteStream) -> Literal:
    """A constant from its bytes; one element stands for all of them."""
    if not isinstance(kind, TensorType) or not kind.is_static:
        stream.fail(f"a constant needs a tensor type of static shape, not {kind}")
    element = kind.element.storage if isinstance(kind.element, QuantizedType) else kind.element
    return from_bytes(raw, kind, element)


def integer_type(width: int, signedness: int, stream: ByteStream) -> ElementType:
    """The integer type of a width; signedness is 0 (signless), 1 (signed) or 2 (unsigned)."""
    name = f"{'ui' if signedness == 2 else 'i'}{width}"
    if name not in ELEMENTS or signedness > 2:
        stream.fail(f"integers of {width} bits are not supported")
    return ELEMENTS[name]
