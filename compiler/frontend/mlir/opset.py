"""The operations that may stand in a program, by dialect: what is not here is an unknown operation."""

from __future__ import annotations


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


STABLEHLO = _names(
    """abs add after_all all_gather all_reduce all_to_all and async_done async_start atan2 batch_norm_grad
    batch_norm_inference batch_norm_training bitcast_convert broadcast broadcast_in_dim case cbrt ceil cholesky clamp
    collective_broadcast collective_permute collective_reduce compare complex composite concatenate constant convert
    convolution cosine count_leading_zeros create_token cross-replica-sum custom_call divide dot dot_general
    dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota dynamic_pad dynamic_reshape dynamic_slice
    dynamic_update_slice einsum exponential exponential_minus_one fft floor gather get_dimension_size get_tuple_element if
    imag infeed iota is_finite log log_plus_one logistic map maximum minimum multiply negate not optimization_barrier or
    outfeed pad partition_id popcnt power real real_dynamic_slice recv reduce reduce_precision reduce_scatter reduce_window
    remainder replica_id reshape return reverse rng rng_bit_generator round_nearest_afz round_nearest_even rsqrt scatter
    select select_and_scatter send set_dimension_size shift_left shift_right_arithmetic shift_right_logical sign sine slice
    sort sqrt subtract tan tanh torch_index_select transpose triangular_solve tuple unary_einsum uniform_dequantize
    uniform_quantize while xor"""
)
_CHLO_BROADCASTS = _names(
    """add and atan2 compare complex divide maximum minimum multiply next_after or polygamma power remainder
    select shift_left shift_right_arithmetic shift_right_logical subtract xor zeta"""
)
CHLO = _names(
    """_asin_acos_kernel acos acosh asin asinh atan atanh bessel_i1e conj constant constant_like cosh digamma
    dynamic_reshape erf erf_inv erfc is_inf is_neg_inf is_pos_inf lgamma minimum_broadcast_shapes mulhi next_after
    polygamma ragged_dot reshape_dynamic scan sinh square tan top_k zeta"""
) | frozenset(f"broadcast_{name}" for name in _CHLO_BROADCASTS)
CHECK = _names(
    """expect_almost_eq expect_almost_eq_const expect_close expect_eq expect_eq_const expect_serialized_eq eq"""
)
SHARDY = _names(
    """all_gather all_reduce all_slice all_to_all collective_permute constant data_flow_edge manual_computation mesh
    named_computation propagation_barrier reduce_scatter reshard return sharding_constraint sharding_group"""
)

OPERATIONS = frozenset(
    {f"stablehlo.{name}" for name in STABLEHLO}
    | {f"chlo.{name}" for name in CHLO}
    | {f"check.{name}" for name in CHECK}
    | {f"sdy.{name}" for name in SHARDY}
    | {"arith.constant", "builtin.module", "func.call", "func.func", "func.return"}
    | {"hlo.bitcast", "hlo.copy", "hlo.fusion", "interpreter.print", "interpreter.run_parallel"}
)
"""Full names."""
