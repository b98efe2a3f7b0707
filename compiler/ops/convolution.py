"""Convolutions: static and dynamic padding, any number of spatial dimensions, groups, dilation and reversal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from compiler.ir.semantics import OperationError
from compiler.ir.types import DYNAMIC, AnyElement, QuantizedType, TensorType, Type
from compiler.ops.constraints import (
    require,
    require_in_range,
    require_unique,
    same_dimension,
    tensor_result,
)
from compiler.ops.contraction import check_precision, check_product_elements
from compiler.ops.convolution_arithmetic import Shape, convolve
from compiler.ops.record import Array, Attribute, Evaluation, Operation, Site, Trait
from compiler.ops.sum_of_products import Factors

Padding = Sequence[tuple[int, int]]


def _dimension_numbers(site: Site, side: str) -> tuple[int, int, tuple[int, ...]]:
    """Batch (or input feature) dimension, feature (or output feature) dimension, and spatial dimensions."""
    first, second = ("input_feature", "output_feature") if side == "kernel" else ("batch", "feature")
    a = site.attributes
    return (
        a[f"{side}_{first}_dimension"],
        a[f"{side}_{second}_dimension"],
        tuple(a[f"{side}_spatial_dimensions"]),
    )


def _check_dimension_numbers(site: Site) -> int:
    lhs, rhs = site.tensor(0), site.tensor(1)
    require(lhs.rank == rhs.rank, f"(C1) lhs and rhs must have one rank, but are {lhs} and {rhs}")
    require(lhs.rank >= 2, f"(C1) lhs and rhs need at least 2 dimensions, but are {lhs} and {rhs}")
    count = lhs.rank - 2
    numbers = {"input": "(C13)", "kernel": "(C18)", "output": "(C20)"}
    for side, constraint in numbers.items():
        first, second, spatial = _dimension_numbers(site, side)
        everything = (first, second, *spatial)
        require(
            len(spatial) == count,
            f"{constraint} {side}_spatial_dimensions must be {count}, but are {len(spatial)}",
        )
        require_in_range(everything, lhs.rank, f"{constraint} {side} dimension numbers must be dimensions")
        require_unique(everything, f"{constraint} {side} dimension numbers must not repeat")
    return count


def _check_window(site: Site, count: int) -> None:
    a = site.attributes
    for size_number, value_number, name in (
        ("(C2)", "(C3)", "window_strides"),
        ("(C5)", "(C6)", "lhs_dilation"),
        ("(C7)", "(C8)", "rhs_dilation"),
    ):
        values = a.get(name, (1,) * count)
        require(
            len(values) == count,
            f"{size_number} {name} must have {count} entries, one for each spatial dimension, but has {len(values)}",
        )
        require(all(v > 0 for v in values), f"{value_number} {name} must be positive, but is {list(values)}")
    for index, dimension in enumerate(a["kernel_spatial_dimensions"]):
        size = site.tensor(1).shape[dimension]
        require(size > 0 or size == DYNAMIC, f"the kernel must not be empty along spatial dimension {index}")
    reversal = a.get("window_reversal", (False,) * count)
    require(
        len(reversal) == count, f"(C9) window_reversal must have {count} entries, but has {len(reversal)}"
    )


def _check_groups(site: Site) -> None:
    lhs, rhs = site.tensor(0), site.tensor(1)
    features, batches = (
        site.attributes.get("feature_group_count", 1),
        site.attributes.get("batch_group_count", 1),
    )
    batch, feature, _ = _dimension_numbers(site, "input")
    in_feature, out_feature, _ = _dimension_numbers(site, "kernel")
    require(features > 0, f"(C21) feature_group_count must be positive, but is {features}")
    require(batches > 0, f"(C22) batch_group_count must be positive, but is {batches}")
    require(
        features == 1 or batches == 1, "(C23) feature_group_count and batch_group_count cannot both exceed 1"
    )
    sizes = (lhs.shape[batch], lhs.shape[feature], rhs.shape[in_feature], rhs.shape[out_feature])
    require(
        sizes[0] == DYNAMIC or sizes[0] % batches == 0,
        f"(C10) {sizes[0]} batches do not make {batches} groups",
    )
    require(
        sizes[1] == DYNAMIC or sizes[1] % features == 0,
        f"(C11) {sizes[1]} features do not make {features} groups",
    )
    require(
        DYNAMIC in sizes[1:3] or sizes[2] == sizes[1] // features,
        f"(C14) rhs must have {sizes[1] // features} input features ({sizes[1]} in {features} groups), not {sizes[2]}",
    )
    require(
        sizes[3] == DYNAMIC or sizes[3] % batches == 0,
        f"(C15) {sizes[3]} output features do not make {batches} batch groups",
    )
    require(
        sizes[3] == DYNAMIC or sizes[3] % features == 0,
        f"(C16) {sizes[3]} output features do not make {features} groups",
    )


def dilated(size: int, dilation: int) -> int:
    """Size of a dimension after dilation."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def window_count(size: int, window: int, stride: int) -> int:
    """How many windows fit along a dimension."""
    return 0 if size < window or size == 0 else (size - window) // stride + 1


