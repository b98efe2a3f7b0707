"""How each operation's attributes are written in HLO text, as `key=value` texts.

Operations that HLO has no opcode for are `custom-call`s; `fallback` writes those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compiler.ir.attribute_values import TypedFloat, TypedInt
from compiler.ir.hlo_values import name_text, quote
from compiler.ir.program import Attributes, Instruction
from compiler.ir.types import TensorType

Operands = Mapping[str, Instruction]
Texts = list[str]


def ints(values: Sequence[Any]) -> str:
    """`{0,1}`."""
    return "{" + ",".join(map(str, values)) + "}"


def groups(rows: Any) -> str:
    """`{{0,1},{2,3}}`; -1 fills short groups and is left out."""
    if not isinstance(rows, tuple):
        return str(rows)
    return "{" + ",".join(ints([entry for entry in row if entry != -1]) for row in rows) + "}"


def word(flag: bool) -> str:
    """`true` or `false`."""
    return "true" if flag else "false"


def _dimensions(name: str) -> Callable[[Instruction, Operands], Texts]:
    return lambda i, _: [f"dimensions={ints(i.attributes[name])}"]


def _dimension(name: str) -> Callable[[Instruction, Operands], Texts]:
    return lambda i, _: [f"dimensions={{{i.attributes[name]}}}"]


def window(
    size: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[Sequence[int]],
    lhs: Sequence[int] = (),
    rhs: Sequence[int] = (),
    reversal: Sequence[bool] = (),
) -> Texts:
    """`window={size=3x3 stride=2x2 pad=0_1x0_1 …}`; parts that say nothing are left out."""
    if not size:
        return []
    parts = [f"size={'x'.join(map(str, size))}"]
    if any(value != 1 for value in stride):
        parts.append(f"stride={'x'.join(map(str, stride))}")
    if any(value for pair in pad for value in pair):
        parts.append(f"pad={'x'.join(f'{low}_{high}' for low, high in pad)}")
    if any(value != 1 for value in lhs):
        parts.append(f"lhs_dilate={'x'.join(map(str, lhs))}")
    if any(value != 1 for value in rhs):
        parts.append(f"rhs_dilate={'x'.join(map(str, rhs))}")
    if any(reversal):
        parts.append(f"rhs_reversal={'x'.join('1' if flag else '0' for flag in reversal)}")
    return [f"window={{{' '.join(parts)}}}"]


def precision(attributes: Attributes) -> Texts:
    """`operand_precision={highest,highest}`, unless all are the default."""
    given = attributes.get("precision_config") or ()
    if all(entry == "DEFAULT" for entry in given):
        return []
    return [f"operand_precision={{{','.join(entry.lower() for entry in given)}}}"]


def algorithm(attributes: Attributes) -> Texts:
    """`algorithm=dot_bf16_bf16_f32_x3`."""
    record = attributes.get("algorithm")
    if not isinstance(record, Mapping):
        return []
    left, right = (str(record[f"{side}_precision_type"]).lower() for side in ("lhs", "rhs"))
    result = str(record["accumulation_type"]).lower()
    count = int(record.get("num_primitive_operations", 1))
    if left.startswith("f8"):
        left = right = "any_f8"
        return [
            f"algorithm=dot_{left}_{right}_{result}{'_fast_accum' if record.get('allow_imprecise_accumulation') else ''}"
        ]
    return [f"algorithm=dot_{left}_{right}_{result}{f'_x{count}' if count > 1 else ''}"]


def _dot_general(i: Instruction, _: Operands) -> Texts:
    a = i.attributes
    texts = []
    for side in ("lhs", "rhs"):
        if a[f"{side}_batching_dimensions"]:
            texts.append(f"{side}_batch_dims={ints(a[f'{side}_batching_dimensions'])}")
        texts.append(f"{side}_contracting_dims={ints(a[f'{side}_contracting_dimensions'])}")
    return texts + precision(a) + algorithm(a)


def _dot(i: Instruction, operands: Operands) -> Texts:
    left = operands[i.operands[0]].type
    rank = left.rank if isinstance(left, TensorType) else 1
    return [f"lhs_contracting_dims={{{rank - 1}}}", "rhs_contracting_dims={0}", *precision(i.attributes)]


def dimension_labels(attributes: Attributes) -> str:
    """`b01f_01io->b01f`."""
    sides = (("input", "b", "batch", "f", "feature"), ("kernel", "i", "input_feature", "o", "output_feature"))
    parts = []
    for side, first, first_name, second, second_name in (*sides, ("output", *sides[0][1:])):
        spatial = attributes[f"{side}_spatial_dimensions"]
        labels = {dimension: str(index) for index, dimension in enumerate(spatial)}
        labels[attributes[f"{side}_{first_name}_dimension"]] = first
        labels[attributes[f"{side}_{second_name}_dimension"]] = second
        parts.append("".join(labels.get(dimension, "?") for dimension in range(len(spatial) + 2)))
    return f"{parts[0]}_{parts[1]}->{parts[2]}"


def _convolution(i: Instruction, operands: Operands) -> Texts:
    a = i.attributes
    kernel = operands[i.operands[1]].type
    assert isinstance(kernel, TensorType)
    size = [kernel.shape[dimension] for dimension in a["kernel_spatial_dimensions"]]
    texts = window(
        size, a["window_strides"], a["padding"], a["lhs_dilation"], a["rhs_dilation"], a["window_reversal"]
    )
    texts.append(f"dim_labels={dimension_labels(a)}")
    for key in ("feature_group_count", "batch_group_count"):
        if a.get(key, 1) != 1:
            texts.append(f"{key}={a[key]}")
    return texts + precision(a)


def _reduce_window(i: Instruction, _: Operands) -> Texts:
    a = i.attributes
    return window(
        a["window_dimensions"], a["window_strides"], a["padding"], a["base_dilations"], a["window_dilations"]
    )


def _select_and_scatter(i: Instruction, _: Operands) -> Texts:
    a = i.attributes
    return window(a["window_dimensions"], a["window_strides"], a["padding"])


def _gather(i: Instruction, _: Operands) -> Texts:
    a = i.attributes
    texts = [
        f"offset_dims={ints(a['offset_dims'])}",
        f"collapsed_slice_dims={ints(a['collapsed_slice_dims'])}",
    ]
    texts.append(f"start_index_map={ints(a['start_index_map'])}")
    texts += _batching(a, "operand_batching_dims", "start_indices_batching_dims")
    texts += [f"index_vector_dim={a['index_vector_dim']}", f"slice_sizes={ints(a['slice_sizes'])}"]
    return texts + (["indices_are_sorted=true"] if a.get("indices_are_sorted") else [])


def _scatter(i: Instruction, _: Operands) -> Texts:
    a = i.attributes
    texts = [
        f"update_window_dims={ints(a['update_window_dims'])}",
        f"inserted_window_dims={ints(a['inserted_window_dims'])}",
        f"scatter_dims_to_operand_dims={ints(a['scatter_dims_to_operand_dims'])}",
        *_batching(a, "input_batching_dims", "scatter_indices_batching_dims"),
        f"index_vector_dim={a['index_vector_dim']}",
    ]
    return texts + [f"{key}=true" for key in ("indices_are_sorted", "unique_indices") if a.get(key)]


def _batching(attributes: Attributes, *names: str) -> Texts:
    return [f"{name}={ints(attributes[name])}" for name in names if attributes.get(name)]


def _slice(i: Instruction, _: Operands) -> Texts:
    a = i.attributes
    rows = zip(a["start_indices"], a["limit_indices"], a["strides"], strict=True)
    shown = (
        f"[{start}:{limit}]" if step == 1 else f"[{start}:{limit}:{step}]" for start, limit, step in rows
    )
    return [f"slice={{{', '.join(shown)}}}"]


def _pad(i: Instruction, _: Operands) -> Texts:
    a = i.attributes
    rows = list(zip(a["edge_padding_low"], a["edge_padding_high"], a["interior_padding"], strict=True))
    inner = any(interior for _, _, interior in rows)
    shown = "x".join(f"{low}_{high}_{interior}" if inner else f"{low}_{high}" for low, high, interior in rows)
    return [f"padding={shown}"]


def _compare(i: Instruction, operands: Operands) -> Texts:
    texts = [f"direction={i.attributes['comparison_direction']}"]
    return texts + (["type=TOTALORDER"] if i.attributes.get("compare_type") == "TOTALORDER" else [])


def collective(attributes: Attributes) -> Texts:
    """Channel and groups, as every collective writes them."""
    texts = []
    channel = channel_id(attributes)
    if channel:
        texts.append(f"channel_id={channel}")
    if "replica_groups" in attributes:
        texts.append(f"replica_groups={groups(attributes['replica_groups'])}")
    if attributes.get("use_global_device_ids"):
        texts.append("use_global_device_ids=true")
    return texts


def channel_id(attributes: Attributes) -> int:
    """The channel of a collective; 0 when it has none."""
    handle = attributes.get("channel_handle")
    if isinstance(handle, Mapping):
        return int(handle.get("handle", 0))
    return int(attributes.get("channel_id", 0))


def _all_gather(i: Instruction, _: Operands) -> Texts:
    return [*collective(i.attributes), f"dimensions={{{i.attributes['all_gather_dim']}}}"]


def _reduce_scatter(i: Instruction, _: Operands) -> Texts:
    return [*collective(i.attributes), f"dimensions={{{i.attributes['scatter_dimension']}}}"]


def _permute(i: Instruction, _: Operands) -> Texts:
    channel = channel_id(i.attributes)
    pairs = f"source_target_pairs={groups(i.attributes['source_target_pairs'])}"
    return [*([f"channel_id={channel}"] if channel else []), pairs]


_API = {
    2: "API_VERSION_STATUS_RETURNING",
    3: "API_VERSION_STATUS_RETURNING_UNIFIED",
    4: "API_VERSION_TYPED_FFI",
}


def _custom_call(i: Instruction, _: Operands) -> Texts:
    a = i.attributes
    texts = [f"custom_call_target={quote(str(a['call_target_name']))}"]
    if a.get("has_side_effect"):
        texts.append("custom_call_has_side_effect=true")
    if i.called:
        texts.append(f"called_computations={{{', '.join(map(name_text, i.called))}}}")
    version = _API.get(a.get("api_version", 1), "")
    if version:
        texts.append(f"api_version={version}")
    config = a.get("mhlo.backend_config") or a.get("backend_config")
    if config:
        texts.append(f"backend_config={quote(config if isinstance(config, str) else attribute_text(config))}")
    return texts


HLO_TEXT = "hlo."
"""Attributes of this prefix hold what HLO text says of an instruction or module and nobody here interprets, as written."""


def kept(attributes: Mapping[str, Any]) -> Texts:
    """Attributes that were read from HLO text and kept as they stood there."""
    prefix = len(HLO_TEXT)
    return [
        f"{key[prefix:]}={value}"
        for key, value in attributes.items()
        if key.startswith(HLO_TEXT) and isinstance(value, str)
    ]


def fallback(i: Instruction) -> Texts:
    """The attributes of an operation that HLO lacks: a custom call of its full name, its attributes as text."""
    full = i.opcode if "." in i.opcode else f"stablehlo.{i.opcode}"
    texts = [f"custom_call_target={quote(full)}"]
    if i.called:
        texts.append(f"called_computations={{{', '.join(map(name_text, i.called))}}}")
    own = {key: value for key, value in i.attributes.items() if "." not in key}
    return texts + ([f"backend_config={quote(attribute_text(own))}"] if own else [])


def attribute_text(value: Any) -> str:
    """Any attribute's value in MLIR's manner, for what HLO has no syntax for."""
    if isinstance(value, bool):
        return word(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_typed_text(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(attribute_text, value)) + "]"
    return str(value)


def _typed_text(value: Any) -> str:
    """A number with its type, as MLIR's dictionaries have it: readers of `backend_config` depend on it."""
    if isinstance(value, float):
        mantissa, mark, exponent = repr(float(value)).partition("e")
        point = "" if "." in mantissa or mantissa.lstrip("-") in ("inf", "nan") else ".0"
        return f"{mantissa}{point}{mark}{exponent} : {value.type_name if isinstance(value, TypedFloat) else 'f64'}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value)} : {value.type_name if isinstance(value, TypedInt) else 'i64'}"
    return attribute_text(value)


