"""Attributes and constants as MLIR text: the inverse of reading and normalising them.

Attributes that an operation defines are written as StableHLO's tools expect them (`array<i64: …>`, enumerations with their
dialect, dimension numbers gathered into records); those of frameworks by the kind of their value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from compiler.ir.attribute_values import TypedFloat, TypedInt
from compiler.ir.literal import Literal
from compiler.ir.program import Attributes, Instruction
from compiler.ir.types import QuantizedType, TensorType, TokenType, TupleType, element_of_dtype

HEX_ELEMENTS = 64
"""Dense constants of more elements are written as one hexadecimal string."""

_INT64 = frozenset(
    [
        "all_gather_dim",
        "batch_dims",
        "batch_group_count",
        "concat_dimension",
        "dim",
        "dimension",
        "feature_group_count",
        "feature_index",
        "iota_dimension",
        "scatter_dimension",
        "split_count",
        "split_dimension",
        "k",
        "max_ulp_difference",
        "min_ulp_difference",
        "scan_dim_size",
    ]
)
_INT32 = frozenset(
    [
        "api_version",
        "exponent_bits",
        "index",
        "mantissa_bits",
        "mhlo.num_partitions",
        "mhlo.num_replicas",
        "tf.aliasing_output",
        "version",
    ]
)
_ARRAYS = frozenset(
    [
        "base_dilations",
        "broadcast_dimensions",
        "broadcast_sizes",
        "dimensions",
        "edge_padding_high",
        "edge_padding_low",
        "fft_length",
        "interior_padding",
        "known_expanding_dimensions",
        "known_nonexpanding_dimensions",
        "lhs_dilation",
        "limit_indices",
        "permutation",
        "rhs_dilation",
        "slice_sizes",
        "start_indices",
        "strides",
        "window_dilations",
        "window_dimensions",
        "window_strides",
    ]
)
_TABLES = frozenset({"padding", "replica_groups", "source_target_pairs"})
_UNITS = frozenset({"use_global_device_ids"})
_ENUMS = {
    "comparison_direction": "comparison_direction",
    "compare_type": "comparison_type",
    "fft_type": "fft_type",
    "rng_algorithm": "rng_algorithm",
    "rng_distribution": "rng_distribution",
    "transpose_a": "transpose",
}
_SYMBOLS = frozenset({"called_computations", "callee", "decomposition", "programs", "infeed"})
_RECORDS = {
    "channel_handle": "channel_handle",
    "algorithm": "dot_algorithm",
    "ragged_dot_dimension_numbers": "ragged_dot",
    "output_operand_aliases": "output_operand_alias",
}
_VERBATIM = re.compile(r"#[a-z]\w*(?:\.\w+)*<.*>\Z", re.DOTALL)
_BARE = re.compile(r"[A-Za-z_][\w$.]*\Z", re.ASCII)

GATHER = (
    "offset_dims",
    "collapsed_slice_dims",
    "operand_batching_dims",
    "start_indices_batching_dims",
    "start_index_map",
)
SCATTER = (
    "update_window_dims",
    "inserted_window_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
    "scatter_dims_to_operand_dims",
)
DOT = tuple(f"{side}_{kind}_dimensions" for kind in ("batching", "contracting") for side in ("lhs", "rhs"))
_CONVOLUTION = tuple(
    f"{side}_{name}"
    for side, names in (
        ("input", ("batch_dimension", "feature_dimension", "spatial_dimensions")),
        ("kernel", ("input_feature_dimension", "output_feature_dimension", "spatial_dimensions")),
        ("output", ("batch_dimension", "feature_dimension", "spatial_dimensions")),
    )
    for name in names
)


class DenseArray(tuple[int, ...]):
    """Integers written as `array<i32: …>`."""

    type_name: str

    def __new__(cls, values: tuple[int, ...], type_name: str) -> DenseArray:
        """Takes the integers and the name of their type."""
        made = super().__new__(cls, values)
        made.type_name = type_name
        return made


def quote(text: str) -> str:
    """An MLIR string literal."""
    if text.isprintable() and text.isascii() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    parts = []
    for byte in text.encode("utf-8", "surrogatepass"):
        char = chr(byte)
        if char in '"\\':
            parts.append(f"\\{byte:02X}")
        else:
            parts.append(char if 32 <= byte < 127 else f"\\{byte:02X}")
    return '"' + "".join(parts) + '"'


def symbol(name: str) -> str:
    """`@name`, quoted when it is no plain identifier."""
    return f"@{name}" if _BARE.match(name) else f"@{quote(name)}"


def dictionary(attributes: Mapping[str, Any], dialect: str = "stablehlo") -> str:
    """`a = 1 : i64, b = "x"` without braces, sorted by name as MLIR does."""
    parts = []
    for key in sorted(attributes):
        value = attributes[key]
        name = key if _BARE.match(key) else quote(key)
        if key in _UNITS and value is True:
            parts.append(name)
        elif value is not None and not (key in _UNITS and value is False):
            parts.append(f"{name} = {attribute(key, value, dialect)}")
    return ", ".join(parts)


def rest(i: Instruction, *shown: str) -> str:
    """The attributes that the form itself does not show, as ` {…}`; empty without any."""
    left = {key: value for key, value in i.attributes.items() if key not in shown}
    text = dictionary(left) if left else ""
    return f" {{{text}}}" if text else ""


def attribute(key: str, value: Any, dialect: str = "stablehlo") -> str:
    """The value of one attribute."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{int(value)} : {_int_type(key, value)}"
    if key in _ENUMS and isinstance(value, str):
        return f"#{dialect}<{_ENUMS[key]} {value}>"
    if key == "precision_config":
        return "[" + ", ".join(f"#{dialect}<precision {entry}>" for entry in value) + "]"
    if key in _RECORDS and not isinstance(value, str):
        return _record_or_list(_RECORDS[key], value, "chlo" if _RECORDS[key] == "ragged_dot" else "stablehlo")
    if key in _SYMBOLS:
        return _symbols(value)
    if key in ("operand_layouts", "result_layouts"):
        return "[" + ", ".join(_layout(entry) for entry in value) + "]"
    if isinstance(value, DenseArray):
        return f"array<{value.type_name}{': ' if value else ''}{', '.join(map(str, value))}>"
    if isinstance(value, tuple):
        return _sequence(key, value)
    return _by_kind(value, key)


