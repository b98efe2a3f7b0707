"""Rules about element types and the bits of numbers: conversions, bit casts, rounding, powers of two."""

from __future__ import annotations

import numpy as np

from compiler.ir.program import Instruction
from compiler.ir.types import ELEMENTS, AnyElement, ElementType
from compiler.passes.rules.pattern import Build, Builder, Pattern, Site, element_kind, pattern

_SIGNIFICANT = {"bf16": 8, "f16": 11, "f32": 24, "f64": 53}
"""Bits of precision, the hidden one included."""
_EXPONENT = {"bf16": 8, "f16": 5, "f32": 8, "f64": 11}
_WIDENINGS = frozenset({("f16", "f32"), ("f16", "f64"), ("bf16", "f32"), ("bf16", "f64"), ("f32", "f64")})


def is_lossless(source: AnyElement, target: AnyElement) -> bool:
    """True when every value of `source` has an equal one in `target` (and conversion finds it)."""
    if source is target:
        return True
    if not isinstance(source, ElementType) or not isinstance(target, ElementType):
        return False
    if source.kind == "bool":
        return target.is_integer or target.name in _SIGNIFICANT
    if source.is_integer:
        digits = source.bits - (source.kind == "int")
        if target.is_integer:
            fits = digits <= target.bits - (target.kind == "int")
            return fits and not (source.kind == "int" and target.kind == "uint")
        return digits <= _SIGNIFICANT.get(target.name, 0) and target.name != "f16"
    return (source.name, target.name) in _WIDENINGS


@pattern("convert-nothing", "convert(x) to x's own type = x", "convert")
def _convert_nothing(site: Site, i: Instruction) -> Build | None:
    x = site.operand(i)
    return (lambda b: x.name) if x.tensor.element == i.tensor.element else None


@pattern("convert-of-widening", "convert(convert(x)) = convert(x) when the first loses nothing", "convert")
def _convert_of_widening(site: Site, i: Instruction) -> Build | None:
    middle = site.operand(i)
    if middle.opcode != "convert":
        return None
    source, between, target = site.operand(middle).tensor.element, middle.tensor.element, i.tensor.element
    if not is_lossless(source, between) or not isinstance(target, ElementType) or target.name not in _PLAIN:
        return None
    # Floats saturate where integers wrap, so the detour through a float matters to a narrower integer.
    if element_kind(site.operand(middle)) in ("int", "uint") and between.is_float and target.is_integer:
        return None
    return lambda b: b.convert(middle.operands[0], target)


_PLAIN = frozenset(name for name, e in ELEMENTS.items() if not e.is_float and not e.is_complex) | set(
    _SIGNIFICANT
)


@pattern("compare-converted-truth", "convert(p) ≠ 0 = p, for a truth value p", "compare")
def _compare_converted_truth(site: Site, i: Instruction) -> Build | None:
    middle, direction = site.operand(i), i.attributes["comparison_direction"]
    if (
        middle.opcode != "convert"
        or element_kind(site.operand(middle)) != "bool"
        or direction not in ("EQ", "NE")
    ):
        return None
    value = site.splat(i.operands[1])
    if value is None or not is_lossless(ELEMENTS["i1"], middle.tensor.element) or value not in (0, 1):
        return None
    positive = (direction == "NE") == (value == 0)
    p = middle.operands[0]
    return (lambda b: p) if positive else (lambda b: b.op("not", p))


@pattern("bitcast-convert-nothing", "bitcast_convert(x) to x's own type = x", "bitcast_convert")
def _bitcast_convert_nothing(site: Site, i: Instruction) -> Build | None:
    x = site.operand(i)
    return (lambda b: x.name) if x.tensor.element == i.tensor.element else None


@pattern(
    "bitcast-convert-twice", "bitcast_convert(bitcast_convert(x)) = bitcast_convert(x)", "bitcast_convert"
)
def _bitcast_convert_twice(site: Site, i: Instruction) -> Build | None:
    middle = site.operand(i)
    if middle.opcode != "bitcast_convert":
        return None
    x = site.operand(middle)
    if x.tensor.element == i.tensor.element and x.tensor.shape == i.tensor.shape:
        return lambda b: x.name
    if not x.tensor.shape == middle.tensor.shape == i.tensor.shape:
        return None
    return lambda b: b.add("bitcast_convert", (x.name,), i.type, i.attributes)


