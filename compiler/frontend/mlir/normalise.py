"""Attributes as every later part finds them: flat, complete, in plain Python.

The text has dimension numbers as records or pairs, arrays as dense constants or arrays, enumerations as words, and leaves
out what has a default. After this step names are the specification's and optional attributes with a specified default are
there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from compiler.frontend.mlir.attribute_text import float_text
from compiler.frontend.mlir.tree import Raw, Symbol, Word
from compiler.ir.literal import Literal
from compiler.ir.program import Attributes
from compiler.ir.types import TensorType, Type

Found = dict[str, Any]

_ARRAYS = frozenset(
    {
        "broadcast_dimensions",
        "permutation",
        "dimensions",
        "start_indices",
        "limit_indices",
        "strides",
        "edge_padding_low",
        "edge_padding_high",
        "interior_padding",
        "slice_sizes",
        "window_dimensions",
        "window_strides",
        "base_dilations",
        "window_dilations",
        "padding",
        "lhs_dilation",
        "rhs_dilation",
        "window_reversal",
        "replica_groups",
        "source_target_pairs",
        "fft_length",
        "known_expanding_dimensions",
        "known_nonexpanding_dimensions",
        "operand_layouts",
        "result_layouts",
    }
)


def plain(value: Any, is_array: bool = False) -> Any:
    """A value without the reader's own classes."""
    if isinstance(value, Word | Symbol | Raw):
        return str(value)
    if isinstance(value, Literal):
        return _nested(value.array) if is_array else value
    if isinstance(value, tuple | list):
        return tuple(plain(item, is_array) for item in value)
    if isinstance(value, Mapping):
        return Attributes({key: plain(item) for key, item in value.items()})
    return value


_MOST_ENTRIES = 1 << 20
"""Entries of a list that is an attribute; a splat of any size is a short text."""


def _nested(array: np.ndarray[Any, np.dtype[Any]]) -> Any:
    if array.size > _MOST_ENTRIES:
        raise ValueError(f"a list of {array.size} numbers is longer than any attribute may be")
    listed = array.tolist()

    def freeze(item: Any) -> Any:
        return tuple(freeze(inner) for inner in item) if isinstance(item, list) else item

    frozen = freeze(listed)
    return frozen if isinstance(frozen, tuple) else (frozen,)


def normalise(opcode: str, attributes: Found, operands: list[Type]) -> Found:
    """The attributes of one operation.

    Raises:
        ValueError: with a message for the user.
    """
    found: Found = {key: plain(value, key in _ARRAYS) for key, value in attributes.items()}
    if "result_accuracy" in found:
        _accuracy(found)
    if isinstance(found.get("replica_groups"), str):
        found["replica_groups"] = _one_line(found["replica_groups"])
    rule = _RULES.get(opcode)
    if rule is not None:
        rule(found, operands)
    for key in found:
        if key in _ARRAYS:
            _check_numbers(key, found[key])
    return found


_ACCURACY = re.compile(r"\b(atol|rtol|ulps)\s*=\s*([-+.\w]+)")


def _accuracy(found: Found) -> None:
    """The default is left away; any other accuracy is written in one way."""
    text = found["result_accuracy"]
    mode = re.search(r"\b(DEFAULT|HIGHEST|TOLERANCE)\b", text) if isinstance(text, str) else None
    if mode is None:
        return
    numbers = {"atol": 0.0, "rtol": 0.0, "ulps": 0.0} | {k: float(v) for k, v in _ACCURACY.findall(text)}
    if mode.group() == "DEFAULT" and not any(numbers.values()):
        del found["result_accuracy"]
        return
    parts = [f"atol = {float_text(numbers['atol'])}, rtol = {float_text(numbers['rtol'])}"]
    parts += [f"ulps = {int(numbers['ulps'])}", f"mode = #stablehlo.result_accuracy_mode<{mode.group()}>"]
    found["result_accuracy"] = f"#stablehlo.result_accuracy<{', '.join(parts)}>"


def _one_line(text: str) -> str:
    return re.sub(r"(?<=[<\[])\s+|\s+(?=[>\]])", "", re.sub(r"\s+", " ", text))


def _check_numbers(key: str, value: Any) -> None:
    if isinstance(value, tuple):
        for entry in value:
            _check_numbers(key, entry)
    elif not isinstance(value, int) and not (key == "replica_groups" and isinstance(value, str)):
        raise ValueError(f"attribute {key} must hold integers, not {value!r}")


