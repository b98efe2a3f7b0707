"""Elementwise operations of two operands: arithmetic, extremes, bits, shifts, powers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler.ir.types import ElementType, TensorType
from compiler.ops import complex_functions as plane
from compiler.ops import complex_scalar
from compiler.ops.element_arrays import unsigned_bits
from compiler.ops.elementwise import by_kind, elementwise, float_rule, int_rule, math_rule
from compiler.ops.record import Array, Operation, Trait
from compiler.ops.scalar import ScalarBuilder, ScalarRule, ScalarSite, ScalarValue
from compiler.ops.type_rules import require_one_quantized_axis

MONOID = (Trait.COMMUTATIVE, Trait.ASSOCIATIVE)


def divide_integers(x: Array, y: Array) -> Any:
    """The quotient toward zero; x/0 is all ones and the one overflowing quotient wraps, as XLA has them."""
    ones = np.array(-1).astype(x.dtype)
    zero = y == 0
    if x.dtype.kind == "u":
        return np.where(zero, np.invert(x.dtype.type(0)), x // np.where(zero, x.dtype.type(1), y))
    overflow = (y == -1) & (x == np.iinfo(x.dtype).min)
    safe = np.where(zero | overflow, x.dtype.type(1), y)
    # NumPy's // rounds down; the exact part of x divides alike either way.
    quotient = (x - np.fmod(x, safe)) // safe
    return np.where(zero, ones, quotient)


def remainder_integers(x: Array, y: Array) -> Any:
    """The remainder with the dividend's sign; x%0 is x."""
    unsafe = (y == 0) | (y == y.dtype.type(0) - y.dtype.type(1)) if y.dtype.kind == "i" else y == 0
    safe = np.where(unsafe, y.dtype.type(1), y)
    return np.where(y == 0, x, np.fmod(x, safe))


def power_integers(x: Array, y: Array) -> Any:
    """X to the y, wrapping; a negative exponent gives the reciprocal truncated to an integer (0 for 0)."""
    x, y = np.broadcast_arrays(x, y)
    base, left = x.copy(), y.copy()
    negative = y < 0
    left[negative] = 0
    found = np.ones_like(x)
    while left.any():
        found = np.where((left & 1) != 0, found * base, found)
        base = base * base
        left = left >> left.dtype.type(1)
    if negative.any():
        odd = (y & y.dtype.type(1)) != 0
        minus = x.dtype.type(0) - x.dtype.type(1)
        unit = np.where(
            x == 1, x, np.where(x == minus, np.where(odd, minus, x.dtype.type(1)), x.dtype.type(0))
        )
        found = np.where(negative, unit, found)
    return found


def maximum_floats(x: Array, y: Array) -> Any:
    """The larger; NaN wins, and +0 is larger than -0."""
    found = np.maximum(x, y)
    both_zero = (x == 0) & (y == 0)
    return np.where(both_zero, x + y, found) if both_zero.any() else found


def minimum_floats(x: Array, y: Array) -> Any:
    """The smaller; NaN wins, and -0 is smaller than +0."""
    found = np.minimum(x, y)
    both_zero = (x == 0) & (y == 0)
    return np.where(both_zero, -(-x + -y), found) if both_zero.any() else found


def _shift(name: str) -> Any:
    def evaluate(evaluation: Any, x: Array, y: Array) -> Array:
        kind = evaluation.operand_types[0]
        assert isinstance(kind, TensorType) and isinstance(kind.element, ElementType)
        return shift(x, y, kind.element, name)

    return evaluate


def shift(x: Array, y: Array, element: ElementType, name: str) -> Array:
    """Shifts by amounts taken as unsigned: at or beyond the width 0 is left, or the sign for arithmetic shifts."""
    width = element.bits
    wide = np.int8 if element.bits < 8 else element.dtype
    x, y = x.astype(wide, copy=False), y.astype(wide, copy=False)
    amount = unsigned_bits(y) & unsigned_bits(y).dtype.type((1 << width) - 1)
    beyond = amount >= width
    safe = np.where(beyond, amount.dtype.type(0), amount)
    if name == "left":
        found = np.where(beyond, amount.dtype.type(0), unsigned_bits(x) << safe)
    elif name == "logical":
        raw = unsigned_bits(x) & amount.dtype.type((1 << width) - 1)
        found = np.where(beyond, amount.dtype.type(0), raw >> safe)
    else:
        found = _arithmetic(x, np.where(beyond, amount.dtype.type(width - 1), amount), element)
    return np.asarray(found).view(wide).astype(element.dtype)


