"""Sums of products over named dimensions: dot_general and the older dot."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from compiler.ir.semantics import OperationError
from compiler.ir.types import AnyElement, QuantizedType, TensorType, Type
from compiler.ops.constraints import (
    require,
    require_in_range,
    require_unique,
    same_dimension,
    tensor_result,
)
from compiler.ops.record import Array, Attribute, Evaluation, Operation, Site
from compiler.ops.sum_of_products import Factors, complex_products, rounded_to

PRECISIONS = ("DEFAULT", "HIGH", "HIGHEST")
_ALGORITHM_KEYS = (
    "lhs_precision_type",
    "rhs_precision_type",
    "accumulation_type",
    "lhs_component_count",
    "rhs_component_count",
    "num_primitive_operations",
    "allow_imprecise_accumulation",
)
_ALGORITHMS = frozenset(
    {
        ("f16", "f16", "f16", 1, 1, 1),
        ("f16", "f16", "f32", 1, 1, 1),
        ("bf16", "bf16", "bf16", 1, 1, 1),
        ("bf16", "bf16", "f32", 1, 1, 1),
        ("bf16", "bf16", "f32", 1, 1, 3),
        ("bf16", "bf16", "f32", 2, 2, 3),
        ("bf16", "bf16", "f32", 1, 1, 6),
        ("bf16", "bf16", "f32", 3, 3, 6),
        ("bf16", "bf16", "f32", 3, 3, 9),
        ("bf16", "bf16", "f32", 1, 1, 9),
        ("tf32", "tf32", "f32", 1, 1, 1),
        ("tf32", "tf32", "f32", 1, 1, 3),
        ("tf32", "tf32", "f32", 2, 2, 3),
        ("f32", "f32", "f32", 1, 1, 1),
        ("f64", "f64", "f64", 1, 1, 1),
    }
)
"""Algorithms that some hardware has, as (lhs, rhs, accumulation, components of each, primitive operations)."""


def dimensions_of(attributes: Mapping[str, Any]) -> tuple[tuple[int, ...], ...]:
    """Batching dimensions of both sides, then contracting ones."""
    return (
        tuple(attributes.get("lhs_batching_dimensions", ())),
        tuple(attributes.get("rhs_batching_dimensions", ())),
        tuple(attributes["lhs_contracting_dimensions"]),
        tuple(attributes["rhs_contracting_dimensions"]),
    )


def free_dimensions(rank: int, *taken: Sequence[int]) -> list[int]:
    """Dimensions that are in none of the lists."""
    used = {dimension for entry in taken for dimension in entry}
    return [dimension for dimension in range(rank) if dimension not in used]


def _infer_dot_general(site: Site) -> Type:
    lhs, rhs = site.tensors
    left_batch, right_batch, left_sum, right_sum = dimensions_of(site.attributes)
    require(len(left_batch) == len(right_batch), "(C1) lhs and rhs must have as many batching dimensions")
    require(len(left_sum) == len(right_sum), "(C2) lhs and rhs must have as many contracting dimensions")
    require_unique(left_batch + left_sum, "(C3) batching and contracting dimensions of lhs must not repeat")
    require_unique(right_batch + right_sum, "(C4) batching and contracting dimensions of rhs must not repeat")
    require_in_range(left_batch, lhs.rank, "(C5) lhs_batching_dimensions must be dimensions of lhs")
    require_in_range(left_sum, lhs.rank, "(C6) lhs_contracting_dimensions must be dimensions of lhs")
    require_in_range(right_batch, rhs.rank, "(C7) rhs_batching_dimensions must be dimensions of rhs")
    require_in_range(right_sum, rhs.rank, "(C8) rhs_contracting_dimensions must be dimensions of rhs")
    for number, what, pairs in (
        ("(C9)", "batching", zip(left_batch, right_batch, strict=True)),
        ("(C10)", "contracting", zip(left_sum, right_sum, strict=True)),
    ):
        for left, right in pairs:
            require(
                same_dimension(lhs.shape[left], rhs.shape[right]),
                f"{number} {what} dimensions must have one size, but lhs has {lhs.shape[left]} and rhs "
                f"{rhs.shape[right]}",
            )
    shape = [lhs.shape[d] for d in left_batch]
    shape += [lhs.shape[d] for d in free_dimensions(lhs.rank, left_batch, left_sum)]
    shape += [rhs.shape[d] for d in free_dimensions(rhs.rank, right_batch, right_sum)]
    return TensorType(_result_element(site, lhs, rhs), tuple(shape))


def _result_element(site: Site, lhs: TensorType, rhs: TensorType) -> AnyElement:
    """The declared element type, which is the user's to choose, or the operands'."""
    if isinstance(site.result, TensorType):
        return site.result.element
    if isinstance(lhs.element, QuantizedType) or isinstance(rhs.element, QuantizedType):
        raise OperationError("the result type of a product of quantized tensors must be given")
    return lhs.element


def _verify_dot_general(site: Site) -> None:
    lhs, rhs = site.tensors
    check_precision(site, "(C11)")
    check_product_elements(lhs.element, rhs.element, tensor_result(site).element, ("(C13)", "(C14)"))
    right_sum = dimensions_of(site.attributes)[3]
    if isinstance(rhs.element, QuantizedType) and rhs.element.axis is not None:
        require(
            rhs.element.axis not in right_sum,
            "(C19) the quantization dimension of rhs must not be contracted",
        )
    algorithm = parse_algorithm(site.attributes.get("algorithm"))
    if algorithm is not None:
        check_algorithm(algorithm)


def check_precision(site: Site, constraint: str) -> None:
    """`precision_config` is empty or gives both operands' precision. Raises OperationError otherwise."""
    config = site.attributes.get("precision_config") or ()
    require(len(config) <= 2, f"{constraint} precision_config must have two entries, not {len(config)}")
    for entry in config:
        require(entry in PRECISIONS, f"{constraint} unknown precision {entry}")


