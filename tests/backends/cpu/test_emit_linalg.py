"""Factorisations and substitutions against the operations' own rules: all variants, types, batches, layouts."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from guarded import Array, Side
from one_kernel import run_both

from compiler.backends.cpu.emit.linalg_kernel import cholesky_use, triangular_solve_use
from compiler.ir.types import ELEMENTS

_TYPES = ["f32", "f64", "complex<f32>", "complex<f64>"]
_EPSILON = {"f16": 1e-3, "bf16": 1e-2, "f32": 3e-7, "f64": 1e-13, "complex<f32>": 3e-7, "complex<f64>": 1e-13}


def _type(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def _cholesky(shape: tuple[int, ...], element: str, lower: bool) -> str:
    kind = _type(shape, element)
    return f"""
func.func @main(%a: {kind}) -> {kind} {{
  %r = stablehlo.cholesky %a, lower = {str(lower).lower()} : {kind}
  return %r : {kind}
}}
"""


def _solve(
    a: tuple[int, ...], b: tuple[int, ...], element: str, left: bool, lower: bool, unit: bool, how: str
) -> str:
    matrix, right = _type(a, element), _type(b, element)
    flags = f"left_side = {left}, lower = {lower}, unit_diagonal = {unit}".lower()
    return f"""
func.func @main(%a: {matrix}, %b: {right}) -> {right} {{
  %r = "stablehlo.triangular_solve"(%a, %b) <{{{flags}, transpose_a = #stablehlo<transpose {how}>}}> : ({matrix}, {right}) -> {right}
  return %r : {right}
}}
"""


def _random(shape: tuple[int, ...], element: str) -> Array:
    rng = np.random.default_rng([len(element), *shape])
    dtype: Any = ELEMENTS[element].dtype
    values = rng.normal(size=shape)
    return (values + 1j * rng.normal(size=shape)).astype(dtype) if dtype.kind == "c" else values.astype(dtype)


def _positive(shape: tuple[int, ...], element: str) -> Array:
    wide = _random(shape, "complex<f64>" if "complex" in element else "f64")
    product = wide @ np.conj(np.swapaxes(wide, -1, -2)) / shape[-1] + 2 * np.eye(shape[-1])
    return product.astype(ELEMENTS[element].dtype)


def _triangular(shape: tuple[int, ...], element: str) -> Array:
    """Well conditioned in both triangles, with the diagonal away from zero."""
    n = shape[-1]
    return (_random(shape, element) / n + 2 * np.eye(n)).astype(ELEMENTS[element].dtype)


def _close(found: Array, right: Array, element: str) -> None:
    assert found.dtype == right.dtype
    wide: Any = np.complex128 if found.dtype.kind == "c" else np.float64
    left, expected = found.astype(wide), right.astype(wide)
    assert np.array_equal(np.isnan(left), np.isnan(expected))
    scale = np.nanmax(np.abs(expected), initial=1e-30)
    assert np.nanmax(np.abs(left - expected), initial=0) <= _EPSILON[element] * scale


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("element", [*_TYPES, "bf16", "f16"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7, 7), (2, 2, 21, 21), (40, 40)], ids=str)
def test_cholesky(shape: tuple[int, ...], element: str, lower: bool) -> None:
    side: Side = "start" if lower else "end"
    (found,), (right,) = run_both(
        _cholesky(shape, element, lower), "cholesky", cholesky_use, [_positive(shape, element)], side=side
    )
    _close(found, right, element)


@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_reads_one_triangle_and_zeroes_the_other(lower: bool) -> None:
    a = _positive((9, 9), "f64")
    a[np.triu_indices(9, 1) if lower else np.tril_indices(9, -1)] = np.nan
    (found,), (right,) = run_both(_cholesky((9, 9), "f64", lower), "cholesky", cholesky_use, [a])
    _close(found, right, "f64")
    assert not np.isnan(found).any()
    assert (np.triu(found, 1) if lower else np.tril(found, -1)).any() == np.False_


@pytest.mark.parametrize("element", ["f32", "complex<f64>"])
@pytest.mark.parametrize("lower", [True, False])
def test_a_matrix_that_is_not_positive_definite_gives_nan_and_spares_its_neighbours(
    element: str, lower: bool
) -> None:
    a = _positive((3, 5, 5), element)
    a[1, 3, 3] = -1
    (found,), (right,) = run_both(_cholesky(a.shape, element, lower), "cholesky", cholesky_use, [a])
    _close(found, right, element)
    assert not np.isnan(found[[0, 2]]).any()


_VARIANTS = list(
    itertools.product([True, False], [True, False], [True, False], ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
)


@pytest.mark.parametrize(("left", "lower", "unit", "how"), _VARIANTS)
@pytest.mark.parametrize("element", ["f32", "complex<f64>"])
def test_solve_in_all_variants(element: str, left: bool, lower: bool, unit: bool, how: str) -> None:
    a, b = (2, 7, 7), (2, 7, 5) if left else (2, 5, 7)
    matrix = _triangular(a, element)
    # The other triangle, and a diagonal of ones, are never read.
    hidden = np.triu_indices(7, 0 if unit else 1) if lower else np.tril_indices(7, 0 if unit else -1)
    matrix[..., hidden[0], hidden[1]] = np.nan
    side: Side = "start" if unit else "end"
    text = _solve(a, b, element, left, lower, unit, how)
    (found,), (right,) = run_both(
        text, "triangular_solve", triangular_solve_use, [matrix, _random(b, element)], side=side
    )
    assert not np.isnan(found).any()
    _close(found, right, element)


@pytest.mark.parametrize("element", [*_TYPES, "bf16"])
@pytest.mark.parametrize(("n", "columns"), [(1, 1), (2, 70), (33, 1), (30, 33), (5, 8)])
@pytest.mark.parametrize("left", [True, False])
def test_solve_at_many_sizes(n: int, columns: int, element: str, left: bool) -> None:
    a, b = (n, n), (n, columns) if left else (columns, n)
    text = _solve(a, b, element, left, True, False, "NO_TRANSPOSE")
    arguments = [_triangular(a, element), _random(b, element)]
    (found,), (right,) = run_both(text, "triangular_solve", triangular_solve_use, arguments, side="start")
    _close(found, right, element)


def test_many_batches_and_columns_are_cut_into_tasks() -> None:
    a, b = (3, 2, 40, 40), (3, 2, 40, 150)
    text = _solve(a, b, "f32", True, False, False, "TRANSPOSE")
    arguments = [_triangular(a, "f32"), _random(b, "f32")]
    (found,), (right,) = run_both(text, "triangular_solve", triangular_solve_use, arguments, threads=3)
    _close(found, right, "f32")


@pytest.mark.parametrize("element", _TYPES)
def test_a_zero_on_the_diagonal_divides_by_zero(element: str) -> None:
    a, b = _triangular((3, 3), element), _random((3, 2), element)
    a[0, 0] = 0
    text = _solve((3, 3), (3, 2), element, True, True, False, "NO_TRANSPOSE")
    (found,), (right,) = run_both(text, "triangular_solve", triangular_solve_use, [a, b])
    assert np.array_equal(np.isfinite(found), np.isfinite(right))