def _result_shape(site: Site, padding: Padding | None) -> tuple[int, ...]:
    """The result's shape; spatial sizes are dynamic where the padding or an operand is."""
    lhs, rhs, a = site.tensor(0), site.tensor(1), site.attributes
    batch, feature, spatial = _dimension_numbers(site, "output")
    in_batch, _, in_spatial = _dimension_numbers(site, "input")
    _, out_feature, kernel_spatial = _dimension_numbers(site, "kernel")
    shape = [DYNAMIC] * lhs.rank
    batches = lhs.shape[in_batch]
    shape[batch] = batches if batches == DYNAMIC else batches // a.get("batch_group_count", 1)
    shape[feature] = rhs.shape[out_feature]
    for index, dimension in enumerate(spatial):
        size, window = lhs.shape[in_spatial[index]], rhs.shape[kernel_spatial[index]]
        if padding is None or DYNAMIC in (size, window):
            continue
        whole = dilated(size, a["lhs_dilation"][index]) + sum(padding[index])
        shape[dimension] = window_count(
            max(whole, 0), dilated(window, a["rhs_dilation"][index]), a["window_strides"][index]
        )
    return tuple(shape)


def _element(site: Site) -> AnyElement:
    if isinstance(site.result, TensorType):
        return site.result.element
    element = site.tensor(0).element
    if isinstance(element, QuantizedType):
        raise OperationError("the result type of a quantized convolution must be given")
    return element


def _infer_convolution(site: Site) -> Type:
    count = _check_dimension_numbers(site)
    _check_window(site, count)
    _check_groups(site)
    padding = site.attributes.get("padding", ((0, 0),) * count)
    require(
        len(padding) == count and all(isinstance(entry, tuple) and len(entry) == 2 for entry in padding),
        f"(C4) padding must have a pair for each of {count} spatial dimensions",
    )
    return TensorType(_element(site), _result_shape(site, padding))


def _verify_convolution(site: Site) -> None:
    check_precision(site, "(C24)")
    lhs, rhs, result = site.tensor(0), site.tensor(1), tensor_result(site)
    check_product_elements(lhs.element, rhs.element, result.element, ("(C27)", "(C28)"))
    output_feature = _dimension_numbers(site, "kernel")[1]
    if isinstance(rhs.element, QuantizedType) and rhs.element.axis is not None:
        require(
            rhs.element.axis == output_feature,
            "(C29) the quantization dimension of rhs must be its output feature dimension",
        )
    if isinstance(result.element, QuantizedType) and result.element.axis is not None:
        require(
            result.element.axis == site.attributes["output_feature_dimension"],
            "(C30) the quantization dimension of the result must be its output feature dimension",
        )


