"""Elementwise operations of one operand: arithmetic, rounding to integers, bits, transcendental functions.

The functions over the complex plane are in `complex_functions` (evaluation) and `complex_scalar` (emission).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler.ir.semantics import OperationError
from compiler.ir.types import I1, QuantizedType, TensorType, Type
from compiler.ops import complex_functions as plane
from compiler.ops import complex_scalar
from compiler.ops.element_arrays import unsigned_bits
from compiler.ops.elementwise import (
    FLOAT,
    by_kind,
    elementwise,
    float_rule,
    infer_same,
    infer_with_element,
    int_rule,
    math_rule,
)
from compiler.ops.record import Array, Operation, Site, Trait
from compiler.ops.scalar import ScalarBuilder, ScalarRule, ScalarSite, ScalarValue


def sign_of_float(x: Array) -> Any:
    """-1, -0, +0, 1, or NaN."""
    return np.where(np.isnan(x) | (x == 0), x, np.copysign(x.dtype.type(1), x))


def round_half_away(x: Array) -> Any:
    """The nearest integer, halves away from zero; keeps the sign of zero."""
    whole = np.trunc(x)
    away = np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(x.dtype.type(1), x), whole)
    return np.copysign(away, x)


def _logistic(x: Array) -> Any:
    return 1 / (1 + np.exp(-x))


def count_leading_zeros(x: Array, bits: int) -> Any:
    """Leading zero bits of integers of a width."""
    raw = unsigned_bits(x).astype(np.uint64)
    if bits < 64:
        raw = raw & np.uint64((1 << bits) - 1)
    length = np.zeros(raw.shape, np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        above = (raw >> np.uint64(step)) != 0
        raw = np.where(above, raw >> np.uint64(step), raw)
        length = length + np.where(above, np.uint64(step), np.uint64(0))
    return np.uint64(bits) - (length + (raw != 0))


def _clz(evaluation: Any, x: Array) -> Array:
    element = evaluation.operand_types[0].element
    wide = x.astype(np.int8) if element.bits < 8 else x
    return np.asarray(count_leading_zeros(wide, element.bits)).astype(np.int8).astype(element.dtype)


def _popcnt(evaluation: Any, x: Array) -> Array:
    element = evaluation.operand_types[0].element
    wide = x.astype(np.int8) if element.bits < 8 else x
    raw = unsigned_bits(wide)
    mask = raw.dtype.type((1 << element.bits) - 1)
    return np.asarray(np.bitwise_count(raw & mask)).astype(element.dtype)


def _is_finite(evaluation: Any, x: Array) -> Array:
    kind = evaluation.operand_types[0].element
    if isinstance(kind, QuantizedType):
        return np.ones(x.shape, np.bool_)
    return np.asarray(np.isfinite(x))


def _infer_boolean(site: Site) -> Type:
    operand = infer_same(site)
    assert isinstance(operand, TensorType)
    return operand.with_element(I1)


def _require_float(site: Site) -> None:
    if not isinstance(site.operands[0], TensorType) or site.operands[0].element.is_complex:
        raise OperationError("operand must have floating-point elements")


def _part(name: str) -> ScalarRule:
    def rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
        e = site.operands[0]
        if e.is_complex:
            return b.real(e, x[0]) if name == "real" else b.imag(e, x[0])
        return x[0] if name == "real" else b.constant(e, 0.0)

    return rule


def _abs_int(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    e = site.operands[0]
    zero = b.constant(e, 0)
    return b.select(e, b.compare(e, "slt", x[0], zero), b.int_op(e, "sub", zero, x[0]), x[0])


def _negate_int(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    e = site.operands[0]
    return b.int_op(e, "sub", b.constant(e, 0), x[0])


def _not(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    e = site.operands[0]
    ones = True if e.kind == "bool" else -1 if e.kind == "int" else (1 << e.bits) - 1
    return b.int_op(e, "xor", x[0], b.constant(e, ones))


def _sign_int(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    e = site.operands[0]
    zero, one = b.constant(e, 0), b.constant(e, 1)
    positive = b.select(e, b.compare(e, "ne", x[0], zero), one, zero)
    if e.kind == "uint":
        return positive
    return b.select(e, b.compare(e, "slt", x[0], zero), b.constant(e, -1), positive)


def _sign_float(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    e = site.operands[0]
    ordered = b.compare(e, "une", x[0], b.constant(e, 0.0))
    number = b.compare(e, "ord", x[0], x[0])
    unit = b.float_op(e, "copysign", b.constant(e, 1.0), x[0])
    return b.select(e, number, b.select(e, ordered, unit, x[0]), x[0])


def _is_finite_rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    e = site.operands[0]
    if e.name == "f8E8M0FNU":
        return b.compare(e, "ord", x[0], x[0])  # It has no zero for the difference to be.
    difference = b.float_op(e, "sub", x[0], x[0])
    return b.compare(e, "ord", difference, difference)


def _function(opcode: str, real: Any, complex_function: Any = None, **extra: Any) -> Operation:
    """A transcendental function over floats and the complex plane."""
    rule = by_kind(float=math_rule(opcode), complex=complex_scalar.rule(opcode))
    compute = {"float": real, "complex": complex_function or real}
    return elementwise(opcode, compute, arity=1, scalar=rule, transcendental=True, **extra)


def _rounding(opcode: str, compute: Any, op: str) -> Operation:
    return elementwise(opcode, {FLOAT: compute}, arity=1, scalar=float_rule(op), traits=(Trait.IDEMPOTENT,))


OPERATIONS: tuple[Operation, ...] = (
    elementwise(
        "abs",
        {"int": np.abs, "float": np.abs, "complex": plane.absolute},
        arity=1,
        infer=infer_with_element(lambda e: e.real),
        scalar=by_kind(int=_abs_int, float=float_rule("abs"), complex=complex_scalar.rule("abs")),
        traits=(Trait.IDEMPOTENT,),
    ),
    elementwise(
        "negate",
        dict.fromkeys(("int", "uint", "float", "complex"), np.negative),
        arity=1,
        scalar=by_kind(integer=_negate_int, float=float_rule("neg"), complex=complex_scalar.rule("negate")),
        traits=(Trait.INVOLUTION,),
    ),
    elementwise(
        "not",
        dict.fromkeys(("bool", "int", "uint"), np.invert),
        arity=1,
        scalar=_not,
        traits=(Trait.INVOLUTION,),
    ),
    elementwise(
        "sign",
        {"int": np.sign, "float": sign_of_float, "complex": plane.sign},
        arity=1,
        scalar=by_kind(integer=_sign_int, float=_sign_float, complex=complex_scalar.rule("sign")),
        traits=(Trait.IDEMPOTENT,),
    ),
    _rounding("floor", np.floor, "floor"),
    _rounding("ceil", np.ceil, "ceil"),
    _rounding("round_nearest_afz", round_half_away, "round"),
    _rounding("round_nearest_even", np.rint, "roundeven"),
    elementwise(
        "is_finite",
        {"float": np.isfinite},
        arity=1,
        infer=_infer_boolean,
        evaluate=_is_finite,
        scalar=_is_finite_rule,
        verify=_require_float,
    ),
    elementwise(
        "popcnt",
        dict.fromkeys(("int", "uint"), np.bitwise_count),
        arity=1,
        evaluate=_popcnt,
        scalar=int_rule("ctpop"),
    ),
    elementwise(
        "count_leading_zeros",
        dict.fromkeys(("int", "uint"), count_leading_zeros),
        arity=1,
        evaluate=_clz,
        scalar=int_rule("ctlz"),
    ),
    elementwise(
        "real",
        {"float": lambda x: x, "complex": np.real},
        arity=1,
        infer=infer_with_element(lambda e: e.real),
        scalar=_part("real"),
    ),
    elementwise(
        "imag",
        {"float": np.zeros_like, "complex": np.imag},
        arity=1,
        infer=infer_with_element(lambda e: e.real),
        scalar=_part("imag"),
    ),
    _function("exponential", np.exp, plane.exponential),
    _function("exponential_minus_one", np.expm1, plane.exponential_minus_one),
    _function("log", np.log, plane.log),
    _function("log_plus_one", np.log1p, plane.log_plus_one),
    _function("logistic", _logistic, plane.logistic),
    _function("sine", np.sin, plane.sine),
    _function("cosine", np.cos, plane.cosine),
    _function("tan", np.tan, plane.tan),
    _function("tanh", np.tanh, plane.tanh),
    _function("cbrt", np.cbrt, plane.cbrt),
    _function("rsqrt", lambda x: 1 / np.sqrt(x), plane.rsqrt),
    elementwise(
        "sqrt",
        {"float": np.sqrt, "complex": plane.sqrt},
        arity=1,
        scalar=by_kind(float=float_rule("sqrt"), complex=complex_scalar.rule("sqrt")),
        transcendental=True,
        wide=False,
    ),
)
