"""Programs as MLIR text that StableHLO's tools, frameworks and our own parser read.

Computations that are called become functions; those that belong to a loop, a branch or a reduction become regions again:
the state of a loop is taken apart into its block arguments, the tuple that a branch is given into plain captures. Reading the
text gives an equal module. Layouts have no place in StableHLO and are left out. What only HLO has is written in generic form
in a dialect of its own: `"hlo.fusion"`, `"hlo.copy"`, `"hlo.bitcast"`.

SSA names are the instructions' own (`%add.17`), so that a message about the text can be followed back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from compiler.frontend.mlir.attribute_text import DenseArray, dictionary, gathered, quote, symbol
from compiler.frontend.mlir.location_text import location_text
from compiler.frontend.mlir.pretty_text import HLO_ONLY, full_name, function_type, results_of, writer_of
from compiler.frontend.mlir.region_text import RegionPrinter
from compiler.ir.location import Location
from compiler.ir.program import Attributes, Computation, Instruction, Module
from compiler.ir.types import Type

_FUNCTION_CALLERS = frozenset({"call", "composite", "custom_call", "interpreter.run_parallel"})
_PLAIN = re.compile(r"[A-Za-z0-9_$.\-]+\Z", re.ASCII)
INDENT = "  "


def print_module(module: Module, *, generic: bool = False, locations: bool = False) -> str:
    """A module as text.

    Args:
        module: The program.
        generic: Every operation in MLIR's generic form.
        locations: A `loc(…)` after each operation that has a location.
    """
    return "\n".join(_ModulePrinter(module, generic, locations).lines()) + "\n"


@lru_cache(maxsize=65536)
def ssa(name: str) -> str:
    """The SSA name of an instruction."""
    if _PLAIN.match(name):
        return f"%{name}"
    return "%" + "".join(char if _PLAIN.match(char) else f"_x{ord(char):x}_" for char in name)


class _ModulePrinter:
    """Prints one module; what it prints of computations, `RegionPrinter` does."""

    def __init__(self, module: Module, generic: bool, locations: bool) -> None:
        self.module = module
        self.generic = generic
        self.locations = locations

    def lines(self) -> Iterator[str]:
        own = {key: value for key, value in self.module.attributes.items() if not key.startswith("sdy.mesh.")}
        meshes = {
            key[9:]: value for key, value in self.module.attributes.items() if key.startswith("sdy.mesh.")
        }
        text = dictionary(own) if own else ""
        if self.generic:
            yield f'"builtin.module"() <{{sym_name = {quote(self.module.name)}}}> ({{'
        else:
            yield f"module {symbol(self.module.name)}{f' attributes {{{text}}}' if text else ''} {{"
        for name, mesh in meshes.items():
            yield f"{INDENT}sdy.mesh {symbol(name)} = {mesh}"
        for computation in self._functions():
            yield from self._function(computation)
        yield f"}}) {{{text}}} : () -> ()" if self.generic else "}"

    def _functions(self) -> list[Computation]:
        """The entry first, then what is called as a function or not at all, in the module's order."""
        as_region: set[str] = set()
        as_function: set[str] = {self.module.entry}
        for computation in self.module.computations.values():
            for instruction in computation:
                if instruction.called:
                    target = as_function if instruction.opcode in _FUNCTION_CALLERS else as_region
                    target.update(instruction.called)
        names = [name for name in self.module.computations if name in as_function or name not in as_region]
        names.sort(key=lambda name: name != self.module.entry)
        return [self.module.computations[name] for name in names]

    def _function(self, computation: Computation) -> Iterator[str]:
        is_entry = computation.name == self.module.entry
        whole = (
            is_entry
            and len(self.module.result_attributes) == 1
            and len(results_of(computation.root_instruction)) != 1
        )
        results = (computation.result_type,) if whole else results_of(computation.root_instruction)
        printer = RegionPrinter(self, computation)
        arguments = [ssa(name) for name in computation.parameters]
        for name, text in zip(computation.parameters, arguments, strict=True):
            printer.values[name] = text
        argument_attributes = self._attributes(self.module.parameter_attributes, len(arguments), is_entry)
        result_attributes = self._attributes(self.module.result_attributes, len(results), is_entry)
        visibility = "public" if is_entry else "private"
        kinds = computation.parameter_types
        if self.generic:
            extra = _all_dictionaries("arg_attrs", argument_attributes) + _all_dictionaries(
                "res_attrs", result_attributes
            )
            yield (
                f'{INDENT}"func.func"() <{{{extra}function_type = {function_type(kinds, results)}, '
                f"sym_name = {quote(computation.name)}, sym_visibility = {quote(visibility)}}}> ({{"
            )
            shown = ", ".join(f"{name}: {kind}" for name, kind in zip(arguments, kinds, strict=True))
            yield f"{INDENT}^bb0({shown}):"
            yield from printer.body(INDENT * 2, "func.return", whole)
            yield f"{INDENT}}}) : () -> ()"
            return
        heads = [
            f"{name}: {kind}{_braced(attributes)}"
            for name, kind, attributes in zip(arguments, kinds, argument_attributes, strict=True)
        ]
        tails = [f"{kind}{_braced(a)}" for kind, a in zip(results, result_attributes, strict=True)]
        arrow = (
            ""
            if not tails
            else f" -> ({', '.join(tails)})"
            if len(tails) > 1 or "{" in tails[0]
            else f" -> {tails[0]}"
        )
        yield f"{INDENT}func.func {visibility} {symbol(computation.name)}({', '.join(heads)}){arrow} {{"
        yield from printer.body(INDENT * 2, "return", whole)
        yield f"{INDENT}}}"

    def _attributes(self, given: Sequence[Attributes], count: int, is_entry: bool) -> list[Attributes]:
        known = list(given[:count]) if is_entry else []
        return known + [Attributes()] * (count - len(known))

    def location(self, found: Location | None) -> str:
        """` loc(…)` when locations are wanted."""
        return f" loc({location_text(found)})" if self.locations and found is not None else ""


