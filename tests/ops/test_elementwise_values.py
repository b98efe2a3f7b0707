"""Elementwise operations on the values where they are easy to get wrong, against answers written by hand."""

import ml_dtypes
import numpy as np
import pytest

from compiler.ir.types import BF16, F32, I1, I8, I32, TensorType, element, tensor
from tests.ops.operation_calls import call

NAN, INF = np.nan, np.inf
BFLOAT16 = ml_dtypes.bfloat16


def same(found, expected, dtype):
    expected = np.asarray(expected).astype(dtype)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if np.dtype(dtype).kind == "f" or dtype == BFLOAT16:
        np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))
        numbers = ~np.isnan(expected.astype(np.float64))
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])
    else:
        np.testing.assert_array_equal(found, expected)


LOW = -(2**31)


@pytest.mark.parametrize(
    ("opcode", "x", "y", "expected"),
    [
        ("divide", [7, -7, 7, LOW, 5, -5, LOW], [2, 2, -2, -1, 0, 0, 0], [3, -3, -3, LOW, -1, -1, -1]),
        ("remainder", [7, -7, 7, LOW, 5, -5], [2, 2, -2, -1, 0, 0], [1, -1, 1, 0, 5, -5]),
        ("add", [2**31 - 1], [1], [LOW]),
        ("multiply", [LOW], [-1], [LOW]),
        (
            "power",
            [2, -2, 3, 0, 1, -1, -1, 7, 0],
            [10, 3, 40, 0, -5, -3, -2, -1, -1],
            [1024, -8, None, 1, 1, -1, 1, 0, 0],
        ),
        ("shift_left", [1, 1, 1, -1], [31, 32, -1, 4], [LOW, 0, 0, -16]),
        ("shift_right_logical", [-1, -1, -1], [1, 31, 32], [2**31 - 1, 1, 0]),
        ("shift_right_arithmetic", [-8, -8, 8, -8], [1, 40, 40, -1], [-4, -1, 0, -1]),
        ("maximum", [LOW, 5], [0, -5], [0, 5]),
    ],
)
def test_int32(opcode, x, y, expected):
    if None in expected:
        expected[expected.index(None)] = (3**40 + 2**31) % 2**32 - 2**31
    same(call(opcode, np.array(x, np.int32), np.array(y, np.int32)), expected, np.int32)


def test_unsigned():
    x = np.array([7, 255, 5], np.uint8)
    same(call("divide", x, np.array([2, 0, 0], np.uint8)), [3, 255, 255], np.uint8)
    same(call("remainder", x, np.array([2, 0, 6], np.uint8)), [1, 255, 5], np.uint8)
    same(call("negate", x), [249, 1, 251], np.uint8)
    same(call("popcnt", x), [3, 8, 2], np.uint8)
    same(call("count_leading_zeros", np.array([0, 1, 255, 16], np.uint8)), [8, 7, 0, 3], np.uint8)


@pytest.mark.parametrize(("name", "low"), [("i4", -8), ("i2", -2)])
def test_narrow_integers_wrap(name, low):
    kind = element(name)
    x = np.array([low, -low - 1, 0, -1], np.int8).astype(kind.dtype)
    one = np.array([1, 1, 1, 1], np.int8).astype(kind.dtype)
    assert call("add", x, one).astype(np.int8).tolist() == [low + 1, low, 1, 0]
    assert call("abs", x).astype(np.int8).tolist() == [low, -low - 1, 0, 1]
    zero = np.zeros(4, np.int8).astype(kind.dtype)
    assert call("divide", x, zero).astype(np.int8).tolist() == [-1] * 4
    minus = (-one.astype(np.int8)).astype(kind.dtype)
    assert call("divide", x, minus).astype(np.int8).tolist() == [low, low + 1, 0, 1]
    assert call("remainder", x, minus).astype(np.int8).tolist() == [0] * 4
    assert call("shift_right_arithmetic", x, one).astype(np.int8).tolist() == [
        low // 2,
        (-low - 1) // 2,
        0,
        -1,
    ]
    # The amount -1 is the largest unsigned one, beyond the width.
    assert call("shift_left", x, minus).astype(np.int8).tolist()[3] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, BFLOAT16])
