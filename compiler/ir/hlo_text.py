"""HLO text in XLA's own syntax: whole modules, or one instruction's line at a time (the views print by line).

What StableHLO has and HLO spells otherwise is respelled (`broadcast_in_dim` is `broadcast`, `case` is `conditional`, …).
HLO's `broadcast` cannot stretch a dimension of size 1; the pipeline's canonical form never asks for it, and for earlier
snapshots a whole-module print puts the needed `reshape` in front (named `NAME.squeezed`). CHLO operations, which HLO does not
have, are printed as custom calls of their name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compiler.ir.hlo_attributes import hlo_attributes, quoted
from compiler.ir.location import Location, scope_name, source_line
from compiler.ir.program import Computation, Instruction, Module
from compiler.ir.types import DYNAMIC, ElementType, QuantizedType, TensorType, TokenType, TupleType, Type

OPCODES: Mapping[str, str] = {
    "all_gather": "all-gather",
    "all_reduce": "all-reduce",
    "all_to_all": "all-to-all",
    "batch_norm_grad": "batch-norm-grad",
    "batch_norm_inference": "batch-norm-inference",
    "batch_norm_training": "batch-norm-training",
    "bitcast_convert": "bitcast-convert",
    "broadcast_in_dim": "broadcast",
    "case": "conditional",
    "if": "conditional",
    "ceil": "ceil",
    "collective_broadcast": "collective-broadcast",
    "collective_permute": "collective-permute",
    "count_leading_zeros": "count-leading-zeros",
    "custom_call": "custom-call",
    "dot_general": "dot",
    "dynamic_slice": "dynamic-slice",
    "dynamic_update_slice": "dynamic-update-slice",
    "exponential_minus_one": "exponential-minus-one",
    "get_dimension_size": "get-dimension-size",
    "get_tuple_element": "get-tuple-element",
    "is_finite": "is-finite",
    "log_plus_one": "log-plus-one",
    "optimization_barrier": "opt-barrier",
    "partition_id": "partition-id",
    "reduce_precision": "reduce-precision",
    "reduce_scatter": "reduce-scatter",
    "reduce_window": "reduce-window",
    "replica_id": "replica-id",
    "rng_bit_generator": "rng-bit-generator",
    "round_nearest_afz": "round-nearest-afz",
    "round_nearest_even": "round-nearest-even",
    "select_and_scatter": "select-and-scatter",
    "set_dimension_size": "set-dimension-size",
    "shift_left": "shift-left",
    "shift_right_arithmetic": "shift-right-arithmetic",
    "shift_right_logical": "shift-right-logical",
    "triangular_solve": "triangular-solve",
    "create_token": "after-all",
    "after_all": "after-all",
    "composite": "call",
    "chlo.erf": "erf",
    "chlo.top_k": "custom-call",
    "torch_index_select": "custom-call",
}


def opcode_text(opcode: str) -> str:
    """XLA's spelling of an operation; CHLO's are custom calls."""
    if opcode in OPCODES:
        return OPCODES[opcode]
    return "custom-call" if "." in opcode else opcode


def shape_text(value_type: Type, layout: bool = True) -> str:
    """A shape as `f32[2,3]{1,0}`; tuples in parentheses."""
    if isinstance(value_type, TupleType):
        return "(" + ", ".join(shape_text(inner, layout) for inner in value_type.elements) + ")"
    if isinstance(value_type, TokenType):
        return "token[]"
    dims = ",".join(_dimension(value_type, index) for index in range(value_type.rank))
    text = f"{_element(value_type)}[{dims}]"
    if not layout or not value_type.shape:
        return text
    suffix = value_type.layout.suffix if value_type.layout else ""
    return f"{text}{{{','.join(map(str, value_type.minor_to_major))}{suffix}}}"


def _dimension(value_type: TensorType, index: int) -> str:
    size = value_type.shape[index]
    if size != DYNAMIC:
        return str(size)
    bound = value_type.bounds[index] if value_type.bounds else DYNAMIC
    return f"<={bound}" if bound != DYNAMIC else "?"


def _element(value_type: TensorType) -> str:
    element = value_type.element
    return element.hlo_name if isinstance(element, ElementType) else _stored(element)


def _stored(element: QuantizedType) -> str:
    return element.storage.hlo_name


def format_instruction(
    instruction: Instruction,
    computation: Computation | None = None,
    *,
    metadata: bool = False,
    layout: bool = True,
) -> str:
    """One instruction's line, without `ROOT` and indentation.

    `computation` gives the operands' types to attributes that need them; without it they are left out.
    """
    operands = ", ".join(_operand(name) for name in instruction.operands)
    opcode = opcode_text(instruction.opcode)
    inside = operands
    if instruction.opcode == "parameter":
        inside = str(instruction.attributes["index"])
    elif instruction.opcode == "constant":
        inside = literal_text(instruction)
    parts = [f"%{instruction.name} = {shape_text(instruction.type, layout)} {opcode}({inside})"]
    parts += hlo_attributes(instruction, computation)
    if metadata:
        found = metadata_text(instruction.location)
        if found:
            parts.append(found)
    return ", ".join(parts)


def _operand(name: str) -> str:
    return f"%{name}"


def metadata_text(location: Location | None) -> str:
    """`metadata={op_name=… source_file=… source_line=…}`, or the empty string."""
    scope, line = scope_name(location), source_line(location)
    parts = [f"op_name={quoted(scope)}"] if scope else []
    if line is not None:
        parts += [f"source_file={quoted(line.file)}", f"source_line={line.line}"]
    return "metadata={" + " ".join(parts) + "}" if parts else ""


MAX_LITERAL = 16
"""Elements of a constant shown in a single line; whole-module prints show all."""


def literal_text(instruction: Instruction, limit: int = MAX_LITERAL) -> str:
    """A constant's value, nested in braces; `{...}` for large ones, as XLA elides them."""
    literal = instruction.literal
    if not literal.array.shape:
        return scalar_text(literal.array[()], literal.type)
    if literal.array.size > limit:
        return "{...}"
    return _nested_text(literal.array, literal.type)


