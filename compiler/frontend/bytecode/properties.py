"""Names of the attributes that an operation keeps in its properties, where the file holds only their values.

The values stand in alphabetical order of the names. What an operation of VHLO holds never changes: another version of the
operation gets another name (`gather_v2`).

Source: StableHLO, `VhloOps.td`; Shardy, `ops.td`; MLIR, `BuiltinOps.td`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_CONVOLUTION = """batch_group_count feature_group_count input_batch_dimension input_feature_dimension
    input_spatial_dimensions kernel_input_feature_dimension kernel_output_feature_dimension kernel_spatial_dimensions
    lhs_dilation output_batch_dimension output_feature_dimension output_spatial_dimensions precision_config rhs_dilation
    window_reversal window_strides"""
_GATHER = "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims start_index_map"
_DOT = """lhs_batching_dimensions lhs_contracting_dimensions precision_config rhs_batching_dimensions
    rhs_contracting_dimensions"""
_CUSTOM_CALL = """api_version backend_config call_target_name called_computations has_side_effect operand_layouts
    output_operand_aliases result_layouts"""
_SCATTER = """index_vector_dim indices_are_sorted inserted_window_dims scatter_dims_to_operand_dims unique_indices
    update_window_dims"""
_COMPOSITE = "composite_attributes decomposition name version"
_TRANSFER = "channel_id channel_type is_host_transfer"
_APPROXIMATED = (
    "cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh"
)
_REDUCED = "channel_id replica_groups use_global_device_ids"

_WORDS = {
    "all_gather_v1": f"all_gather_dim {_REDUCED}",
    "all_gather_v2": f"all_gather_dim {_REDUCED}",
    "all_reduce_v1": _REDUCED,
    "all_reduce_v2": _REDUCED,
    "all_to_all_v1": "channel_id concat_dimension replica_groups split_count split_dimension",
    "all_to_all_v2": "channel_id concat_dimension replica_groups split_count split_dimension",
    "batch_norm_grad_v1": "epsilon feature_index",
    "batch_norm_inference_v1": "epsilon feature_index",
    "batch_norm_training_v1": "epsilon feature_index",
    "broadcast_in_dim_v1": "broadcast_dimensions",
    "broadcast_v1": "broadcast_sizes",
    "call_v1": "callee",
    "cholesky_v1": "lower",
    "collective_broadcast_v1": "channel_id replica_groups",
    "collective_broadcast_v2": "channel_id has_dynamic_root replica_groups",
    "collective_permute_v1": "channel_id source_target_pairs",
    "collective_reduce_v1": f"has_dynamic_root {_REDUCED}",
    "compare_v1": "compare_type comparison_direction",
    "composite_v1": _COMPOSITE,
    "composite_v2": _COMPOSITE,
    "concatenate_v1": "dimension",
    "constant_v1": "value",
    "convolution_v1": f"padding {_CONVOLUTION}",
    "cross-replica-sum_v1": "replica_groups",
    "custom_call_v1": _CUSTOM_CALL,
    "custom_call_v2": f"result_tilings {_CUSTOM_CALL}",
    "dot_general_v1": _DOT,
    "dot_general_v2": f"""accumulation_type allow_imprecise_accumulation lhs_component_count lhs_precision_type
        num_primitive_operations rhs_component_count rhs_precision_type {_DOT}""",
    "dot_v1": "precision_config",
    "dynamic_broadcast_in_dim_v1": (
        "broadcast_dimensions known_expanding_dimensions known_nonexpanding_dimensions"
    ),
    "dynamic_conv_v1": f"padding {_CONVOLUTION}",
    "dynamic_conv_v2": _CONVOLUTION,
    "dynamic_gather_v1": _GATHER,
    "dynamic_gather_v2": f"operand_batching_dims start_indices_batching_dims {_GATHER}",
    "dynamic_iota_v1": "iota_dimension",
    "dynamic_slice_v1": "slice_sizes",
    "einsum_v1": "einsum_config",
    "fft_v1": "fft_length fft_type",
    "func_v1": "arg_attrs function_type res_attrs sym_name sym_visibility",
    "gather_v1": f"slice_sizes {_GATHER}",
    "gather_v2": f"operand_batching_dims slice_sizes start_indices_batching_dims {_GATHER}",
    "get_dimension_size_v1": "dimension",
    "get_tuple_element_v1": "index",
    "infeed_v1": "infeed_config layout",
    "iota_v1": "iota_dimension",
    "map_v1": "dimensions",
    "outfeed_v1": "outfeed_config",
    "pad_v1": "edge_padding_high edge_padding_low interior_padding",
    "recv_v1": _TRANSFER,
    "recv_v2": f"source_target_pairs {_TRANSFER}",
    "reduce_precision_v1": "exponent_bits mantissa_bits",
    "reduce_scatter_v1": f"scatter_dimension {_REDUCED}",
    "reduce_v1": "dimensions",
    "reduce_window_v1": "base_dilations padding window_dilations window_dimensions window_strides",
    "reverse_v1": "dimensions",
    "rng_bit_generator_v1": "rng_algorithm",
    "rng_v1": "rng_distribution",
    "scatter_v1": _SCATTER,
    "scatter_v2": f"input_batching_dims scatter_indices_batching_dims {_SCATTER}",
    "select_and_scatter_v1": "padding window_dimensions window_strides",
    "send_v1": _TRANSFER,
    "send_v2": f"source_target_pairs {_TRANSFER}",
    "set_dimension_size_v1": "dimension",
    "slice_v1": "limit_indices start_indices strides",
    "sort_v1": "dimension is_stable",
    "torch_index_select_v1": "batch_dims dim",
    "transpose_v1": "permutation",
    "triangular_solve_v1": "left_side lower transpose_a unit_diagonal",
    "unary_einsum_v1": "einsum_config",
    **{f"{name}_v2": "result_accuracy" for name in _APPROXIMATED.split()},
}

_SHARDY = {
    "mesh": "mesh sym_name",
    "manual_computation": "in_shardings manual_axes out_shardings",
    "sharding_constraint": "sharding",
    "reshard": "sharding",
    "propagation_barrier": "allowed_direction",
}

REQUIRED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {f"vhlo.{name}": tuple(sorted(words.split())) for name, words in _WORDS.items()}
    | {f"sdy.{name}": tuple(words.split()) for name, words in _SHARDY.items()}
)
"""Attributes that are always there, in the order of the file, by operation."""

OPTIONAL: Mapping[str, tuple[str, ...]] = MappingProxyType({"builtin.module": ("sym_name", "sym_visibility")})
"""Attributes that may be absent."""
