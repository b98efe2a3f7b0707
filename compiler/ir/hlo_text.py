"""Programs as HLO text, in XLA's own syntax: whole modules that XLA parses, or one instruction's line (the views print those).

What StableHLO spells otherwise is respelled (`broadcast_in_dim` is `broadcast`, `case` is `conditional`, …); what needs several
HLO instructions is expanded when a whole module is printed, see `compiler.ir.hlo_expansion`; what HLO does not have at all
(most of CHLO, quantisation, checks, dynamic shapes) is a custom call whose target is the operation's full name, as XLA's own
export does it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from compiler.ir.hlo_attributes import ATTRIBUTES, HLO_TEXT, attribute_text, fallback, kept
from compiler.ir.hlo_expansion import RAW, expand
from compiler.ir.hlo_opcodes import ELIDED, OPCODES, called_text, opcode_text
from compiler.ir.hlo_values import literal_text, name_text, quote, type_text
from compiler.ir.location import Location, scope_name, source_line
from compiler.ir.program import Computation, Instruction, Module
from compiler.ir.types import TensorType, Type

__all__ = [
    "format_instruction",
    "metadata_text",
    "opcode_text",
    "print_computation",
    "print_module",
    "shape_text",
]

MAX_LITERAL = 16
"""Elements of a constant shown in a single line; whole modules show all."""

_NEEDS_OPERANDS = frozenset({"convolution", "dot"})


def shape_text(value_type: Type, layout: bool = True) -> str:
    """A shape as `f32[2,3]{1,0}`, with or without layouts; tuples in parentheses."""
    return type_text(value_type) if layout else _bare(value_type)


@lru_cache(maxsize=65536)
def _bare(value_type: Type) -> str:
    if isinstance(value_type, TensorType):
        return type_text(value_type).partition("{")[0]
    if hasattr(value_type, "elements"):
        return "(" + ", ".join(map(_bare, value_type.elements)) + ")"
    return type_text(value_type)


def format_instruction(
    instruction: Instruction,
    computation: Computation | Mapping[str, Instruction] | None = None,
    *,
    metadata: bool = False,
    layout: bool = True,
    max_literal: int | None = MAX_LITERAL,
) -> str:
    """One instruction's line, without `ROOT` and indentation.

    `computation` gives the operands to those attributes that need their types (a convolution's window); without it these
    are left out. Constants of more than `max_literal` elements are shown as `{...}`.
    """
    attributes = instruction.attributes
    opcode = instruction.opcode
    if opcode == "parameter":
        inside = str(attributes["index"])
    elif opcode == "constant":
        inside = literal_text(instruction.literal, max_literal)
    elif opcode == ELIDED:
        inside = "{...}"
    else:
        inside = ", ".join([f"%{name_text(name)}" for name in instruction.operands])
    shape = type_text(instruction.type) if layout else _bare(instruction.type)
    parts = [f"%{name_text(instruction.name)} = {shape} {opcode_text(opcode)}({inside})"]
    if attributes or instruction.called or opcode not in OPCODES:
        parts += _attribute_texts(instruction, computation)
    if metadata and instruction.location is not None:
        found = metadata_text(instruction.location)
        if found:
            parts.append(found)
    return ", ".join(parts)


def _attribute_texts(
    instruction: Instruction, computation: Computation | Mapping[str, Instruction] | None
) -> list[str]:
    opcode = instruction.opcode
    attributes = instruction.attributes
    if RAW in attributes:
        return list(attributes[RAW])
    if opcode not in OPCODES and "-" not in opcode:
        return fallback(instruction) + _framework(instruction)
    texts: list[str] = []
    writer = ATTRIBUTES.get(opcode)
    if writer is not None and (computation is not None or opcode not in _NEEDS_OPERANDS):
        instructions = computation.instructions if isinstance(computation, Computation) else computation or {}
        texts += writer(instruction, instructions)
    if instruction.called:
        texts += called_text(instruction)
    return texts + _framework(instruction)


def _framework(instruction: Instruction) -> list[str]:
    """Shardings and other attributes of dialects beside StableHLO: `sharding=…`, `frontend_attributes={…}`."""
    texts = kept(instruction.attributes)
    others = {}
    for key, value in instruction.attributes.items():
        if key == "mhlo.sharding":
            texts.append(f"sharding={value}")
        elif key == "mhlo.frontend_attributes":
            others.update({str(name): entry for name, entry in value.items()})
        elif key == "known_trip_count" and f"{HLO_TEXT}backend_config" not in instruction.attributes:
            texts.append(f'backend_config={{"known_trip_count":{{"n":"{value}"}}}}')
        elif "." in key and key != "mhlo.backend_config" and not key.startswith(HLO_TEXT):
            others[key] = value
    if others:
        shown = (f"{k}={quote(v if isinstance(v, str) else attribute_text(v))}" for k, v in others.items())
        if instruction.opcode != "composite":
            texts.append(f"frontend_attributes={{{','.join(shown)}}}")
    return texts


@lru_cache(maxsize=65536)
def metadata_text(location: Location | None) -> str:
    """`metadata={op_name=… source_file=… source_line=…}`, or the empty string."""
    scope, line = scope_name(location), source_line(location)
    parts = [f"op_name={quote(scope)}"] if scope else []
    if line is not None:
        parts += [f"source_file={quote(line.file)}", f"source_line={line.line}"]
    return "metadata={" + " ".join(parts) + "}" if parts else ""


def print_computation(
    computation: Computation, *, is_entry: bool = False, metadata: bool = True
) -> Iterator[str]:
    """A computation's lines as XLA reads them."""
    parameters = ", ".join(
        f"{name_text(name)}: {type_text(computation[name].type)}" for name in computation.parameters
    )
    start = "ENTRY " if is_entry else ""
    yield f"{start}%{name_text(computation.name)} ({parameters}) -> {type_text(computation.result_type)} {{"
    instructions = computation.instructions
    for instruction in instructions.values():
        steps = expand(instruction, instructions)
        root = "ROOT " if instruction.name == computation.root else ""
        known: Mapping[str, Instruction] = instructions
        if len(steps) > 1:
            known = {
                **{name: instructions[name] for name in instruction.operands},
                **{s.name: s for s in steps},
            }
        for step in steps:
            mark = root if step is steps[-1] else ""
            yield f"  {mark}{format_instruction(step, known, metadata=metadata, max_literal=None)}"
    yield "}"


def print_module(module: Module, *, metadata: bool = True) -> str:
    """A whole module as HLO text."""
    lines = [_header(module), ""]
    for computation in module.computations.values():
        lines.extend(
            print_computation(computation, is_entry=computation.name == module.entry, metadata=metadata)
        )
        lines.append("")
    return "\n".join(lines)


def _header(module: Module) -> str:
    entry = module.entry_computation
    parameters = ", ".join(type_text(kind) for kind in entry.parameter_types)
    parts = [f"HloModule {name_text(module.name)}"]
    if module.is_scheduled:
        parts.append("is_scheduled=true")
    aliases = _aliases(module)
    if aliases:
        parts.append(f"input_output_alias={{ {', '.join(aliases)} }}")
    donors = [
        n for n, found in enumerate(module.parameter_attributes) if found.get("jax.buffer_donor") is True
    ]
    if donors:
        parts.append(f"buffer_donor={{ {', '.join(f'({number}, {{}})' for number in donors)} }}")
    parts.append(f"entry_computation_layout={{({parameters})->{type_text(entry.result_type)}}}")
    for key, label in (("mhlo.num_replicas", "replica_count"), ("mhlo.num_partitions", "num_partitions")):
        if module.attributes.get(key, 1) != 1:
            parts.append(f"{label}={module.attributes[key]}")
    framework = module.attributes.get("mhlo.frontend_attributes")
    if isinstance(framework, Mapping) and framework:
        shown = ",".join(f"{key}={quote(str(value))}" for key, value in framework.items())
        parts.append(f"frontend_attributes={{{shown}}}")
    parts += [text for text in kept(module.attributes) if not text.startswith("input_output_alias=")]
    return ", ".join(parts)


def _aliases(module: Module) -> list[str]:
    """Donated parameters that are tied to a result: `{0}: (1, {}, may-alias)`."""
    found = []
    is_tuple = hasattr(module.entry_computation.result_type, "elements")
    for parameter, attributes in enumerate(module.parameter_attributes):
        output = attributes.get("tf.aliasing_output")
        if isinstance(output, int):
            found.append(f"{{{output if is_tuple else ''}}}: ({parameter}, {{}}, may-alias)")
    others = module.attributes.get(f"{HLO_TEXT}input_output_alias")
    return found + ([others[1:-1].strip()] if isinstance(others, str) else [])
