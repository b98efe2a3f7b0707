"""HLO text of each construct, small enough to check by hand."""

from __future__ import annotations

BODIES: dict[str, str] = {
    "broadcast": "p = f32[3] parameter(0)\n ROOT r = f32[2,3] broadcast(p), dimensions={1}",
    "reshape_transpose": (
        "p = f32[2,3]{1,0} parameter(0)\n t = f32[3,2]{0,1} transpose(p), dimensions={1,0}\n"
        " ROOT r = f32[6] reshape(t)"
    ),
    "bitcast": "p = f32[2,3]{0,1} parameter(0)\n ROOT r = f32[3,2]{1,0} bitcast(p)",
    "bitcast_of_another_type": "p = f32[2,3] parameter(0)\n ROOT r = s32[6] bitcast(f32[2,3] p)",
    "copy": "p = f32[2,3]{1,0} parameter(0)\n ROOT r = f32[2,3]{0,1} copy(p)",
    "slice": "p = f32[4,8] parameter(0)\n ROOT r = f32[2,3] slice(p), slice={[1:3], [0:8:3]}",
    "pad": (
        "p = f32[3,3] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[6,2] pad(p, z), padding=1_0_1x-1_0"
    ),
    "concatenate": "p = s32[2] parameter(0)\n ROOT r = s32[4] concatenate(p, p), dimensions={0}",
    "reverse": "p = f32[2,3] parameter(0)\n ROOT r = f32[2,3] reverse(p), dimensions={0,1}",
    "iota": "ROOT r = s32[2,3] iota(), iota_dimension=1",
    "compare": (
        "p = f32[2] parameter(0)\n q = f32[2] parameter(1)\n c = pred[2] compare(p, q), direction=LT\n"
        " ROOT d = pred[2] compare(p, q), direction=GE, type=TOTALORDER"
    ),
    "select": (
        "p = pred[] parameter(0)\n a = f32[2] parameter(1)\n b = f32[2] parameter(2)\n"
        " ROOT r = f32[2] select(p, a, b)"
    ),
    "clamp": (
        "l = f32[] parameter(0)\n x = f32[2] parameter(1)\n h = f32[] parameter(2)\n"
        " ROOT r = f32[2] clamp(l, x, h)"
    ),
    "dot": (
        "p = f32[4,2,3] parameter(0)\n q = f32[4,3,5] parameter(1)\n ROOT r = f32[4,2,5] dot(p, q), lhs_batch_dims={0}, "
        "lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}, operand_precision={highest,highest}"
    ),
    "dot_algorithm": (
        "p = f32[2,3] parameter(0)\n q = f32[3,5] parameter(1)\n ROOT r = f32[2,5] dot(p, q), "
        "lhs_contracting_dims={1}, rhs_contracting_dims={0}, algorithm=dot_bf16_bf16_f32_x3"
    ),
    "convolution": (
        "p = f32[1,8,8,4] parameter(0)\n k = f32[3,3,2,6] parameter(1)\n ROOT r = f32[1,4,8,6] convolution(p, k), "
        "window={size=3x3 stride=2x1 pad=1_1x1_1 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f, feature_group_count=2"
    ),
    "convolution_dilated": (
        "p = f32[1,4,2] parameter(0)\n k = f32[3,2,2] parameter(1)\n ROOT r = f32[1,2,2] convolution(p, k), "
        "window={size=3 pad=-1_0 lhs_dilate=2 rhs_dilate=2}, dim_labels=b0f_0io->b0f"
    ),
    "convolution_of_no_window": (
        "p = f32[2,3] parameter(0)\n k = f32[3,4] parameter(1)\n ROOT r = f32[2,4] convolution(p, k), dim_labels=bf_io->bf"
    ),
    "gather": (
        "p = f32[5,3] parameter(0)\n i = s32[2,1] parameter(1)\n ROOT r = f32[2,3] gather(p, i), offset_dims={1}, "
        "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}, indices_are_sorted=true"
    ),
    "dynamic_slices": (
        "p = f32[5,3] parameter(0)\n i = s32[] parameter(1)\n s = f32[2,3] dynamic-slice(p, i, i), dynamic_slice_sizes={2,3}\n"
        " ROOT r = f32[5,3] dynamic-update-slice(p, s, i, i)"
    ),
    "fft": (
        "p = f32[8] parameter(0)\n f = c64[5] fft(p), fft_type=RFFT, fft_length={8}\n"
        " ROOT r = f32[8] fft(f), fft_type=IRFFT, fft_length={8}"
    ),
    "cholesky": (
        "p = f32[2,2] parameter(0)\n c = f32[2,2] cholesky(p), lower=true\n ROOT r = f32[2,2] triangular-solve(c, p), "
        "left_side=true, lower=true, transpose_a=TRANSPOSE"
    ),
    "rng": (
        "a = f32[] constant(0)\n b = f32[] constant(1)\n ROOT r = f32[2,3] rng(a, b), distribution=rng_uniform"
    ),
    "rng_bits": (
        "s = u64[2] parameter(0)\n ROOT r = (u64[2], u32[4]) rng-bit-generator(s), algorithm=rng_three_fry"
    ),
    "batch_norm": (
        "p = f32[4,3] parameter(0)\n s = f32[3] parameter(1)\n ROOT r = (f32[4,3], f32[3], f32[3]) "
        "batch-norm-training(p, s, s), epsilon=0.001, feature_index=1"
    ),
    "top_k": "p = f32[2,8] parameter(0)\n ROOT r = (f32[2,3], s32[2,3]) topk(p), k=3, largest=true",
    "unary": (
        "p = f32[2] parameter(0)\n a = f32[2] exponential-minus-one(p)\n b = f32[2] log-plus-one(a)\n"
        " c = f32[2] erf(b)\n d = f32[2] round-nearest-even(c)\n e = f32[2] cbrt(d)\n"
        " f = f32[2] reduce-precision(e), exponent_bits=5, mantissa_bits=10\n ROOT r = pred[2] is-finite(f)"
    ),
    "integers": (
        "p = u32[2] parameter(0)\n a = u32[2] count-leading-zeros(p)\n b = u32[2] popcnt(a)\n c = u32[2] shift-left(b, p)\n"
        " d = u32[2] shift-right-logical(c, p)\n ROOT r = f32[2] bitcast-convert(d)"
    ),
    "tuple_constant": "ROOT r = (f32[], s32[2]) constant((1.5, {2, 3}))",
    "tokens": "t = token[] after-all()\n u = token[] after-all(t)\n p = f32[] parameter(0)\n ROOT r = f32[] add-dependency(p, u)",
    "barrier": (
        "p = f32[2] parameter(0)\n t = (f32[2], f32[2]) tuple(p, p)\n b = (f32[2], f32[2]) opt-barrier(t)\n"
        " ROOT r = f32[2] get-tuple-element(b), index=1"
    ),
    "custom_call": (
        'p = f32[4,4] parameter(0)\n ROOT r = (f32[4,4], s32[]) custom-call(p), custom_call_target="lapack_spotrf_ffi", '
        "operand_layout_constraints={f32[4,4]{0,1}}, api_version=API_VERSION_TYPED_FFI, backend_config={uplo = 76 : ui8}"
    ),
    "copy_in_two_steps": (
        "p = f32[4] parameter(0)\n s = (f32[4]{0:S(5)}, f32[4]{0}, u32[]) copy-start(p)\n"
        " ROOT r = f32[4]{0:S(5)} copy-done(s)"
    ),
    "partition": "i = u32[] partition-id()\n j = u32[] replica-id()\n ROOT r = u32[] add(i, j)",
    "infeed": (
        't = token[] after-all()\n i = ((f32[2], s32[]), token[]) infeed(t), infeed_config="c"\n'
        " ROOT r = (f32[2], s32[]) get-tuple-element(i), index=0"
    ),
    "dynamic": (
        "p = f32[8] parameter(0)\n n = s32[] parameter(1)\n d = f32[<=8] set-dimension-size(p, n), dimensions={0}\n"
        " ROOT r = s32[] get-dimension-size(d), dimensions={0}"
    ),
    "elided": "ROOT r = f32[100] constant({...})",
    "asynchronous_sugar": (
        "p = f32[4] parameter(0)\n s = ((f32[4]), f32[4]) negate-start(p)\n u = ((f32[4]), f32[4]) negate-update(s)\n"
        " ROOT r = f32[4] negate-done(u)"
    ),
}
"""Bodies of an entry computation, by what they show."""

