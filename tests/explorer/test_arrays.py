"""Arrays in files and how far apart two are: raw bits, widening, NaN, signed zeros, units in the last place."""

from __future__ import annotations

import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from compiler.ir.types import TensorType, TupleType, element
from explorer.arrays import as_type, compare, load_arrays, read_npz, save_arrays
from explorer.case import BAD, GOOD, Expected, Tolerance
from explorer.session import UserError

DTYPES = {
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i4": ml_dtypes.int4,
    "ui4": ml_dtypes.uint4,
    "i64": np.int64,
    "i1": np.bool_,
    "complex<f32>": np.complex64,
}


@pytest.mark.parametrize("name", DTYPES)
def test_arrays_come_back_from_a_file(name: str, tmp_path: Path) -> None:
    array = np.array([0, 1, 1, 0]).astype(DTYPES[name]).reshape(2, 2)
    path = str(tmp_path / "a.npz")
    save_arrays(path, "arg", [array])
    stored = read_npz(path)["arg0"]
    assert stored.dtype.kind != "V"
    (back,) = load_arrays(path, "arg", [TensorType(element(name), (2, 2))])
    assert back.dtype == array.dtype and back.tobytes() == array.tobytes()


def test_narrow_floats_widen_on_request(tmp_path: Path) -> None:
    path = str(tmp_path / "a.npz")
    save_arrays(path, "out", [np.array([1.5], ml_dtypes.bfloat16), np.array([2.5], np.float16)], widen=True)
    assert {name: array.dtype for name, array in read_npz(path).items()} == {
        "out0": np.float32,
        "out1": np.float32,
    }


def test_widened_outputs_are_read_back_when_asked_for(tmp_path: Path) -> None:
    path = str(tmp_path / "a.npz")
    array = np.array([1.5, -2.25], ml_dtypes.bfloat16)
    save_arrays(path, "out", [array], widen=True)
    kind = TensorType(element("bf16"), (2,))
    (back,) = load_arrays(path, "out", [kind], widened=True)
    assert back.dtype == array.dtype and (back == array).all()
    with pytest.raises(UserError, match="holds float32"):
        load_arrays(path, "out", [kind])


def test_tuples_are_leaves_in_order(tmp_path: Path) -> None:
    path = str(tmp_path / "a.npz")
    save_arrays(path, "arg", [np.float32([1]), np.float32([2])])
    one = TensorType(element("f32"), (1,))
    assert [a[0] for a in load_arrays(path, "arg", [TupleType((one, one))])] == [1, 2]


def test_a_folder_of_npy_files(tmp_path: Path) -> None:
    np.save(tmp_path / "arg0.npy", np.float32([7]))
    assert load_arrays(str(tmp_path), "arg", [TensorType(element("f32"), (1,))])[0][0] == 7


@pytest.mark.parametrize(
    ("array", "told"),
    [
        (np.zeros((2, 3), np.float32), r"has shape \[2, 3\]"),
        (np.zeros((2, 2), np.float64), "holds float64"),
        (np.zeros((2, 2), np.int32), "holds int32"),
        (np.zeros((2, 2), object), "holds object"),
    ],
)
def test_what_does_not_fit_is_told(array: np.ndarray, told: str) -> None:
    with pytest.raises(UserError, match=told):
        as_type(array, TensorType(element("f32"), (2, 2)), "f.npz: arg0")


def test_missing_and_broken_files_are_told(tmp_path: Path) -> None:
    kind = TensorType(element("f32"), (1,))
    with pytest.raises(UserError, match="no such file"):
        load_arrays(str(tmp_path / "no.npz"), "arg", [kind])
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"PK\x03\x04rubbish")
    with pytest.raises(UserError, match="not readable"):
        load_arrays(str(broken), "arg", [kind])
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, arg0=np.array([{"a": 1}], object))
    with pytest.raises(UserError, match="not readable"):
        load_arrays(str(pickled), "arg", [kind])
    single = tmp_path / "single.npz"
    np.save(single.with_suffix(".npy"), np.float32([1]))
    single.with_suffix(".npy").rename(single)
    with pytest.raises(UserError, match="single array"):
        load_arrays(str(single), "arg", [kind])
    save_arrays(str(tmp_path / "other.npz"), "out", [np.float32([1])])
    with pytest.raises(UserError, match=r"no arg0; the file holds out0"):
        load_arrays(str(tmp_path / "other.npz"), "arg", [kind])