def _batch_norm(i: Instruction, _: Operands) -> Texts:
    return [f"epsilon={i.attributes['epsilon']}", f"feature_index={i.attributes['feature_index']}"]


def _triangular_solve(i: Instruction, _: Operands) -> Texts:
    a = i.attributes
    texts = [f"{key}=true" for key in ("left_side", "lower", "unit_diagonal") if a.get(key)]
    kind = a.get("transpose_a", "NO_TRANSPOSE")
    return [*texts, f"transpose_a={kind}"]


def _composite(i: Instruction, _: Operands) -> Texts:
    a = i.attributes
    inner = ",".join(
        (
            f"composite.attributes={quote(attribute_text(a.get('composite_attributes', {})))}",
            f"composite.name={quote(str(a['name']))}",
            f"composite.version={quote(str(a.get('version', 0)))}",
        )
    )
    return [f"to_apply={name_text(i.called[0])}", "is_composite=true", f"frontend_attributes={{{inner}}}"]


def _sort(i: Instruction, _: Operands) -> Texts:
    stable = ["is_stable=true"] if i.attributes.get("is_stable") else []
    return [f"dimensions={{{i.attributes['dimension']}}}", *stable]


def _fusion(i: Instruction, _: Operands) -> Texts:
    return [f"kind={i.attributes.get('kind', 'kLoop')}", f"calls={name_text(i.called[0])}"]


