"""Types, names and constants in the spelling of XLA's HLO text."""

from __future__ import annotations

import re
import zlib
from functools import lru_cache
from typing import Any

import numpy as np

from compiler.ir.literal import Literal
from compiler.ir.types import DYNAMIC, ElementType, QuantizedType, TensorType, TokenType, TupleType, Type

_NAME = re.compile(r"[A-Za-z_][\w.\-]*\Z")
_OTHER = re.compile(r"[^\w.\-]", re.ASCII)


@lru_cache(maxsize=65536)
def name_text(name: str) -> str:
    """A name that HLO text accepts: the name itself, or one derived from it with a checksum to keep it distinct."""
    if _NAME.match(name) and name.isascii():
        return name
    plain = _OTHER.sub("_", name)
    plain = plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"
    return f"{plain}.x{zlib.crc32(name.encode('utf-8', 'surrogatepass')):08x}"


@lru_cache(maxsize=65536)
def type_text(value: Type) -> str:
    """`f32[2,3]{1,0}`, `(f32[], token[])`. A quantised type is shown as the type it is stored in, which is all HLO has."""
    if isinstance(value, TupleType):
        shown = (f"{_index(i)}{type_text(entry)}" for i, entry in enumerate(value.elements))
        return f"({', '.join(shown)})"
    if isinstance(value, TokenType):
        return "token[]"
    element = value.element.storage if isinstance(value.element, QuantizedType) else value.element
    bounds = value.bounds or (DYNAMIC,) * value.rank
    sizes = (_size(size, bound) for size, bound in zip(value.shape, bounds, strict=True))
    layout = (
        f"{{{','.join(map(str, value.minor_to_major))}{_suffix(value)}}}"
        if value.rank or value.layout
        else ""
    )
    return f"{element.hlo_name}[{','.join(sizes)}]{layout}"


def _index(index: int) -> str:
    return f"/*index={index}*/" if index and index % 5 == 0 else ""


def _size(size: int, bound: int) -> str:
    if size != DYNAMIC:
        return str(size)
    return f"<={bound}" if bound != DYNAMIC else "?"


def _suffix(value: TensorType) -> str:
    return value.layout.suffix if value.layout is not None else ""


def quote(text: str) -> str:
    """A string as HLO text takes it (C's escapes)."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    shown = escaped.replace("\t", "\\t").replace("\0", "\\000")
    return f'"{shown}"'


def literal_text(literal: Literal, limit: int | None = None) -> str:
    """All elements of a constant, `{1, 2}` by dimension; above `limit` elements, `{...}` (which no parser reads back)."""
    shape = literal.type.shape
    if not shape:
        return elements_text(literal.array.reshape(1), literal.type.element)[0]
    if limit is not None and literal.array.size > limit:
        return "{...}"
    if literal.array.size == 0:
        return _empty(shape)
    if literal.is_splat:
        rows = elements_text(literal.array[(slice(0, 1),) * len(shape)].reshape(-1), literal.type.element)
        rows *= literal.array.size
    else:
        rows = elements_text(literal.array.reshape(-1), literal.type.element)
    for depth, size in enumerate(reversed(shape)):
        opening, closing = ("{", "}") if depth == 0 else ("{ ", " }")
        rows = [
            f"{opening}{', '.join(rows[start : start + size])}{closing}"
            for start in range(0, len(rows), size)
        ]
    return rows[0]


def _empty(shape: tuple[int, ...]) -> str:
    """Braces down to the first dimension of no elements."""
    text = "{}"
    outer = shape[: shape.index(0)]
    for size in reversed(outer):
        text = "{ " + ", ".join([text] * size) + " }"
    return text


def elements_text(flat: np.ndarray[Any, np.dtype[Any]], element: Any) -> list[str]:
    """Each element as text that reads back to the same bits."""
    kind = element.storage if isinstance(element, QuantizedType) else element
    assert isinstance(kind, ElementType)
    if kind.kind == "bool":
        return ["true" if value else "false" for value in flat.tolist()]
    if kind.is_integer:
        wide = flat.astype(np.int64 if kind.kind == "int" else np.uint64)
        return [str(value) for value in wide.tolist()]
    if kind.is_complex:
        halves = flat.view(kind.real.dtype)
        parts = elements_text(halves, kind.real)
        return [f"({real}, {imag})" for real, imag in zip(parts[::2], parts[1::2], strict=True)]
    wide = flat if kind.name in ("f32", "f64") else flat.astype(np.float32)
    with np.errstate(all="ignore"):
        texts = [_float(text) for text in wide.astype("U32").tolist()]
    if np.isnan(wide).any():
        for index in np.flatnonzero(np.isnan(wide)).tolist():
            texts[index] = _nan(flat[index : index + 1], kind)
    return texts


def _float(text: str) -> str:
    return text[:-2] if text.endswith(".0") else text


def _nan(value: np.ndarray[Any, np.dtype[Any]], kind: ElementType) -> str:
    """`nan`, `-nan`, or `nan(0x…)` with the bits of the significand when they are not the usual ones."""
    mantissa = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}.get(kind.name)
    if mantissa is None:
        return "nan"
    bits = int.from_bytes(value.tobytes(), "little")
    sign = "-" if bits >> (kind.bits - 1) else ""
    payload = bits & ((1 << mantissa) - 1)
    return f"{sign}nan" if payload == 1 << (mantissa - 1) else f"{sign}nan(0x{payload:x})"