def _nested_text(array: object, value_type: TensorType) -> str:
    shape = getattr(array, "shape", ())
    if not shape:
        return scalar_text(array[()], value_type)  # type: ignore[index]
    inner = [_nested_text(array[index], value_type) for index in range(shape[0])]  # type: ignore[index]
    return "{" + ", ".join(inner) + "}"


def scalar_text(value: object, value_type: TensorType) -> str:
    """One element: exact, as the shortest decimal that reads back equal."""
    element = value_type.element
    if element.kind == "bool":
        return "true" if value else "false"
    if element.kind in ("int", "uint", "quantized"):
        return str(int(value))  # type: ignore[call-overload]
    if element.kind == "complex":
        return f"({_float_text(value.real, 'f')}, {_float_text(value.imag, 'f')})"  # type: ignore[attr-defined]
    return _float_text(value, element.name)


def _float_text(value: object, _kind: str) -> str:
    wide = float(value)  # type: ignore[arg-type]
    if wide != wide:
        return "nan"
    if wide in (float("inf"), float("-inf")):
        return "inf" if wide > 0 else "-inf"
    text = str(value)
    if not _reads_back(text, wide):
        text = repr(wide)
    return text.removesuffix(".0") if text.endswith(".0") else text


def _reads_back(text: str, wide: float) -> bool:
    try:
        return text != "" and abs(float(text) - wide) <= abs(wide) * 1e-6
    except ValueError:
        return False


def print_computation(
    computation: Computation, *, is_entry: bool = False, metadata: bool = True
) -> Iterator[str]:
    """A computation's lines."""
    parameters = ", ".join(f"{name}: {shape_text(computation[name].type)}" for name in computation.parameters)
    start = "ENTRY " if is_entry else ""
    yield f"{start}%{computation.name} ({parameters}) -> {shape_text(computation.result_type)} {{"
    for instruction in computation:
        yield from _lines(instruction, computation, metadata)
    yield "}"


def _lines(instruction: Instruction, computation: Computation, metadata: bool) -> Iterator[str]:
    root = "ROOT " if instruction.name == computation.root else ""
    if instruction.opcode == "constant":
        text = f"%{instruction.name} = {shape_text(instruction.type)} constant({literal_text(instruction, 1 << 62)})"
        yield f"  {root}{text}"
        return
    squeezed = _squeeze(instruction, computation)
    if squeezed is not None:
        reshape, instruction = squeezed
        yield f"  {format_instruction(reshape, computation)}"
    yield f"  {root}{format_instruction(instruction, computation, metadata=metadata)}"


def _squeeze(instruction: Instruction, computation: Computation) -> tuple[Instruction, Instruction] | None:
    """For a broadcast that stretches dimensions of size 1: the reshape that drops them, and the broadcast after it."""
    if instruction.opcode != "broadcast_in_dim":
        return None
    operand = computation[instruction.operands[0]]
    dimensions = instruction.attributes["broadcast_dimensions"]
    shape = instruction.tensor.shape
    kept = [index for index, dim in enumerate(dimensions) if operand.tensor.shape[index] == shape[dim]]
    if len(kept) == len(dimensions):
        return None
    name = f"{instruction.name}.squeezed"
    smaller = operand.tensor.with_shape(tuple(operand.tensor.shape[index] for index in kept))
    reshape = Instruction(name, "reshape", smaller, (operand.name,))
    attributes = instruction.attributes.having(
        broadcast_dimensions=tuple(dimensions[index] for index in kept)
    )
    return reshape, instruction.with_operands((name,)).with_attributes(attributes)


def print_module(module: Module, *, metadata: bool = True) -> str:
    """A whole module as HLO text."""
    entry = module.entry_computation
    parameters = ", ".join(shape_text(kind) for kind in entry.parameter_types)
    layout = f"entry_computation_layout={{({parameters})->{shape_text(entry.result_type)}}}"
    scheduled = ", is_scheduled=true" if module.is_scheduled else ""
    counts = "".join(
        f", {key}={module.attributes[f'mhlo.{key}']}"
        for key in ("num_partitions", "replica_count")
        if module.attributes.get(f"mhlo.{key}", 1) != 1
    )
    lines = [f"HloModule {_module_name(module.name)}{scheduled}, {layout}{counts}", ""]
    for computation in module.computations.values():
        lines.extend(
            print_computation(computation, is_entry=computation.name == module.entry, metadata=metadata)
        )
        lines.append("")
    return "\n".join(lines)


def _module_name(name: str) -> str:
    return "".join(char if char.isalnum() or char in "_.-" else "_" for char in name) or "module"
