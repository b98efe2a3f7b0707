"""What each operation and each called computation is called in HLO.

Operations that HLO has no opcode for are written as `custom-call`s whose target is the operation's full name.
"""

from __future__ import annotations

from compiler.ir.hlo_values import name_text
from compiler.ir.program import Instruction

Texts = list[str]

ELIDED = "hlo.elided-constant"
"""A constant whose elements the text that it was read from left out: `constant({...})`."""

_SAME = [
    "abs",
    "add",
    "and",
    "atan2",
    "call",
    "cbrt",
    "ceil",
    "clamp",
    "compare",
    "complex",
    "concatenate",
    "constant",
    "convert",
    "convolution",
    "copy",
    "cosine",
    "divide",
    "floor",
    "fusion",
    "fft",
    "gather",
    "iota",
    "imag",
    "log",
    "logistic",
    "map",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "not",
    "or",
    "outfeed",
    "infeed",
    "pad",
    "parameter",
    "power",
    "real",
    "recv",
    "reduce",
    "remainder",
    "reshape",
    "reverse",
    "rng",
    "rsqrt",
    "scatter",
    "select",
    "send",
    "sign",
    "sine",
    "slice",
    "sort",
    "sqrt",
    "subtract",
    "tan",
    "tanh",
    "transpose",
    "tuple",
    "while",
    "xor",
    "cholesky",
    "bitcast",
    "domain",
]
_DASHED = [
    "after_all",
    "all_gather",
    "async_done",
    "async_start",
    "all_reduce",
    "all_to_all",
    "batch_norm_grad",
    "batch_norm_inference",
    "batch_norm_training",
    "bitcast_convert",
    "collective_broadcast",
    "collective_permute",
    "count_leading_zeros",
    "dynamic_slice",
    "dynamic_update_slice",
    "exponential_minus_one",
    "get_dimension_size",
    "get_tuple_element",
    "is_finite",
    "log_plus_one",
    "partition_id",
    "reduce_precision",
    "reduce_scatter",
    "reduce_window",
    "replica_id",
    "rng_bit_generator",
    "round_nearest_afz",
    "round_nearest_even",
    "select_and_scatter",
    "set_dimension_size",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "triangular_solve",
]

_HLO_ONLY = [
    "add-dependency",
    "all-gather-done",
    "all-gather-start",
    "all-reduce-done",
    "all-reduce-start",
    "all-to-all",
    "collective-permute-done",
    "collective-permute-start",
    "copy-done",
    "copy-start",
    "domain",
    "dynamic-reshape",
    "infeed",
    "outfeed",
    "ragged-all-to-all",
    "ragged-dot",
    "recv",
    "recv-done",
    "rng-get-and-update-state",
    "scaled-dot",
    "scan",
    "send",
    "send-done",
    "stochastic-convert",
]
"""What only HLO has, or has in another shape than StableHLO's operation of that name: `hlo.NAME` in programs."""

OPCODES: dict[str, str] = {
    **{f"hlo.{name}": name for name in _HLO_ONLY},
    **{name: name for name in _SAME},
    **{name: name.replace("_", "-") for name in _DASHED},
    "broadcast": "broadcast",
    "broadcast_in_dim": "broadcast",
    "case": "conditional",
    "if": "conditional",
    "composite": "call",
    "count_leading_zeros": "count-leading-zeros",
    "create_token": "after-all",
    "cross-replica-sum": "custom-call",
    "custom_call": "custom-call",
    "dot": "dot",
    "dot_general": "dot",
    "exponential": "exponential",
    "optimization_barrier": "opt-barrier",
    "popcnt": "popcnt",
    "chlo.erf": "erf",
    "chlo.top_k": "topk",
    ELIDED: "constant",
}
"""XLA's opcode of each operation that has one."""


def opcode_text(opcode: str) -> str:
    """XLA's opcode; `custom-call` for what HLO does not have, the opcode itself if it is already HLO's."""
    found = OPCODES.get(opcode)
    return found if found is not None else opcode if "-" in opcode else "custom-call"


CALLED: dict[str, tuple[str, ...]] = {
    "all_reduce": ("to_apply",),
    "async_start": ("calls",),
    "call": ("to_apply",),
    "if": ("true_computation", "false_computation"),
    "map": ("to_apply",),
    "reduce": ("to_apply",),
    "reduce_scatter": ("to_apply",),
    "reduce_window": ("to_apply",),
    "scatter": ("to_apply",),
    "select_and_scatter": ("select", "scatter"),
    "sort": ("to_apply",),
    "while": ("condition", "body"),
}
"""HLO's names for the called computations, in order."""


def called_text(i: Instruction) -> Texts:
    """The called computations under HLO's names; those that an attribute writer has written are not repeated."""
    if not i.called or i.opcode in ("custom_call", "fusion", "composite") or i.opcode not in OPCODES:
        return []
    if i.opcode == "case":
        return [f"branch_computations={{{', '.join(map(name_text, i.called))}}}"]
    names = CALLED.get(i.opcode, ("to_apply",))
    return [f"{role}={name_text(callee)}" for role, callee in zip(names, i.called, strict=False)]
