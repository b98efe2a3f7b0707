"""CHLO's elementwise operations: inverse and hyperbolic functions, special functions, classification, bits.

Each has a scalar rule; those that no vector library has (`zeta`, `polygamma`, `bessel_i1e`) are written out in
`chlo_formulas`. The decomposition into StableHLO is the scalar rule applied to whole tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler.ir.types import I1, ElementType, TensorType, Type, element
from compiler.ops import chlo_formulas, complex_scalar, special_functions
from compiler.ops import complex_functions as plane
from compiler.ops.decompose import Builder, by_scalar_rule
from compiler.ops.element_arrays import unsigned_bits
from compiler.ops.elementwise import by_kind, elementwise, infer_same, math_rule
from compiler.ops.record import Array, Evaluation, Operation, Site
from compiler.ops.scalar import ScalarBuilder, ScalarRule, ScalarSite, ScalarValue


def next_after(x: Array, y: Array) -> Array:
    """The next value of the format from x toward y; y when they are equal, NaN when either is."""
    bits = unsigned_bits(x)
    kind = bits.dtype.type
    top = kind(1 << (bits.dtype.itemsize * 8 - 1))
    wide = np.float64 if bits.dtype.itemsize == 8 else np.float32
    a, b = x.astype(wide), y.astype(wide)
    from_zero = (unsigned_bits(y) & top) | kind(1)
    away = (np.abs(b) > np.abs(a)) & (np.signbit(a) == np.signbit(b))
    stepped = np.where(away, bits + kind(1), bits - kind(1))
    stepped = np.where(a == 0, from_zero, stepped)
    found = np.asarray(stepped).view(x.dtype)
    found = np.where(a == b, y, found)
    return np.asarray(np.where(np.isnan(a) | np.isnan(b), np.array(np.nan).astype(x.dtype), found))


def _next_after(evaluation: Evaluation, x: Array, y: Array) -> Array:
    with np.errstate(all="ignore"):
        return next_after(*np.broadcast_arrays(x, y))


def _next_after_rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    e = site.operands[0]
    bits = element(f"ui{e.bits}")
    one, zero = b.constant(bits, 1), b.constant(e, 0.0)
    mine, other = (b.bitcast(e, bits, value) for value in x)
    top = b.constant(bits, 1 << (e.bits - 1))
    smallest = b.int_op(bits, "or", b.int_op(bits, "and", other, top), one)
    grows = b.compare(e, "ogt", b.float_op(e, "abs", x[1]), b.float_op(e, "abs", x[0]))
    signs = b.int_op(bits, "and", b.int_op(bits, "xor", mine, other), top)
    same = b.compare(bits, "eq", signs, b.constant(bits, 0))
    away = b.int_op(I1, "and", grows, same)
    stepped = b.select(bits, away, b.int_op(bits, "add", mine, one), b.int_op(bits, "sub", mine, one))
    stepped = b.select(bits, b.compare(e, "oeq", x[0], zero), smallest, stepped)
    found = b.select(e, b.compare(e, "oeq", x[0], x[1]), x[1], b.bitcast(bits, e, stepped))
    return b.select(e, b.compare(e, "uno", x[0], x[1]), b.constant(e, float("nan")), found)


def multiply_high(x: Array, y: Array, element_type: ElementType) -> Array:
    """The upper half of the double-width product of integers."""
    width = element_type.bits
    if width < 64:
        wide = np.int64 if element_type.kind == "int" else np.uint64
        narrow = (np.int8 if element_type.kind == "int" else np.uint8) if width < 8 else element_type.dtype
        product = x.astype(narrow).astype(wide) * y.astype(narrow).astype(wide)
        return np.asarray(product >> wide(width)).astype(narrow).astype(element_type.dtype)
    a, b = unsigned_bits(x), unsigned_bits(y)
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    (ah, al), (bh, bl) = ((v >> half, v & mask) for v in (a, b))
    middle = ah * bl + ((al * bl) >> half)
    carry = al * bh + (middle & mask)
    high = ah * bh + (middle >> half) + (carry >> half)
    if element_type.kind == "int":
        # The signed product differs from the unsigned one by the other factor for each negative one.
        high = high - np.where(x < 0, b, np.uint64(0)) - np.where(y < 0, a, np.uint64(0))
    return np.asarray(high).view(element_type.dtype)


def _multiply_high(evaluation: Evaluation, x: Array, y: Array) -> Array:
    kind = evaluation.operand_types[0]
    assert isinstance(kind, TensorType) and isinstance(kind.element, ElementType)
    with np.errstate(all="ignore"):
        return multiply_high(x, y, kind.element)


def _multiply_high_rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    e = site.operands[0]
    if e.bits < 64:
        wide = element(f"{'i' if e.kind == 'int' else 'ui'}{max(16, e.bits * 2)}")
        product = b.int_op(wide, "mul", *(b.convert(e, wide, value) for value in x))
        shift = b.int_op(wide, "ashr" if e.kind == "int" else "lshr", product, b.constant(wide, e.bits))
        return b.convert(wide, e, shift)
    mask, half = b.constant(e, 0xFFFFFFFF), b.constant(e, 32)

    def op(name: str, left: ScalarValue, right: ScalarValue) -> ScalarValue:
        return b.int_op(e, name, left, right)

    (ah, al), (bh, bl) = ((op("lshr", v, half), op("and", v, mask)) for v in x)
    middle = op("add", op("mul", ah, bl), op("lshr", op("mul", al, bl), half))
    carry = op("add", op("mul", al, bh), op("and", middle, mask))
    high = op("add", op("mul", ah, bh), op("add", op("lshr", middle, half), op("lshr", carry, half)))
    if e.kind == "int":
        zero = b.constant(e, 0)
        high = op("sub", high, b.select(e, b.compare(e, "slt", x[0], zero), x[1], zero))
        high = op("sub", high, b.select(e, b.compare(e, "slt", x[1], zero), x[0], zero))
    return high


def _is_infinite(sign: int) -> ScalarRule:
    def rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
        e = site.operands[0]
        value = x[0] if sign else b.float_op(e, "abs", x[0])
        return b.compare(e, "oeq", value, b.constant(e, -np.inf if sign < 0 else np.inf))

    return rule


def _infer_boolean(site: Site) -> Type:
    operand = infer_same(site)
    assert isinstance(operand, TensorType)
    return operand.with_element(I1)


def _identity_rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    return x[0]


def _square_complex(z: Array) -> Any:
    x, y = z.real, z.imag
    return plane.join((x - y) * (x + y), 2 * x * y)


def _decomposed(rule: ScalarRule) -> Any:
    def decompose(builder: Builder, *operands: str) -> str:
        return by_scalar_rule(builder, rule, *operands)

    return decompose


def _chlo(
    name: str, compute: Any, arity: int, rule: ScalarRule, transcendental: bool = True, **extra: Any
) -> Operation:
    return elementwise(
        f"chlo.{name}",
        compute,
        arity=arity,
        scalar=rule,
        transcendental=transcendental,
        decompose=_decomposed(rule),
        **extra,
    )


def _library(name: str, real: Any, complex_function: Any = None) -> Operation:
    """A function that vector libraries have for floats; over the complex plane it is written out."""
    compute = {"float": real}
    rules = {"float": math_rule(name)}
    if complex_function is not None:
        compute["complex"] = complex_function
        rules["complex"] = complex_scalar.rule(f"chlo.{name}")
    rule = by_kind(**rules)
    return elementwise(f"chlo.{name}", compute, arity=1, scalar=rule, transcendental=True)


OPERATIONS: tuple[Operation, ...] = (
    _library("acos", np.arccos, plane.acos),
    _library("acosh", np.arccosh, plane.acosh),
    _library("asin", np.arcsin, plane.asin),
    _library("asinh", np.arcsinh, plane.asinh),
    _library("atan", np.arctan, plane.atan),
    _library("atanh", np.arctanh, plane.atanh),
    _library("cosh", np.cosh, np.cosh),
    _library("sinh", np.sinh, np.sinh),
    _library("tan", np.tan, plane.tan),
    _library("erf", special_functions.erf),
    _library("erfc", special_functions.erfc),
    _library("erf_inv", special_functions.erf_inv),
    _library("lgamma", special_functions.lgamma),
    _library("digamma", special_functions.digamma),
    _chlo("polygamma", {"float": special_functions.polygamma}, 2, chlo_formulas.polygamma),
    _chlo("zeta", {"float": special_functions.zeta}, 2, chlo_formulas.zeta),
    _chlo("bessel_i1e", {"float": special_functions.bessel_i1e}, 1, chlo_formulas.bessel_i1e),
    _chlo(
        "square",
        {**dict.fromkeys(("int", "uint", "float"), np.square), "complex": _square_complex},
        1,
        by_kind(
            integer=lambda b, site, x: b.int_op(site.operands[0], "mul", x[0], x[0]),
            float=lambda b, site, x: b.float_op(site.operands[0], "mul", x[0], x[0]),
            complex=complex_scalar.rule("chlo.square"),
        ),
        transcendental=False,
    ),
    _chlo(
        "conj",
        {"float": np.positive, "complex": np.conj},
        1,
        by_kind(float=_identity_rule, complex=complex_scalar.rule("chlo.conj")),
        transcendental=False,
    ),
    _chlo(
        "next_after",
        {"float": np.nextafter},
        2,
        _next_after_rule,
        transcendental=False,
        evaluate=_next_after,
    ),
    _chlo(
        "mulhi",
        dict.fromkeys(("int", "uint"), np.multiply),
        2,
        _multiply_high_rule,
        transcendental=False,
        evaluate=_multiply_high,
    ),
    *(
        _chlo(name, {"float": compute}, 1, _is_infinite(sign), transcendental=False, infer=_infer_boolean)
        for name, compute, sign in (
            ("is_inf", np.isinf, 0),
            ("is_pos_inf", np.isposinf, 1),
            ("is_neg_inf", np.isneginf, -1),
        )
    ),
)
