"""VHLO to StableHLO: operations of every version become the one that StableHLO has today.

VHLO writes every default out and takes records (dimension numbers, channel handles) apart; here defaults go and records come
back, so that what remains is what the text of the same program gives.

Source: StableHLO, "StableHLO Compatibility" and the legalisation between VHLO and StableHLO.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from compiler.frontend.mlir.positions import Source
from compiler.frontend.mlir.tree import Operation, Raw, Symbol
from compiler.ir.literal import Literal
from compiler.ir.program import Attributes
from compiler.ir.types import TensorType

Found = dict[str, Any]

_NAME = re.compile(r"vhlo\.(.+)_v\d+")
_OTHERS = MappingProxyType({"func": "func.func", "call": "func.call", "return": "func.return"})
_LONGEST_LIST = 1 << 16
"""Elements of a constant that stands for a list of numbers: a hostile splat could otherwise take any amount of memory."""


def legalise(operations: list[Operation], source: Source) -> None:
    """Rewrites VHLO operations in place, with all they contain; others stay.

    Raises:
        SourceError: when an operation has a form that StableHLO cannot express.
    """
    waiting = list(operations)
    while waiting:
        op = waiting.pop()
        match = _NAME.fullmatch(op.name)
        if match is not None:
            opcode = match.group(1)
            op.name = _OTHERS.get(opcode, f"stablehlo.{opcode}")
            try:
                op.attributes = _attributes(opcode, op.attributes)
            except ValueError as error:
                source.fail(f"{op.name}: {error}", op.offset)
            except (AttributeError, LookupError, TypeError):
                source.fail(f"{op.name}: an attribute is of the wrong kind", op.offset)
        for block in op.regions:
            waiting += block.operations


def _attributes(opcode: str, raw: Found) -> Found:
    found = {key: value for key, value in raw.items() if not _is_default(opcode, key, value)}
    for key, value in found.items():
        if key in _LISTS and isinstance(value, Literal):
            found[key] = _numbers(key, value)
    rule = _RULES.get(opcode)
    if rule is not None:
        rule(found)
    return found


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


# ---- values --------------------------------------------------------------------------------------------------------

_LISTS = _names(
    """base_dilations broadcast_dimensions broadcast_sizes collapsed_slice_dims dimensions edge_padding_high
    edge_padding_low fft_length input_batching_dims input_spatial_dimensions inserted_window_dims interior_padding
    kernel_spatial_dimensions known_expanding_dimensions known_nonexpanding_dimensions lhs_batching_dimensions
    lhs_contracting_dimensions lhs_dilation limit_indices offset_dims operand_batching_dims output_spatial_dimensions
    padding permutation replica_groups rhs_batching_dimensions rhs_contracting_dimensions rhs_dilation
    scatter_dims_to_operand_dims scatter_indices_batching_dims slice_sizes source_target_pairs start_index_map
    start_indices start_indices_batching_dims strides update_window_dims window_dilations window_dimensions
    window_reversal window_strides"""
)


def _numbers(key: str, value: Literal) -> Any:
    if value.array.size > _LONGEST_LIST:
        raise ValueError(f"attribute {key} holds {value.array.size} numbers")

    def frozen(item: Any) -> Any:
        return tuple(map(frozen, item)) if isinstance(item, list) else item

    listed = frozen(value.array.tolist())
    return listed if isinstance(listed, tuple) else (listed,)


def _is_default(opcode: str, key: str, value: Any) -> bool:
    """True for what VHLO writes out and StableHLO leaves away."""
    if key in ("sym_visibility", "backend_config", "infeed_config", "outfeed_config"):
        return bool(value == "")
    if key in _EMPTY_BY_DEFAULT:
        return (isinstance(value, tuple) and not value) or (
            isinstance(value, Literal) and value.array.size == 0
        )
    if key in ("use_global_device_ids", "has_dynamic_root", "is_host_transfer"):
        return value is False
    if key == "compare_type":
        return bool(value == "NOTYPE")
    if key == "precision_config":
        return isinstance(value, tuple) and all(entry == "DEFAULT" for entry in value)
    if key == "padding":
        return opcode == "dynamic_conv"
    return key == "channel_id" and opcode not in ("send", "recv") and value == 0


_EMPTY_BY_DEFAULT = _names(
    """arg_attrs called_computations known_expanding_dimensions known_nonexpanding_dimensions layout
    output_operand_aliases res_attrs result_tilings"""
)


# ---- operations ----------------------------------------------------------------------------------------------------


def _symbol(*keys: str) -> Callable[[Found], None]:
    def rule(found: Found) -> None:
        for key in keys:
            if isinstance(found.get(key), str):
                found[key] = Symbol(found[key])

    return rule


def _function(found: Found) -> None:
    kind = found.get("function_type")
    if not isinstance(kind, tuple) or len(kind) != 2 or not all(isinstance(side, tuple) for side in kind):
        raise ValueError("a function needs a function type")
    if not isinstance(found.get("sym_name"), str):
        raise ValueError("a function's name must be a string")
    for key in ("arg_attrs", "res_attrs"):
        listed = found.get(key, ())
        if not isinstance(listed, tuple) or not all(isinstance(entry, Mapping) for entry in listed):
            raise ValueError(f"{key} must be a list of dictionaries")


def _channel(found: Found) -> None:
    if found.get("source_target_pairs") == () and "channel_type" in found:
        del found["source_target_pairs"]
    identifier, kind = found.pop("channel_id", None), found.pop("channel_type", 0)
    if identifier is not None:
        found["channel_handle"] = Attributes(handle=int(identifier), type=int(kind))
    groups = found.get("replica_groups")
    if isinstance(groups, Mapping):
        found["replica_groups"] = Raw(_mesh_axes(groups))


def _mesh_axes(groups: Mapping[str, Any]) -> str:
    axes = ", ".join(map(str, groups["axes"]))
    return f"#stablehlo.replica_group_mesh_axes<mesh = @{groups['mesh']}, axes = [{axes}]>"


def _custom_call(found: Found) -> None:
    called = found.get("called_computations")
    if isinstance(called, tuple):
        found["called_computations"] = tuple(Symbol(name) for name in called)
    if not found.get("operand_layouts") and not found.get("result_layouts"):
        found.pop("operand_layouts", None)
        found.pop("result_layouts", None)


def _accuracy(found: Found) -> None:
    value = found.get("result_accuracy")
    if isinstance(value, Mapping):
        numbers = f"atol = {value['atol']!r}, rtol = {value['rtol']!r}, ulps = {value['ulps']}"
        mode = f"#stablehlo.result_accuracy_mode<{value['mode']}>"
        found["result_accuracy"] = Raw(f"#stablehlo.result_accuracy<{numbers}, mode = {mode}>")


_ALGORITHM = (
    "lhs_precision_type",
    "rhs_precision_type",
    "accumulation_type",
    "lhs_component_count",
    "rhs_component_count",
    "num_primitive_operations",
    "allow_imprecise_accumulation",
)


def _dot_general(found: Found) -> None:
    """The parts of an algorithm are of the type `none` where no algorithm is asked for."""
    parts = {key: found.pop(key) for key in _ALGORITHM if key in found}
    if any(part == "none" for part in parts.values()) or not parts:
        return
    found["algorithm"] = Attributes(
        {key: str(part.element) if isinstance(part, TensorType) else part for key, part in parts.items()}
    )


_DIMENSION_NUMBERS = (
    "input_batch_dimension",
    "input_feature_dimension",
    "input_spatial_dimensions",
    "kernel_input_feature_dimension",
    "kernel_output_feature_dimension",
    "kernel_spatial_dimensions",
    "output_batch_dimension",
    "output_feature_dimension",
    "output_spatial_dimensions",
)


def _convolution(found: Found) -> None:
    parts = []
    for key in _DIMENSION_NUMBERS:
        value = found.pop(key, None)
        if value is None:
            raise ValueError(f"a convolution needs {key}")
        parts.append(f"{key} = {list(value) if isinstance(value, tuple) else int(value)}")
    found["dimension_numbers"] = Raw(f"raw {', '.join(parts)}")


_COLLECTIVES = _names(
    """all_gather all_reduce all_to_all collective_broadcast collective_permute collective_reduce recv reduce_scatter
    send"""
)
_APPROXIMATED = _names(
    "cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh"
)
_RULES: Mapping[str, Callable[[Found], None]] = MappingProxyType(
    {
        "call": _symbol("callee"),
        "composite": _symbol("decomposition"),
        "convolution": _convolution,
        "custom_call": _custom_call,
        "dot_general": _dot_general,
        "dynamic_conv": _convolution,
        "func": _function,
        **dict.fromkeys(_COLLECTIVES, _channel),
        **dict.fromkeys(_APPROXIMATED, _accuracy),
    }
)
