"""Special functions on NumPy arrays, for evaluation: SciPy's, with CHLO's answers at the edges.

SciPy is loaded when the first of them is needed. All compute in f64, whatever wider format they are given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def _double(x: Array) -> Array:
    return x.astype(np.float64)


def erf(x: Array) -> Any:
    """The error function."""
    from scipy import special

    return special.erf(_double(x))


def erfc(x: Array) -> Any:
    """1 - erf(x) without the cancellation."""
    from scipy import special

    return special.erfc(_double(x))


def erf_inv(x: Array) -> Any:
    """The inverse of erf; ±inf at ±1, NaN beyond."""
    from scipy import special

    return special.erfinv(_double(x))


def lgamma(x: Array) -> Any:
    """log|Γ(x)|; +inf at the poles and at both infinities."""
    from scipy import special

    wide = _double(x)
    return np.where(np.isinf(wide), np.inf, special.gammaln(wide))


def digamma(x: Array) -> Any:
    """Γ'(x)/Γ(x); NaN at the poles, which are 0 and the negative integers."""
    from scipy import special

    wide = _double(x)
    poles = (wide <= 0) & (wide == np.floor(wide))
    return np.where(poles, np.nan, special.psi(wide))


def zeta(x: Array, q: Array) -> Any:
    """Hurwitz' ζ(x, q) = Σ (q + k)^-x; inf at x = 1, NaN below."""
    from scipy import special

    return special.zeta(_double(x), _double(q))


def polygamma(n: Array, x: Array) -> Any:
    """The n-th derivative of digamma, (-1)^(n+1) n! ζ(n+1, x); NaN unless n is an integer of at least 0."""
    from scipy import special

    order, wide = np.broadcast_arrays(_double(n), _double(x))
    valid = (order >= 0) & (order == np.floor(order))
    safe = np.where(valid, order, 1.0)
    sign = np.where(safe % 2 == 0, -1.0, 1.0)
    high = sign * np.exp(special.gammaln(safe + 1)) * special.zeta(safe + 1, wide)
    return np.where(valid, np.where(order == 0, digamma(wide), high), np.nan)


def bessel_i1e(x: Array) -> Any:
    """The modified Bessel function of order 1, times e^-|x|."""
    from scipy import special

    return special.i1e(_double(x))