def _arithmetic(x: Array, amount: Array, element: ElementType) -> Array:
    raw = unsigned_bits(x)
    spare = raw.dtype.type(raw.dtype.itemsize * 8 - element.bits)
    signed = (raw << spare).view(f"i{raw.dtype.itemsize}")
    found = (signed >> spare.astype(signed.dtype)) >> amount.astype(signed.dtype)
    return np.asarray(found).view(raw.dtype)


def _guarded_shift(op: str) -> ScalarRule:
    def rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
        e = site.operands[0]
        inside = b.compare(e, "ult", x[1], b.constant(e, e.bits)) if e.bits > 2 else _small_shift(b, e, x[1])
        safe = b.select(e, inside, x[1], b.constant(e, 0))
        if op == "ashr":
            amount = b.select(e, inside, x[1], b.constant(e, e.bits - 1))
            return b.int_op(e, op, x[0], amount)
        return b.select(e, inside, b.int_op(e, op, x[0], safe), b.constant(e, 0))

    return rule


def _small_shift(b: ScalarBuilder, e: ElementType, amount: ScalarValue) -> ScalarValue:
    """True below a width of 2, which two signed bits cannot hold."""
    return b.compare(e, "ult", amount, b.constant(e, -2 if e.kind == "int" else 2))


def _divide_rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    e = site.operands[0]
    zero, one = b.constant(e, 0), b.constant(e, 1)
    is_zero = b.compare(e, "eq", x[1], zero)
    if e.kind == "uint":
        quotient = b.int_op(e, "udiv", x[0], b.select(e, is_zero, one, x[1]))
        return b.select(e, is_zero, b.constant(e, (1 << e.bits) - 1), quotient)
    is_minus = b.compare(e, "eq", x[1], b.constant(e, -1))
    safe = b.select(e, is_minus, one, b.select(e, is_zero, one, x[1]))
    quotient = b.int_op(e, "sdiv", x[0], safe)
    quotient = b.select(e, is_minus, b.int_op(e, "sub", zero, x[0]), quotient)
    return b.select(e, is_zero, b.constant(e, -1), quotient)


def _remainder_rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    e = site.operands[0]
    one = b.constant(e, 1)
    is_zero = b.compare(e, "eq", x[1], b.constant(e, 0))
    safe = b.select(e, is_zero, one, x[1])
    if e.kind == "int":
        # -1 overflows for the smallest dividend, and leaves the remainder that 1 leaves.
        safe = b.select(e, b.compare(e, "eq", x[1], b.constant(e, -1)), one, safe)
    found = b.int_op(e, "srem" if e.kind == "int" else "urem", x[0], safe)
    return b.select(e, is_zero, x[0], found)


def _power_rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    """Square and multiply over the exponent's bits."""
    e = site.operands[0]
    zero, one = b.constant(e, 0), b.constant(e, 1)
    found, base, left = one, x[0], x[1]
    # The last bit of a signed exponent is its sign, and those are dealt with below.
    for position in range(e.bits if e.kind == "uint" else e.bits - 1):
        odd = b.compare(e, "ne", b.int_op(e, "and", left, one), zero)
        found = b.select(e, odd, b.int_op(e, "mul", found, base), found)
        if position + 1 < e.bits:
            base = b.int_op(e, "mul", base, base)
            left = b.int_op(e, "lshr", left, one)
    if e.kind == "uint":
        return found
    minus = b.constant(e, -1)
    odd = b.compare(e, "ne", b.int_op(e, "and", x[1], one), zero)
    unit = b.select(e, b.compare(e, "eq", x[0], minus), b.select(e, odd, minus, one), zero)
    unit = b.select(e, b.compare(e, "eq", x[0], one), one, unit)
    return b.select(e, b.compare(e, "slt", x[1], zero), unit, found)


def _extreme_rule(greater: bool) -> ScalarRule:
    def rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
        e = site.operands[0]
        found = b.select(e, b.compare(e, "ogt" if greater else "olt", x[0], x[1]), x[0], x[1])
        # Equal operands differ at most in a zero's sign: the sum of zeros is the larger one, the negated sum the smaller.
        if greater:
            tied = b.float_op(e, "add", x[0], x[1])
        else:
            negated = [b.float_op(e, "neg", value) for value in x]
            tied = b.float_op(e, "neg", b.float_op(e, "add", *negated))
        zero = b.constant(e, 0.0)
        equal = b.compare(e, "oeq", x[0], x[1])
        is_zero = b.compare(e, "oeq", x[0], zero)
        found = b.select(e, equal, b.select(e, is_zero, tied, x[0]), found)
        return b.select(e, b.compare(e, "uno", x[0], x[0]), x[0], found)

    return rule


