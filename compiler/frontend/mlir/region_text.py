"""A computation's instructions as the operations of a function's or region's body.

Tuples are where HLO's and MLIR's shapes differ. An instruction with several results is one operation with several results,
`get_tuple_element` of it is no operation but a name (`%while.7#2`); a `tuple` that only packs a loop's state, a branch's
captures or the values that are returned is not written at all. Where a tuple is used as a value it is written as an operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from compiler.frontend.mlir.attribute_text import dictionary
from compiler.frontend.mlir.pretty_text import function_type, is_many, results_of, writer_of
from compiler.ir.program import Attributes, Computation, Instruction
from compiler.ir.types import TensorType, TupleType, Type

if TYPE_CHECKING:
    from compiler.frontend.mlir.printer import _ModulePrinter

_BINARY = frozenset({"add", "and", "maximum", "minimum", "multiply", "or", "xor"})
_TUPLES = frozenset({"get_tuple_element", "parameter", "tuple"})
"""Whose value, if of tuple type, is a tuple in MLIR too; other instructions of tuple type have several results there."""


class RegionPrinter:
    """Prints one computation's body. `values` names what is visible: one SSA name an instruction."""

    def __init__(self, module: _ModulePrinter, computation: Computation) -> None:
        self.module = module
        self.computation = computation
        self.values: dict[str, str] = {}
        self.parts: dict[str, list[str]] = {}
        """Names of the elements of values that exist only in parts: a loop's state, an operation of several results."""
        self.pending: list[str] = []
        """Lines to be written ahead of the present operation."""
        self.hidden = self._packed_only()

    def _packed_only(self) -> set[str]:
        """Tuples that are never used as a value."""
        instructions = self.computation.instructions
        tuples = {name for name, i in instructions.items() if i.opcode == "tuple"}
        used = {operand for instruction in instructions.values() for operand in instruction.operands}
        root = self.computation.root
        tuples &= used | {root}
        if root in tuples and not is_many(instructions[root].type):
            tuples.discard(root)
        for instruction in instructions.values():
            for position, operand in enumerate(instruction.operands):
                if operand in tuples and not _takes_apart(instruction, position):
                    tuples.discard(operand)
        return tuples

    # ---- values --------------------------------------------------------------------------------------------------

    def value(self, name: str) -> str:
        """The SSA name of a value; a tuple that exists only in parts is put together ahead of the present line."""
        found = self.values.get(name)
        if found is not None:
            return found
        kind = self.computation[name].type
        parts = ", ".join(self.parts[name])
        text = f"{_ssa(name)}.packed"
        shown = f" {parts}" if parts else ""
        if self.module.generic:
            types = kind.elements if isinstance(kind, TupleType) else ()
            self.pending.append(f'{text} = "stablehlo.tuple"({parts}) : {function_type(types, (kind,))}')
        else:
            self.pending.append(f"{text} = stablehlo.tuple{shown} : {kind}")
        self.values[name] = text
        return text

    def elements(self, name: str) -> list[str]:
        """The SSA names of a tuple's elements (also of a tuple of one), or of the one value of another type."""
        if name in self.parts:
            return self.parts[name]
        instruction = self.computation[name]
        if not isinstance(instruction.type, TupleType):
            return [self.value(name)]
        if instruction.opcode == "tuple":
            return [self.value(operand) for operand in instruction.operands]
        whole = self.value(name)
        found = []
        for index, kind in enumerate(instruction.type.elements):
            text = f"{_ssa(name)}.element{index}"
            self.pending.append(self._element(text, whole, index, instruction.type, kind))
            found.append(text)
        self.parts[name] = found
        return found

    def _element(self, text: str, whole: str, index: int, kind: Type, element: Type) -> str:
        arrow = function_type((kind,), (element,))
        if self.module.generic:
            return f'{text} = "stablehlo.get_tuple_element"({whole}) <{{index = {index} : i32}}> : {arrow}'
        return f"{text} = stablehlo.get_tuple_element {whole}[{index}] : {arrow}"

    # ---- lines ---------------------------------------------------------------------------------------------------

    def body(self, indent: str, returns: str, whole: bool = False) -> Iterator[str]:
        """All operations and the terminator, which returns the elements of a tuple unless it is wanted `whole`."""
        if whole:
            self.hidden.discard(self.computation.root)
        for instruction in self.computation:
            lines = list(self._operation(instruction, indent))
            yield from self._flush(indent)
            yield from lines
        root = self.computation.root
        found = self.computation.root_instruction
        whole = whole or not is_many(found.type)
        names = [self.value(root)] if whole else self.elements(root)
        yield from self._flush(indent)
        types: Sequence[Type] = (found.type,) if whole else results_of(found)
        if self.module.generic:
            full = "func.return" if returns == "return" else returns
            yield f'{indent}"{full}"({", ".join(names)}) : ({", ".join(map(str, types))}) -> ()'
        elif names:
            yield f"{indent}{returns} {', '.join(names)} : {', '.join(map(str, types))}"
        else:
            yield f"{indent}{returns}"

    def _flush(self, indent: str) -> Iterator[str]:
        for line in self.pending:
            yield f"{indent}{line}"
        self.pending.clear()

    def _operation(self, i: Instruction, indent: str) -> Iterator[str]:
        opcode = i.opcode
        if opcode == "parameter" or i.name in self.hidden:
            return
        if opcode == "get_tuple_element" and i.operands[0] in self.parts:
            self.values[i.name] = self.parts[i.operands[0]][i.attributes["index"]]
            return
        head = self._results(i)
        tail = self.module.location(i.location)
        if opcode == "while":
            yield from self._while(i, head, tail, indent)
        elif opcode in ("case", "if"):
            yield from self._branches(i, head, tail, indent)
        elif opcode == "optimization_barrier":
            yield f"{indent}{head}{self._barrier(i)}{tail}"
        elif i.called and opcode not in ("call", "composite", "custom_call", "interpreter.run_parallel"):
            yield from self._with_regions(i, head, tail, indent)
        else:
            names = [self.value(operand) for operand in i.operands]
            types = [self.computation[operand].type for operand in i.operands]
            writer = None if self.module.generic else writer_of(opcode)
            if writer is None:
                text = _generic(i, names, types)
            else:
                text = writer(i, names, types)
            yield f"{indent}{head}{text}{tail}"

    def _results(self, i: Instruction) -> str:
        """`%a = ` or `%a:3 = `; notes how the results are called."""
        name = _ssa(i.name)
        if not is_many(i.type) or i.opcode in _TUPLES:
            self.values[i.name] = name
            return f"{name} = "
        count = len(i.type.elements)
        self.parts[i.name] = [f"{name}#{index}" for index in range(count)]
        return f"{name}:{count} = " if count else ""

    # ---- operations with regions ---------------------------------------------------------------------------------

    def _inner(self, name: str) -> RegionPrinter:
        return RegionPrinter(self.module, self.module.module.computations[name])

    def _while(self, i: Instruction, head: str, tail: str, indent: str) -> Iterator[str]:
        is_tuple = is_many(i.type)
        initial = self.elements(i.operands[0]) if is_tuple else [self.value(i.operands[0])]
        types = results_of(i)
        body = self.module.module.computations[i.called[1]].parameters[0]
        arguments = [f"{_ssa(body)}.{index}" for index in range(len(types))] if is_tuple else [_ssa(body)]
        shown = ", ".join(map(str, types))
        regions = []
        for name in i.called:
            inner = self._inner(name)
            parameter = inner.computation.parameters[0]
            if is_tuple:
                inner.parts[parameter] = arguments
            else:
                inner.values[parameter] = arguments[0]
            regions.append(inner)
        if self.module.generic:
            yield from self._generic_regions(i, head, tail, indent, initial, types, arguments, regions)
            return
        pairs = ", ".join(f"{a} = {b}" for a, b in zip(arguments, initial, strict=True))
        attributes = f"{indent}attributes {{{dictionary(i.attributes)}}}" if i.attributes else ""
        yield f"{indent}{head}stablehlo.while({pairs}) : {shown}{tail}"
        if attributes:
            yield attributes
        yield f"{indent}cond {{"
        yield from regions[0].body(indent + "  ", "stablehlo.return")
        yield f"{indent}}} do {{"
        yield from regions[1].body(indent + "  ", "stablehlo.return")
        yield f"{indent}}}"

    def _generic_regions(
        self,
        i: Instruction,
        head: str,
        tail: str,
        indent: str,
        names: Sequence[str],
        types: Sequence[Type],
        arguments: Sequence[str],
        regions: Sequence[RegionPrinter],
    ) -> Iterator[str]:
        block = ", ".join(f"{name}: {kind}" for name, kind in zip(arguments, types, strict=True))
        inner = [(f"^bb0({block}):" if arguments else "", region) for region in regions]
        yield from self._assemble(i, head, tail, indent, names, types, inner)

    def _branches(self, i: Instruction, head: str, tail: str, indent: str) -> Iterator[str]:
        regions = []
        for operand, name in zip(i.operands[1:], i.called, strict=True):
            inner = self._inner(name)
            parameter = inner.computation.parameters[0]
            if isinstance(self.computation[operand].type, TupleType):
                inner.parts[parameter] = self.elements(operand)
            else:
                inner.values[parameter] = self.value(operand)
            regions.append(("", inner))
        selector = i.operands[0]
        types = (self.computation[selector].type,)
        yield from self._assemble(i, head, tail, indent, [self.value(selector)], types, regions)

    def _barrier(self, i: Instruction) -> str:
        names = self.elements(i.operands[0]) if is_many(i.type) else [self.value(i.operands[0])]
        types = results_of(i)
        if self.module.generic:
            return _generic(i, names, types)
        attributes = f" {{{dictionary(i.attributes)}}}" if i.attributes else ""
        shown = ", ".join(map(str, types))
        return f"stablehlo.optimization_barrier {', '.join(names)}{attributes} : {shown}"

    def _with_regions(self, i: Instruction, head: str, tail: str, indent: str) -> Iterator[str]:
        names = [self.value(operand) for operand in i.operands]
        types = [self.computation[operand].type for operand in i.operands]
        if not self.module.generic and i.opcode == "reduce":
            yield from self._reduce(i, head, tail, indent, names, types)
            return
        if not self.module.generic and i.opcode == "chlo.scan":
            yield from self._scan(i, head, tail, indent, names, types)
            return
        if not self.module.generic and i.opcode == "sdy.manual_computation":
            yield from self._manual(i, head, tail, indent, names, types)
            return
        regions = [self._arguments(name) for name in i.called]
        yield from self._assemble(i, head, tail, indent, names, types, regions)

    def _arguments(self, name: str) -> tuple[str, RegionPrinter]:
        """A region's block label and its printer, arguments named."""
        inner = self._inner(name)
        shown = []
        for parameter in inner.computation.parameters:
            inner.values[parameter] = _ssa(parameter)
            shown.append(f"{_ssa(parameter)}: {inner.computation[parameter].type}")
        return (f"^bb0({', '.join(shown)}):" if shown else "", inner)

    def _assemble(
        self,
        i: Instruction,
        head: str,
        tail: str,
        indent: str,
        names: Sequence[str],
        types: Sequence[Type],
        regions: Sequence[tuple[str, RegionPrinter]],
    ) -> Iterator[str]:
        """An operation in generic form around its regions."""
        terminator = "sdy.return" if i.opcode == "sdy.manual_computation" else "stablehlo.return"
        before, after = _generic(i, names, types, "\0").split("\0")
        yield f"{indent}{head}{before}{{"
        for index, (label, region) in enumerate(regions):
            if index:
                yield f"{indent}}}, {{"
            if label:
                yield f"{indent}{label}"
            yield from region.body(indent + "  ", terminator)
        yield f"{indent}}}{after}{tail}"

    def _reduce(
        self, i: Instruction, head: str, tail: str, indent: str, names: Sequence[str], types: Sequence[Type]
    ) -> Iterator[str]:
        count = len(names) // 2
        pairs = ", ".join(f"({a} init: {b})" for a, b in zip(names[:count], names[count:], strict=True))
        a = i.attributes
        rest = Attributes({key: value for key, value in a.items() if key != "dimensions"})
        extra = f" {{{dictionary(rest)}}}" if rest else ""
        across = f"across dimensions = [{', '.join(map(str, a['dimensions']))}]{extra}"
        kind = function_type(types, results_of(i))
        called = self.module.module.computations[i.called[0]]
        applied = _applied(called) if count == 1 else ""
        if applied and all(
            getattr(kind, "element", None) == called.root_instruction.tensor.element for kind in types
        ):
            yield f"{indent}{head}stablehlo.reduce{pairs} applies stablehlo.{applied} {across} : {kind}{tail}"
            return
        inner = self._arguments(called.name)[1]
        shown = [f"{_ssa(name)}: {called[name].type}" for name in called.parameters]
        groups = " ".join(f"({shown[n]}, {shown[n + count]})" for n in range(count))
        yield f"{indent}{head}stablehlo.reduce{pairs} {across} : {kind}"
        yield f"{indent} reducer{groups} {{"
        yield from inner.body(indent + "  ", "stablehlo.return")
        yield f"{indent}}}{tail}"

    def _scan(
        self, i: Instruction, head: str, tail: str, indent: str, names: Sequence[str], types: Sequence[Type]
    ) -> Iterator[str]:
        count = i.attributes.get("input_count", len(names) // 2)
        rest = {key: value for key, value in i.attributes.items() if key not in ("dimension", "input_count")}
        extra = f" attributes {{{dictionary(rest)}}}" if rest else ""
        inputs, initial = ", ".join(names[:count]), ", ".join(names[count:])
        label, inner = self._arguments(i.called[0])
        yield f"{indent}{head}chlo.scan({inputs}) inits({initial}) dimension={i.attributes['dimension']}{extra} {{"
        yield f"{indent}{label}"
        yield from inner.body(indent + "  ", "stablehlo.return")
        yield f"{indent}}} : {function_type(types, results_of(i))}{tail}"

    def _manual(
        self, i: Instruction, head: str, tail: str, indent: str, names: Sequence[str], types: Sequence[Type]
    ) -> Iterator[str]:
        a = i.attributes
        keys = " ".join(f"{key}={a[key]}" for key in ("in_shardings", "out_shardings", "manual_axes"))
        label, inner = self._arguments(i.called[0])
        arguments = label[4:-1] if label else "()"
        yield f"{indent}{head}sdy.manual_computation({', '.join(names)}) {keys} {arguments} {{"
        yield from inner.body(indent + "  ", "sdy.return")
        yield f"{indent}}} : {function_type(types, results_of(i))}{tail}"


def _takes_apart(user: Instruction, position: int) -> bool:
    """True when an operand of tuple type is written by its elements."""
    if user.opcode in ("while", "optimization_barrier"):
        return is_many(user.type)
    return user.opcode in ("case", "if") and position > 0


def _applied(called: Computation) -> str:
    """The operation of a reducer that does nothing but combine its two arguments in order; else empty."""
    root = called.root_instruction
    if not all(isinstance(kind, TensorType) and not kind.shape for kind in called.parameter_types):
        return ""
    if len(called) != 3 or root.operands != called.parameters or root.attributes:
        return ""
    return root.opcode if root.opcode in _BINARY else ""


def _ssa(name: str) -> str:
    from compiler.frontend.mlir.printer import ssa

    return ssa(name)


def _generic(i: Instruction, names: Sequence[str], types: Sequence[Type], regions: str = "") -> str:
    from compiler.frontend.mlir.printer import generic_text

    results = (i.type,) if i.opcode in _TUPLES else results_of(i)
    return generic_text(i, names, types, results, regions)
