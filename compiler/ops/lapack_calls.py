"""The LAPACK custom calls that JAX emits on CPU (`lapack_sgetrf_ffi`, …), by SciPy's LAPACK.

Targets are `lapack_{s,d,c,z}NAME_ffi`. Matrices are the last two dimensions, everything before is a batch. Options come as
character codes in the call's configuration; results follow the calls' own order, `info` last, and hold NaN where LAPACK
reports failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.linalg import lapack

from compiler.ir.types import TensorType, TupleType
from compiler.ops.record import Array, Evaluation, Value

Routine = Callable[..., tuple[Any, ...]]
"""(prefix, options, *matrices) -> results of one batch element."""

_TARGET = re.compile(r"lapack_([sdcz])(\w+?)(?:_ffi)?")
_REAL = {"s": "s", "d": "d", "c": "s", "z": "d"}


class Options:
    """The configuration of one call."""

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        config = attributes.get("mhlo.backend_config") or attributes.get("backend_config")
        self._config: Mapping[str, Any] = config if isinstance(config, Mapping) else {}

    def letter(self, name: str, default: str) -> str:
        """A character option."""
        value = self._config.get(name, default)
        return chr(int(value)) if isinstance(value, int) else str(value)

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean option, or one that is `V` for true."""
        value = self._config.get(name, default)
        return (
            chr(value) == "V"
            if isinstance(value, int) and not isinstance(value, bool) and value > 1
            else bool(value)
        )

    def number(self, name: str, default: int) -> int:
        """An integer option."""
        return int(self._config.get(name, default))


def _routine(prefix: str, name: str) -> Any:
    return getattr(lapack, prefix + name)


def _getrf(prefix: str, options: Options, a: Array) -> tuple[Any, ...]:
    lu, pivots, info = _routine(prefix, "getrf")(a)
    return lu, pivots + 1, info


def _potrf(prefix: str, options: Options, a: Array) -> tuple[Any, ...]:
    lower = options.letter("uplo", "L") == "L"
    factor, info = _routine(prefix, "potrf")(a, lower=lower, clean=False)
    return factor, info


def _trsm(prefix: str, options: Options, a: Array, b: Array) -> tuple[Any, ...]:
    left, lower = options.letter("side", "L") == "L", options.letter("uplo", "L") == "L"
    unit, transpose = options.letter("diag", "N") == "U", options.letter("trans_x", "N")
    codes = {"N": 0, "T": 1, "C": 2}
    if left:
        solved, _ = _routine(prefix, "trtrs")(a, b, lower=lower, trans=codes[transpose], unitdiag=unit)
        return (solved,)
    # x op(a) = b is op(a)ᵀ xᵀ = bᵀ.
    if transpose == "N":
        solved, _ = _routine(prefix, "trtrs")(a, b.T, lower=lower, trans=1, unitdiag=unit)
    else:
        source = np.conj(a) if transpose == "C" else a
        solved, _ = _routine(prefix, "trtrs")(source, b.T, lower=lower, trans=0, unitdiag=unit)
    return (solved.T,)


def _geqrf(prefix: str, options: Options, a: Array) -> tuple[Any, ...]:
    packed, tau, _, _ = _routine(prefix, "geqrf")(a)
    return packed, tau


def _geqp3(prefix: str, options: Options, a: Array, pivots: Array) -> tuple[Any, ...]:
    packed, order, tau, _, _ = _routine(prefix, "geqp3")(a)
    return packed, order, tau


def _orgqr(prefix: str, options: Options, a: Array, tau: Array) -> tuple[Any, ...]:
    name = "orgqr" if prefix in "sd" else "ungqr"
    q, _, _ = _routine(prefix, name)(a, tau)
    return (q,)


def _ormqr(prefix: str, options: Options, a: Array, tau: Array, c: Array) -> tuple[Any, ...]:
    name = "ormqr" if prefix in "sd" else "unmqr"
    side = "L" if options.flag("left", True) else "R"
    transpose = ("T" if prefix in "sd" else "C") if options.flag("transpose") else "N"
    size = 64 * max(1, c.shape[1] if side == "L" else c.shape[0])
    found, _, _ = _routine(prefix, name)(side, transpose, a, tau, c, size)
    return (found,)


def _gesdd(prefix: str, options: Options, a: Array) -> tuple[Any, ...]:
    mode = options.letter("mode", "S")
    u, s, vt, info = _routine(prefix, "gesdd")(a, compute_uv=mode != "N", full_matrices=mode == "A")
    return a, s, u, vt, info


def _syevd(prefix: str, options: Options, a: Array) -> tuple[Any, ...]:
    name = "syevd" if prefix in "sd" else "heevd"
    compute = options.letter("mode", "V") == "V"
    w, v, info = _routine(prefix, name)(a, compute_v=compute, lower=options.letter("uplo", "L") == "L")
    return v, w, info


