"""Windows, padding, slices and convolution labels: the small languages inside HLO's attributes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

_T = TypeVar("_T")
Pairs = tuple[tuple[int, int], ...]

_FIELD = re.compile(r"(\w+)\s*=\s*([^\s{}]+)")
_NUMBER = re.compile(r"-?\d{1,18}\Z", re.ASCII)
_SLICE = re.compile(r"\[\s*(-?\d{1,18})\s*:\s*(-?\d{1,18})\s*(?::\s*(-?\d{1,18})\s*)?\]", re.ASCII)
_LABELS = re.compile(r"([\w?]+)_([\w?]+)->([\w?]+)\Z")
_WINDOW_FIELDS = frozenset({"size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal"})


@dataclass(frozen=True)
class Window:
    """`window={size=3x3 stride=2x2 pad=0_1x0_1 lhs_dilate=… rhs_dilate=… rhs_reversal=…}` with its defaults."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: Pairs
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    reversal: tuple[bool, ...]


def window(text: str) -> Window:
    """The window that a text in braces stands for.

    Raises:
        ValueError: with a message for the user.
    """
    found = dict(_FIELD.findall(text))
    for key in found:
        if key not in _WINDOW_FIELDS:
            raise ValueError(f"a window has no '{key}'")
    size = _by_dimension(found.get("size", ""), "size")
    count = len(size)
    ones = (1,) * count

    def of(key: str, default: tuple[int, ...]) -> tuple[int, ...]:
        values = _by_dimension(found[key], key) if key in found else default
        return _fitting(values, count, key)

    padding = _pairs(found["pad"], "pad") if "pad" in found else ((0, 0),) * count
    return Window(
        size,
        of("stride", ones),
        _fitting(padding, count, "pad"),
        of("lhs_dilate", ones),
        of("rhs_dilate", ones),
        tuple(value != 0 for value in of("rhs_reversal", (0,) * count)),
    )


def _fitting(values: tuple[_T, ...], count: int, key: str) -> tuple[_T, ...]:
    if len(values) != count:
        raise ValueError(f"the window's {key} has {len(values)} dimensions, its size {count}")
    return values


def _by_dimension(text: str, key: str) -> tuple[int, ...]:
    return tuple(_number(word, key) for word in text.split("x")) if text else ()


def _number(word: str, key: str) -> int:
    if _NUMBER.match(word) is None:
        raise ValueError(f"'{word[:40]}' is not a number of {key}")
    return int(word)


def _pairs(text: str, key: str) -> Pairs:
    rows = []
    for part in text.split("x"):
        words = part.split("_")
        if len(words) != 2:
            raise ValueError(f"'{part[:40]}' must give a low and a high {key}")
        rows.append((_number(words[0], key), _number(words[1], key)))
    return tuple(rows)


def padding(text: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """`1_2_0x-1_0`: low, high and interior padding by dimension. Raises ValueError."""
    rows = []
    for part in text.split("x") if text else ():
        words = [_number(word, "padding") for word in part.split("_")]
        if len(words) not in (2, 3):
            raise ValueError(f"'{part[:40]}' must give low, high and perhaps interior padding")
        rows.append((*words, 0) if len(words) == 2 else tuple(words))
    low, high, interior = zip(*rows, strict=True) if rows else ((), (), ())
    return tuple(low), tuple(high), tuple(interior)


def slices(text: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """`{[0:4], [0:8:2]}`: starts, limits and strides by dimension. Raises ValueError."""
    inner = text[1:-1] if text[:1] == "{" else text
    if _SLICE.sub("", inner).replace(",", "").strip():
        raise ValueError("slice must hold [start:limit] or [start:limit:stride] for each dimension")
    rows = [(int(a), int(b), int(c or 1)) for a, b, c in _SLICE.findall(inner)]
    starts, limits, strides = zip(*rows, strict=True) if rows else ((), (), ())
    return tuple(starts), tuple(limits), tuple(strides)


def dimension_labels(text: str) -> dict[str, int | tuple[int, ...]]:
    """`b01f_01io->b01f` as the dimension numbers of a convolution. Raises ValueError."""
    match = _LABELS.match(text)
    if match is None:
        raise ValueError(f"'{text[:40]}' is not of the form b01f_01io->b01f")
    sides = (
        ("input", "b", "batch", "f", "feature"),
        ("kernel", "i", "input_feature", "o", "output_feature"),
        ("output", "b", "batch", "f", "feature"),
    )
    found: dict[str, int | tuple[int, ...]] = {}
    for (side, first, first_name, second, second_name), labels in zip(sides, match.groups(), strict=True):
        spatial = sorted(label for label in labels if label.isdigit())
        if labels.count(first) != 1 or labels.count(second) != 1 or len(spatial) != len(labels) - 2:
            raise ValueError(f"'{labels}' must hold {first}, {second} and digits, each once")
        if spatial != [str(index) for index in range(len(spatial))]:
            raise ValueError(f"the digits of '{labels}' must be 0, 1, … each once")
        found[f"{side}_{first_name}_dimension"] = labels.index(first)
        found[f"{side}_{second_name}_dimension"] = labels.index(second)
        found[f"{side}_spatial_dimensions"] = tuple(labels.index(label) for label in spatial)
    return found