def _rank(operands: list[Type], index: int = 0) -> int:
    kind = operands[index] if index < len(operands) else None
    return kind.rank if isinstance(kind, TensorType) else 0


def _flatten_record(found: Found, name: str, fields: tuple[str, ...]) -> None:
    record = found.pop(name, None) or {}
    for field in fields:
        found.setdefault(field, record.get(field, () if field != "index_vector_dim" else 0))


def _dot_general(found: Found, operands: list[Type]) -> None:
    names = ("batching", "contracting")
    record = found.pop("dot_dimension_numbers", None)
    for name in names:
        pair = found.pop(f"{name}_dims", None)
        for side, index in (("lhs", 0), ("rhs", 1)):
            key = f"{side}_{name}_dimensions"
            if pair is not None:
                found[key] = tuple(pair[index])
            else:
                found[key] = tuple(record.get(key, ())) if record else found.get(key, ())


def _gather(found: Found, operands: list[Type]) -> None:
    fields = (
        "offset_dims",
        "collapsed_slice_dims",
        "operand_batching_dims",
        "start_indices_batching_dims",
        "start_index_map",
        "index_vector_dim",
    )
    _flatten_record(found, "dimension_numbers", fields)
    found.setdefault("indices_are_sorted", False)


def _scatter(found: Found, operands: list[Type]) -> None:
    fields = (
        "update_window_dims",
        "inserted_window_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
        "scatter_dims_to_operand_dims",
        "index_vector_dim",
    )
    _flatten_record(found, "scatter_dimension_numbers", fields)
    found.setdefault("indices_are_sorted", False)
    found.setdefault("unique_indices", False)


_DIM_NUMBERS = re.compile(r"\[([^\]]*)\]\s*x\s*\[([^\]]*)\]\s*->\s*\[([^\]]*)\]")


def _convolution(found: Found, operands: list[Type]) -> None:
    text = found.pop("dimension_numbers", "")
    if text.lstrip().startswith("raw"):
        _raw_numbers(found, text)
        _convolution_defaults(found)
        return
    match = _DIM_NUMBERS.search(text)
    if match is None:
        raise ValueError("convolution needs its dimension numbers")
    parts = [[label.strip() for label in group.split(",")] for group in match.groups()]
    sides = (
        ("input", "b", "batch", "f", "feature"),
        ("kernel", "i", "input_feature", "o", "output_feature"),
        ("output", "b", "batch", "f", "feature"),
    )
    for (side, first, first_name, second, second_name), labels in zip(sides, parts, strict=True):
        if first not in labels or second not in labels:
            raise ValueError(f"dimension numbers of the {side} lack {first} or {second}")
        found[f"{side}_{first_name}_dimension"] = labels.index(first)
        found[f"{side}_{second_name}_dimension"] = labels.index(second)
        spatial = sorted((int(label), index) for index, label in enumerate(labels) if label.isdigit())
        found[f"{side}_spatial_dimensions"] = tuple(index for _, index in spatial)
    _convolution_defaults(found)


_RAW_NUMBER = re.compile(r"(\w+)\s*=\s*(\d+|\[[^\]]*\])")


def _raw_numbers(found: Found, text: str) -> None:
    """`raw input_batch_dimension = 0, …`, the form of dimension numbers that cannot be drawn."""
    for name, value in _RAW_NUMBER.findall(text):
        if value.startswith("["):
            found[name] = tuple(int(word) for word in value.strip("[]").split(",") if word.strip())
        else:
            found[name] = int(value)
    sides = {
        "input": ("batch", "feature"),
        "kernel": ("input_feature", "output_feature"),
        "output": ("batch", "feature"),
    }
    for side, names in sides.items():
        for name in names:
            if f"{side}_{name}_dimension" not in found:
                raise ValueError(f"dimension numbers lack {side}_{name}_dimension")
        found.setdefault(f"{side}_spatial_dimensions", ())


def _convolution_defaults(found: Found) -> None:
    count = len(found["input_spatial_dimensions"])
    _fill(found, "window_strides", (1,) * count)
    _fill(found, "lhs_dilation", (1,) * count)
    _fill(found, "rhs_dilation", (1,) * count)
    _fill(found, "window_reversal", (False,) * count)
    found["padding"] = _pairs(found.get("padding"), count)
    found.setdefault("feature_group_count", 1)
    found.setdefault("batch_group_count", 1)