def test_extremes_and_signs(dtype):
    def run(opcode, *operands):
        return call(opcode, *(np.array(x, dtype) for x in operands))

    x, y = [0.0, -0.0, NAN, 1.0, -INF, 2.0], [-0.0, 0.0, 1.0, NAN, 3.0, 2.0]
    same(run("maximum", x, y), [0.0, 0.0, NAN, NAN, 3.0, 2.0], dtype)
    same(run("minimum", x, y), [-0.0, -0.0, NAN, NAN, -INF, 2.0], dtype)
    same(run("sign", [0.0, -0.0, NAN, -3.0, INF]), [0.0, -0.0, NAN, -1.0, 1.0], dtype)
    same(run("round_nearest_afz", [0.5, -0.5, 1.5, -2.5, 0.25, -0.0]), [1, -1, 2, -3, 0, -0.0], dtype)
    same(run("round_nearest_even", [0.5, -0.5, 1.5, -2.5, 3.5, -0.0]), [0, -0.0, 2, -2, 4, -0.0], dtype)
    same(
        run("remainder", [5.5, -5.5, 5.5, INF, 1.0], [2.0, 2.0, INF, 2.0, 0.0]),
        [1.5, -1.5, 5.5, NAN, NAN],
        dtype,
    )
    same(run("power", [1.0, NAN, -8.0, 0.0, -1.0], [NAN, 0.0, 1 / 3, -1.0, INF]), [1, 1, NAN, INF, 1], dtype)
    same(run("clamp", [-1.0] * 4, [NAN, 5.0, -5.0, -0.0], [1.0] * 4), [NAN, 1.0, -1.0, -0.0], dtype)


def test_half_just_below_one_half_does_not_round_up():
    below = np.nextafter(np.float32(0.5), np.float32(0))
    same(call("round_nearest_afz", np.array([below, -below], np.float32)), [0.0, -0.0], np.float32)


def test_booleans_are_logic():
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert call("add", x, y).tolist() == [True, True, True, False]
    assert call("multiply", x, y).tolist() == [True, False, False, False]
    assert call("maximum", x, y).tolist() == [True, True, True, False]
    assert call("xor", x, y).tolist() == [False, True, True, False]
    assert call("not", x).tolist() == [False, False, True, True]


def test_float_to_integer_saturates():
    x = np.array([NAN, INF, -INF, 1e20, -1e20, 127.9, -128.9, 2.5], np.float64)
    found = call("convert", x, result=tensor(I8, 8))
    assert found.tolist() == [0, 127, -128, 127, -128, 127, -128, 2]
    found = call("convert", x, result=tensor(element("ui64"), 8))
    assert found.tolist() == [0, 2**64 - 1, 0, 2**64 - 1, 0, 127, 0, 2]
    found = call("convert", x, result=tensor(element("i64"), 8))
    assert found.tolist() == [0, 2**63 - 1, -(2**63), 2**63 - 1, -(2**63), 127, -128, 2]
    found = call("convert", x, result=tensor(element("i4"), 8))
    assert found.astype(np.int8).tolist() == [0, 7, -8, 7, -8, 7, -8, 2]
    assert call("convert", np.array([NAN, 0.0, -0.0, 0.1]), result=tensor(I1, 4)).tolist() == [
        True,
        False,
        False,
        True,
    ]


def test_narrowing_rounds_once():
    # Rounded to f32 first, this would sit on the tie and go down to 1.
    just_above_tie = np.array([1 + 2.0**-8 + 2.0**-40])
    assert float(call("convert", just_above_tie, result=tensor(BF16, 1))[0]) == 1 + 2.0**-7
    just_above_tie = np.array([1 + 2.0**-4 + 2.0**-40])
    assert float(call("convert", just_above_tie, result=tensor(element("f8E4M3FN"), 1))[0]) == 1.125
    # So would this integer, rounded to f64 first.
    large = np.array([2**62 + 2**54 + 1], np.int64)
    assert float(call("convert", large, result=tensor(BF16, 1))[0]) == 2.0**62 + 2.0**55


