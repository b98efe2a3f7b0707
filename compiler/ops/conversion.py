"""Conversions between element types: convert, bitcast_convert, reduce_precision, uniform_quantize and its inverse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.ir.semantics import OperationError
from compiler.ir.types import F32, AnyElement, ElementType, QuantizedType, TensorType, Type
from compiler.ops.constraints import given_result, plain, require, same_shape, tensor_result
from compiler.ops.element_arrays import convert_elements, unsigned_bits
from compiler.ops.elementwise import elementwise, infer_same
from compiler.ops.quantization import dequantize, quantize, requantize
from compiler.ops.record import Array, Attribute, Evaluation, Operation, Site, Trait
from compiler.ops.scalar import ScalarBuilder, ScalarSite, ScalarValue


def _infer_convert(site: Site) -> Type:
    operand, result = site.tensor(0), given_result(site)
    require(
        same_shape(operand.shape, result.shape),
        f"(C1) operand and result must have one shape, but are {operand} and {result}",
    )
    return result


def element_types(evaluation: Evaluation) -> tuple[AnyElement, AnyElement]:
    """Element types of the first operand and of the result."""
    source, target = evaluation.operand_types[0], evaluation.result
    assert isinstance(source, TensorType) and isinstance(target, TensorType)
    return source.element, target.element


def _convert(evaluation: Evaluation, x: Array) -> Array:
    source, target = element_types(evaluation)
    with np.errstate(all="ignore"):
        return np.asarray(convert_elements(x, plain(source), plain(target)))


def _convert_rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    return b.convert(site.operands[0], site.result, x[0])


def _infer_bitcast(site: Site) -> Type:
    operand, result = site.tensor(0), given_result(site)
    source, target = operand.element, result.element
    require(
        source.is_complex == target.is_complex,
        f"(C2) both or neither must be complex, but are {operand} and {result}",
    )
    if source.bits == target.bits:
        fits = same_shape(operand.shape, result.shape)
    elif source.bits < target.bits:
        wanted = (*result.shape, target.bits // source.bits)
        fits = target.bits % source.bits == 0 and same_shape(operand.shape, wanted)
    else:
        wanted = (*operand.shape, source.bits // target.bits)
        fits = source.bits % target.bits == 0 and same_shape(result.shape, wanted)
    require(fits, f"(C1) the bits of {operand} do not make up {result}")
    return result


def bit_rows(x: Array, bits: int) -> Array:
    """Each element as a row of its bits, least significant first."""
    raw = np.ascontiguousarray(x).reshape(x.shape).view(np.uint8)
    return np.unpackbits(raw.reshape(*x.shape, x.dtype.itemsize), axis=-1, bitorder="little")[..., :bits]


def from_bit_rows(rows: Array, element: ElementType) -> Array:
    """Elements from rows of their bits, least significant first; narrow signed integers are sign-extended."""
    width = element.dtype.itemsize * 8
    if rows.shape[-1] < width:
        fill = rows[..., -1:] if element.kind == "int" else np.zeros_like(rows[..., -1:])
        rows = np.concatenate([rows, np.repeat(fill, width - rows.shape[-1], axis=-1)], axis=-1)
    packed = np.ascontiguousarray(np.packbits(rows, axis=-1, bitorder="little"))
    return packed.view(element.dtype).reshape(rows.shape[:-1])


def bitcast(x: Array, source: ElementType, target: ElementType, shape: tuple[int, ...]) -> Array:
    """Reinterprets elements' bits; wider elements are made of (or taken apart into) a last dimension."""
    if source.bits == source.dtype.itemsize * 8 and target.bits == target.dtype.itemsize * 8:
        flat = np.ascontiguousarray(x).reshape(-1)
        return flat.view(target.dtype).reshape(shape)
    rows = bit_rows(x, source.bits)
    return from_bit_rows(rows.reshape(*shape, target.bits), target)


def _bitcast(evaluation: Evaluation, x: Array) -> Array:
    source, target = element_types(evaluation)
    source = source.storage if isinstance(source, QuantizedType) else source
    target = target.storage if isinstance(target, QuantizedType) else target
    shape = x.shape
    if source.bits < target.bits:
        shape = x.shape[:-1]
    elif source.bits > target.bits:
        shape = (*x.shape, source.bits // target.bits)
    return bitcast(x, source, target, shape)


def _bitcast_rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    return b.bitcast(site.operands[0], site.result, x[0])


def _verify_reduce_precision(site: Site) -> None:
    exponent, mantissa = site.attributes["exponent_bits"], site.attributes["mantissa_bits"]
    require(exponent >= 1, f"(C2) exponent_bits must be at least 1, not {exponent}")
    require(mantissa >= 0, f"(C3) mantissa_bits must not be negative, but is {mantissa}")


_FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}