def _geev(prefix: str, options: Options, a: Array) -> tuple[Any, ...]:
    left, right = options.letter("compute_left", "V") == "V", options.letter("compute_right", "V") == "V"
    if prefix in "cz":
        w, vl, vr, info = _routine(prefix, "geev")(a, compute_vl=left, compute_vr=right)
        return w, vl, vr, info
    wr, wi, vl, vr, info = _routine(prefix, "geev")(a, compute_vl=left, compute_vr=right)
    return wr, wi, _paired(vl, wi), _paired(vr, wi), info


def _paired(vectors: Array, imaginary: Array) -> Array:
    """Complex eigenvectors from LAPACK's pairs of real columns."""
    found = vectors.astype(np.result_type(vectors.dtype, np.complex64))
    if vectors.shape[1] != len(imaginary):
        return found
    column = 0
    while column < len(imaginary):
        if imaginary[column] == 0:
            column += 1
            continue
        found[:, column] = vectors[:, column] + 1j * vectors[:, column + 1]
        found[:, column + 1] = vectors[:, column] - 1j * vectors[:, column + 1]
        column += 2
    return found


def _gees(prefix: str, options: Options, a: Array) -> tuple[Any, ...]:
    compute = options.letter("mode", "V") == "V"
    found = _routine(prefix, "gees")(lambda *_: False, a, compute_v=compute)
    if prefix in "cz":
        t, count, w, vs, _, info = found
        return t, vs, w, count, info
    t, count, wr, wi, vs, _, info = found
    return t, vs, wr, wi, count, info


def _gehrd(prefix: str, options: Options, a: Array) -> tuple[Any, ...]:
    low, high = options.number("low", 1) - 1, options.number("high", a.shape[0]) - 1
    packed, tau, info = _routine(prefix, "gehrd")(a, lo=low, hi=high)
    return packed, tau, info


def _sytrd(prefix: str, options: Options, a: Array) -> tuple[Any, ...]:
    name = "sytrd" if prefix in "sd" else "hetrd"
    packed, d, e, tau, info = _routine(prefix, name)(a, lower=options.letter("uplo", "L") == "L")
    return packed, d, e, tau, info


def _gtsv(prefix: str, options: Options, dl: Array, d: Array, du: Array, b: Array) -> tuple[Any, ...]:
    # JAX's diagonals are as long as the matrix: the first of `dl` and the last of `du` are no elements.
    low, middle, high, x, info = _routine(prefix, "gtsv")(dl[1:], d, du[:-1], b)
    return np.append(dl[:1], low), middle, np.append(high, du[-1:]), x, info


_ROUTINES: Mapping[str, tuple[Routine, tuple[int, ...]]] = {
    "getrf": (_getrf, (2,)),
    "potrf": (_potrf, (2,)),
    "trsm": (_trsm, (2, 2)),
    "geqrf": (_geqrf, (2,)),
    "geqp3": (_geqp3, (2, 1)),
    "orgqr": (_orgqr, (2, 1)),
    "ungqr": (_orgqr, (2, 1)),
    "ormqr": (_ormqr, (2, 1, 2)),
    "unmqr": (_ormqr, (2, 1, 2)),
    "gesdd": (_gesdd, (2,)),
    "syevd": (_syevd, (2,)),
    "heevd": (_syevd, (2,)),
    "geev": (_geev, (2,)),
    "gees": (_gees, (2,)),
    "gehrd": (_gehrd, (2,)),
    "sytrd": (_sytrd, (2,)),
    "hetrd": (_sytrd, (2,)),
    "gtsv": (_gtsv, (1, 1, 1, 2)),
}
"""Each routine, and how many of its operands' dimensions are not a batch."""


def lapack_call(target: str) -> Callable[..., Value] | None:
    """The function for a target, or None for a routine that is not known."""
    match = _TARGET.fullmatch(target)
    entry = _ROUTINES.get(match[2]) if match else None
    if match is None or entry is None:
        return None
    prefix, (routine, ranks) = match[1], entry

    def call(evaluation: Evaluation, *operands: Array) -> Value:
        return _batched(evaluation, prefix, routine, ranks, operands)

    return call


def _batched(
    evaluation: Evaluation, prefix: str, routine: Routine, ranks: tuple[int, ...], operands: tuple[Array, ...]
) -> Value:
    result = evaluation.result
    kinds = result.elements if isinstance(result, TupleType) else (result,)
    tensors = [kind for kind in kinds if isinstance(kind, TensorType)]
    made = [np.zeros(kind.shape, kind.element.dtype) for kind in tensors]
    batch = operands[0].shape[: operands[0].ndim - ranks[0]]
    options = Options(evaluation.attributes)
    if all(operand.size for operand in operands):
        for place in np.ndindex(*batch):
            values = routine(prefix, options, *(operand[place] for operand in operands))
            for target, value in zip(made, values, strict=True):
                part = np.asarray(value)
                if part.shape == target[place].shape:
                    target[place] = part
    return tuple(made) if isinstance(result, TupleType) else made[0]