def check_product_elements(
    left: AnyElement, right: AnyElement, result: AnyElement, constraints: tuple[str, str]
) -> None:
    """The element types that a product may have. Raises OperationError naming one of the two constraints."""
    plain_number, quantized_number = constraints
    first, second, third = (isinstance(entry, QuantizedType) for entry in (left, right, result))
    if not second and not first and not third:
        require(
            left.kind == right.kind or not (left.is_complex or right.is_complex),
            f"{plain_number} lhs and rhs must have one element type, but have {left.name} and {right.name}",
        )
        require(
            left is right or _mixed_floats(left, right),
            f"{plain_number} lhs and rhs must have one element type, but have {left.name} and {right.name}",
        )
        require(
            left.is_complex == result.is_complex,
            f"{plain_number} products of {left.name} cannot have elements of {result.name}",
        )
        return
    require(second, f"{quantized_number} when lhs or result is quantized, rhs must be")
    assert isinstance(right, QuantizedType)
    if isinstance(left, QuantizedType) and isinstance(result, QuantizedType):
        require(left.storage is right.storage, "(C15) lhs and rhs must have one storage type")
        require(
            left.expressed is right.expressed and right.expressed is result.expressed,
            "(C16) lhs, rhs and result must have one expressed type",
        )
        require(
            right.axis is not None or result.axis is None,
            "(C18) when rhs is quantized per tensor, so must be the result",
        )
    elif isinstance(left, QuantizedType):
        require(
            left.storage is right.storage and result is right.expressed and left.expressed is right.expressed,
            "(C16) the result of quantized operands must have their expressed type",
        )
    else:
        require(
            left is right.expressed and result is right.expressed,
            "(C20) lhs and result must have the expressed type of rhs",
        )


def _mixed_floats(left: AnyElement, right: AnyElement) -> bool:
    """Different 8-bit floats may be multiplied, as XLA allows."""
    return left.is_float and right.is_float and left.bits <= 8 and right.bits <= 8


