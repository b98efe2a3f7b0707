"""Constants: scalars, nested braces, complex pairs, `inf`, `nan(0x…)`, of every element type."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np

from compiler.ir.literal import Array, Literal
from compiler.ir.types import ElementType, TensorType

ELIDED = "{...}"
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_ELIDED = re.compile(r"\{\s*\.\.\.\s*\}")
_PAIR = re.compile(r"\(\s*([^,()]+(?:\([^()]*\))?)\s*,\s*([^,()]+(?:\([^()]*\))?)\s*\)")
_NAN = re.compile(r"(-?)nan(?:\((?:0x)?([0-9a-fA-F]+)\))?\Z")
_INTEGER = re.compile(r"-?\d+\Z", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\Z|[-+]?inf(?:inity)?\Z", re.ASCII)
_HEX_FLOAT = re.compile(r"[-+]?0[xX][0-9a-fA-F.]+(?:[pP][-+]?\d+)?\Z", re.ASCII)
_BOOLS = {"true": True, "false": False, "1": True, "0": False}
_MANTISSA = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}
_SCALAR_CACHE = 128
"""Texts up to this length are remembered."""


def is_elided(body: str) -> bool:
    """True for a constant whose elements were left out of the text."""
    return _ELIDED.fullmatch(body.strip()) is not None


def constant_literal(body: str, kind: TensorType) -> Literal:
    """The constant that the text between the parentheses of `constant(…)` stands for.

    Raises:
        ValueError: with a message for the user.
    """
    return _short(body, kind) if len(body) <= _SCALAR_CACHE else _literal(body, kind)


@lru_cache(maxsize=16384)
def _short(body: str, kind: TensorType) -> Literal:
    return _literal(body, kind)


def _literal(body: str, kind: TensorType) -> Literal:
    if not kind.is_static:
        raise ValueError(f"a constant needs a static shape, not {kind}")
    element = kind.element
    assert isinstance(element, ElementType)
    value_type = kind.with_layout(None)
    if "/*" in body:
        body = _COMMENT.sub(" ", body)
    body = body.strip()
    if not kind.shape:
        if "{" in body or "}" in body:
            raise ValueError(f"a constant of {kind} is one number, not a list")
        words = _words(body, element)
        if len(words) != 1:
            raise ValueError(f"{len(words)} elements for {kind}, which holds 1")
        return Literal(value_type, _elements(words, element).reshape(()))
    _check_braces(body, kind)
    words = _words(body.replace("{", " ").replace("}", " "), element)
    if len(words) != kind.size:
        raise ValueError(f"{len(words)} elements for {kind}, which holds {kind.size}")
    return Literal(value_type, _elements(words, element).reshape(kind.shape))


def _check_braces(body: str, kind: TensorType) -> None:
    """Lists must be nested as deep as the type has dimensions, and there must be as many as it says."""
    depth = re.match(r"[{\s]*", body)
    assert depth is not None
    lists = 1
    opened = 0
    for size in kind.shape:
        opened += lists
        lists *= size
        if not lists:
            break
    if lists and depth[0].count("{") != kind.rank:
        raise ValueError(
            f"the constant's lists are nested {depth[0].count('{')} deep, but {kind} has rank {kind.rank}"
        )
    if body.count("{") != opened or body.count("}") != opened:
        raise ValueError(f"the constant has {body.count('{')} lists, but {kind} takes {opened}")


def _words(body: str, element: ElementType) -> list[Any]:
    if element.kind == "complex":
        rest = _PAIR.sub("", body)
        if rest.replace(",", "").strip():
            raise ValueError(f"'{rest.strip(' ,')[:40]}' is not a value of type {element.name}")
        return _PAIR.findall(body)
    words = [word.strip() for word in body.split(",")]
    return [] if words == [""] else [word for word in words if word] if _is_blank(words) else words


def _is_blank(words: list[str]) -> bool:
    """Commas between empty lists leave empty words alone."""
    return not any(words)


def _elements(words: list[Any], element: ElementType) -> Array:
    if element.kind == "complex":
        halves = [half for pair in words for half in pair]
        return _floats(halves, element.real).view(element.dtype)
    if element.kind == "bool":
        _require_all(words, element, lambda word: word in _BOOLS)
        return np.array([_BOOLS[word] for word in words], np.bool_)
    if element.kind == "float":
        return _floats(words, element)
    _require_all(words, element, lambda word: _INTEGER.match(word) is not None)
    low, high = -(1 << (element.bits - 1)), (1 << element.bits) - 1
    values = [int(word) for word in words]
    if element.kind == "int":
        high = -low - 1
    else:
        low = 0
    for value in values:
        if not low <= value <= high:
            raise ValueError(f"{value} does not fit {element.name}")
    wide = np.array(values, np.uint64 if element.kind == "uint" else np.int64)
    return wide.astype(element.dtype)


def _require_all(words: list[str], element: ElementType, holds: Any) -> None:
    for word in words:
        if not holds(word):
            raise ValueError(f"'{word[:40]}' is not a value of type {element.name}")


def _floats(words: list[str], element: ElementType) -> Array:
    """Decimal texts, each rounded once; NaNs with the bits that the text gives."""
    special: dict[int, int | None] = {}
    values = []
    for index, word in enumerate(words):
        if _FLOAT.match(word):
            values.append(float(word))
        elif (match := _NAN.match(word)) is not None:
            special[index] = _nan_bits(match, element)
            values.append(float("nan"))
        elif _HEX_FLOAT.match(word):
            values.append(float.fromhex(word))
        else:
            raise ValueError(f"'{word[:40]}' is not a value of type {element.name}")
    with np.errstate(all="ignore"):
        made = np.array(values, np.float64).astype(element.dtype)
    for index, bits in special.items():
        if bits is not None:
            raw = bits.to_bytes(element.storage_bytes, "little")
            made[index : index + 1] = np.frombuffer(raw, element.dtype)
    return made


def _nan_bits(match: re.Match[str], element: ElementType) -> int | None:
    """The bits of `nan`, `-nan` or `nan(0x…)`, the number being the significand; None where NumPy's own NaN will do."""
    mantissa = _MANTISSA.get(element.name)
    if mantissa is None:
        return None
    payload = int(match[2], 16) if match[2] else 1 << (mantissa - 1)
    if not 0 < payload < 1 << mantissa:
        raise ValueError(f"{match[0]} does not fit {element.name}")
    exponent = ((1 << (element.bits - 1 - mantissa)) - 1) << mantissa
    sign = (1 << (element.bits - 1)) if match[1] else 0
    return sign | exponent | payload