def reduce_precision(x: Array, element: ElementType, exponent_bits: int, mantissa_bits: int) -> Array:
    """Rounds as if through a float format: nearest even, overflow to infinity, underflow to a signed zero."""
    exponents, mantissas = _FORMATS[element.name]
    bits = unsigned_bits(x)
    kind = bits.dtype.type
    sign_mask = kind(1 << (element.bits - 1))
    sign, magnitude = bits & sign_mask, bits & ~sign_mask
    infinity = kind(((1 << exponents) - 1) << mantissas)
    is_nan = magnitude > infinity
    if mantissa_bits < mantissas:
        drop = mantissas - mantissa_bits
        last = (magnitude >> kind(drop)) & kind(1)
        magnitude = magnitude + kind((1 << (drop - 1)) - 1) + last
        magnitude = magnitude & ~kind((1 << drop) - 1)
    if exponent_bits < exponents:
        bias, reduced = (1 << (exponents - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = magnitude & infinity
        over = exponent > kind((bias + reduced) << mantissas)
        under = exponent <= kind((bias - reduced) << mantissas)
        magnitude = np.where(over, infinity, np.where(under, kind(0), magnitude))
    # With no mantissa left a NaN could not be told from infinity, yet stays one.
    quiet = x if mantissa_bits > 0 else np.full_like(x, np.nan)
    found = np.asarray(sign | magnitude).view(element.dtype)
    return np.asarray(np.where(is_nan, quiet, found)).astype(element.dtype, copy=False)


def _reduce_precision(evaluation: Evaluation, x: Array) -> Array:
    source, _ = element_types(evaluation)
    kind = source.expressed if isinstance(source, QuantizedType) else source
    values = dequantize(x, source) if isinstance(source, QuantizedType) else x
    exponent, mantissa = evaluation.attributes["exponent_bits"], evaluation.attributes["mantissa_bits"]
    with np.errstate(all="ignore"):
        if kind.name in _FORMATS:
            found = reduce_precision(values, kind, exponent, mantissa)
        else:
            # Narrower formats are exact in f16's or bf16's wider neighbour, f32.
            wide = reduce_precision(values.astype(np.float32), F32, exponent, mantissa)
            found = wide.astype(kind.dtype)
    return quantize(found, source) if isinstance(source, QuantizedType) else found


def _reduce_precision_rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
    attributes = site.attributes
    return b.round_to(site.operands[0], x[0], attributes["exponent_bits"], attributes["mantissa_bits"])


def _infer_quantize(site: Site) -> Type:
    result = _infer_convert(site)
    assert isinstance(result, TensorType)
    require(isinstance(result.element, QuantizedType), f"result must be quantized, but is {result}")
    return result


def _verify_quantize(site: Site) -> None:
    operand, result = site.tensor(0).element, tensor_result(site).element
    assert isinstance(result, QuantizedType)
    expressed = operand.expressed if isinstance(operand, QuantizedType) else operand
    require(
        expressed is result.expressed,
        f"(C2) the operand's real type {expressed.name} must be the result's {result.expressed.name}",
    )


def _quantize(evaluation: Evaluation, x: Array) -> Array:
    source, target = element_types(evaluation)
    assert isinstance(target, QuantizedType)
    return requantize(x, source, target) if isinstance(source, QuantizedType) else quantize(x, target)


def _infer_dequantize(site: Site) -> Type:
    operand = site.tensor(0)
    if not isinstance(operand.element, QuantizedType):
        raise OperationError(f"operand must be quantized, but is {operand}")
    return operand.with_element(operand.element.expressed)


def _dequantize(evaluation: Evaluation, x: Array) -> Array:
    source, _ = element_types(evaluation)
    assert isinstance(source, QuantizedType)
    return dequantize(x, source)


_ANYTHING = dict.fromkeys(("bool", "int", "uint", "float", "complex", "quantized"), np.positive)

OPERATIONS: tuple[Operation, ...] = (
    elementwise("convert", _ANYTHING, arity=1, infer=_infer_convert, evaluate=_convert, scalar=_convert_rule),
    Operation(
        "bitcast_convert",
        _infer_bitcast,
        _bitcast,
        arity=1,
        scalar=_bitcast_rule,
        traits=frozenset((Trait.ELEMENTWISE,)),
        flops=lambda site: 0.0,
        spec="StableHLO, bitcast_convert",
    ),
    elementwise(
        "reduce_precision",
        {"float": np.positive},
        arity=1,
        infer=infer_same,
        evaluate=_reduce_precision,
        scalar=_reduce_precision_rule,
        verify=_verify_reduce_precision,
        attributes=(
            Attribute("exponent_bits", "i64", required=True),
            Attribute("mantissa_bits", "i64", required=True),
        ),
    ),
    elementwise(
        "uniform_quantize",
        {"float": np.positive},
        arity=1,
        infer=_infer_quantize,
        evaluate=_quantize,
        scalar=None,
        verify=_verify_quantize,
    ),
    elementwise(
        "uniform_dequantize",
        {"quantized": np.positive},
        arity=1,
        infer=_infer_dequantize,
        evaluate=_dequantize,
        scalar=None,
    ),
)
"""`bitcast_convert` is elementwise only where the two element types have one width."""
