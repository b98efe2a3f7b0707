"""cholesky, triangular_solve, fft and batch normalisation against their definitions."""

import cmath
import itertools
import math

import numpy as np
import pytest

from compiler.ir.semantics import OperationError
from tests.ops.operation_calls import call


def matrices(dtype, *shape, seed=0):
    rng = np.random.default_rng(seed)
    real = rng.normal(size=shape)
    return (real + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else real).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky(dtype, lower):
    a = matrices(np.result_type(dtype, np.float64), 2, 3, 5, 5)
    a = a @ np.conj(np.swapaxes(a, -1, -2)) + 5 * np.eye(5)
    # The other triangle is not read.
    junk = np.triu(np.full((5, 5), np.nan), 1) if lower else np.tril(np.full((5, 5), np.nan), -1)
    found = call("cholesky", (a + junk).astype(dtype), lower=lower)
    assert found.dtype == dtype
    product = (
        found @ np.conj(np.swapaxes(found, -1, -2)) if lower else np.conj(np.swapaxes(found, -1, -2)) @ found
    )
    np.testing.assert_allclose(product, a, rtol=2e-5 if np.finfo(dtype).bits == 32 else 1e-12, atol=1e-5)
    assert not (np.triu(found, 1) if lower else np.tril(found, -1)).any()


def test_cholesky_of_an_indefinite_matrix_is_nan():
    found = call("cholesky", np.stack([np.eye(2), -np.eye(2)]).astype(np.float32), lower=True)
    assert found[0].tolist() == [[1, 0], [0, 1]]
    assert np.isnan(found[1]).tolist() == [[True, False], [True, True]]


@pytest.mark.parametrize(
    ("left", "lower", "unit", "transpose"),
    list(
        itertools.product(
            [True, False], [True, False], [True, False], ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]
        )
    ),
)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_triangular_solve(left, lower, unit, transpose, dtype):
    a = matrices(dtype, 2, 4, 4) + 4 * np.eye(4)
    b = matrices(dtype, 2, 4, 3, seed=1) if left else matrices(dtype, 2, 3, 4, seed=1)
    attributes = {"left_side": left, "lower": lower, "unit_diagonal": unit, "transpose_a": transpose}
    x = call("triangular_solve", a, b, **attributes)
    used = np.tril(a) if lower else np.triu(a)
    if unit:
        used = np.where(np.eye(4, dtype=bool), 1, used)
    if transpose != "NO_TRANSPOSE":
        used = np.swapaxes(used, -1, -2)
    if transpose == "ADJOINT":
        used = np.conj(used)
    np.testing.assert_allclose(used @ x if left else x @ used, b, rtol=1e-10, atol=1e-10)


def test_linear_algebra_rejects():
    with pytest.raises(OperationError, match="C2"):
        call("cholesky", np.zeros(3, np.float32), lower=True)
    with pytest.raises(OperationError, match="C3"):
        call("cholesky", np.zeros((3, 2), np.float32), lower=True)
    flags = {"left_side": True, "lower": True, "unit_diagonal": False, "transpose_a": "NO_TRANSPOSE"}
    with pytest.raises(OperationError, match="C3"):
        call("triangular_solve", np.zeros((4, 4), np.float32), np.zeros((3, 4), np.float32), **flags)
    with pytest.raises(OperationError, match="transpose_a"):
        call("triangular_solve", *[np.zeros((4, 4), np.float32)] * 2, **{**flags, "transpose_a": "ODD"})


