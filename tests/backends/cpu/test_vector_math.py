"""Accuracy and special cases of the elementary functions, against NumPy's wider arithmetic and mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import pytest
from vector_functions import Array, VectorFunction, error_in_ulps

from compiler.backends.cpu.target import detect, from_features
from compiler.backends.cpu.vector_math import SUPPORTED, closure, define, function_name
from compiler.backends.cpu.vector_math.accuracy import BOUNDS
from compiler.backends.cpu.vector_math.library_calls import LIBRARY

_WIDER = {"f32": np.float64, "f64": np.longdouble}
_DTYPE = {"f32": np.float32, "f64": np.float64}
_LANES = {"f32": 16, "f64": 8}
# Where a longdouble is no wider than a double, the oracle is as far off as what it judges.
_ORACLE_ERROR = 1.0 if np.finfo(np.longdouble).nmant == 52 else 0.01


def _logistic(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) / (1 + small))


def _elementwise(function: Callable[[float], float]) -> Callable[[Array], Array]:
    def applied(x: Array) -> Array:
        return np.array([function(value) for value in x.tolist()], np.float64)

    return applied


_RIGHT: dict[str, Callable[..., Any]] = {
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "logistic": _logistic,
    "tanh": np.tanh,
    "log": np.log,
    "log_plus_one": np.log1p,
    "sine": np.sin,
    "cosine": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "power": np.power,
    "remainder": np.fmod,
}
_BINARY = ("atan2", "power", "remainder")
_SPECIAL = (0.0, 0.5, 0.625, 1.0, 1.5, 2.0, 3.0, 4.0, 1e10, math.inf)


@lru_cache
def _compiled(op: str, element: str, lanes: int) -> VectorFunction:
    return VectorFunction(op, element, lanes)


def _edges(element: str) -> Array:
    dtype = _DTYPE[element]
    info = np.finfo(dtype)
    ends = (info.max, info.tiny, info.smallest_subnormal, np.log(dtype(info.max)), 88.72284, 709.782712893384)
    values = np.array([*_SPECIAL, *ends, 103.97208, 745.1332], dtype)
    with np.errstate(over="ignore"):
        around = np.concatenate([values, np.nextafter(values, dtype(0)), np.nextafter(values, dtype(np.inf))])
    return np.concatenate([around, -around, np.array([np.nan], dtype)])


def _samples(element: str, count: int) -> Array:
    """All exponents evenly, and more where the functions vary; the edges last."""
    random = np.random.default_rng(20)
    dtype = _DTYPE[element]
    word = np.uint32 if element == "f32" else np.uint64
    bits = random.integers(0, np.iinfo(word).max, count, word, endpoint=True)
    ranges = [
        random.uniform(-limit, limit, count // 4) for limit in (1.2, 6, 20, 110 if element == "f32" else 760)
    ]
    near_one = 1 + random.normal(size=count // 4) * 10.0 ** random.uniform(-16, 0, count // 4)
    tiny = 10.0 ** random.uniform(-30, 0, count // 4)
    parts = [part.astype(dtype) for part in (*ranges, near_one, -near_one, tiny, -tiny)]
    return np.concatenate([bits.view(dtype), *parts, _edges(element)])


def _check(op: str, element: str, *operands: Array) -> None:
    got = _compiled(op, element, _LANES[element])(*operands)
    with np.errstate(all="ignore"):
        right = np.asarray(_RIGHT[op](*(x.astype(_WIDER[element]) for x in operands)))
    errors = error_in_ulps(got, right)
    worst = int(errors.argmax())
    bound = BOUNDS[op][element == "f64"] + (_ORACLE_ERROR if element == "f64" else 0)
    assert errors[worst] <= bound, [*(x[worst] for x in operands), got[worst], right[worst], errors[worst]]


@pytest.mark.parametrize("op", [op for op in _RIGHT if op not in _BINARY])
def test_unary_f32(op: str) -> None:
    _check(op, "f32", _samples("f32", 600_000))


@pytest.mark.parametrize("op", [op for op in _RIGHT if op not in _BINARY])
def test_unary_f64(op: str) -> None:
    _check(op, "f64", _samples("f64", 40_000))


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("op", _BINARY)
def test_binary(op: str, element: str) -> None:
    first = _samples(element, 200_000 if element == "f32" else 20_000)
    second = np.random.default_rng(1).permutation(first)
    edges = _edges(element)
    pairs = np.repeat(edges, edges.size), np.tile(edges, edges.size)
    _check(
        op,
        element,
        np.concatenate([first, np.abs(first), pairs[0]]),
        np.concatenate([second, second, pairs[1]]),
    )


def test_power_of_negative_bases() -> None:
    exponents = np.arange(-40, 41).astype(np.float32)
    for base in (-1.5, -0.7, -2.0):
        _check("power", "f32", np.full_like(exponents, base), exponents / 2)


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("op", ["sine", "cosine", "tan"])
def test_large_angles(op: str, element: str) -> None:
    exponent = np.random.default_rng(3).uniform(20, 127 if element == "f32" else 1023, 4000)
    _check(op, element, (2.0**exponent).astype(_DTYPE[element]))


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("op", ["sine", "cosine", "tan"])
def test_angles_near_multiples_of_half_pi(op: str, element: str) -> None:
    multiples = np.arange(-3000, 3000) * (np.longdouble(np.pi) / 2 + np.longdouble(6.123233995736766e-17))
    _check(op, element, multiples.astype(_DTYPE[element]))


_BY_MPMATH: dict[str, Callable[[Any], Any]] = {
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "erf_inv": mpmath.erfinv,
    "lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))),
    "digamma": mpmath.digamma,
}


def _exactly(op: str, x: Array) -> Array:
    """Right values as the sum of two f64, held in a longdouble."""
    with mpmath.workdps(30):
        values = [_BY_MPMATH[op](mpmath.mpf(value)) for value in x.tolist()]
        highs = [float(value) for value in values]
        lows = [float(value - high) for value, high in zip(values, highs, strict=True)]
    return np.array(highs, np.longdouble) + np.array(lows, np.longdouble)


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("op", ["erf", "erfc"])
def test_error_functions(op: str, element: str) -> None:
    random = np.random.default_rng(4)
    limit = 10.05 if element == "f32" else 26.5
    x = np.concatenate(
        [random.uniform(-7, limit, 1200), 10.0 ** random.uniform(-37, 0, 200), [0.999999, 1.0, 1.000001]]
    )
    x = x.astype(_DTYPE[element])
    errors = error_in_ulps(_compiled(op, element, _LANES[element])(x), _exactly(op, x))
    assert errors.max() <= BOUNDS[op][element == "f64"], x[errors.argmax()]


@pytest.mark.parametrize("op", ["erf", "erfc"])
def test_error_functions_densely(op: str) -> None:
    x = np.concatenate([np.random.default_rng(5).uniform(-11, 11, 300_000).astype(np.float32), _edges("f32")])
    right = _elementwise(math.erf if op == "erf" else math.erfc)(x)
    assert error_in_ulps(_compiled(op, "f32", 16)(x), right).max() <= BOUNDS[op][0]


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_inverse_error_function(element: str) -> None:
    random = np.random.default_rng(6)
    near_one = 1 - 10.0 ** random.uniform(-7.2 if element == "f32" else -15.9, -0.3, 500)
    x = np.concatenate(
        [random.uniform(-0.95, 0.95, 500), near_one, -near_one, 10.0 ** random.uniform(-37, 0, 200)]
    )
    x = x.astype(_DTYPE[element])
    x = x[np.abs(x) < 1]
    function = _compiled("erf_inv", element, _LANES[element])
    errors = error_in_ulps(function(x), _exactly("erf_inv", x))
    assert errors.max() <= BOUNDS["erf_inv"][element == "f64"], x[errors.argmax()]
    ends = function(np.array([1, -1, 1.5, -2, np.nan, 0.0, -0.0, np.inf], _DTYPE[element]))
    right = np.array([np.inf, -np.inf, np.nan, np.nan, np.nan, 0.0, -0.0, np.nan], _DTYPE[element])
    np.testing.assert_array_equal(ends, right)
    assert np.signbit(ends[6]) and not np.signbit(ends[5])


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("op", ["lgamma", "digamma"])
def test_gamma_functions(op: str, element: str) -> None:
    random = np.random.default_rng(7)
    x = np.concatenate(
        [random.uniform(0.01, 40, 500), random.uniform(-9.9, 0, 500), 10.0 ** random.uniform(-30, 30, 200)]
    )
    x = x.astype(_DTYPE[element])
    got, right = _compiled(op, element, _LANES[element])(x), _exactly(op, x)
    # Near a zero only the absolute error is bounded; digamma's reflection subtracts terms as large as pi cot(pi x).
    scale = np.maximum(np.abs(right), 1)
    if op == "digamma":
        scale = np.maximum(
            scale, np.where(x < 0.5, np.abs(math.pi / np.tan(math.pi * x.astype(np.float64))) * 2, 1)
        )
    bound = np.finfo(_DTYPE[element]).eps * (0.51 if element == "f32" else 4)
    assert (np.abs(got - right) <= bound * scale).all()


def test_gamma_functions_at_their_poles() -> None:
    x = np.array([0.0, -1.0, -2.0, np.inf, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(_compiled("lgamma", "f32", 16)(x), [np.inf] * 5 + [np.nan])
    got = _compiled("digamma", "f32", 16)(x)
    np.testing.assert_array_equal(got, [np.nan, np.nan, np.nan, np.inf, np.nan, np.nan])


def test_remainder_of_far_apart_numbers() -> None:
    random = np.random.default_rng(8)
    for element, span in (("f32", 140), ("f64", 1000)):
        x, y = (2.0 ** random.uniform(-span, span * 0.9, (2, 3000))).astype(_DTYPE[element])
        _check("remainder", element, x, -y)


@pytest.mark.parametrize(("op", "element"), sorted(SUPPORTED))
def test_every_width_gives_the_same(op: str, element: str) -> None:
    x = np.concatenate([_samples(element, 200)[-700:], np.linspace(-3, 3, 200).astype(_DTYPE[element])])
    operands = (x, x[::-1].copy()) if op in _BINARY else (x,)
    right = _compiled(op, element, _LANES[element])(*operands)
    for lanes in (1, 2, 4, 8, 16):
        np.testing.assert_array_equal(VectorFunction(op, element, lanes)(*operands), right)


@pytest.mark.skipif(detect().architecture != "x86_64", reason="restricts an x86 processor")
def test_a_processor_without_avx512_gives_the_same() -> None:
    host = detect()
    features = {
        name[1:]: name[0] == "+" and "avx512" not in name
        for name in host.features.split(",")
        if not name.startswith(("+avx10", "-avx10"))
    }
    if not features.get("avx2"):
        pytest.skip("the processor has no AVX2")
    target = from_features(host.triple, "haswell", features)
    x = _samples("f32", 4000)
    for op in ("exponential", "logistic", "log", "sine", "erf", "cbrt", "power"):
        operands = (np.abs(x), x[::-1].copy()) if op in _BINARY else (x,)
        narrow = VectorFunction(op, "f32", 8, target)(*operands)
        np.testing.assert_array_equal(narrow, _compiled(op, "f32", 16)(*operands))


def test_closure_lists_callees_first_and_once() -> None:
    functions = closure(
        [("sine", "f32", 8), ("digamma", "f64", 8), ("sine", "f32", 8), ("convert", "f32.bf16", 8)]
    )
    names = [function.name for function in functions]
    assert names.index("xe.libm.sin.v8f64") < names.index("xe.sine.v8f32")
    assert names.index("xe.sine.v8f64") < names.index("xe.digamma.v8f64")
    assert len(names) == len(set(names))
    assert "xe.convert.f32.bf16.v8" in names
    assert define("sine", "f32", 8) is define("sine", "f32", 8)


def test_names_and_unknown_functions() -> None:
    assert function_name("exponential", "f32", 16) == "xe.exponential.v16f32"
    assert function_name("exponential", "f64", 1) == "xe.exponential.f64"
    with pytest.raises(KeyError):
        define("exponential", "i32", 4)
    assert {op for op, _ in SUPPORTED} - {"lgamma", "digamma"} == set(BOUNDS)
    assert set(LIBRARY) >= {"pow", "sin"}
