"""Mistakes in HLO text: one message at the exact place, and nothing else whatever the text."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.frontend.errors import SourceError
from compiler.frontend.hlo import parse_hlo
from tests.frontend.hlo.programs import every_program, program

CASES = [
    ("Hlo m\n", 1, 1, "expected 'HloModule', found 'Hlo'"),
    ("HloModule m\n", 2, 1, "the module has no computation"),
    ("HloModule m\n\nENTRY e {\n}\n", 4, 1, "computation e has no instructions"),
    (program("p = f32[2 parameter(0)"), 4, 6, "expected a shape, found 'f32'"),
    (program("p = q32[2] parameter(0)"), 4, 6, "unknown element type 'q32'"),
    (program("p = f32[x] parameter(0)"), 4, 6, "'x' is not a size"),
    (program("p = f32[2,3]{0,2} parameter(0)"), 4, 6, "the layout {0,2} must order 2 dimensions"),
    (program("p = f32[2] paramater(0)"), 4, 13, "unknown opcode 'paramater'"),
    (program("p = f32[2] negate(0)"), 4, 13, "expected an operand, found a number"),
    (program("p = f32[2] parameter(0)\n ROOT r = f32[2] negat(p)"), 5, 18, "unknown opcode 'negat'"),
    (program("p = f32[2] parameter(0)\n ROOT r = f32[2] negate(q)"), 5, 25, "unknown operand q"),
    (
        program("p = f32[2] parameter(0)\n p = f32[2] negate(p)"),
        5,
        2,
        "p is defined twice in computation main",
    ),
    (
        program("ROOT p = f32[] parameter(0)\n ROOT q = f32[] negate(p)"),
        5,
        7,
        "computation main has two roots",
    ),
    (program("ROOT r = f32[2] constant({1, x})"), 4, 27, "'x' is not a value of type f32"),
    (program("ROOT r = f32[2] constant({1, 2, 3})"), 4, 27, "3 elements for tensor<2xf32>, which holds 2"),
    (program("ROOT r = f32[2,2] constant({1, 2, 3, 4})"), 4, 29, "the constant's lists are nested 1 deep"),
    (program("ROOT r = u8[] constant(256)"), 4, 25, "256 does not fit ui8"),
    (program("ROOT r = s32[] constant(1.5)"), 4, 26, "'1.5' is not a value of type i32"),
    (program("p = f32[2] parameter(1)"), 3, 7, "the parameters of main must be numbered 0, 1, …"),
    (
        program("p = f32[2] parameter(0)\n ROOT r = f32[1] slice(p), slice={[0:1]}, slice={[0:1]}"),
        5,
        49,
        "attribute slice is given twice",
    ),
    (program("p = f32[2] parameter(0)\n ROOT r = f32[1] slice(p)"), 5, 18, "attribute slice is missing"),
    (
        program("p = f32[2] parameter(0)\n ROOT r = f32[1] slice(p), slice={0:1}"),
        5,
        34,
        "slice: slice must hold [start:limit]",
    ),
    (
        program("p = f32[2] parameter(0)\n ROOT r = f32[2] reverse(p), dimensions={a}"),
        5,
        41,
        "dimensions must hold whole numbers, not 'a'",
    ),
    (
        program("p = f32[2] parameter(0)\n ROOT r = pred[2] compare(p, p), direction=LESS"),
        5,
        44,
        "direction must be one of EQ, NE, GE, GT, LE, LT, not LESS",
    ),
    (
        program("p = f32[2] parameter(0)\n ROOT r = f32[2] call(p), to_apply=missing"),
        5,
        36,
        "unknown computation missing",
    ),
    (
        program(
            "p = f32[2] parameter(0)\n ROOT r = f32[2] reduce-window(p, p), window={size=2 stride=1x1}, to_apply=main"
        ),
        5,
        46,
        "window: the window's stride has 2 dimensions, its size 1",
    ),
    (
        program("p = f32[2] parameter(0)\n ROOT r = f32[2] call(p), to_apply=main"),
        3,
        7,
        "computation main calls itself",
    ),
    (program('p = f32[2] parameter(0), sharding="x'), 4, 36, "this string never ends"),
    (
        "HloModule m\n\na {\n p = f32[] parameter(0)\n}\nb {\n p = f32[] parameter(0)\n}\n",
        6,
        1,
        "no computation is the entry",
    ),
    (
        "HloModule m, is_scheduled=maybe\n\na {\n p = f32[] parameter(0)\n}\n",
        1,
        27,
        "is_scheduled must be true or false",
    ),
    ("HloModule m\n\na {\n p = f32[] parameter(0)\n", 5, 1, "expected '}' to end computation a"),
    (
        "HloModule m\n\nENTRY a (p: f32[3]) -> f32[2] {\n p = f32[2] parameter(0)\n}\n",
        3,
        13,
        "is declared tensor<3xf32>",
    ),
    (
        "HloModule m\n\nENTRY a (p: f32[2], q: f32[2]) -> f32[2] {\n p = f32[2] parameter(0)\n}\n",
        3,
        7,
        "a declares 2 parameters, but has 1",
    ),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), CASES)
def test_each_mistake_has_its_place(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_hlo(text, "f.hlo")
    found = caught.value
    assert message in found.message
    assert (found.file, found.line, found.column) == ("f.hlo", line, column)
    if found.source_line:
        assert str(found).splitlines()[2].index("^") - 2 == column - 1


PROGRAMS = list(every_program().values())
PIECES = [
    "{",
    "}",
    "(",
    ")",
    ",",
    "=",
    "[",
    "]",
    "%",
    '"',
    "/*",
    "//",
    "\\",
    "-",
    "->",
    "x",
    "9" * 30,
    "f32[",
    "ROOT",
    "ENTRY",
    "{...}",
]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PROGRAMS), st.data())
def test_no_text_raises_anything_else(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 6)))
        text = text[:start] + data.draw(st.sampled_from([*PIECES, ""])) + text[end:]
    with contextlib.suppress(SourceError):
        parse_hlo(text)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PROGRAMS), st.data())
def test_no_swapped_words_raise_anything_else(text: str, data: st.DataObject) -> None:
    words = text.split(" ")
    first, second = (data.draw(st.integers(0, len(words) - 1)) for _ in range(2))
    words[first], words[second] = words[second], words[first]
    with contextlib.suppress(SourceError):
        parse_hlo(" ".join(words))


@pytest.mark.parametrize(
    "piece", ["(", "{", "constant(", "/*", "metadata={", '\\"', "f32[", "x=", "((", "a,"]
)
def test_repeated_pieces_take_linear_time(piece: str) -> None:
    with pytest.raises(SourceError):
        parse_hlo(program(f"p = f32[2] parameter(0), sharding={piece * 50_000}"))