ATTRIBUTES: dict[str, Callable[[Instruction, Operands], Texts]] = {
    "all_gather": _all_gather,
    "all_reduce": lambda i, _: collective(i.attributes),
    "all_to_all": lambda i, _: [
        *collective(i.attributes),
        f"dimensions={{{i.attributes['split_dimension']}}}",
    ],
    "batch_norm_grad": _batch_norm,
    "batch_norm_inference": _batch_norm,
    "batch_norm_training": _batch_norm,
    "broadcast": lambda i, o: [
        f"dimensions={ints(range(len(i.attributes['broadcast_sizes']), i.tensor.rank))}"
    ],
    "broadcast_in_dim": _dimensions("broadcast_dimensions"),
    "chlo.top_k": lambda i, _: [f"k={i.attributes['k']}", "largest=true"],
    "cholesky": lambda i, _: ["lower=true"] if i.attributes.get("lower") else [],
    "collective_broadcast": lambda i, _: collective(i.attributes),
    "collective_permute": _permute,
    "compare": _compare,
    "composite": _composite,
    "concatenate": _dimension("dimension"),
    "convolution": _convolution,
    "cross-replica-sum": lambda i, _: fallback(i),
    "custom_call": _custom_call,
    "dot": _dot,
    "dot_general": _dot_general,
    "dynamic_slice": lambda i, _: [f"dynamic_slice_sizes={ints(i.attributes['slice_sizes'])}"],
    "fft": lambda i, _: [
        f"fft_type={i.attributes['fft_type']}",
        f"fft_length={ints(i.attributes['fft_length'])}",
    ],
    "fusion": _fusion,
    "gather": _gather,
    "get_dimension_size": _dimension("dimension"),
    "get_tuple_element": lambda i, _: [f"index={i.attributes['index']}"],
    "hlo.all-gather-start": _all_gather,
    "hlo.all-reduce-start": lambda i, _: collective(i.attributes),
    "hlo.all-to-all": lambda i, _: collective(i.attributes),
    "hlo.collective-permute-start": _permute,
    "iota": lambda i, _: [f"iota_dimension={i.attributes['iota_dimension']}"] if i.tensor.rank else [],
    "map": _dimensions("dimensions"),
    "pad": _pad,
    "reduce": _dimensions("dimensions"),
    "reduce_precision": lambda i, _: [
        f"{key}={i.attributes[key]}" for key in ("exponent_bits", "mantissa_bits")
    ],
    "reduce_scatter": _reduce_scatter,
    "reduce_window": _reduce_window,
    "reverse": _dimensions("dimensions"),
    "rng": lambda i, _: [f"distribution=rng_{i.attributes['rng_distribution'].lower()}"],
    "rng_bit_generator": lambda i, _: [f"algorithm=rng_{i.attributes['rng_algorithm'].lower()}"],
    "scatter": _scatter,
    "select_and_scatter": _select_and_scatter,
    "set_dimension_size": _dimension("dimension"),
    "slice": _slice,
    "sort": _sort,
    "transpose": _dimensions("permutation"),
    "triangular_solve": _triangular_solve,
}
"""Writers of each operation's own attributes; operations without any need none."""