def _arithmetic_operation(
    opcode: str, function: Any, op: str, boolean: str, traits: Sequence[Trait]
) -> Operation:
    compute = dict.fromkeys(("int", "uint", "float", "complex"), function)
    rules: dict[str, ScalarRule] = {
        "integer": int_rule(op),
        "float": float_rule(op),
        "complex": complex_scalar.rule(opcode),
    }
    if boolean:
        compute["bool"] = np.logical_or if boolean == "or" else np.logical_and
        rules["bool"] = int_rule(boolean)
    if opcode == "multiply":
        compute["complex"] = plane.multiply
    verify = require_one_quantized_axis if opcode == "add" else None
    return elementwise(opcode, compute, arity=2, scalar=by_kind(**rules), traits=traits, verify=verify)


def _extreme_by_kind(opcode: str, op: str, boolean: str) -> ScalarRule:
    return by_kind(
        bool=int_rule(boolean),
        int=int_rule(f"s{op}"),
        uint=int_rule(f"u{op}"),
        float=_extreme_rule(op == "max"),
        complex=complex_scalar.rule(opcode),
    )


MAXIMUM_RULE: ScalarRule = _extreme_by_kind("maximum", "max", "or")
MINIMUM_RULE: ScalarRule = _extreme_by_kind("minimum", "min", "and")


def _extreme_operation(opcode: str, floats: Any, integers: Any, op: str, boolean: str) -> Operation:
    return elementwise(
        opcode,
        {
            "bool": np.logical_or if boolean == "or" else np.logical_and,
            "int": integers,
            "uint": integers,
            "float": floats,
            "complex": getattr(plane, opcode),
        },
        arity=2,
        scalar=MAXIMUM_RULE if op == "max" else MINIMUM_RULE,
        traits=(*MONOID, Trait.IDEMPOTENT),
    )


def _logical_operation(opcode: str, function: Any, traits: Sequence[Trait]) -> Operation:
    compute = dict.fromkeys(("bool", "int", "uint"), function)
    return elementwise(opcode, compute, arity=2, scalar=int_rule(opcode), traits=traits)


def _shift_operation(opcode: str, name: str, op: str) -> Operation:
    compute = dict.fromkeys(("int", "uint"), np.left_shift)
    return elementwise(opcode, compute, arity=2, evaluate=_shift(name), scalar=_guarded_shift(op))


OPERATIONS: tuple[Operation, ...] = (
    _arithmetic_operation("add", np.add, "add", "or", MONOID),
    _arithmetic_operation("multiply", np.multiply, "mul", "and", MONOID),
    _arithmetic_operation("subtract", np.subtract, "sub", "", ()),
    elementwise(
        "divide",
        {
            "int": divide_integers,
            "uint": divide_integers,
            "float": np.divide,
            "complex": plane.divide,
        },
        arity=2,
        scalar=by_kind(integer=_divide_rule, float=float_rule("div"), complex=complex_scalar.rule("divide")),
    ),
    elementwise(
        "remainder",
        {"int": remainder_integers, "uint": remainder_integers, "float": np.fmod},
        arity=2,
        scalar=by_kind(integer=_remainder_rule, float=math_rule("remainder")),
    ),
    elementwise(
        "power",
        {"int": power_integers, "uint": power_integers, "float": np.power, "complex": plane.power},
        arity=2,
        scalar=by_kind(integer=_power_rule, float=math_rule("power"), complex=complex_scalar.rule("power")),
        transcendental=True,
    ),
    elementwise(
        "atan2",
        {"float": np.arctan2, "complex": plane.atan2},
        arity=2,
        scalar=by_kind(float=math_rule("atan2"), complex=complex_scalar.rule("atan2")),
        transcendental=True,
    ),
    _extreme_operation("maximum", maximum_floats, np.maximum, "max", "or"),
    _extreme_operation("minimum", minimum_floats, np.minimum, "min", "and"),
    _logical_operation("and", np.bitwise_and, (*MONOID, Trait.IDEMPOTENT)),
    _logical_operation("or", np.bitwise_or, (*MONOID, Trait.IDEMPOTENT)),
    _logical_operation("xor", np.bitwise_xor, MONOID),
    _shift_operation("shift_left", "left", "shl"),
    _shift_operation("shift_right_logical", "logical", "lshr"),
    _shift_operation("shift_right_arithmetic", "arithmetic", "ashr"),
)
