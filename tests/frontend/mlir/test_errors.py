"""Mistakes in a model: one message with place, line and caret, for every kind."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.frontend.errors import SourceError
from compiler.frontend.mlir import parse
from tests.frontend.mlir import programs


def failure(text: str) -> SourceError:
    """What reading the text fails with."""
    with pytest.raises(SourceError) as caught:
        parse(text, "m.mlir")
    return caught.value


def in_main(line: str) -> str:
    """A program with one line in its function; the line is the second of the file."""
    return f"func.func @main(%a: tensor<2xf32>, %i: tensor<i32>) -> tensor<2xf32> {{\n{line}\n  return %a : tensor<2xf32>\n}}\n"


def test_the_message_shows_the_line_and_a_caret() -> None:
    error = failure(in_main("  %0 = stablehlo.add %a, %b : tensor<2xf32>"))
    assert str(error) == (
        "m.mlir:2:8: error: %b is not defined\n    %0 = stablehlo.add %a, %b : tensor<2xf32>\n         ^"
    )


@pytest.mark.parametrize(
    ("line", "place", "message"),
    [
        ("%0 = stablehlo.adds %a, %a : tensor<2xf32>", (2, 6), "unknown operation 'stablehlo.adds'"),
        ('%0 = "foo.bar"(%a) : (tensor<2xf32>) -> tensor<2xf32>', (2, 6), "unknown operation 'foo.bar'"),
        (
            "%0 = stablehlo.add %a, %i : tensor<2xf32>",
            (2, 6),
            "%i is tensor<i32>, but tensor<2xf32> is written here",
        ),
        (
            "%0:2 = stablehlo.add %a, %a : tensor<2xf32>",
            (2, 8),
            "stablehlo.add has 1 results, but 2 are named",
        ),
        ("%a = stablehlo.add %a, %a : tensor<2xf32>", (2, 6), "%a is defined twice"),
        ("%0 = stablehlo.add %a, %a : tensor<2xf33>", (2, 29), "unknown element type 'f33'"),
        (
            "%0 = stablehlo.constant dense<[1, 2, 3]> : tensor<2xi32>",
            (2, 25),
            "3 elements for tensor<2xi32>, which holds 2",
        ),
        (
            "%0 = stablehlo.constant dense<[[1, 2]]> : tensor<2xi32>",
            (2, 25),
            "the constant's lists are nested 2 deep for a tensor of rank 1",
        ),
        (
            '%0 = stablehlo.constant dense<"0x00"> : tensor<2xi32>',
            (2, 25),
            "1 bytes for tensor<2xi32>, which takes 8",
        ),
        ("%0 = stablehlo.constant dense<300> : tensor<2xi8>", (2, 25), "300 does not fit i8"),
        ("%0 = stablehlo.constant dense<x> : tensor<2xf32>", (2, 25), "'x' is not a value of type f32"),
        ("%0 = func.call @f(%a) : (tensor<2xf32>) -> tensor<2xf32>", (2, 6), "function @f is not defined"),
        (
            "%0 = stablehlo.transpose %a, dims = #x : (tensor<2xf32>) -> tensor<2xf32>",
            (2, 37),
            "#x is not defined",
        ),
        ("%0 = stablehlo.negate %a : tensor<2xf32> %", (2, 42), "unexpected character '%'"),
        ('%0 = stablehlo.custom_call @x(%a) {a = "b', (2, 40), "this string never ends"),
    ],
)
def test_mistakes_in_operations(line: str, place: tuple[int, int], message: str) -> None:
    error = failure(in_main(line))
    assert (error.line, error.column, error.message) == (*place, message)


def test_a_reducer_cannot_see_what_its_function_computes() -> None:
    text = programs.REDUCTIONS.replace(
        "%0 = stablehlo.maximum %a, %b", "%0 = stablehlo.maximum %a, %other"
    ).replace("%sum =", "%other = stablehlo.add %zero, %low : tensor<f32>\n  %sum =")
    assert "is defined outside of the region" in failure(text).message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file holds no module"),
        ("// nothing\n", "the file holds no module"),
        ("module {\n  func.func @main() {\n", "expected an operation"),
        ("module { } }", "expected an operation, found '}'"),
        ("module { func.func private @f() }", "the module has no function to run"),
        ("func.func @main()", "function @main has no body"),
        ("func.func @main() { return }\nfunc.func @main() { return }", "function @main is defined twice"),
        ("module {" * 5000, "nested too deeply to be read"),
        ("module attributes {a = " + "[" * 5000, "nested more than 400 deep"),
        (
            "func.func @main(%a: tensor<99999999999999999999xf32>) { return }",
            "a dimension of 99999999999999999999 is beyond what can be addressed",
        ),
        (
            "func.func @main(%a: tensor<*xf32>) { return }",
            "tensors of unknown rank are not supported: tensor<*xf32>",
        ),
        ("\0\0\0", "unexpected character '\\x00'"),
    ],
)
def test_mistakes_in_files(text: str, message: str) -> None:
    assert failure(text).message == message


@pytest.mark.parametrize(
    "piece", ["dense<", 'dense<"', "tensor<", "array<", "(", "<", "%a", "loc(", '"\\', "//", "{-#", 'a : "0x']
)
def test_repeated_beginnings_take_linear_time(piece: str) -> None:
    failure(piece * 50_000)


FRAGMENTS = st.sampled_from(
    [
        *'()[]{}<>=:,#@%!?-"\n',
        "tensor<2xf32>",
        "dense<",
        "loc(",
        "%0",
        "%0#9",
        "^bb0",
        "stablehlo.add",
        "array<i64: ",
        "-1",
        "9" * 30,
        "0x",
        "\0",
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """One of the programs with pieces cut out, put in or doubled."""
    text = draw(st.sampled_from(sorted(programs.ALL.values())))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 15)))
        text = text[:start] + draw(st.one_of(st.just(""), FRAGMENTS, st.text(max_size=3))) + text[end:]
    return text


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_no_text_raises_anything_but_a_source_error(text: str) -> None:
    try:
        parse(text, "mutated.mlir")
    except SourceError as error:
        assert str(error).startswith("mutated.mlir:")
        assert error.line >= 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "%0 = stablehlo.select %a, %a, %a : tensor<2xi1>, tensor<2xf32>, tensor<2xf32>",
            "stablehlo.select takes a function type or the types of predicate and result",
        ),
        (
            "%0 = stablehlo.dot %a, %a, precision = {} : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>",
            "expected '[' after precision =",
        ),
        (
            "%0 = stablehlo.tuple %a, %a : tuple<tensor<2xf32>>",
            "stablehlo.tuple has 2 operands, but its type has 1 elements",
        ),
        (
            "%0 = stablehlo.reduce_precision %a, format = e2147483648m1 : tensor<2xf32>",
            "'e2147483648m1' is no format such as e5m10",
        ),
        ("return %i : tensor<i32>", "result #0 is tensor<i32>, but tensor<2xf32> is declared"),
        ("return", "the function returns 0 values, but declares 1"),
    ],
)
def test_mistakes_that_pretty_forms_show(line: str, message: str) -> None:
    error = failure(in_main(line))
    assert (error.line, error.message) == (2, message)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("tensor<?x?xf32, #stablehlo.bounds<3>>", "1 bounds are given for a tensor of rank 2"),
        ("tensor<3xf32, #stablehlo.bounds<3>>", "dimension 0 has a bound, though its size 3 is known"),
        ("tensor<2x!quant.uniform<i9:f32, 1.0>>", "unknown quantized type '!quant.uniform<i9:f32, 1.0>'"),
        ("memref<2xf32, 1>", "memref<2xf32, 1> has a layout, which is not supported"),
        ("!foo.bar", "expected a type, found '!foo.bar'"),
    ],
)
def test_mistakes_in_types(kind: str, message: str) -> None:
    assert failure(f"func.func @main(%a: {kind}) {{ return }}").message == message


def test_padding_must_be_pairs() -> None:
    text = programs.REDUCTIONS.replace(
        "window_strides = array<i64: 2, 2>",
        "padding = dense<0> : tensor<2x3xi64>, window_strides = array<i64: 2, 2>",
    )
    assert "attribute padding must give two numbers a dimension" in failure(text).message


def test_a_splat_does_not_become_a_list_of_any_length():
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.reverse"(%x) {dimensions = dense<0> : tensor<99999999999xi64>} : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    with pytest.raises(SourceError, match=r":2:12: error: .*longer than any attribute"):
        parse(text, "t.mlir")


def test_what_is_quoted_over_lines_is_told_in_one():
    with pytest.raises(SourceError) as error:
        parse("func.func @main(%x: tensor<2xui64\n  }>) {\n  return\n}", "t.mlir")
    assert error.value.message == "unknown element type 'ui64 }'"


def test_a_range_in_a_location_that_never_ends() -> None:
    with pytest.raises(SourceError):
        parse('#loc1 = loc("a.py":1:2 to :3:4', "x.mlir")
