"""Conversions between element types: bit for bit against ml_dtypes and NumPy, exhaustively where that is small."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from vector_functions import Array, VectorFunction

from compiler.backends.cpu.vector_math.conversions import FLOATS, INTEGERS, define_conversion, held_kind
from compiler.backends.cpu.vector_math.small_floats import POWERS_OF_TWO, SMALL_FLOATS

_SMALL = sorted(FLOATS - {"f32", "f64"})
_EIGHT_BITS = [name for name in _SMALL if name not in ("bf16", "f16")]


def _dtype(element: str) -> np.dtype[Any]:
    if element == "bf16":
        return np.dtype(ml_dtypes.bfloat16)
    if element in ("f16", "f32", "f64"):
        return np.dtype(f"float{element[1:]}")
    kind, _, digits = element.partition("E")
    return np.dtype(getattr(ml_dtypes, f"float{kind[1:]}_e{digits.lower()}"))


pytestmark = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")


@lru_cache
def _compiled(source: str, target: str, lanes: int = 16) -> VectorFunction:
    return VectorFunction("convert", f"{source}.{target}", lanes)


def _codes(element: str) -> Array:
    """Every code of a narrow float."""
    bits = SMALL_FLOATS[element].bits if element in SMALL_FLOATS else 8
    return np.arange(1 << bits, dtype=np.uint16 if bits == 16 else np.uint8)


def _singles() -> Array:
    """f32 values: every one of 16 significant bits with its neighbours and halfway points, and random ones."""
    high = np.arange(1 << 16, dtype=np.uint32) << 16
    random = np.random.default_rng(1).integers(0, 1 << 32, 200_000, np.uint32)
    parts = [high, high | 1, high | 0x7FFF, high | 0x8000, high | 0x8001, high | 0xFFFF, random]
    return np.concatenate(parts).view(np.float32)


def _value(element: str, bits: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return bits.view(_dtype(element)).astype(np.float32)


@pytest.mark.parametrize("target", ["f32", "f64"])
@pytest.mark.parametrize("source", _SMALL)
def test_widening_is_exact(source: str, target: str) -> None:
    codes = _codes(source)
    with np.errstate(invalid="ignore"):
        right = codes.view(_dtype(source)).astype(_dtype(target))
    np.testing.assert_array_equal(_compiled(source, target)(codes), right)
    got = _compiled(source, target)(codes)
    np.testing.assert_array_equal(np.signbit(got[right == 0]), np.signbit(right[right == 0]))


@pytest.mark.parametrize("target", _SMALL)
def test_narrowing_f32_is_what_ml_dtypes_does(target: str) -> None:
    x = _singles()
    got = _compiled("f32", target)(x)
    with np.errstate(all="ignore"):
        right = x.astype(_dtype(target)).view(got.dtype)
    if target == "f16":
        # The payload of a NaN is free.
        known = ~np.isnan(x)
        assert np.isnan(got[~known].view(np.float16)).all()
        got, right = got[known], right[known]
    np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("target", [name for name in _SMALL if name != POWERS_OF_TWO])
def test_narrowing_f64_rounds_once(target: str) -> None:
    """Just beside a halfway point, which f32 cannot tell from it."""
    codes = _codes(target)
    values = np.unique(_value(target, codes).astype(np.float64))
    values = values[np.isfinite(values)]
    halfway = (values[1:] + values[:-1]) / 2
    narrow = _compiled("f64", target)
    for x, neighbour in (
        (np.nextafter(halfway, -np.inf), values[:-1]),
        (np.nextafter(halfway, np.inf), values[1:]),
    ):
        np.testing.assert_array_equal(_value(target, narrow(x)), neighbour)
    # Where f32 has the value, both ways agree.
    singles = _singles()
    known = ~np.isnan(singles)
    got = narrow(singles.astype(np.float64))
    np.testing.assert_array_equal(got[known], _compiled("f32", target)(singles)[known])
    assert np.array_equal(
        _value(target, got[~known]), _value(target, _compiled("f32", target)(singles[~known])), True
    )


def test_powers_of_two_from_f64() -> None:
    x = np.array(
        [5e-324, 2.0**-127, np.nextafter(2.0**-127, 1), 1.0, 1.5, np.nextafter(1.5, 0), 3.0, 2.0**127]
    )
    got = _compiled("f64", POWERS_OF_TWO)(x)
    np.testing.assert_array_equal(got, [0, 0, 1, 127, 128, 127, 129, 254])
    bad = np.array([0.0, -0.0, -1.0, np.nan, np.inf, 1.5 * 2.0**127, 1e300])
    np.testing.assert_array_equal(_compiled("f64", POWERS_OF_TWO)(bad), [255] * 7)


@pytest.mark.parametrize(
    ("source", "target"),
    [("bf16", "f8E4M3FN"), ("f16", "bf16"), ("f8E5M2", "f16"), ("f8E4M3FNUZ", "f4E2M1FN"), ("bf16", "f16")],
)
def test_between_narrow_types(source: str, target: str) -> None:
    codes = _codes(source)
    got = _compiled(source, target)(codes)
    x = _value(source, codes)
    with np.errstate(all="ignore"):
        right = x.astype(_dtype(target)).view(got.dtype)
    known = ~np.isnan(x)
    np.testing.assert_array_equal(got[known], right[known])
    if target != "f4E2M1FN":
        assert np.isnan(_value(target, got[~known])).all()


def _integer_range(element: str) -> tuple[int, int]:
    width = int(element.lstrip("ui"))
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if element[0] == "i" else (0, (1 << width) - 1)


def _as_integers(element: str, held: Array) -> list[int]:
    values: list[int] = held.view(f"{'i' if element[0] == 'i' else 'u'}{held.dtype.itemsize}").tolist()
    return values


@pytest.mark.parametrize("source", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("target", sorted(INTEGERS))
def test_floats_to_integers_truncate_and_saturate(source: str, target: str) -> None:
    if source == "bf16":
        held = _codes("bf16")
        x = _value("bf16", held).astype(np.float64)
    else:
        random = np.random.default_rng(2)
        wide = 2.0 ** random.uniform(-3, 70, 4000) * random.choice([-1, 1], 4000)
        low, high = _integer_range(target)
        edges = [
            float(low),
            float(high),
            low - 1.0,
            high + 1.0,
            low - 0.5,
            high + 0.5,
            np.inf,
            -np.inf,
            np.nan,
            -0.0,
        ]
        held = np.concatenate([wide, random.uniform(-10, 10, 2000), edges]).astype(_dtype(source))
        x = held.astype(np.float64)
    low, high = _integer_range(target)
    right = [
        0 if value != value else high if value >= high else low if value <= low else int(value)
        for value in x.tolist()
    ]
    assert _as_integers(target, _compiled(source, target)(held)) == right


def _nearest(value: int, mantissa: int) -> float:
    """The float of `mantissa` fraction bits nearest to an integer, halves to even."""
    excess = max(0, abs(value).bit_length() - mantissa - 1)
    return float(round(Fraction(value, 1 << excess)) << excess) if value else 0.0


@pytest.mark.parametrize("target", ["f32", "f64", "bf16", "f8E5M2"])
@pytest.mark.parametrize("source", sorted(INTEGERS))
def test_integers_to_floats_round_once(source: str, target: str) -> None:
    low, high = _integer_range(source)
    if high - low < 256:
        values = list(range(low, high + 1))
    else:
        random = np.random.default_rng(3)
        sizes = random.integers(0, int(source.lstrip("ui")), 3000).tolist()
        raw = [int(value) for value in random.integers(0, 1 << 63, 3000, np.uint64)]
        values = [(1 << size) | (bits & ((1 << size) - 1)) for size, bits in zip(sizes, raw, strict=True)]
        # Next to the halfway points of short significands, where a second rounding would show.
        values += [
            (odd << shift) + near
            for odd in (257, 259, 0x1000001)
            for shift in range(8, 52)
            for near in (-1, 0, 1)
        ]
        values += [low, low + 1, high, high - 1, 0, *(-value for value in values)]
        values = [value for value in values if low <= value <= high]
    width = max(8, int(source.lstrip("ui")))
    held = np.array([value % (1 << width) for value in values], f"u{width // 8}")
    got = _compiled(source, target)(held)
    if target in ("f32", "f64"):
        right = np.array(
            [_nearest(value, {"f32": 23, "f64": 52}[target]) for value in values], _dtype(target)
        )
        np.testing.assert_array_equal(got, right)
    else:
        largest = float(ml_dtypes.finfo(_dtype(target)).max)
        nearest = np.array([_nearest(value, SMALL_FLOATS[target].mantissa) for value in values])
        nearest = np.where(np.abs(nearest) > largest, np.sign(nearest) * np.inf, nearest)
        np.testing.assert_array_equal(_value(target, got), nearest)


@pytest.mark.parametrize("source", ["f32", "bf16", "f8E4M3FNUZ"])
def test_booleans(source: str) -> None:
    held = (
        np.array([0.0, -0.0, 1.0, np.nan, 1e-45, np.inf], np.float32) if source == "f32" else _codes(source)
    )
    x = held if source == "f32" else _value(source, held)
    np.testing.assert_array_equal(_compiled(source, "i1")(held), x != 0)


@pytest.mark.parametrize("target", [*_EIGHT_BITS, "bf16", "f16"])
def test_every_width_gives_the_same(target: str) -> None:
    x = _singles()[::611]
    right = _compiled("f32", target)(x)
    for lanes in (1, 2, 4, 8, 32):
        narrow = VectorFunction("convert", f"f32.{target}", lanes)(x)
        np.testing.assert_array_equal(narrow, right)
        wide = VectorFunction("convert", f"{target}.f32", lanes)(narrow)
        np.testing.assert_array_equal(wide, _compiled(target, "f32")(right))


def test_names_kinds_and_unknown_types() -> None:
    assert define_conversion("f32", "f8E4M3FN", 16).name == "xe.convert.f32.f8E4M3FN.v16"
    assert [held_kind(name) for name in ("bf16", "f8E5M2", "i4", "ui2", "ui64", "i1", "f64")] == [
        *("i16", "i8", "i8", "i8", "i64", "i1", "f64")
    ]
    for source, target in (("f32", "f7"), ("i32", "i8")):
        with pytest.raises(KeyError):
            define_conversion(source, target, 4)
