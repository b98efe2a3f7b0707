"""Operations by which programs check themselves: `check.expect_*`, `custom_call @check.*`, `interpreter.*`.

They are StableHLO's own test operations. A check that does not hold raises CheckFailed; one that holds yields nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from compiler.ir.literal import Literal
from compiler.ir.semantics import OperationError
from compiler.ir.types import ElementType, QuantizedType, TensorType, TupleType, Type
from compiler.ops.constraints import compatible, require
from compiler.ops.conversion import bit_rows
from compiler.ops.elementwise import unquantized
from compiler.ops.record import VARIADIC, Array, Attribute, Evaluation, Operation, Site, Trait, Value

_DEFAULT_TOLERANCE = 1e-3
_DEFAULT_ULPS = 3


class CheckFailed(Exception):
    """A program's own check found a difference."""

    def at(self, place: str) -> CheckFailed:
        """The same failure, with where the check stands."""
        return CheckFailed(f"{place}: {self}")


class ParallelEvaluation(Evaluation, Protocol):
    """What `interpreter.run_parallel` needs of the interpreter besides."""

    def run_parallel(
        self, programs: Sequence[Sequence[str]], operands: Sequence[Value], infeed: Sequence[str]
    ) -> list[Value]:
        """Runs named computations as the processes of a grid."""
        ...


def _element(kind: Type) -> Any:
    assert isinstance(kind, TensorType)
    return kind.element


def _first_difference(wrong: Array, got: Array, want: Array, how: str) -> CheckFailed:
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    place = f" at {list(index)}" if index else ""
    count = int(np.count_nonzero(wrong))
    return CheckFailed(
        f"{how}: got {got[index]!s}, want {want[index]!s}{place} ({count} of {wrong.size} differ)"
    )


def _same_shape(got: Array, want: Array) -> None:
    if got.shape != want.shape:
        raise CheckFailed(f"got shape {list(got.shape)}, want {list(want.shape)}")


def equal_bits(got: Array, want: Array, element: ElementType) -> Array:
    """Where two arrays hold the same values: the same bits, or for floats numbers that compare equal or both NaN."""
    if element.is_float or element.is_complex:
        wide = [
            x.astype(np.float32) if element.bits < 16 or element.name == "bf16" else x for x in (got, want)
        ]
        return np.asarray((wide[0] == wide[1]) | (np.isnan(wide[0]) & np.isnan(wide[1])))
    if element.bits < 8 and element.kind != "bool":
        return np.asarray((bit_rows(got, element.bits) == bit_rows(want, element.bits)).all(axis=-1))
    return np.asarray(got == want)


def check_equal(got: Array, want: Array, element: ElementType) -> None:
    """Raises CheckFailed unless all elements are equal (NaN equals NaN)."""
    _same_shape(got, want)
    wrong = ~equal_bits(got, want, element)
    if wrong.any():
        raise _first_difference(wrong, got, want, "not equal")


def check_almost_equal(got: Array, want: Array, tolerance: float) -> None:
    """Raises CheckFailed unless all elements differ by at most the tolerance; infinities and NaN must agree."""
    _same_shape(got, want)
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), want.astype(wide)
    with np.errstate(all="ignore"):
        near = _near(a.real, b.real, tolerance) & _near(a.imag, b.imag, tolerance)
    if not near.all():
        raise _first_difference(~near, got, want, f"farther apart than {tolerance:g}")


def _near(a: Array, b: Array, tolerance: float) -> Array:
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= tolerance))


def ulp_distance(got: Array, want: Array) -> Array:
    """Steps between two real arrays of one IEEE-like format, NaN and NaN 0 apart, NaN and a number 2^64 - 1."""
    bits = f"i{got.dtype.itemsize}"
    ordered = []
    for x in (got, want):
        raw = np.ascontiguousarray(x).reshape(x.shape).view(bits).astype(np.int64)
        lowest = np.int64(np.iinfo(bits).min)
        ordered.append(np.where(raw < 0, lowest - raw, raw))
    first, second = ordered
    larger, smaller = np.maximum(first, second), np.minimum(first, second)
    distance = larger.astype(np.uint64) - smaller.astype(np.uint64)
    wide = [x.astype(np.float64) for x in (got, want)]
    nan = [np.isnan(x) for x in wide]
    apart = np.where(nan[0] & nan[1], np.uint64(0), distance)
    apart = np.where(nan[0] ^ nan[1], np.uint64(np.iinfo(np.uint64).max), apart)
    infinite = (np.isinf(wide[0]) | np.isinf(wide[1])) & (wide[0] != wide[1])
    return np.asarray(np.where(infinite, np.uint64(np.iinfo(np.uint64).max), apart))


def check_close(got: Array, want: Array, most: int, least: int = 0) -> None:
    """Raises CheckFailed unless each element (each part of a complex one) is between `least` and `most` ULPs off."""
    _same_shape(got, want)
    if got.dtype.kind == "c":
        distance = np.maximum(ulp_distance(got.real, want.real), ulp_distance(got.imag, want.imag))
    else:
        distance = ulp_distance(got, want)
    wrong = (distance > np.uint64(most)) | (distance < np.uint64(least))
    if wrong.any():
        worst = int(distance.max())
        raise _first_difference(wrong, got, want, f"not within {least} to {most} ULP (at most {worst})")


