"""Conversions between element types, as LLVM IR text of any width.

How values are held: f32 and f64 as themselves; bf16 and f16 as the ``i16`` of their bits; f8, f6 and f4 types
as an ``i8`` with the bits in its low end; i2, i4, ui2, ui4 as an ``i8``, sign- or zero-extended; other integers
as themselves; i1 as an ``i1``.

Float to float rounds to nearest even, once (f64 goes to narrow formats directly, never by way of f32), and ends
as the target defines it: infinity, NaN, or the largest value for formats with neither. Float to integer
truncates and saturates, NaN becomes 0, as in XLA. Narrow formats travel by way of f32, which holds every one of
their values.
"""

from __future__ import annotations

from functools import lru_cache

from compiler.backends.cpu.vector_math.lanes import Code, Lanes, MathFunction, bits_kind, float_bits
from compiler.backends.cpu.vector_math.small_floats import POWERS_OF_TWO, SMALL_FLOATS, SmallFloat

_MANTISSA = {"f32": 23, "f64": 52}
_BIAS = {"f32": 127, "f64": 1023}
_ATTRIBUTES = "alwaysinline nounwind willreturn memory(none)"
INTEGERS = frozenset(f"{sign}{width}" for sign in ("i", "ui") for width in (2, 4, 8, 16, 32, 64))
"""The integer element types."""
FLOATS = frozenset(("f32", "f64", POWERS_OF_TWO, *SMALL_FLOATS))
"""The float element types."""


def held_kind(element: str) -> str:
    """The kind a value of an element type is held in: ``f32``, ``f64``, or ``i1`` to ``i64``."""
    if element in _MANTISSA or element == "i1":
        return element
    if element in INTEGERS:
        return f"i{max(8, int(element.lstrip('ui')))}"
    return "i8" if element == POWERS_OF_TWO else SMALL_FLOATS[element].held


def _from_small(code: Code, x: Lanes, form: SmallFloat) -> Lanes:
    """The f32 of a narrow float."""
    wide = x.to_int("i32")
    if form.bits == 16 and form.bias == _BIAS["f32"]:
        return (wide << 16).as_float("f32")
    if form.bits == 16:
        return x.as_float("f16").to_float("f32")
    size = wide & (form.sign - 1)
    normal = (size << (23 - form.mantissa)) + ((_BIAS["f32"] - form.bias) << 23)
    tiny = (size.from_signed("f32") * 2.0 ** (1 - form.bias - form.mantissa)).bits()
    bits = code.select(size.is_("ult", 1 << form.mantissa), tiny, normal)
    infinity, nan = float_bits("f32", float("inf")), float_bits("f32", float("nan"))
    if form.special == "ieee":
        bits = code.select(size.is_("eq", form.infinity), infinity, bits)
        bits = code.select(size.is_("ugt", form.infinity), nan, bits)
    if form.special == "fn":
        bits = code.select(size.is_("eq", form.infinity), nan, bits)
    if form.special == "fnuz":
        bits = code.select(wide.is_("eq", form.nan), nan, bits)
    return (bits | ((wide & form.sign) << (32 - form.bits))).as_float("f32")


def _to_small(code: Code, x: Lanes, form: SmallFloat) -> Lanes:
    """The bits of the narrow float nearest to an f32 or f64."""
    if form.bits == 16 and form.bias != _BIAS["f32"] and x.kind == "f32":
        return x.to_float("f16").bits()
    mantissa, kind = _MANTISSA[x.kind], bits_kind(x.kind)
    dropped = mantissa - form.mantissa
    size = x.abs().bits()
    rounded = size + ((size >> dropped) & 1) + ((1 << (dropped - 1)) - 1)
    result = (rounded >> dropped) - ((_BIAS[x.kind] - form.bias) << form.mantissa)
    if form.bias != _BIAS[x.kind]:
        # Below the normal numbers, a sum whose last place is the smallest subnormal does the rounding.
        shift = 2.0 ** (1 - form.bias - form.mantissa + mantissa)
        tiny = (x.abs() + shift).bits() - float_bits(x.kind, shift)
        result = code.select(x.abs().is_("olt", 2.0 ** (1 - form.bias)), tiny, result)
    result = code.select(result.is_("sge", form.infinity), form.overflow, result)
    result = code.select(x.is_nan(), form.nan, result)
    sign = (x.bits() >> (int(kind[1:]) - form.bits)) & form.sign
    if form.special == "fnuz":
        # No negative zero, and only one NaN.
        sign = code.select((result & (form.sign - 1)).is_("eq", 0), 0, sign)
    return (result ^ sign).to_int(form.held)