def _by_kind(value: Any, key: str) -> str:
    if isinstance(value, str):
        return value if key.startswith("sdy.") or _VERBATIM.match(value) else quote(value)
    if isinstance(value, float):
        kind = value.type_name if isinstance(value, TypedFloat) else "f32" if key == "epsilon" else "f64"
        return f"{float_text(float(value), kind)} : {kind}"
    if isinstance(value, Literal):
        return f"{dense(value)} : {value.type}"
    if isinstance(value, Mapping):
        return "{" + dictionary(value) + "}"
    if isinstance(value, TensorType | TupleType | TokenType):
        return str(value)
    raise ValueError(f"attribute {key} has a value that MLIR text cannot hold: {value!r}")


def _int_type(key: str, value: int) -> str:
    if key in _INT64:
        return "i64"
    if key in _INT32:
        return "i32"
    return value.type_name if isinstance(value, TypedInt) else "i64"


def _sequence(key: str, value: tuple[Any, ...]) -> str:
    if key in _ARRAYS:
        return f"array<i64{': ' if value else ''}{', '.join(map(str, value))}>"
    if key == "window_reversal":
        return f"array<i1{': ' if value else ''}{', '.join('true' if flag else 'false' for flag in value)}>"
    if key in _TABLES:
        return table(value)
    return "[" + ", ".join(attribute("", entry) for entry in value) + "]"


def table(rows: Sequence[Sequence[int]]) -> str:
    """`dense<[[0, 1]]> : tensor<1x2xi64>`."""
    width = len(rows[0]) if rows and isinstance(rows[0], tuple) else 0
    if not rows or not width:
        return f"dense<> : tensor<{len(rows)}x{width}xi64>"
    shown = ", ".join("[" + ", ".join(map(str, row)) + "]" for row in rows)
    return f"dense<[{shown}]> : tensor<{len(rows)}x{width}xi64>"


def _layout(order: Sequence[int]) -> str:
    inner = f"[{', '.join(map(str, order))}]" if order else ""
    return f"dense<{inner}> : tensor<{len(order)}xindex>"


def _symbols(value: Any) -> str:
    if isinstance(value, str):
        return symbol(value)
    return "[" + ", ".join(_symbols(entry) for entry in value) + "]"


def _record_or_list(name: str, value: Any, dialect: str) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_record_or_list(name, entry, dialect) for entry in value) + "]"
    return f"#{dialect}.{name}<{', '.join(f'{key} = {_field(entry)}' for key, entry in value.items())}>"


def _field(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, tuple) else str(value)


# ---- records that normalising took apart -------------------------------------------------------------------------