def plain_transform(x, sign):
    """The discrete Fourier transform of a vector, by its definition."""
    n = len(x)
    return [sum(x[k] * cmath.exp(sign * 2j * math.pi * j * k / n) for k in range(n)) for j in range(n)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_fft(count):
    x = matrices(np.complex128, 2, 3, 4, 5)
    want = x
    for axis in range(4 - count, 4):
        want = np.apply_along_axis(plain_transform, axis, want, -1)
    length = x.shape[4 - count :]
    forward = call("fft", x, fft_type="FFT", fft_length=length)
    np.testing.assert_allclose(forward, want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        call("fft", forward, fft_type="IFFT", fft_length=length), x, rtol=1e-12, atol=1e-12
    )
    real = call("fft", x.real.copy(), fft_type="RFFT", fft_length=length)
    whole = call("fft", x.real.astype(np.complex128), fft_type="FFT", fft_length=length)
    np.testing.assert_allclose(real, whole[..., :3], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        call("fft", real, fft_type="IRFFT", fft_length=length), x.real, rtol=1e-12, atol=1e-12
    )
    narrow = call("fft", x.astype(np.complex64), fft_type="FFT", fft_length=length)
    assert narrow.dtype == np.complex64
    np.testing.assert_allclose(narrow, want, rtol=1e-4, atol=1e-4)


def test_fft_rejects():
    x = np.zeros((3, 9), np.float32)
    for attributes, operand, message in (
        ({"fft_type": "RFFT", "fft_length": (1, 3, 9)}, x, "C1"),
        ({"fft_type": "FFT", "fft_length": (9,)}, x, "C2"),
        ({"fft_type": "RFFT", "fft_length": (9,)}, x.astype(np.complex64), "C2"),
        ({"fft_type": "RFFT", "fft_length": ()}, x, "C3"),
        ({"fft_type": "RFFT", "fft_length": (8,)}, x, "C4"),
        ({"fft_type": "IRFFT", "fft_length": (9,)}, x.astype(np.complex64), "C5"),
    ):
        with pytest.raises(OperationError, match=message):
            call("fft", operand, **attributes)


def normalised(x, mean, variance, epsilon):
    return (x - mean) / np.sqrt(variance + epsilon)


def test_batch_norm():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(4, 3, 5)).astype(np.float32)
    scale, offset = rng.normal(size=(2, 3)).astype(np.float32)
    attributes = {"epsilon": 1e-3, "feature_index": 1}
    y, mean, variance = call("batch_norm_training", x, scale, offset, **attributes)
    np.testing.assert_allclose(mean, x.mean(axis=(0, 2)), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(variance, x.var(axis=(0, 2)), rtol=1e-6)

    def spread(v):
        return v[None, :, None]

    want = normalised(x, spread(mean), spread(variance), 1e-3) * spread(scale) + spread(offset)
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)
    again = call("batch_norm_inference", x, scale, offset, mean, variance, **attributes)
    np.testing.assert_allclose(again, y, rtol=1e-5, atol=1e-6)


def test_batch_norm_grad_is_the_derivative():
    rng = np.random.default_rng(4)
    x, grad = rng.normal(size=(2, 4, 2, 3))
    scale, offset = rng.normal(size=(2, 2))
    attributes = {"epsilon": 1e-3, "feature_index": 1}

    def loss(x, scale, offset):
        return float((call("batch_norm_training", x, scale, offset, **attributes)[0] * grad).sum())

    mean, variance = x.mean(axis=(0, 2)), x.var(axis=(0, 2))
    found = call("batch_norm_grad", x, scale, mean, variance, grad, **attributes)
    for index, value in ((0, x), (1, scale), (2, offset)):
        numeric = np.empty_like(value)
        for place in np.ndindex(*value.shape):
            shifted = [value.copy(), value.copy()]
            shifted[0][place] += 1e-6
            shifted[1][place] -= 1e-6
            up, down = (
                loss(*(s if k == index else v for k, v in enumerate((x, scale, offset)))) for s in shifted
            )
            numeric[place] = (up - down) / 2e-6
        np.testing.assert_allclose(found[index], numeric, rtol=1e-5, atol=1e-5)


def test_batch_norm_rejects():
    x, v = np.zeros((4, 3), np.float32), np.zeros(3, np.float32)
    with pytest.raises(OperationError, match="C1"):
        call("batch_norm_training", x, v, v, epsilon=0.1, feature_index=2)
    with pytest.raises(OperationError, match="C2"):
        call("batch_norm_training", x, v.astype(np.float64), v, epsilon=0.1, feature_index=1)
    with pytest.raises(OperationError, match="C3"):
        call("batch_norm_training", x, np.zeros(4, np.float32), v, epsilon=0.1, feature_index=1)