def _from_powers_of_two(code: Code, x: Lanes) -> Lanes:
    """The f32 of an f8E8M0FNU; its smallest value is a subnormal f32."""
    wide = x.to_int("i32")
    bits = code.select(wide.is_("eq", 0), 1 << 22, wide << 23)
    return code.select(wide.is_("eq", 255), float_bits("f32", float("nan")), bits).as_float("f32")


def _to_powers_of_two(code: Code, x: Lanes) -> Lanes:
    """The f8E8M0FNU nearest to an f32 or f64, halves up; NaN for zero, negative and too large numbers."""
    mantissa, bias = _MANTISSA[x.kind], _BIAS[x.kind]
    low = x.at_least(2.0**-127)
    result = ((low.bits() + (1 << (mantissa - 1))) >> mantissa) - (bias - 127)
    # As ml_dtypes does, whatever lies above 2^-127 is at least 2^-126: it has no halfway point there.
    least = code.select(low.is_("ogt", 2.0**-127), code.constant(result.kind, 1), 0)
    result = code.select(low.is_("olt", 2.0**-126), least, result)
    valid = x.is_("ogt", 0.0) & result.is_("ult", 255)
    return code.select(valid, result, 255).to_int("i8")


def _to_wide(code: Code, x: Lanes, source: str) -> Lanes:
    """The f32 or f64 of any float, exactly."""
    if source in _MANTISSA:
        return x
    return (
        _from_powers_of_two(code, x)
        if source == POWERS_OF_TWO
        else _from_small(code, x, SMALL_FLOATS[source])
    )


def _from_wide(code: Code, x: Lanes, target: str) -> Lanes:
    """Any float nearest to an f32 or f64."""
    if target in _MANTISSA:
        return x.to_float(target)
    return _to_powers_of_two(code, x) if target == POWERS_OF_TWO else _to_small(code, x, SMALL_FLOATS[target])


def _largest_at_most(kind: str, value: int) -> float:
    """The largest float of a kind that is no more than a positive integer."""
    excess = max(0, value.bit_length() - _MANTISSA[kind] - 1)
    return float(value >> excess << excess)


def _to_integer(code: Code, x: Lanes, target: str) -> Lanes:
    """Truncates and saturates.

    LLVM's saturating conversions come out lane by lane on x86, so the operand is brought into range before.
    """
    signed, width = target[0] == "i", int(target.lstrip("ui"))
    top = (1 << (width - signed)) - 1
    bottom = -top - 1 if signed else 0
    limit = _largest_at_most(x.kind, top)
    clamped = code.select(x.is_nan(), 0.0, x.at_least(float(bottom)).at_most(limit))
    between = f"i{max(width, 32)}"
    result = code.cast("fptosi" if signed or width < 32 else "fptoui", clamped, between)
    if limit != top:
        # As LLVM writes integers, all ones is -1.
        result = code.select(x.is_("ogt", limit), top if signed else -1, result)
    return result.to_int(held_kind(target))


def _from_integer(code: Code, x: Lanes, source: str, target: str) -> Lanes:
    """The float nearest to an integer, rounded once."""
    cast = "sitofp" if source[0] == "i" and source != "i1" else "uitofp"
    width = int(source.lstrip("ui"))
    if target in _MANTISSA:
        return code.cast(cast, x, target)
    if width == 64:
        # Large numbers are rounded to odd, so that rounding them to 53 bits is exact and the next is the first.
        kept = x & ~0x7FF
        odd = code.select((x & 0x7FF).is_("ne", 0), kept | 0x800, kept)
        small = (x + (1 << 52)).is_("ult", 1 << 53) if cast == "sitofp" else x.is_("ult", 1 << 53)
        x = code.select(small, x, odd)
    return _from_wide(code, code.cast(cast, x, "f32" if width <= 16 else "f64"), target)


@lru_cache(maxsize=1024)
def define_conversion(source: str, target: str, lanes: int) -> MathFunction:
    """The function ``xe.convert.SOURCE.TARGET.vLANES``, between any two types of which one at least is a float.

    Raises:
        KeyError: a type is unknown, or neither is a float.
    """
    known = FLOATS | INTEGERS | {"i1"}
    if source not in known or target not in known or not {source, target} & FLOATS:
        raise KeyError((source, target))
    code = Code(lanes)
    x = code.parameter(held_kind(source), "x")
    if source not in FLOATS:
        result = _from_integer(code, x, source, target)
    elif target == "i1":
        result = _to_wide(code, x, source).is_("une", 0.0)
    elif target in FLOATS:
        result = _from_wide(code, _to_wide(code, x, source), target)
    else:
        result = _to_integer(code, _to_wide(code, x, source), target)
    return code.function(("convert", f"{source}.{target}", lanes), (x,), result, _ATTRIBUTES)