ADD = "add {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"

CALLING: dict[str, str] = {
    "reduce": ADD
    + "ENTRY main {\n p = f32[2,3] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[2] reduce(p, z), dimensions={1}, to_apply=add\n}",
    "reduce_window": ADD
    + "ENTRY main {\n p = f32[6] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[4] reduce-window(p, z), "
    "window={size=3 stride=2 pad=1_0 lhs_dilate=2 rhs_dilate=2}, to_apply=add\n}",
    "scatter": ADD
    + "ENTRY main {\n p = f32[5] parameter(0)\n i = s32[2,1] parameter(1)\n u = f32[2] parameter(2)\n ROOT r = f32[5] "
    "scatter(p, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
    "unique_indices=true, to_apply=add\n}",
    "map": ADD
    + "ENTRY main {\n p = f32[5] parameter(0)\n ROOT r = f32[5] map(p, p), dimensions={0}, to_apply=add\n}",
    "call": ADD + "ENTRY main {\n p = f32[] parameter(0)\n ROOT r = f32[] call(p, p), to_apply=add\n}",
    "fusion": (
        "%fused (x: f32[2]) -> f32[2] {\n %x = f32[2] parameter(0)\n ROOT %n = f32[2] negate(%x)\n}\n"
        "ENTRY %main (p: f32[2]) -> f32[2] {\n %p = f32[2]{0} parameter(0)\n ROOT %f = f32[2]{0} fusion(%p), kind=kCustom, "
        'calls=%fused, backend_config={"fusion_config":{"kind":"__library"},"sizes":[1,2]}\n}'
    ),
    "sort": (
        "less {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n"
        " ROOT l = pred[] compare(a, b), direction=LT\n}\nENTRY main {\n k = f32[4] parameter(0)\n v = s32[4] parameter(1)\n"
        " ROOT r = (f32[4], s32[4]) sort(k, v), dimensions={0}, is_stable=true, to_apply=less\n}"
    ),
    "select_and_scatter": ADD
    + "ge {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT g = pred[] compare(a, b), direction=GE\n}\n"
    "ENTRY main {\n p = f32[4] parameter(0)\n s = f32[2] parameter(1)\n z = f32[] constant(0)\n ROOT r = f32[4] "
    "select-and-scatter(p, s, z), window={size=2 stride=2}, select=ge, scatter=add\n}",
    "while": (
        "cond {\n s = (s32[], f32[2]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] constant(3)\n"
        " ROOT l = pred[] compare(i, n), direction=LT\n}\nbody {\n s = (s32[], f32[2]) parameter(0)\n"
        " i = s32[] get-tuple-element(s), index=0\n x = f32[2] get-tuple-element(s), index=1\n one = s32[] constant(1)\n"
        " j = s32[] add(i, one)\n y = f32[2] add(x, x), control-predecessors={j}\n ROOT t = (s32[], f32[2]) tuple(j, y)\n}\n"
        "ENTRY main {\n x = f32[2] parameter(0)\n z = s32[] constant(0)\n t = (s32[], f32[2]) tuple(z, x)\n"
        ' ROOT w = (s32[], f32[2]) while(t), condition=cond, body=body, backend_config={"known_trip_count":{"n":"3"}}\n}'
    ),
    "case": (
        "one {\n x = f32[] parameter(0)\n ROOT r = f32[] negate(x)\n}\ntwo {\n x = f32[] parameter(0)\n ROOT r = f32[] copy(x)\n}\n"
        "ENTRY main {\n i = s32[] parameter(0)\n x = f32[] parameter(1)\n ROOT r = f32[] conditional(i, x, x), "
        "branch_computations={one, two}\n}"
    ),
    "if": (
        "one {\n x = f32[] parameter(0)\n ROOT r = f32[] negate(x)\n}\ntwo {\n x = f32[] parameter(0)\n ROOT r = f32[] copy(x)\n}\n"
        "ENTRY main {\n i = pred[] parameter(0)\n x = f32[] parameter(1)\n ROOT r = f32[] conditional(i, x, x), "
        "true_computation=one, false_computation=two\n}"
    ),
    "collectives": ADD
    + "ENTRY main {\n p = f32[4] parameter(0)\n a = f32[4] all-reduce(p), channel_id=1, replica_groups={{0,1},{2,3}}, "
    "use_global_device_ids=true, to_apply=add\n g = f32[8] all-gather(a), channel_id=2, replica_groups=[2,2]<=[2,2]T(1,0), "
    "dimensions={0}, use_global_device_ids=true\n c = f32[8] collective-permute(g), channel_id=3, source_target_pairs={{0,1},{1,0}}\n"
    " s = f32[4] reduce-scatter(c), channel_id=4, replica_groups=mesh['x'=2,'y'=2] {'x'}, dimensions={0}, to_apply=add\n"
    " ROOT t = (f32[4], f32[4]) all-to-all(s, a), replica_groups={{0,1},{2,3}}, channel_id=5\n}",
    "asynchronous": (
        '%wrapped (x: f32[4]) -> f32[4] {\n %x = f32[4] parameter(0)\n ROOT %n = f32[4] negate(%x)\n}, execution_thread="other"\n'
        "ENTRY %main {\n %p = f32[4] parameter(0)\n %s = ((f32[4]), f32[4], u32[]) async-start(%p), "
        'async_execution_thread="other", calls=%wrapped\n %u = ((f32[4]), f32[4], u32[]) async-update(%s)\n'
        " ROOT %r = f32[4] async-done(%u)\n}"
    ),
    "asynchronous_collectives": ADD
    + "ENTRY main {\n p = f32[4] parameter(0)\n a = f32[4] all-reduce-start(p), replica_groups={}, to_apply=add\n"
    " b = f32[4] all-reduce-done(a)\n c = (f32[4], f32[4]) all-gather-start(b), replica_groups={{0}}, dimensions={0}\n"
    " d = f32[4] all-gather-done(c)\n e = (f32[4], f32[4], u32[], u32[]) collective-permute-start(d), source_target_pairs={{0,0}}\n"
    " ROOT r = f32[4] collective-permute-done(e)\n}",
}
"""Whole modules but for their header, by what they show."""


def program(body: str, header: str = "") -> str:
    """A module of one computation."""
    return f"HloModule m{header}\n\nENTRY main {{\n {body}\n}}\n"


def every_program() -> dict[str, str]:
    """All constructs as whole modules."""
    found = {name: program(body) for name, body in BODIES.items()}
    return {**found, **{name: f"HloModule m\n\n{text}\n" for name, text in CALLING.items()}}
