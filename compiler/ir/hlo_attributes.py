"""Attributes of HLO instructions in XLA's spelling: `dimensions={0,1}`, `window={size=3x3 …}`, `dim_labels=…`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from compiler.ir.program import Computation, Instruction
from compiler.ir.types import TensorType


def quoted(text: str) -> str:
    """A string literal; control characters escaped."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(c) or (c if c.isprintable() else f"\\{ord(c):03o}") for c in text) + '"'


def _braced(values: Iterable[Any]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def _by(values: Iterable[Any]) -> str:
    return "x".join(map(str, values))


def hlo_attributes(instruction: Instruction, computation: Computation | None) -> list[str]:
    """The attributes of an instruction, in XLA's order, each as one piece of text."""
    rule = _RULES.get(instruction.opcode)
    if rule is None and "." in instruction.opcode and instruction.opcode != "chlo.erf":
        rule = _chlo
    found = rule(instruction, computation) if rule else []
    found += _called(instruction)
    sharding = instruction.attributes.get("mhlo.sharding")
    if isinstance(sharding, str):
        found.append(f"sharding={sharding}")
    if "known_trip_count" in instruction.attributes:
        count = instruction.attributes["known_trip_count"]
        config = f'{{"known_trip_count":{{"n":"{count}"}}}}'
        found.append(f"backend_config={config}")
    return found


def _called(instruction: Instruction) -> list[str]:
    called = [f"%{name}" for name in instruction.called]
    if not called:
        return []
    if instruction.opcode == "while":
        return [f"condition={called[0]}", f"body={called[1]}"]
    if instruction.opcode == "if":
        return [f"true_computation={called[0]}", f"false_computation={called[1]}"]
    if instruction.opcode == "case":
        return ["branch_computations={" + ", ".join(called) + "}"]
    if instruction.opcode == "select_and_scatter":
        return [f"select={called[0]}", f"scatter={called[1]}"]
    if instruction.opcode == "fusion":
        return [f"calls={called[0]}"]
    if instruction.opcode == "custom_call":
        return ["called_computations={" + ", ".join(called) + "}"]
    return [f"to_apply={called[0]}"]


def _dimensions(
    name: str, label: str = "dimensions"
) -> Callable[[Instruction, Computation | None], list[str]]:
    def rule(i: Instruction, _: Computation | None) -> list[str]:
        value = i.attributes.get(name, ())
        return [f"{label}={_braced(value if isinstance(value, tuple) else (value,))}"]

    return rule


def _slice(i: Instruction, _: Computation | None) -> list[str]:
    a = i.attributes
    rows = zip(a["start_indices"], a["limit_indices"], a["strides"], strict=True)
    return ["slice={" + ", ".join(f"[{s}:{e}]" if t == 1 else f"[{s}:{e}:{t}]" for s, e, t in rows) + "}"]


def _pad(i: Instruction, _: Computation | None) -> list[str]:
    a = i.attributes
    rows = zip(a["edge_padding_low"], a["edge_padding_high"], a["interior_padding"], strict=True)
    return [
        "padding=" + _by(f"{low}_{high}_{inner}" if inner else f"{low}_{high}" for low, high, inner in rows)
    ]


def _dot(i: Instruction, _: Computation | None) -> list[str]:
    a = i.attributes
    found = []
    for label, name in (("batch", "batching"), ("contracting", "contracting")):
        for side in ("lhs", "rhs"):
            value = a[f"{side}_{name}_dimensions"]
            if value or name == "contracting":
                found.append(f"{side}_{label}_dims={_braced(value)}")
    return found + _precision(i)


def _precision(i: Instruction) -> list[str]:
    values = [str(value).lower() for value in i.attributes.get("precision_config") or ()]
    return [f"operand_precision={_braced(values)}"] if any(value != "default" for value in values) else []


def _window(
    sizes: Iterable[int],
    strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    lhs: tuple[int, ...],
    rhs: tuple[int, ...],
    reverse: tuple[bool, ...] = (),
) -> str:
    parts = [f"size={_by(sizes)}"]
    if any(value != 1 for value in strides):
        parts.append(f"stride={_by(strides)}")
    if any(pair != (0, 0) for pair in padding):
        parts.append("pad=" + _by(f"{low}_{high}" for low, high in padding))
    if any(value != 1 for value in lhs):
        parts.append(f"lhs_dilate={_by(lhs)}")
    if any(value != 1 for value in rhs):
        parts.append(f"rhs_dilate={_by(rhs)}")
    if any(reverse):
        parts.append("rhs_reversal=" + _by(int(value) for value in reverse))
    return "window={" + " ".join(parts) + "}"


def _convolution(i: Instruction, computation: Computation | None) -> list[str]:
    a = i.attributes
    found = []
    kernel = computation.instructions[i.operands[1]].type if computation else None
    if isinstance(kernel, TensorType) and a["kernel_spatial_dimensions"]:
        sizes = [kernel.shape[dim] for dim in a["kernel_spatial_dimensions"]]
        found.append(
            _window(
                sizes,
                a["window_strides"],
                a["padding"],
                a["lhs_dilation"],
                a["rhs_dilation"],
                a["window_reversal"],
            )
        )
    found.append(f"dim_labels={dim_labels(a)}")
    for name in ("feature_group_count", "batch_group_count"):
        if a.get(name, 1) != 1:
            found.append(f"{name}={a[name]}")
    return found + _precision(i)


def dim_labels(a: Any) -> str:
    """XLA's `b01f_01io->b01f`."""

    def side(name: str, first: str, first_dim: int, second: str, second_dim: int) -> str:
        spatial = a[f"{name}_spatial_dimensions"]
        labels = {first_dim: first, second_dim: second, **{dim: str(n) for n, dim in enumerate(spatial)}}
        return "".join(labels[index] for index in sorted(labels))

    left = side("input", "b", a["input_batch_dimension"], "f", a["input_feature_dimension"])
    right = side(
        "kernel", "i", a["kernel_input_feature_dimension"], "o", a["kernel_output_feature_dimension"]
    )
    out = side("output", "b", a["output_batch_dimension"], "f", a["output_feature_dimension"])
    return f"{left}_{right}->{out}"


def _reduce_window(i: Instruction, _: Computation | None) -> list[str]:
    a = i.attributes
    return [
        _window(
            a["window_dimensions"],
            a["window_strides"],
            a["padding"],
            a["base_dilations"],
            a["window_dilations"],
        )
    ]


def _select_and_scatter(i: Instruction, _: Computation | None) -> list[str]:
    a = i.attributes
    ones = (1,) * len(a["window_dimensions"])
    return [_window(a["window_dimensions"], a["window_strides"], a["padding"], ones, ones)]


def _gather(i: Instruction, _: Computation | None) -> list[str]:
    a = i.attributes
    found = [
        f"offset_dims={_braced(a['offset_dims'])}",
        f"collapsed_slice_dims={_braced(a['collapsed_slice_dims'])}",
        f"start_index_map={_braced(a['start_index_map'])}",
    ]
    if a["operand_batching_dims"]:
        found.append(f"operand_batching_dims={_braced(a['operand_batching_dims'])}")
        found.append(f"start_indices_batching_dims={_braced(a['start_indices_batching_dims'])}")
    found.append(f"index_vector_dim={a['index_vector_dim']}")
    if "slice_sizes" in a:
        found.append(f"slice_sizes={_braced(a['slice_sizes'])}")
    return found + (["indices_are_sorted=true"] if a.get("indices_are_sorted") else [])


def _scatter(i: Instruction, _: Computation | None) -> list[str]:
    a = i.attributes
    found = [
        f"update_window_dims={_braced(a['update_window_dims'])}",
        f"inserted_window_dims={_braced(a['inserted_window_dims'])}",
        f"scatter_dims_to_operand_dims={_braced(a['scatter_dims_to_operand_dims'])}",
    ]
    if a["input_batching_dims"]:
        found.append(f"input_batching_dims={_braced(a['input_batching_dims'])}")
        found.append(f"scatter_indices_batching_dims={_braced(a['scatter_indices_batching_dims'])}")
    found.append(f"index_vector_dim={a['index_vector_dim']}")
    for name in ("indices_are_sorted", "unique_indices"):
        if a.get(name):
            found.append(f"{name}=true")
    return found


def _compare(i: Instruction, _: Computation | None) -> list[str]:
    found = [f"direction={i.attributes['comparison_direction']}"]
    if i.attributes.get("compare_type") == "TOTALORDER":
        found.append("type=TOTALORDER")
    return found


def _sort(i: Instruction, _: Computation | None) -> list[str]:
    found = [f"dimensions={{{i.attributes['dimension']}}}"]
    return found + (["is_stable=true"] if i.attributes.get("is_stable") else [])


def _custom_call(i: Instruction, _: Computation | None) -> list[str]:
    target = i.attributes.get("call_target_name", i.opcode)
    found = [f"custom_call_target={quoted(str(target))}"]
    if i.attributes.get("has_side_effect"):
        found.append("custom_call_has_side_effect=true")
    config = i.attributes.get("backend_config")
    return found + ([f"backend_config={quoted(config)}"] if isinstance(config, str) and config else [])


def _chlo(i: Instruction, _: Computation | None) -> list[str]:
    shown = [f"custom_call_target={quoted(i.opcode)}"]
    rest = {key: value for key, value in i.attributes.items() if isinstance(value, int | str | float)}
    return shown + [
        f"frontend_attributes={{{','.join(f'{k}={quoted(str(v))}' for k, v in rest.items())}}}"
    ] * bool(rest)


def _triangular_solve(i: Instruction, _: Computation | None) -> list[str]:
    a = i.attributes
    flags = [f"{name}=true" for name in ("left_side", "lower", "unit_diagonal") if a[name]]
    return [*flags, f"transpose_a={a['transpose_a']}"]


def _batch_norm(i: Instruction, _: Computation | None) -> list[str]:
    return [f"epsilon={i.attributes['epsilon']}", f"feature_index={i.attributes['feature_index']}"]


def _one(
    name: str, label: str, show: Callable[[Any], str] = str
) -> Callable[[Instruction, Computation | None], list[str]]:
    def rule(i: Instruction, _: Computation | None) -> list[str]:
        return [f"{label}={show(i.attributes[name])}"] if name in i.attributes else []

    return rule


def _flag(value: Any) -> str:
    return "true" if value else "false"


_RNG = {"DEFAULT": "rng_default", "THREE_FRY": "rng_three_fry", "PHILOX": "rng_philox"}

_RULES: dict[str, Callable[[Instruction, Computation | None], list[str]]] = {
    "broadcast_in_dim": _dimensions("broadcast_dimensions"),
    "transpose": _dimensions("permutation"),
    "reverse": _dimensions("dimensions"),
    "reduce": _dimensions("dimensions"),
    "map": _dimensions("dimensions"),
    "concatenate": _dimensions("dimension"),
    "get_dimension_size": _dimensions("dimension"),
    "set_dimension_size": _dimensions("dimension"),
    "iota": _one("iota_dimension", "iota_dimension"),
    "get_tuple_element": _one("index", "index"),
    "fusion": _one("kind", "kind"),
    "dynamic_slice": _dimensions("slice_sizes", "dynamic_slice_sizes"),
    "slice": _slice,
    "pad": _pad,
    "dot_general": _dot,
    "convolution": _convolution,
    "reduce_window": _reduce_window,
    "select_and_scatter": _select_and_scatter,
    "gather": _gather,
    "scatter": _scatter,
    "compare": _compare,
    "sort": _sort,
    "custom_call": _custom_call,
    "chlo.top_k": _chlo,
    "triangular_solve": _triangular_solve,
    "cholesky": _one("lower", "lower", _flag),
    "batch_norm_training": _batch_norm,
    "batch_norm_inference": _batch_norm,
    "batch_norm_grad": _batch_norm,
    "fft": lambda i, c: [
        f"fft_type={i.attributes['fft_type']}",
        f"fft_length={_braced(i.attributes['fft_length'])}",
    ],
    "rng_bit_generator": _one("rng_algorithm", "algorithm", lambda value: _RNG.get(value, "rng_default")),
    "reduce_precision": lambda i, c: [
        f"exponent_bits={i.attributes['exponent_bits']}",
        f"mantissa_bits={i.attributes['mantissa_bits']}",
    ],
    "all_gather": _dimensions("all_gather_dim"),
}