def ulps(got: float, wanted: float, dtype: type) -> float:
    return compare(0, np.array([got], dtype), np.array([wanted], dtype), 0, 0).largest_ulp


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_units_in_the_last_place(dtype: type) -> None:
    for value in (1.0, 1.5, -3.0, 64.0):
        wanted = np.array([value], dtype)
        bits = wanted.view(f"u{wanted.itemsize}")
        for steps in (1, 2, 5):
            got = (bits + np.asarray(steps, bits.dtype)).view(dtype)
            assert compare(0, got, wanted, 0, 0).largest_ulp == steps


def test_subnormals_have_units_too() -> None:
    tiny = float(np.finfo(np.float32).smallest_subnormal)
    assert ulps(3 * tiny, tiny, np.float32) == 2


def test_differences_are_measured_and_placed() -> None:
    wanted = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = wanted.copy()
    got[1, 2] += 0.5
    got[0, 1] += 0.25
    found = compare(3, got, wanted, 0, 0.3)
    assert (found.index, found.place, found.differing, found.total) == (3, (1, 2), 2, 6)
    assert (found.largest_absolute, found.largest_relative) == (0.5, 0.25)
    assert (found.got, found.wanted, found.within, found.equal) == ("5.5", "5.0", False, False)
    assert compare(3, got, wanted, 0, 0.5).within


def test_nan_infinity_and_zeros() -> None:
    wanted = np.array([np.nan, np.inf, -np.inf, 0.0], np.float32)
    assert compare(0, wanted.copy(), wanted, 0, 0).equal
    for place, value in ((0, 1.0), (1, np.nan), (1, -np.inf), (2, 1e30)):
        got = wanted.copy()
        got[place] = value
        found = compare(0, got, wanted, 1.0, 1.0)
        assert not found.within and found.place == (place,)
        assert math.isinf(found.largest_absolute)


def test_integers_and_booleans_must_be_equal() -> None:
    for dtype in (np.int32, np.uint8, np.int64, ml_dtypes.int4):
        wanted = np.array([1, 2], dtype)
        assert not compare(0, np.array([1, 3], dtype), wanted, 1.0, 10.0).within
    assert not compare(0, np.array([True]), np.array([False]), 1.0, 10.0).within
    big = np.array([(1 << 62) + 1], np.int64)
    assert not compare(0, big, big - 1, 1.0, 1.0).within


def test_complex_numbers_and_empty_arrays() -> None:
    wanted = np.array([1 + 1j], np.complex64)
    assert compare(0, wanted + np.complex64(0.5), wanted, 0, 0.6).within
    assert not compare(0, wanted + np.complex64(0.5), wanted, 0, 0.4).within
    empty = np.zeros((0, 3), np.float32)
    assert compare(0, empty, empty, 0, 0).equal


def test_an_oracle_of_expected_outputs() -> None:
    wanted = np.array([1.0, 2.0], np.float32)
    oracle = Expected((wanted,), Tolerance(1e-3, 0))
    module = None
    assert oracle.judge([wanted * np.float32(1.0005)], module).result == GOOD  # type: ignore[arg-type]
    verdict = oracle.judge([wanted * np.float32(1.01)], module)  # type: ignore[arg-type]
    assert verdict.result == BAD and "instead of 2.0 (2 of 2 elements differ)" in verdict.detail
    assert "2 outputs instead of 1" in oracle.judge([wanted, wanted], module).detail  # type: ignore[arg-type]
    assert "shape (3,)" in oracle.judge([np.zeros(3, np.float32)], module).detail  # type: ignore[arg-type]


def test_narrow_floats_get_their_own_precision() -> None:
    tolerance = Tolerance()
    assert tolerance.limits(np.ones(1, np.float64))[0] == pytest.approx(1e-8)
    assert tolerance.limits(np.ones(1, ml_dtypes.bfloat16))[0] == pytest.approx(0.02)
    assert tolerance.limits(np.array([np.inf, 4.0], np.float32))[1] == pytest.approx(4e-4)
