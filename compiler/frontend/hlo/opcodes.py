"""Which operation each of XLA's opcodes is here, and which attributes name called computations."""

from __future__ import annotations

from compiler.ir.hlo_opcodes import OPCODES

_OTHERS = {
    "broadcast": "broadcast_in_dim",
    "dot": "dot_general",
    "call": "call",
    "after-all": "after_all",
    "acos": "chlo.acos",
    "acosh": "chlo.acosh",
    "asin": "chlo.asin",
    "asinh": "chlo.asinh",
    "atanh": "chlo.atanh",
    "cosh": "chlo.cosh",
    "sinh": "chlo.sinh",
    "custom-call": "custom_call",
}
EXCHANGE = "all-to-all"
"""Of an array along dimensions it is StableHLO's; of a tuple's elements it is `hlo.all-to-all`."""
_SHARED = {
    hlo: name
    for name, hlo in OPCODES.items()
    if hlo not in ("conditional", "constant") and name != f"hlo.{EXCHANGE}"
}

STABLEHLO: dict[str, str] = {
    **_SHARED,
    **{hlo: name for name, hlo in OPCODES.items() if name == f"hlo.{hlo}" and hlo != EXCHANGE},
    **_OTHERS,
}
"""The operation of each opcode; `hlo.NAME` for those that StableHLO has no counterpart of. `conditional` is `if` or `case`."""

CALLED: dict[str, tuple[str, ...]] = {
    "all-reduce": ("to_apply",),
    "all-reduce-start": ("to_apply",),
    "async-start": ("calls",),
    "call": ("to_apply",),
    "fusion": ("calls",),
    "map": ("to_apply",),
    "reduce": ("to_apply",),
    "reduce-scatter": ("to_apply",),
    "reduce-window": ("to_apply",),
    "scan": ("to_apply",),
    "scatter": ("to_apply",),
    "select-and-scatter": ("select", "scatter"),
    "sort": ("to_apply",),
    "while": ("condition", "body"),
}
"""The attributes that name called computations, in the order of the operation's regions."""
