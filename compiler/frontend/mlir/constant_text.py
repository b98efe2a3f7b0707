"""Dense constants: hexadecimal blobs straight into arrays, lists, splats, of every element type."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from compiler.ir.literal import Array, Literal
from compiler.ir.types import ElementType, QuantizedType, TensorType

_ITEM = re.compile(r"\(\s*([^,()]+)\s*,\s*([^,()]+)\s*\)|([^\s,\[\]()]+)")


def dense_literal(token: str, tensor_type: TensorType) -> Literal:
    """The constant that a `dense<…>` token stands for.

    Raises:
        ValueError: with a message for the user.
    """
    body = token[len("dense<") : -1].strip()
    stored = tensor_type.element
    element = stored.storage if isinstance(stored, QuantizedType) else stored
    if not tensor_type.is_static:
        raise ValueError(f"a constant needs a static shape, not {tensor_type}")
    if body.startswith('"'):
        return _from_hex(body.strip('"'), tensor_type, element)
    if body == "":
        if tensor_type.size:
            raise ValueError(f"an empty constant for {tensor_type}")
        return Literal(tensor_type, np.zeros(tensor_type.shape, element.dtype))
    if not body.startswith("["):
        return Literal(tensor_type, _array([_scalar(body, element)], element).reshape(()))
    _check_nesting(body, tensor_type.shape)
    flat = _items(body, element)
    if flat.size != tensor_type.size:
        raise ValueError(f"{flat.size} elements for {tensor_type}, which holds {tensor_type.size}")
    return Literal(tensor_type, flat.reshape(tensor_type.shape))


def _check_nesting(body: str, shape: tuple[int, ...]) -> None:
    depth = len(body) - len(body.lstrip("[ \n\t\r"))
    depth = body[:depth].count("[")
    if depth != len(shape):
        raise ValueError(f"the constant's lists are nested {depth} deep for a tensor of rank {len(shape)}")


def _items(body: str, element: ElementType) -> Array:
    if element.kind == "complex" or "x" in body:
        found = [m.group(3) or (m.group(1), m.group(2)) for m in _ITEM.finditer(body)]
        return _array([_scalar(item, element) for item in found], element)
    plain = body.replace("[", " ").replace("]", " ")
    words = plain.split(",")
    try:
        if element.kind == "bool":
            return np.array([_BOOLS[word.strip()] for word in words], np.bool_)
        if element.kind == "float":
            return _rounded(np.array([float(word) for word in words], np.float64), element)
        return _array([int(word) for word in words], element)
    except (KeyError, ValueError):
        bad = next((word.strip() for word in words if not _is_number(word.strip(), element)), "")
        raise ValueError(f"'{bad[:40]}' is not a value of type {element.name}") from None


_BOOLS = {"true": True, "false": False, "1": True, "0": False}


def _is_number(word: str, element: ElementType) -> bool:
    try:
        return word in _BOOLS if element.kind == "bool" else float(word) is not None
    except ValueError:
        return False


def _scalar(item: Any, element: ElementType) -> Any:
    if isinstance(item, tuple):
        return complex(_real(item[0], element.real), _real(item[1], element.real))
    text = str(item)
    if text.startswith("("):
        parts = text.strip("()").split(",")
        if len(parts) == 2 and element.kind == "complex":
            return complex(_real(parts[0], element.real), _real(parts[1], element.real))
    if element.kind == "bool":
        if text in _BOOLS:
            return _BOOLS[text]
    elif element.is_integer:
        try:
            return int(text, 0)
        except ValueError:
            pass
    else:
        return _real(text, element)
    raise ValueError(f"'{text[:40]}' is not a value of type {element.name}")


def _real(text: str, element: ElementType) -> float:
    text = text.strip()
    negative = text.startswith("-0x")
    if text.startswith("0x") or negative:
        bits = int(text.lstrip("-"), 16)
        size = element.storage_bytes
        if bits >= 1 << (8 * size):
            raise ValueError(f"{text} is wider than {element.name}")
        value = np.frombuffer(bits.to_bytes(size, "little"), element.dtype)[0]
        return _Exact(value)
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"'{text[:40]}' is not a value of type {element.name}") from None


class _Exact(float):
    """A float that remembers the very bits it was given as (NaN payloads)."""

    bits: Any

    def __new__(cls, value: Any) -> _Exact:
        made = super().__new__(cls, float(value))
        made.bits = value
        return made


def _array(values: list[Any], element: ElementType) -> Array:
    if element.is_integer:
        low, high = integer_limits(element)
        for value in values:
            if not low <= value <= high:
                raise ValueError(f"{value} does not fit {element.name}")
        wide = np.array(values, np.uint64 if element.kind == "uint" else np.int64)
        return wide.astype(element.dtype)
    if element.kind == "float":
        exact = [v.bits if isinstance(v, _Exact) else None for v in values]
        made = _rounded(np.array([float(v) for v in values], np.float64), element)
        for index, bits in enumerate(exact):
            if bits is not None:
                made[index] = bits
        return made
    return np.array(values, element.dtype)


def integer_limits(element: ElementType) -> tuple[int, int]:
    """Least and greatest value that may be written; signed types may also be written as their bits."""
    if element.kind == "uint":
        return 0, (1 << element.bits) - 1
    return -(1 << (element.bits - 1)), (1 << (element.bits - 1)) - 1


def _rounded(wide: Array, element: ElementType) -> Array:
    with np.errstate(all="ignore"):
        return wide.astype(element.dtype)


def _from_hex(text: str, tensor_type: TensorType, element: ElementType) -> Literal:
    if not text.startswith("0x"):
        raise ValueError("a dense string constant must be hexadecimal")
    try:
        raw = bytes.fromhex(text[2:])
    except ValueError:
        raise ValueError("the constant's bytes are not hexadecimal digits") from None
    return from_bytes(raw, tensor_type, element)


def from_bytes(raw: bytes, tensor_type: TensorType, element: ElementType) -> Literal:
    """A constant from little-endian bytes; booleans may be packed eight to a byte.

    Raises:
        ValueError: when the length does not fit.
    """
    size = tensor_type.size
    width = element.storage_bytes
    if element.kind == "bool" and len(raw) == -(-size // 8) and len(raw) != size:
        bits = np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little")[:size]
        return Literal(tensor_type, bits.astype(np.bool_).reshape(tensor_type.shape))
    if len(raw) == width and size != 1:
        return Literal(tensor_type, _view(raw, element).reshape(()))
    if len(raw) != size * width:
        raise ValueError(f"{len(raw)} bytes for {tensor_type}, which takes {size * width}")
    return Literal(tensor_type, _view(raw, element).reshape(tensor_type.shape))


def _view(raw: bytes, element: ElementType) -> Array:
    if element.kind == "bool":
        return np.frombuffer(raw, np.uint8).astype(np.bool_)
    if element.is_integer and element.bits < 8:
        return np.frombuffer(raw, np.int8 if element.kind == "int" else np.uint8).astype(element.dtype)
    found: Array = np.frombuffer(raw, element.dtype)
    return found