def test_total_order():
    x = np.array([-NAN, -INF, -1.0, -0.0, 0.0, 1.0, INF, NAN], np.float32)
    x = np.where(np.arange(8) == 0, np.copysign(x, np.float32(-1)), x)
    options = {"comparison_direction": "LT", "compare_type": "TOTALORDER"}
    assert call("compare", x[:-1], x[1:], **options).all()
    assert not call("compare", x[1:], x[:-1], **options).any()
    found = call("compare", x, x, comparison_direction="EQ", compare_type="FLOAT")
    assert found.tolist() == [False, *[True] * 6, False]


@pytest.mark.parametrize(
    ("x", "bits", "expected"),
    [
        (1.0 + 2.0**-11, (8, 10), 1.0),
        (1.0 + 3 * 2.0**-11, (8, 10), 1.0 + 2.0**-9),
        (65536.0, (5, 10), INF),
        (-1e-8, (5, 10), -0.0),
        (NAN, (5, 10), NAN),
        (INF, (2, 0), INF),
        (1.5, (8, 0), 2.0),
    ],
)
def test_reduce_precision(x, bits, expected):
    found = call("reduce_precision", np.array([x], np.float32), exponent_bits=bits[0], mantissa_bits=bits[1])
    same(found, [expected], np.float32)


def test_bitcasts_between_widths():
    words = np.array([0x3F800000, 0x40490FDB], np.uint32)
    assert call("bitcast_convert", words, result=tensor(F32, 2)).tolist() == [1.0, np.float32(np.pi)]
    halves = call("bitcast_convert", words, result=tensor(element("ui16"), 2, 2))
    assert halves.tolist() == [[0x0000, 0x3F80], [0x0FDB, 0x4049]]
    assert call("bitcast_convert", halves, result=tensor(element("ui32"), 2)).tolist() == words.tolist()
    nibbles = call("bitcast_convert", np.array([0x2F], np.uint8), result=tensor(element("i4"), 1, 2))
    assert nibbles.astype(np.int8).tolist() == [[-1, 2]]


def test_complex_division_at_the_edges():
    x = np.array([1 + 1j, 1e38 + 1e38j, complex(INF, 1), 1 + 1j], np.complex64)
    y = np.array([0, 1e38 + 1e38j, 1 + 1j, complex(INF, INF)], np.complex64)
    found = call("divide", x, y)
    assert np.isinf(found[0].real)
    assert found[1] == 1
    assert np.isinf(found[2].real) or np.isinf(found[2].imag)
    assert found[3] == 0


def test_complex_parts():
    z = np.array([3 + 4j, complex(INF, NAN)], np.complex64)
    assert call("abs", z).tolist() == [5.0, INF]
    assert call("abs", z).dtype == np.float32
    assert call("real", z).tolist()[0] == 3.0
    assert call("sign", z[:1])[0] == np.complex64(0.6 + 0.8j)
    joined = call("complex", np.array([INF], np.float32), np.array([2.0], np.float32))
    assert joined[0].real == INF and joined[0].imag == 2.0


def test_log_plus_one_near_the_unit_circle():
    # |1+z|² = 1 + 2x + x² + y² nearly cancels here: x = -y²/2.
    z = np.array([complex(-(2.0**-21), 2.0**-10)], np.complex64)
    exact = np.log1p(2 * -(2.0**-21) + 2.0**-42 + 2.0**-20) / 2
    assert abs(call("log_plus_one", z)[0].real - exact) <= abs(exact) * 2.0**-23


def test_select_takes_a_scalar_predicate():
    found = call("select", np.array(True), np.array([1, 2], np.int32), np.array([3, 4], np.int32))
    assert found.tolist() == [1, 2]
    assert TensorType(I32, (2,)) == TensorType(I32, found.shape)