def _braced(attributes: Attributes) -> str:
    return f" {{{dictionary(attributes)}}}" if attributes else ""


def _all_dictionaries(name: str, entries: Sequence[Attributes]) -> str:
    if not any(entries):
        return ""
    return f"{name} = [{', '.join('{' + dictionary(entry) + '}' for entry in entries)}], "


def generic_text(
    instruction: Instruction,
    names: Sequence[str],
    types: Sequence[Type],
    results: Sequence[Type],
    regions: str = "",
) -> str:
    """`"dialect.op"(%a) <{inherent}> ({ regions }) {discardable} : (types) -> types`."""
    opcode = instruction.opcode
    found: dict[str, Any] = gathered(opcode, instruction.attributes)
    if opcode == "call":
        found["callee"] = instruction.called[0]
    elif opcode == "composite":
        found["decomposition"] = instruction.called[0]
    elif opcode == "sdy.sharding_constraint":
        found["sharding"] = f"#sdy.sharding{found['sharding']}"
    elif opcode == "sdy.manual_computation":
        found["manual_axes"] = f"#sdy<manual_axes{found['manual_axes']}>"
        for key in ("in_shardings", "out_shardings"):
            found[key] = f"#sdy.sharding_per_value<{found[key]}>"
    elif opcode == "chlo.scan":
        count = found.pop("input_count", len(names) // 2)
        carried = len(names) - count
        found["operandSegmentSizes"] = DenseArray((count, carried), "i32")
        found["resultSegmentSizes"] = DenseArray((len(results) - carried, carried), "i32")
    inherent = {key: value for key, value in found.items() if "." not in key}
    other = {key: value for key, value in found.items() if "." in key}
    dialect = opcode.partition(".")[0] if "." in opcode else "stablehlo"
    own = f" <{{{dictionary(inherent, dialect)}}}>" if inherent else ""
    discardable = f" {{{dictionary(other)}}}" if other else ""
    inner = f" ({regions})" if regions else ""
    kind = function_type(types, results)
    return f'"{full_name(opcode)}"({", ".join(names)}){own}{inner}{discardable} : {kind}'


__all__ = ["HLO_ONLY", "generic_text", "print_module", "ssa", "writer_of"]
