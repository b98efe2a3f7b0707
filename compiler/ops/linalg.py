"""Dense linear algebra with batches: cholesky and triangular_solve."""

from __future__ import annotations

import numpy as np

from compiler.ir.types import TensorType, Type
from compiler.ops.constraints import require, same_dimension, same_shape
from compiler.ops.element_arrays import widen
from compiler.ops.real_values import expressed, real_values, stored
from compiler.ops.record import Array, Attribute, Evaluation, Operation, Site

_TRANSPOSES = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


def _infer_cholesky(site: Site) -> Type:
    a = site.tensor(0)
    kind = expressed(a.element)
    require(kind.is_float or kind.is_complex, f"a must have float or complex elements, but is {a}")
    require(a.rank >= 2, f"(C2) a must have at least 2 dimensions, but is {a}")
    require(same_dimension(a.shape[-2], a.shape[-1]), f"(C3) the matrices must be square, but are {a}")
    return a


def _wide(array: Array, element: TensorType) -> Array:
    """Matrices in double precision."""
    values, kind = real_values(array, element.element)
    found = widen(values, kind)
    return found.astype(np.complex128 if found.dtype.kind == "c" else np.float64)


def _tensor(kind: Type) -> TensorType:
    assert isinstance(kind, TensorType)
    return kind


def _cholesky(evaluation: Evaluation, a: Array) -> Array:
    kind = _tensor(evaluation.operand_types[0])
    lower = bool(evaluation.attributes.get("lower", False))
    wide = _wide(a, kind)
    n = wide.shape[-1]
    factor = np.zeros_like(wide)
    with np.errstate(all="ignore"):
        # Only the named triangle is read. A matrix that is not positive definite gives NaN, not an error.
        source = wide if lower else np.conj(np.swapaxes(wide, -1, -2))
        for j in range(n):
            left = factor[..., j:, :j]
            column = source[..., j:, j] - np.matmul(left, np.conj(factor[..., j, :j])[..., None])[..., 0]
            pivot = np.sqrt(column[..., :1].real)
            factor[..., j:, j] = column / pivot
            factor[..., j, j] = pivot[..., 0]
        failed = np.isnan(factor).any(axis=(-1, -2), keepdims=True)
        triangle = np.tril(np.ones((n, n), np.bool_))
        factor = np.where(failed & triangle, np.nan, factor)
        if not lower:
            factor = np.conj(np.swapaxes(factor, -1, -2))
        return stored(factor, kind.element)


def _flops_of_cholesky(site: Site) -> float:
    a = site.tensor(0)
    return a.size * a.shape[-1] / 3.0


def _infer_triangular_solve(site: Site) -> Type:
    a, b = site.tensors
    left = site.attributes["left_side"]
    kind = expressed(a.element)
    require(kind.is_float or kind.is_complex, f"a must have float or complex elements, but is {a}")
    require(a.element == b.element, f"(C1) a and b must have one element type, but are {a} and {b}")
    require(
        a.rank == b.rank and a.rank >= 2,
        f"(C2) a and b must have one rank of at least 2, but are {a} and {b}",
    )
    require(
        same_shape(a.shape[:-2], b.shape[:-2]), f"(C3) batches of a and b must agree, but are {a} and {b}"
    )
    require(same_dimension(a.shape[-2], a.shape[-1]), f"(C3) a must hold square matrices, but is {a}")
    side = b.shape[-2] if left else b.shape[-1]
    require(same_dimension(a.shape[-1], side), f"(C3) a and b must share a dimension, but are {a} and {b}")
    require(
        site.attributes.get("transpose_a") in _TRANSPOSES,
        f"transpose_a must be one of {', '.join(_TRANSPOSES)}, not {site.attributes.get('transpose_a')}",
    )
    return b


def _triangular_solve(evaluation: Evaluation, a: Array, b: Array) -> Array:
    attributes = evaluation.attributes
    kind = _tensor(evaluation.operand_types[0])
    matrix, right = _wide(a, kind), _wide(b, _tensor(evaluation.operand_types[1]))
    lower = bool(attributes["lower"])
    if attributes["unit_diagonal"]:
        n = matrix.shape[-1]
        matrix = np.where(np.eye(n, dtype=np.bool_), matrix.dtype.type(1), matrix)
    transpose = attributes["transpose_a"]
    if transpose != "NO_TRANSPOSE":
        matrix, lower = np.swapaxes(matrix, -1, -2), not lower
        if transpose == "ADJOINT":
            matrix = np.conj(matrix)
    if not attributes["left_side"]:
        # x a = b is aᵀ xᵀ = bᵀ.
        matrix, lower, right = np.swapaxes(matrix, -1, -2), not lower, np.swapaxes(right, -1, -2)
    with np.errstate(all="ignore"):
        found = _substitute(matrix, right, lower)
        if not attributes["left_side"]:
            found = np.swapaxes(found, -1, -2)
        return stored(found, kind.element)


def _substitute(matrix: Array, right: Array, lower: bool) -> Array:
    """Forward or backward substitution; reads the named triangle alone."""
    n = matrix.shape[-1]
    found = np.zeros_like(right)
    for i in range(n) if lower else reversed(range(n)):
        known = slice(0, i) if lower else slice(i + 1, n)
        taken = np.matmul(matrix[..., i : i + 1, known], found[..., known, :])
        found[..., i : i + 1, :] = (right[..., i : i + 1, :] - taken) / matrix[..., i : i + 1, i : i + 1]
    return found


def _flops_of_solve(site: Site) -> float:
    return float(site.tensor(1).size * site.tensor(0).shape[-1])


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "cholesky",
        _infer_cholesky,
        _cholesky,
        arity=1,
        attributes=(Attribute("lower", "bool", False),),
        flops=_flops_of_cholesky,
        spec="StableHLO, cholesky",
    ),
    Operation(
        "triangular_solve",
        _infer_triangular_solve,
        _triangular_solve,
        arity=2,
        attributes=(
            Attribute("left_side", "bool", required=True),
            Attribute("lower", "bool", required=True),
            Attribute("unit_diagonal", "bool", required=True),
            Attribute("transpose_a", "enum", required=True, values=_TRANSPOSES),
        ),
        flops=_flops_of_solve,
        spec="StableHLO, triangular_solve",
    ),
)