def _infer_dynamic(site: Site) -> Type:
    count = _check_dimension_numbers(site)
    _check_window(site, count)
    _check_groups(site)
    padding = site.tensor(2)
    require(
        padding.element.is_integer
        and padding.rank == 2
        and same_dimension(padding.shape[0], count)
        and same_dimension(padding.shape[1], 2),
        f"(C4) padding must be of shape {count}x2, but is {padding}",
    )
    return TensorType(_element(site), _result_shape(site, None))


def _shape_of(evaluation: Evaluation, padding: Padding) -> Shape:
    a = evaluation.attributes
    count = len(a["input_spatial_dimensions"])
    return Shape(
        strides=tuple(a.get("window_strides", (1,) * count)),
        padding=tuple((int(low), int(high)) for low, high in padding),
        lhs_dilation=tuple(a.get("lhs_dilation", (1,) * count)),
        rhs_dilation=tuple(a.get("rhs_dilation", (1,) * count)),
        reversal=tuple(a.get("window_reversal", (False,) * count)),
        feature_groups=a.get("feature_group_count", 1),
        batch_groups=a.get("batch_group_count", 1),
    )


def _evaluate(evaluation: Evaluation, lhs: Array, rhs: Array, padding: Padding) -> Array:
    a = evaluation.attributes
    kernel = (a["kernel_output_feature_dimension"], a["kernel_input_feature_dimension"])
    terms = math.prod(size for d, size in enumerate(rhs.shape) if d != kernel[0])
    factors = Factors(evaluation, lhs, rhs, terms)
    left = factors.lhs.transpose(
        a["input_batch_dimension"], a["input_feature_dimension"], *a["input_spatial_dimensions"]
    )
    right = factors.rhs.transpose(*kernel, *a["kernel_spatial_dimensions"])
    with np.errstate(all="ignore"):
        total = convolve(left, right, _shape_of(evaluation, padding))
    order = (a["output_batch_dimension"], a["output_feature_dimension"], *a["output_spatial_dimensions"])
    return factors.finish(total.transpose(np.argsort(order)))


def _convolution(evaluation: Evaluation, lhs: Array, rhs: Array) -> Array:
    count = len(evaluation.attributes["input_spatial_dimensions"])
    return _evaluate(evaluation, lhs, rhs, evaluation.attributes.get("padding", ((0, 0),) * count))


def _dynamic(evaluation: Evaluation, lhs: Array, rhs: Array, padding: Array) -> Array:
    return _evaluate(evaluation, lhs, rhs, [(int(low), int(high)) for low, high in padding])


def _flops(site: Site) -> float:
    rhs = site.tensor(1)
    per_output = rhs.size // max(rhs.shape[site.attributes["kernel_output_feature_dimension"]], 1)
    return float(2 * tensor_result(site).size * per_output)


_ATTRIBUTES = (
    Attribute("window_strides", "i64s"),
    Attribute("padding", "pairs"),
    Attribute("lhs_dilation", "i64s"),
    Attribute("rhs_dilation", "i64s"),
    Attribute("window_reversal", "bools"),
    *(
        Attribute(f"{side}_{name}_dimension{'s' if name == 'spatial' else ''}", kind, required=True)
        for side, names in (
            ("input", ("batch", "feature")),
            ("kernel", ("input_feature", "output_feature")),
            ("output", ("batch", "feature")),
        )
        for name, kind in ((names[0], "i64"), (names[1], "i64"), ("spatial", "i64s"))
    ),
    Attribute("feature_group_count", "i64", 1),
    Attribute("batch_group_count", "i64", 1),
    Attribute("precision_config", "any"),
)

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "convolution",
        _infer_convolution,
        _convolution,
        arity=2,
        attributes=_ATTRIBUTES,
        verify=_verify_convolution,
        flops=_flops,
        spec="StableHLO, convolution",
    ),
    Operation(
        "dynamic_conv",
        _infer_dynamic,
        _dynamic,
        arity=3,
        attributes=tuple(entry for entry in _ATTRIBUTES if entry.name != "padding"),
        verify=_verify_convolution,
        traits=frozenset((Trait.DYNAMIC_SHAPE,)),
        flops=_flops,
        spec="StableHLO, dynamic_conv",
    ),
)
