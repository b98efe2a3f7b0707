"""Shapes: `f32[2,<=3]{1,0:T(8,128)S(1)}`, `token[]`; the tokens that hold them are cached by their text."""

from __future__ import annotations

import re
from functools import lru_cache

from compiler.ir.types import DYNAMIC, HLO_ELEMENTS, TOKEN, Layout, TensorType, Type

SHAPE = re.compile(r"([a-z][a-z0-9]*)\[([^\]]*)\](?:\{([^{}]*)\})?")
_LAYOUT = re.compile(r"([\d,\s]*)(:.*)?\Z", re.DOTALL)


@lru_cache(maxsize=65536)
def array_shape(token: str) -> Type:
    """The type that a shape token stands for. A row-major layout without more is left out.

    Raises:
        ValueError: with a message for the user.
    """
    match = SHAPE.fullmatch(token)
    if match is None:
        raise ValueError(f"expected a shape, found '{token[:40]}'")
    name, sizes, layout = match.groups()
    if name == "token" and not sizes.strip():
        return TOKEN
    element = HLO_ELEMENTS.get(name)
    if element is None:
        raise ValueError(f"unknown element type '{name}'")
    dims = [_size(word.strip()) for word in sizes.split(",")] if sizes.strip() else []
    shape = tuple(size for size, _ in dims)
    limits = tuple(bound for _, bound in dims)
    bounds = limits if any(bound != DYNAMIC for bound in limits) else None
    return TensorType(element, shape, _layout(layout, len(shape)), bounds)


def _size(word: str) -> tuple[int, int]:
    """A size and its upper bound."""
    if word in ("?", "unbounded"):
        return DYNAMIC, DYNAMIC
    bound = word.removeprefix("<=").strip()
    if not (bound.isascii() and bound.isdigit()) or len(bound) > 18:
        raise ValueError(f"'{word[:40]}' is not a size")
    return (int(word), DYNAMIC) if bound == word else (DYNAMIC, int(bound))


def _layout(text: str | None, rank: int) -> Layout | None:
    if text is None:
        return None
    match = _LAYOUT.match(text)
    if match is None:
        raise ValueError(f"'{{{text[:40]}}}' is not a layout")
    words = [word.strip() for word in match[1].split(",")] if match[1].strip() else []
    if any(not word.isdigit() or len(word) > 4 for word in words):
        raise ValueError(f"'{{{text[:40]}}}' is not a layout")
    order = tuple(map(int, words))
    if sorted(order) != list(range(rank)):
        if order or (rank > 1 and not match[2]):
            raise ValueError(f"the layout {{{text[:40]}}} must order {rank} dimensions")
        order = tuple(range(rank - 1, -1, -1))
    suffix = match[2] or ""
    if not suffix and order == tuple(range(rank - 1, -1, -1)):
        return None
    return Layout(order, suffix)
