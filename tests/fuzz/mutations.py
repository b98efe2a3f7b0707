"""Damaged models: texts with bytes flipped, tokens moved, numbers blown up, brackets nested deep; bytes likewise."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w%#.])-?\d+")
_HUGE = (
    "0",
    "-1",
    "-0",
    "1",
    "7",
    "63",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "1000000000000",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "1" + "0" * 30,
    "9" * 5000,
    "1e308",
    "0x7FF8000000000000",
    "?",
)
_SPLINTERS = (
    "tensor<",
    "tensor<*xf32>",
    "tensor<9999999999x9999999999xf32>",
    'dense<"0xZZ">',
    "dense<[[1, 2], [3]]>",
    "dense_resource<x>",
    "complex<f32>",
    "!quant.uniform<i8:f32, 0.1:200>",
    "loc(",
    "#alias",
    "!alias",
    "array<i64: 1>",
    "^bb0:",
    "// -----\n",
    "\ud7ff",
    "\x00",
    "\u2028",
    '"',
    "/*",
    "{-#",
    "%0:99999999",
    "%arg0",
    "@main",
    "f8E4M3FN",
    "i1",
    "unit",
    "true",
    "nan",
    "-",
)

Mutation = Callable[[random.Random, str], str]


def _flip(chance: random.Random, text: str) -> str:
    place = chance.randrange(len(text))
    return text[:place] + chr(ord(text[place]) ^ 1 << chance.randrange(7)) + text[place + 1 :]


def _cut(chance: random.Random, text: str) -> str:
    place = chance.randrange(len(text))
    return text[:place] if chance.random() < 0.3 else text[:place] + text[place + chance.randint(1, 80) :]


def _tokens(chance: random.Random, text: str) -> str:
    """Swaps, repeats, deletes or replaces one token."""
    spans = [match.span() for match in _TOKEN.finditer(text) if not match[0].isspace()]
    (a, b), (c, d) = sorted(chance.choice(spans) for _ in range(2))
    what = chance.randrange(4)
    if what == 0 and b <= c:
        return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]
    if what == 1:
        return text[:b] + " " + text[a:b] + text[b:]
    if what == 2:
        return text[:a] + text[b:]
    return text[:a] + text[c:d] + text[b:]


def _number(chance: random.Random, text: str) -> str:
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    match = chance.choice(found)
    return text[: match.start()] + chance.choice(_HUGE) + text[match.end() :]


def _dimension(chance: random.Random, text: str) -> str:
    """One size inside a type."""
    found = list(re.finditer(r"(?<=[<x\[,])\d+(?=[x,\]])", text))
    if not found:
        return text
    match = chance.choice(found)
    return text[: match.start()] + chance.choice(_HUGE) + text[match.end() :]


def _splinter(chance: random.Random, text: str) -> str:
    place = chance.choice([0, *(match.start() for match in _TOKEN.finditer(text))])
    return text[:place] + chance.choice(_SPLINTERS) + text[place:]


def _line(chance: random.Random, text: str) -> str:
    """Swaps, repeats or deletes a line."""
    lines = text.split("\n")
    a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
    what = chance.randrange(3)
    if what == 0:
        lines[a], lines[b] = lines[b], lines[a]
    elif what == 1:
        lines.insert(b, lines[a])
    else:
        del lines[a]
    return "\n".join(lines)


def _nest(chance: random.Random, text: str) -> str:
    place = chance.choice([match.start() for match in _TOKEN.finditer(text)] or [0])
    return text[:place] + chance.choice("([{<") * chance.choice((3, 200, 50_000)) + text[place:]


MUTATIONS: tuple[Mutation, ...] = (
    _flip,
    _cut,
    _tokens,
    _tokens,
    _tokens,
    _number,
    _number,
    _dimension,
    _splinter,
    _line,
    _nest,
)


def damaged_text(seed: int, text: str) -> str:
    """A text with one to three mistakes, the same for the same seed."""
    chance = random.Random(seed)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        text = chance.choice(MUTATIONS)(chance, text) or " "
    return text


def damaged_bytes(seed: int, raw: bytes) -> bytes:
    """Bytes with one to three mistakes after the first four, which say what the file is."""
    chance = random.Random(seed)
    found = bytearray(raw)
    for _ in range(chance.choice((1, 1, 2, 3))):
        place = chance.randrange(min(4, len(found) - 1), len(found))
        what = chance.randrange(6)
        if what == 0:
            found[place] ^= 1 << chance.randrange(8)
        elif what == 1:
            found[place] = chance.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF))
        elif what == 2:
            del found[place : place + chance.randint(1, 16)]
        elif what == 3:
            found[place:place] = found[place : place + chance.randint(1, 16)]
        elif what == 4:
            found[place : place + 9] = bytes((0, *([0xFF] * 8)))
        else:
            del found[max(place, 5) :]
    return bytes(found)