def _fill(found: Found, name: str, default: tuple[Any, ...]) -> None:
    """A default for a missing array."""
    found.setdefault(name, default)


def _pairs(value: Any, count: int) -> tuple[tuple[int, int], ...]:
    """Low and high padding of each dimension."""
    if value is None:
        return ((0, 0),) * count
    if not all(isinstance(row, tuple) and len(row) == 2 for row in value):
        raise ValueError("attribute padding must give two numbers a dimension")
    return tuple(value)


def _reduce_window(found: Found, operands: list[Type]) -> None:
    count = len(found.get("window_dimensions", ()))
    for name in ("window_strides", "base_dilations", "window_dilations"):
        _fill(found, name, (1,) * count)
    found["padding"] = _pairs(found.get("padding"), count)


def _select_and_scatter(found: Found, operands: list[Type]) -> None:
    rank = _rank(operands)
    _fill(found, "window_strides", (1,) * rank)
    found["padding"] = _pairs(found.get("padding"), rank)


def _compare(found: Found, operands: list[Type]) -> None:
    if "compare_type" in found and found["compare_type"] != "NOTYPE":
        return
    element = operands[0].element if operands and isinstance(operands[0], TensorType) else None
    kind = element.kind if element is not None else "float"
    found["compare_type"] = {"int": "SIGNED", "uint": "UNSIGNED", "bool": "UNSIGNED"}.get(kind, "FLOAT")


def _default(name: str, value: Any) -> Callable[[Found, list[Type]], None]:
    def rule(found: Found, operands: list[Type]) -> None:
        found.setdefault(name, value)

    return rule


def _sort(found: Found, operands: list[Type]) -> None:
    found.setdefault("dimension", -1)
    rank = _rank(operands)
    if -rank <= found["dimension"] < 0:
        found["dimension"] += rank
    found.setdefault("is_stable", False)


def _triangular_solve(found: Found, operands: list[Type]) -> None:
    for name in ("left_side", "lower", "unit_diagonal"):
        found.setdefault(name, False)
    found.setdefault("transpose_a", "NO_TRANSPOSE")


def _custom_call(found: Found, operands: list[Type]) -> None:
    found.setdefault("has_side_effect", False)
    if not found.get("backend_config"):
        found["backend_config"] = ""
    found.setdefault("api_version", 1)


_SDY = re.compile(r"#sdy(?:\.sharding_per_value|\.sharding|\.mesh)?<\s*(?:manual_axes)?(.*)>\Z", re.DOTALL)


def _shardings(found: Found, operands: list[Type]) -> None:
    """Generic forms wrap in `#sdy.…<…>` what pretty forms write bare."""
    for key in ("in_shardings", "out_shardings", "manual_axes", "sharding"):
        value = found.get(key)
        match = _SDY.match(value) if isinstance(value, str) else None
        if match is not None:
            found[key] = f"<{match.group(1)}>" if key == "sharding" else match.group(1)


def _scan(found: Found, operands: list[Type]) -> None:
    """The pretty form tells inputs from carried values by brackets, the generic one by segment sizes."""
    segments = found.pop("operandSegmentSizes", None)
    found.pop("resultSegmentSizes", None)
    if segments:
        found["input_count"] = segments[0]


def _composite(found: Found, operands: list[Type]) -> None:
    found.setdefault("version", 0)
    if not found.get("composite_attributes"):
        found.pop("composite_attributes", None)


def _slice(found: Found, operands: list[Type]) -> None:
    _fill(found, "strides", (1,) * len(found.get("start_indices", ())))


_RULES: dict[str, Callable[[Found, list[Type]], None]] = {
    "dot_general": _dot_general,
    "gather": _gather,
    "dynamic_gather": _gather,
    "scatter": _scatter,
    "convolution": _convolution,
    "dynamic_conv": _convolution,
    "reduce_window": _reduce_window,
    "select_and_scatter": _select_and_scatter,
    "compare": _compare,
    "chlo.broadcast_compare": _compare,
    "sdy.manual_computation": _shardings,
    "sdy.sharding_constraint": _shardings,
    "chlo.scan": _scan,
    "sort": _sort,
    "triangular_solve": _triangular_solve,
    "custom_call": _custom_call,
    "cholesky": _default("lower", False),
    "slice": _slice,
    "composite": _composite,
}