def gathered(opcode: str, attributes: Attributes) -> dict[str, Any]:
    """An operation's attributes with dimension numbers gathered into the records MLIR has; text values start with `#`."""
    found = dict(attributes)
    if opcode in ("gather", "dynamic_gather"):
        found["dimension_numbers"] = _numbers("gather", found, GATHER, "index_vector_dim")
    elif opcode == "scatter":
        found["scatter_dimension_numbers"] = _numbers("scatter", found, SCATTER, "index_vector_dim")
    elif opcode == "dot_general":
        found["dot_dimension_numbers"] = _numbers("dot", found, DOT)
    elif opcode in ("convolution", "dynamic_conv") and "input_batch_dimension" in found:
        found["dimension_numbers"] = f"#stablehlo.conv<{convolution_numbers(attributes)}>"
        for name in _CONVOLUTION:
            found.pop(name)
    elif opcode == "custom_call":
        for name in call_defaults(attributes):
            found.pop(name)
    elif opcode == "batch_norm_training":
        found["epsilon"] = TypedFloat(found["epsilon"], "f32")
    return found


def call_defaults(attributes: Attributes) -> list[str]:
    """A custom call's attributes that only say what is so without them; an empty configuration suits no typed call."""
    defaults = {"api_version": 1, "backend_config": "", "has_side_effect": False}
    return [name for name, value in defaults.items() if attributes.get(name) == value]


def _numbers(name: str, found: dict[str, Any], lists: tuple[str, ...], scalar: str = "") -> str:
    parts = []
    for key in lists:
        value = found.pop(key, ())
        if value:
            parts.append(f"{key} = [{', '.join(map(str, value))}]")
    if scalar:
        value = found.pop(scalar, 0)
        if value:
            parts.append(f"{scalar} = {value}")
    return f"#stablehlo.{name}<{', '.join(parts)}>"


def convolution_numbers(attributes: Attributes) -> str:
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""
    shown = []
    for side, first, second in (
        ("input", ("b", "batch"), ("f", "feature")),
        ("kernel", ("i", "input_feature"), ("o", "output_feature")),
        ("output", ("b", "batch"), ("f", "feature")),
    ):
        spatial = attributes[f"{side}_spatial_dimensions"]
        labels = {dimension: str(index) for index, dimension in enumerate(spatial)}
        for letter, name in (first, second):
            labels[attributes[f"{side}_{name}_dimension"]] = letter
        shown.append("[" + ", ".join(labels.get(dim, "?") for dim in range(len(spatial) + 2)) + "]")
    return f"{shown[0]}x{shown[1]}->{shown[2]}"


# ---- constants ---------------------------------------------------------------------------------------------------


def dense(literal: Literal) -> str:
    """`dense<…>` without the type: a splat, nested lists, or one hexadecimal string for large constants."""
    array = literal.array
    if array.size == 0:
        return "dense<>"
    if literal.is_splat:
        return f"dense<{_elements(array[(slice(0, 1),) * array.ndim].reshape(-1))[0]}>"
    element = literal.type.element
    kind = element.storage if isinstance(element, QuantizedType) else element
    if array.size > HEX_ELEMENTS and kind.bits >= 8:
        raw = np.ascontiguousarray(array).tobytes()
        return f'dense<"0x{raw.hex().upper()}">'
    rows = _elements(np.ascontiguousarray(array).reshape(-1))
    for size in reversed(array.shape):
        rows = [f"[{', '.join(rows[start : start + size])}]" for start in range(0, len(rows), size)]
    return f"dense<{rows[0]}>"


def _elements(flat: np.ndarray[Any, np.dtype[Any]]) -> list[str]:
    kind = element_of_dtype(flat.dtype)
    if kind.kind == "bool":
        return ["true" if value else "false" for value in flat.tolist()]
    if kind.is_integer:
        return [str(value) for value in flat.astype(np.int64 if kind.kind == "int" else np.uint64).tolist()]
    if kind.is_complex:
        parts = _elements(flat.view(kind.real.dtype))
        return [f"({real}, {imag})" for real, imag in zip(parts[::2], parts[1::2], strict=True)]
    wide = flat if kind.name in ("f32", "f64") else flat.astype(np.float32)
    texts = [_pointed(text) for text in wide.astype("U32").tolist()]
    for index in np.flatnonzero(~np.isfinite(wide)).tolist():
        bits = int.from_bytes(flat[index : index + 1].tobytes(), "little")
        texts[index] = f"0x{bits:0{max(2, (kind.bits + 3) // 4)}X}"
    return texts


def _pointed(text: str) -> str:
    """A decimal as MLIR's lexer takes it, with a point before the exponent."""
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{mark}{exponent}"


def float_text(value: float, kind: str = "f64") -> str:
    """A float attribute's value without its type."""
    dtype = np.float32 if kind in ("f32", "f16", "bf16") else np.float64
    return _elements(np.array([value], dtype))[0]
