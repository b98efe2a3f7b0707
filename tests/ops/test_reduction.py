"""reduce: initial values, NaN and zeros, variadic bodies, any body, narrow formats, and what is refused."""

import math

import ml_dtypes
import numpy as np
import pytest

from tests.ops.programs import body_of, main, rejects, run


def reduce_text(opcode, element, shape, dimensions, result):
    x, r = f"tensor<{shape}{element}>", f"tensor<{result}{element}>"
    return main(
        f"%x: {x}, %i: tensor<{element}>",
        r,
        f'%0 = "stablehlo.reduce"(%x, %i) ({{\n{body_of(opcode, element)}\n}}) '
        f"{{dimensions = array<i64: {dimensions}>}} : ({x}, tensor<{element}>) -> {r}\nreturn %0 : {r}",
    )


@pytest.mark.parametrize(
    ("opcode", "fold"),
    [("add", np.add), ("multiply", np.multiply), ("maximum", np.maximum), ("minimum", np.minimum)],
)
@pytest.mark.parametrize(("element", "dtype"), [("i32", np.int32), ("ui8", np.uint8), ("f32", np.float32)])
def test_against_a_loop(opcode, fold, element, dtype):
    x = np.random.default_rng(0).integers(0, 5, (3, 4, 5)).astype(dtype)
    start = dtype(3)
    want = np.full((4,), start)
    with np.errstate(over="ignore"):
        for i in range(3):
            for k in range(5):
                want = fold(want, x[i, :, k])
    (found,) = run(reduce_text(opcode, element, "3x4x5x", "0, 2", "4x"), x, start)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, want)


def test_initial_value_counts_once():
    x = np.ones((2, 3), np.float32)
    assert run(reduce_text("add", "f32", "2x3x", "1", "2x"), x, np.float32(10))[0].tolist() == [13, 13]
    assert run(reduce_text("add", "f32", "2x0x", "1", "2x"), np.ones((2, 0), np.float32), np.float32(10))[
        0
    ].tolist() == [10, 10]
    assert run(reduce_text("add", "f32", "2x3x", "", "2x3x"), x, np.float32(1))[0].tolist() == [[2] * 3] * 2


def test_nan_and_zeros():
    x = np.array([[0.0, -0.0, np.nan], [-0.0, -0.0, -1.0]], np.float32).T
    (most,) = run(reduce_text("maximum", "f32", "3x2x", "0", "2x"), x, np.float32(-np.inf))
    assert np.isnan(most[0]) and most[1] == 0 and np.signbit(most[1])
    zeros = np.array([-0.0, 0.0, -0.0], np.float32)
    (most,) = run(reduce_text("maximum", "f32", "3x", "0", ""), zeros, np.float32(-np.inf))
    (least,) = run(reduce_text("minimum", "f32", "3x", "0", ""), zeros, np.float32(np.inf))
    assert not np.signbit(most) and np.signbit(least)
    (total,) = run(reduce_text("add", "f32", "2x", "0", ""), np.full(2, -0.0, np.float32), np.float32(-0.0))
    assert np.signbit(total)


def test_sums_are_rounded_once():
    x = np.random.default_rng(1).normal(size=5000).astype(np.float32)
    (total,) = run(reduce_text("add", "f32", "5000x", "0", ""), x, np.float32(0))
    assert total == np.float32(math.fsum(x.tolist()))
    small = np.full(512, 2.0**-9, ml_dtypes.bfloat16)
    (total,) = run(reduce_text("add", "bf16", "512x", "0", ""), small, ml_dtypes.bfloat16(1))
    assert total == 2


def test_booleans():
    x = np.array([[True, False], [True, True]])
    assert run(reduce_text("and", "i1", "2x2x", "1", "2x"), x, True)[0].tolist() == [False, True]
    assert run(reduce_text("or", "i1", "2x2x", "0", "2x"), x, False)[0].tolist() == [True, True]
    assert run(reduce_text("xor", "i1", "2x2x", "0", "2x"), x, False)[0].tolist() == [False, True]


ARGMAX = main(
    "%x: tensor<4x7xf32>, %n: tensor<4x7xi32>",
    "tensor<4xf32>, tensor<4xi32>",
    """
    %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %j = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.reduce(%x init: %i), (%n init: %j) across dimensions = [1] :
      (tensor<4x7xf32>, tensor<4x7xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
      reducer(%a: tensor<f32>, %b: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
        %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>
        %3 = stablehlo.select %1, %p, %q : tensor<i1>, tensor<i32>
        stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
      }
    return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>""",
)


def test_variadic():
    x = np.random.default_rng(2).integers(0, 4, (4, 7)).astype(np.float32)
    places = np.broadcast_to(np.arange(7, dtype=np.int32), (4, 7))
    most, where = run(ARGMAX, x, places)
    assert most.tolist() == x.max(axis=1).tolist()
    assert where.tolist() == x.argmax(axis=1).tolist()


def composed(element, operations):
    """Sum of all elements through a body that is no single operation."""
    t = f"tensor<{element}>"
    return main(
        f"%x: tensor<9x{element}>, %i: {t}",
        t,
        f'%0 = "stablehlo.reduce"(%x, %i) ({{\n^bb0(%a: {t}, %b: {t}):\n{operations}\n'
        f'"stablehlo.return"(%r) : ({t}) -> ()\n}}) {{dimensions = array<i64: 0>}} : (tensor<9x{element}>, {t}) -> {t}\n'
        f"return %0 : {t}",
    )


def test_any_body_keeps_the_order():
    # a * 0 + b is `the last one`, which is associative but not commutative.
    text = composed(
        "f32",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%m = stablehlo.multiply %a, %z : tensor<f32>\n"
        "%r = stablehlo.add %m, %b : tensor<f32>",
    )
    assert run(text, np.arange(9, dtype=np.float32), np.float32(100))[0] == 8


def test_body_in_a_wider_type():
    text = main(
        "%x: tensor<300xi8>, %i: tensor<i8>",
        "tensor<i32>",
        f'%0 = "stablehlo.reduce"(%x, %i) ({{\n{body_of("add", "i32")}\n}}) {{dimensions = array<i64: 0>}} '
        ": (tensor<300xi8>, tensor<i8>) -> tensor<i32>\nreturn %0 : tensor<i32>",
    )
    assert run(text, np.full(300, 100, np.int8), np.int8(1))[0] == 30001


def test_rejects():
    rejects(reduce_text("add", "f32", "2x3x", "2", "2x3x"), "C4")
    rejects(reduce_text("add", "f32", "2x3x", "0, 0", "3x"), "C5")
    rejects(reduce_text("add", "f32", "2x3x", "1", "3x"), "does not match")
    narrow = main(
        "%x: tensor<3xi32>, %i: tensor<i32>",
        "tensor<i8>",
        f'%0 = "stablehlo.reduce"(%x, %i) ({{\n{body_of("add", "i8")}\n}}) {{dimensions = array<i64: 0>}} '
        ": (tensor<3xi32>, tensor<i32>) -> tensor<i8>\nreturn %0 : tensor<i8>",
    )
    rejects(narrow, "C2.*promoted")