def parse_algorithm(value: Any) -> dict[str, Any] | None:
    """A dot algorithm as a dictionary, from a record or from its text; None when there is none."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {key: _known(str(entry)) for key, entry in value.items()}
    pairs = re.findall(r"(\w+)\s*=\s*([\w.]+)", str(value))
    return {key: _known(entry) for key, entry in pairs if key in _ALGORITHM_KEYS}


def _known(text: str) -> Any:
    if text.lstrip("-").isdigit():
        return int(text)
    return text.rsplit(".", 1)[-1].lower()


def check_algorithm(algorithm: Mapping[str, Any]) -> None:
    """Checks a dot algorithm by itself ((C21) to (C28)). Raises OperationError."""
    for key in _ALGORITHM_KEYS[:-1]:
        require(key in algorithm, f"(C21) the algorithm lacks {key}")
    for number, key in (("(C25)", "lhs_component_count"), ("(C26)", "rhs_component_count")):
        require(int(algorithm[key]) > 0, f"{number} {key} must be positive, but is {algorithm[key]}")
    require(
        int(algorithm["num_primitive_operations"]) > 0,
        "(C27) num_primitive_operations must be positive",
    )
    named = tuple(algorithm[key] for key in _ALGORITHM_KEYS[:-1])
    is_f8 = str(named[0]).startswith("f8") and str(named[1]).startswith("f8") and named[3:] == (1, 1, 1)
    require(
        named in _ALGORITHMS or (is_f8 and named[2] == "f32"),
        f"(C28) no hardware has the dot algorithm {', '.join(map(str, named))}",
    )


def _dot_general(evaluation: Evaluation, lhs: Array, rhs: Array) -> Array:
    left_batch, right_batch, left_sum, right_sum = dimensions_of(evaluation.attributes)
    left_free = free_dimensions(lhs.ndim, left_batch, left_sum)
    right_free = free_dimensions(rhs.ndim, right_batch, right_sum)
    terms = math.prod(lhs.shape[d] for d in left_sum)
    factors = Factors(evaluation, lhs, rhs, terms)
    left, right = _in_algorithm(evaluation, factors.lhs, factors.rhs)
    batch = tuple(lhs.shape[d] for d in left_batch)
    rows = tuple(lhs.shape[d] for d in left_free)
    columns = tuple(rhs.shape[d] for d in right_free)
    count, height, width = math.prod(batch), math.prod(rows), math.prod(columns)
    left = left.transpose(*left_batch, *left_free, *left_sum).reshape(count, height, terms)
    right = right.transpose(*right_batch, *right_sum, *right_free).reshape(count, terms, width)
    with np.errstate(all="ignore"):
        total = complex_products(left, right, factors) if left.dtype.kind == "c" else np.matmul(left, right)
    return factors.finish(total.reshape((*batch, *rows, *columns)))


def _in_algorithm(evaluation: Evaluation, lhs: Array, rhs: Array) -> tuple[Array, Array]:
    """Operands rounded to the precision that an algorithm reads them in; several components keep more than that."""
    algorithm = parse_algorithm(evaluation.attributes.get("algorithm"))
    if algorithm is None:
        return lhs, rhs
    single = int(algorithm.get("num_primitive_operations", 1)) == 1
    if not single:
        return lhs, rhs
    return (
        rounded_to(lhs, str(algorithm.get("lhs_precision_type", ""))),
        rounded_to(rhs, str(algorithm.get("rhs_precision_type", ""))),
    )


def _flops_of_dot(site: Site) -> float:
    lhs = site.tensor(0)
    terms = math.prod(lhs.shape[d] for d in site.attributes["lhs_contracting_dimensions"])
    return float(2 * tensor_result(site).size * terms)


# ---- dot ---------------------------------------------------------------------------------------------------------


def _infer_dot(site: Site) -> Type:
    lhs, rhs = site.tensors
    require(
        lhs.rank in (1, 2) and rhs.rank in (1, 2),
        f"(C1) lhs and rhs must be vectors or matrices, but are {lhs} and {rhs}",
    )
    require(
        same_dimension(lhs.shape[-1], rhs.shape[0]),
        f"(C2) the contracted sizes must agree, but are {lhs.shape[-1]} and {rhs.shape[0]}",
    )
    return TensorType(_result_element(site, lhs, rhs), lhs.shape[:-1] + rhs.shape[1:])


def _verify_dot(site: Site) -> None:
    lhs, rhs = site.tensors
    check_precision(site, "(C3)")
    check_product_elements(lhs.element, rhs.element, tensor_result(site).element, ("(C4)", "(C4)"))


def _dot(evaluation: Evaluation, lhs: Array, rhs: Array) -> Array:
    factors = Factors(evaluation, lhs, rhs, lhs.shape[-1])
    with np.errstate(all="ignore"):
        return factors.finish(np.asarray(np.matmul(factors.lhs, factors.rhs)))


def _flops_of_old_dot(site: Site) -> float:
    return 2.0 * tensor_result(site).size * site.tensor(0).shape[-1]


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "dot_general",
        _infer_dot_general,
        _dot_general,
        arity=2,
        attributes=(
            Attribute("lhs_batching_dimensions", "i64s", ()),
            Attribute("rhs_batching_dimensions", "i64s", ()),
            Attribute("lhs_contracting_dimensions", "i64s", required=True),
            Attribute("rhs_contracting_dimensions", "i64s", required=True),
            Attribute("precision_config", "any"),
            Attribute("algorithm", "record"),
        ),
        verify=_verify_dot_general,
        flops=_flops_of_dot,
        hlo="dot",
        spec="StableHLO, dot_general",
    ),
    Operation(
        "dot",
        _infer_dot,
        _dot,
        arity=2,
        attributes=(Attribute("precision_config", "any"),),
        verify=_verify_dot,
        flops=_flops_of_old_dot,
        spec="StableHLO, dot",
    ),
)