def _pair(evaluation: Evaluation, got: Array, want: Any) -> tuple[Array, Array, ElementType]:
    kinds = [_element(kind) for kind in evaluation.operand_types[:2]]
    if isinstance(want, Literal):
        return got, want.array, kinds[0] if isinstance(kinds[0], ElementType) else kinds[0].storage
    if any(isinstance(kind, QuantizedType) for kind in kinds):
        plain_kinds, (got, want) = unquantized(kinds, (got, want))
        return got, want, plain_kinds[0]
    return got, want, kinds[0]


def _ulps(evaluation: Evaluation, name: str, default: int) -> int:
    found = evaluation.attributes.get(name, default)
    return int(found) % (1 << 64)


def _expect_equal(evaluation: Evaluation, got: Array, want: Any = None) -> Value:
    check_equal(*_pair(evaluation, got, evaluation.attributes["value"] if want is None else want))
    return ()


def _expect_almost_equal(evaluation: Evaluation, got: Array, want: Any = None) -> Value:
    pair = _pair(evaluation, got, evaluation.attributes["value"] if want is None else want)
    check_almost_equal(*pair[:2], float(evaluation.attributes.get("tolerance", _DEFAULT_TOLERANCE)))
    return ()


def _expect_close(evaluation: Evaluation, got: Array, want: Array) -> Value:
    pair = _pair(evaluation, got, want)
    most = _ulps(evaluation, "max_ulp_difference", _DEFAULT_ULPS)
    check_close(*pair[:2], most, _ulps(evaluation, "min_ulp_difference", 0))
    return ()


def _equals(evaluation: Evaluation, got: Array, want: Array) -> Value:
    """`@check.eq`: a boolean instead of an error, by elements or for all of them as the result type has it."""
    pair = _pair(evaluation, got, want)
    same = equal_bits(*pair)
    result = evaluation.result
    assert isinstance(result, TensorType)
    return same if result.shape == same.shape and result.rank else np.asarray(same.all())


def _run_parallel(evaluation: ParallelEvaluation, *operands: Value) -> Value:
    attributes = evaluation.attributes
    results = evaluation.run_parallel(attributes["programs"], operands, attributes.get("infeed", ()))
    return tuple(results) if isinstance(evaluation.result, TupleType) else results[0]


def _print(evaluation: Evaluation, value: Value) -> Value:
    print(f"{evaluation.operand_types[0]}: {np.array2string(np.asarray(value), separator=', ')}")
    return ()


def _infer_nothing(site: Site) -> Type:
    if len(site.operands) == 2:
        first, second = site.operands
        require(compatible(first, second), f"operands must have one type, but are {first} and {second}")
    return TupleType(())


def _infer_declared(site: Site) -> Type:
    if site.result is None:
        raise OperationError(f"the result type of {site.opcode} must be given")
    return site.result


def _check(opcode: str, evaluate: Any, arity: int, *attributes: Attribute) -> Operation:
    traits = frozenset((Trait.SIDE_EFFECT, Trait.HLO_ONLY))
    spec = "StableHLO, reference interpreter's check dialect"
    return Operation(
        opcode, _infer_nothing, evaluate, arity=arity, attributes=attributes, traits=traits, spec=spec
    )


CHECK_CALLS: dict[str, Callable[..., Value]] = {
    "check.eq": _equals,
    "check.expect_eq": _expect_equal,
    "check.expect_almost_eq": _expect_almost_equal,
    "check.expect_close": _expect_close,
}
"""Custom calls that exporters write for the same checks."""

_VALUE = Attribute("value", "literal", required=True)
_TOLERANCE = Attribute("tolerance", "f64", default=_DEFAULT_TOLERANCE)

OPERATIONS: tuple[Operation, ...] = (
    _check("check.expect_eq", _expect_equal, 2),
    _check("check.expect_eq_const", _expect_equal, 1, _VALUE),
    _check("check.expect_almost_eq", _expect_almost_equal, 2, _TOLERANCE),
    _check("check.expect_almost_eq_const", _expect_almost_equal, 1, _VALUE, _TOLERANCE),
    _check(
        "check.expect_close",
        _expect_close,
        2,
        Attribute("max_ulp_difference", "i64", default=_DEFAULT_ULPS),
        Attribute("min_ulp_difference", "i64", default=0),
    ),
    _check("interpreter.print", _print, 1),
    Operation(
        "interpreter.run_parallel",
        _infer_declared,
        _run_parallel,
        arity=VARIADIC,
        attributes=(Attribute("programs", "any", required=True), Attribute("infeed", "any")),
        traits=frozenset((Trait.SIDE_EFFECT, Trait.HLO_ONLY)),
        spec="StableHLO, reference interpreter's dialect",
    ),
)
