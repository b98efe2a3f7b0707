"""HLO's attributes as StableHLO names and holds them, one rule for each opcode.

The counterpart of `compiler.ir.hlo_attributes`, which writes them. Attributes that are the same everywhere (shardings, backend
configurations, frameworks' own) are the importer's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compiler.frontend.hlo.given import Given
from compiler.frontend.hlo.windows import dimension_labels, padding, slices, window
from compiler.ir.program import Attributes
from compiler.ir.types import TensorType, Type

Found = dict[str, Any]
Rule = Callable[[Given, Sequence[Type], Type], Found]

_COMPARE_TYPES = {"int": "SIGNED", "uint": "UNSIGNED", "bool": "UNSIGNED"}
_DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")


def read(given: Given, key: str, parse: Callable[[str], Any], default: str | None = None) -> Any:
    """A value in a small language of its own, its mistakes reported at the attribute."""
    value = given.raw(key, default)
    try:
        return parse(value)
    except ValueError as error:
        given.refuse(f"{key}: {error}", key)


def _dimensions(name: str) -> Rule:
    return lambda given, operands, kind: {name: given.integers("dimensions", ())}


def _dimension(name: str) -> Rule:
    return lambda given, operands, kind: {name: given.one_of_list("dimensions")}


def _compare(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    direction = given.raw("direction")
    if direction not in _DIRECTIONS:
        given.refuse(f"direction must be one of {', '.join(_DIRECTIONS)}, not {direction[:40]}", "direction")
    element = operands[0].element if operands and isinstance(operands[0], TensorType) else None
    usual = _COMPARE_TYPES.get(element.kind, "FLOAT") if element is not None else "FLOAT"
    return {"comparison_direction": direction, "compare_type": given.raw("type", usual)}


def _precision(given: Given) -> Found:
    if "operand_precision" not in given:
        return {}
    return {"precision_config": tuple(word.upper() for word in given.words("operand_precision"))}


def _dot(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    found: Found = {
        f"{side}_{name}_dimensions": given.integers(f"{side}_{key}_dims", ())
        for side in ("lhs", "rhs")
        for name, key in (("batching", "batch"), ("contracting", "contracting"))
    }
    found.update(_precision(given))
    if "algorithm" in given:
        found["algorithm"] = read(given, "algorithm", _algorithm)
    return found


def _algorithm(text: str) -> Attributes:
    """`dot_bf16_bf16_f32_x3`, `dot_any_f8_any_f8_f32_fast_accum`, `dot_tf32_tf32_f32`."""
    words = text.removeprefix("dot_").replace("any_f8", "f8E5M2").split("_")
    if not text.startswith("dot_") or len(words) < 3:
        raise ValueError(f"unknown algorithm '{text[:40]}'")
    count = words[3][1:] if len(words) > 3 and words[3][:1] == "x" else "1"
    if not count.isdigit():
        raise ValueError(f"unknown algorithm '{text[:40]}'")
    return Attributes(
        lhs_precision_type=words[0],
        rhs_precision_type=words[1],
        accumulation_type=words[2],
        lhs_component_count=1,
        rhs_component_count=1,
        num_primitive_operations=int(count),
        allow_imprecise_accumulation=words[3:] == ["fast", "accum"],
    )


def _convolution(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    found: Found = dict(read(given, "dim_labels", dimension_labels))
    frame = read(given, "window", window, "{}")
    if len(frame.size) != len(found["input_spatial_dimensions"]):
        given.refuse("window and dim_labels must have as many spatial dimensions", "window")
    found.update(
        window_strides=frame.stride,
        padding=frame.padding,
        lhs_dilation=frame.lhs_dilation,
        rhs_dilation=frame.rhs_dilation,
        window_reversal=frame.reversal,
        feature_group_count=given.integer("feature_group_count", 1),
        batch_group_count=given.integer("batch_group_count", 1),
    )
    found.update(_precision(given))
    return found


def _reduce_window(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    frame = read(given, "window", window, "{}")
    return {
        "window_dimensions": frame.size,
        "window_strides": frame.stride,
        "base_dilations": frame.lhs_dilation,
        "window_dilations": frame.rhs_dilation,
        "padding": frame.padding,
    }


def _select_and_scatter(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    frame = read(given, "window", window, "{}")
    return {"window_dimensions": frame.size, "window_strides": frame.stride, "padding": frame.padding}


def _gather(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    lists = ("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims")
    found: Found = {name: given.integers(name, ()) for name in (*lists, "start_index_map", "slice_sizes")}
    found["index_vector_dim"] = given.integer("index_vector_dim")
    found["indices_are_sorted"] = given.flag("indices_are_sorted")
    return found


def _scatter(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    lists = (
        "update_window_dims",
        "inserted_window_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
        "scatter_dims_to_operand_dims",
    )
    found: Found = {name: given.integers(name, ()) for name in lists}
    found["index_vector_dim"] = given.integer("index_vector_dim")
    found["indices_are_sorted"] = given.flag("indices_are_sorted")
    found["unique_indices"] = given.flag("unique_indices")
    return found


def _slice(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    starts, limits, strides = read(given, "slice", slices)
    return {"start_indices": starts, "limit_indices": limits, "strides": strides}


def _pad(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    low, high, interior = read(given, "padding", padding, "")
    return {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}


def _batch_norm(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    return {"epsilon": given.number("epsilon"), "feature_index": given.integer("feature_index")}


def _triangular_solve(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    found: Found = {name: given.flag(name) for name in ("left_side", "lower", "unit_diagonal")}
    found["transpose_a"] = given.raw("transpose_a", "NO_TRANSPOSE")
    return found


def _sort(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    return {"dimension": given.one_of_list("dimensions"), "is_stable": given.flag("is_stable")}


def _top_k(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    if not given.flag("largest", True):
        given.refuse("only the largest elements can be taken", "largest")
    return {"k": given.integer("k")}


def _iota(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    return {"iota_dimension": given.integer("iota_dimension", 0)}


def _rng(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    return {"rng_distribution": given.raw("distribution").removeprefix("rng_").upper()}


# ---- collectives -----------------------------------------------------------------------------------------------------


def _channel(given: Given) -> Found:
    number = given.integer("channel_id", 0)
    return {"channel_handle": Attributes(handle=number, type=1)} if number else {}


def _grouped(given: Given) -> Found:
    found: Found = {"replica_groups": given.groups("replica_groups"), **_channel(given)}
    if given.flag("use_global_device_ids"):
        found["use_global_device_ids"] = True
    given.flag("constrain_layout")
    return found


def _all_reduce(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    return _grouped(given)


def _all_gather(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    return {**_grouped(given), "all_gather_dim": given.one_of_list("dimensions")}


def _reduce_scatter(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    return {**_grouped(given), "scatter_dimension": given.one_of_list("dimensions")}


def _all_to_all(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    found = _grouped(given)
    if "dimensions" not in given:
        return found
    dimension = given.one_of_list("dimensions")
    rows = found["replica_groups"]
    count = len(rows[0]) if rows else 1
    return {**found, "split_dimension": dimension, "concat_dimension": dimension, "split_count": count}


def _permute(given: Given, operands: Sequence[Type], kind: Type) -> Found:
    return {"source_target_pairs": given.groups("source_target_pairs"), **_channel(given)}


RULES: dict[str, Rule] = {
    "all-gather": _all_gather,
    "all-gather-start": _all_gather,
    "all-reduce": _all_reduce,
    "all-reduce-start": _all_reduce,
    "all-to-all": _all_to_all,
    "batch-norm-grad": _batch_norm,
    "batch-norm-inference": _batch_norm,
    "batch-norm-training": _batch_norm,
    "broadcast": _dimensions("broadcast_dimensions"),
    "cholesky": lambda given, operands, kind: {"lower": given.flag("lower")},
    "collective-broadcast": _all_reduce,
    "collective-permute": _permute,
    "collective-permute-start": _permute,
    "compare": _compare,
    "concatenate": _dimension("dimension"),
    "convolution": _convolution,
    "dot": _dot,
    "dynamic-slice": lambda given, operands, kind: {"slice_sizes": given.integers("dynamic_slice_sizes")},
    "fft": lambda given, operands, kind: {
        "fft_type": given.raw("fft_type"),
        "fft_length": given.integers("fft_length"),
    },
    "fusion": lambda given, operands, kind: {"kind": given.raw("kind")},
    "gather": _gather,
    "get-dimension-size": _dimension("dimension"),
    "get-tuple-element": lambda given, operands, kind: {"index": given.integer("index")},
    "iota": _iota,
    "map": _dimensions("dimensions"),
    "pad": _pad,
    "reduce": _dimensions("dimensions"),
    "reduce-precision": lambda given, operands, kind: {
        name: given.integer(name) for name in ("exponent_bits", "mantissa_bits")
    },
    "reduce-scatter": _reduce_scatter,
    "reduce-window": _reduce_window,
    "reverse": _dimensions("dimensions"),
    "rng": _rng,
    "rng-bit-generator": lambda given, operands, kind: {
        "rng_algorithm": given.raw("algorithm").removeprefix("rng_").upper()
    },
    "scatter": _scatter,
    "select-and-scatter": _select_and_scatter,
    "set-dimension-size": _dimension("dimension"),
    "slice": _slice,
    "sort": _sort,
    "topk": _top_k,
    "transpose": _dimensions("permutation"),
    "triangular-solve": _triangular_solve,
}
"""Rules of each opcode's own attributes, which give StableHLO's; opcodes without attributes need none."""