def _format(i: Instruction) -> tuple[int, int]:
    return i.attributes["exponent_bits"], i.attributes["mantissa_bits"]


@pattern("reduce-precision-to-own", "reduce_precision(x) to x's own format = x", "reduce_precision")
def _reduce_precision_to_own(site: Site, i: Instruction) -> Build | None:
    kind = i.tensor.element
    if not isinstance(kind, ElementType) or kind.name not in _SIGNIFICANT:
        return None
    if _format(i) != (_EXPONENT[kind.name], _SIGNIFICANT[kind.name] - 1):
        return None
    return lambda b: i.operands[0]


@pattern("reduce-precision-twice", "reduce_precision twice to one format = once", "reduce_precision")
def _reduce_precision_twice(site: Site, i: Instruction) -> Build | None:
    inner = site.operand(i)
    if inner.opcode != "reduce_precision" or _format(inner) != _format(i):
        return None
    return lambda b: inner.name


def _exponent_of_two(site: Site, name: str) -> int | None:
    """The k of an unsigned constant 2^k."""
    value = site.splat(name)
    if value is None or element_kind(site.instructions[name]) != "uint" or int(value) <= 0:
        return None
    number = int(value)
    return number.bit_length() - 1 if number & (number - 1) == 0 else None


@pattern("divide-unsigned-by-power-of-two", "x / 2^k = x >> k, for unsigned x", "divide")
def _divide_unsigned(site: Site, i: Instruction) -> Build | None:
    shift = _exponent_of_two(site, i.operands[1])
    if shift is None:
        return None
    return lambda b: b.op("shift_right_logical", i.operands[0], b.splat(i.tensor, np.asarray(shift)))


@pattern("remainder-unsigned-of-power-of-two", "x mod 2^k = x & (2^k - 1), for unsigned x", "remainder")
def _remainder_unsigned(site: Site, i: Instruction) -> Build | None:
    shift = _exponent_of_two(site, i.operands[1])
    if shift is None:
        return None

    def build(b: Builder) -> str:
        return b.op("and", i.operands[0], b.splat(i.tensor, np.asarray((1 << shift) - 1)))

    return build


@pattern("shift-by-everything", "x << k = 0 for k of at least x's width", "shift_left", "shift_right_logical")
def _shift_by_everything(site: Site, i: Instruction) -> Build | None:
    value, kind = site.splat(i.operands[1]), i.tensor.element
    if value is None or not isinstance(kind, ElementType) or 0 <= int(value) < kind.bits:
        return None
    return lambda b: b.splat(i.tensor, 0)


_FLIPPED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}
_COMMUTATIVE = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")


@pattern("constant-to-the-right", "c ∘ x = x ∘ c", *_COMMUTATIVE, "compare")
def _constant_to_the_right(site: Site, i: Instruction) -> Build | None:
    left, right = site.operand(i, 0), site.operand(i, 1)
    if left.opcode != "constant" or right.opcode == "constant":
        return None
    attributes = i.attributes
    if i.opcode == "compare":
        attributes = attributes.having(comparison_direction=_FLIPPED[attributes["comparison_direction"]])
    return lambda b: b.add(i.opcode, (right.name, left.name), i.type, attributes)


_NEGATIONS = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}


@pattern("not-of-compare", "not(x < y) = x ≥ y; of floats only not(x = y) = x ≠ y", "not")
def _not_of_compare(site: Site, i: Instruction) -> Build | None:
    found = site.operand(i)
    if found.opcode != "compare" or not site.has_one_user(found.name):
        return None
    direction = found.attributes["comparison_direction"]
    if element_kind(site.operand(found)) not in ("int", "uint", "bool") and direction not in ("EQ", "NE"):
        return None
    attributes = found.attributes.having(comparison_direction=_NEGATIONS[direction])
    return lambda b: b.add("compare", found.operands, i.type, attributes)


PATTERNS: tuple[Pattern, ...] = (
    _convert_nothing,
    _convert_of_widening,
    _compare_converted_truth,
    _bitcast_convert_nothing,
    _bitcast_convert_twice,
    _reduce_precision_to_own,
    _reduce_precision_twice,
    _divide_unsigned,
    _remainder_unsigned,
    _shift_by_everything,
    _constant_to_the_right,
    _not_of_compare,
)
