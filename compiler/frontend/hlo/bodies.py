"""Instructions as written to the compiler's own, one computation at a time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np

from compiler.frontend.hlo.any_instruction import common, custom_call, trip_count
from compiler.frontend.hlo.attributes import RULES
from compiler.frontend.hlo.given import Given
from compiler.frontend.hlo.literal_text import constant_literal, is_elided
from compiler.frontend.hlo.metadata import FrameTables, location_of
from compiler.frontend.hlo.names import UniqueNames
from compiler.frontend.hlo.opcodes import CALLED, EXCHANGE, STABLEHLO
from compiler.frontend.hlo.reader import Reader
from compiler.frontend.hlo.tree import Written, WrittenComputation, WrittenInstruction
from compiler.ir.hlo_opcodes import ELIDED
from compiler.ir.literal import Literal
from compiler.ir.location import Location
from compiler.ir.program import NO_ATTRIBUTES, Attributes, Computation, Instruction, make_computation
from compiler.ir.types import I1, I64, FutureType, TensorType, TokenType, TupleType, Type, tensor

_ASYNC_PARTS = ("-start", "-update", "-done")


@dataclass
class Shared:
    """What the computations of a module share while they are made."""

    reader: Reader
    names: UniqueNames
    tables: FrameTables
    computations: dict[str, Computation | None] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    offsets_of: dict[str, int] = field(default_factory=dict)
    _locations: dict[str, Location | None] = field(default_factory=dict)

    def location(self, metadata: Written | None) -> Location | None:
        """The place that a `metadata={…}` tells."""
        if metadata is None:
            return None
        text = metadata[0]
        if text not in self._locations:
            self._locations[text] = location_of(text, self.tables)
        return self._locations[text]

    def positions(self) -> dict[str, tuple[int, int]]:
        """Line and column of each instruction."""
        text = self.reader.text
        starts = [0]
        at = text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = text.find("\n", at + 1)
        found = {}
        for name, offset in self.offsets.items():
            line = bisect_right(starts, offset)
            found[name] = (line, offset - starts[line - 1] + 1)
        return found


class Body:
    """One computation under construction."""

    def __init__(self, shared: Shared, written: WrittenComputation) -> None:
        self.shared = shared
        self.made: dict[str, Instruction] = {}
        self._own: dict[str, str] = {}
        shared.offsets_of[written.name] = written.offset

    def fail(self, message: str, offset: int) -> NoReturn:
        """Raises the error at a place."""
        self.shared.reader.fail(message, offset)

    def numbers(self) -> list[int]:
        """The parameters' numbers as they stand."""
        return [i.attributes["index"] for i in self.made.values() if i.opcode == "parameter"]

    def instructions_of(self, written: WrittenComputation) -> str:
        """Makes all instructions; gives the root's name."""
        for entry in written.instructions:
            if entry.name in self._own:
                self.fail(f"{entry.name} is defined twice in computation {written.name}", entry.offset)
            self._own[entry.name] = self._instruction(entry)
        return self._own[written.root]

    # ---- one instruction -------------------------------------------------------------------------------------------

    def _instruction(self, entry: WrittenInstruction) -> str:
        """Makes one instruction; gives its name here."""
        if entry.opcode == "constant":
            return self._constant(entry)
        operands = self._operands(entry)
        given = Given(entry.attributes, entry.opcode_offset)
        if entry.opcode == "parameter":
            if entry.number is None:
                self.fail("a parameter needs its number", entry.opcode_offset)
            return self._add(entry, "parameter", (), given, {"index": entry.number})
        if entry.number is not None and _is_known(entry.opcode):
            self.fail("expected an operand, found a number", entry.opcode_offset)
        if entry.opcode.startswith("async-") or entry.opcode not in STABLEHLO:
            if entry.opcode == "conditional":
                return self._conditional(entry, operands, given)
            return self._asynchronous(entry, operands, given)
        opcode = STABLEHLO[entry.opcode]
        if entry.opcode == "custom-call":
            found = custom_call(given)
            called = (
                self._named(given, given.names("called_computations"))
                if "called_computations" in given
                else ()
            )
        else:
            rule = RULES.get(entry.opcode)
            found = rule(given, [self.made[name].type for name in operands], entry.kind) if rule else {}
            called = self._called(entry.opcode, given)
        if opcode == "while":
            found = trip_count(given)
        elif entry.opcode == EXCHANGE and "split_dimension" not in found:
            opcode = f"hlo.{EXCHANGE}"
        elif opcode == "bitcast":
            return self._bitcast(entry, operands, given)
        elif opcode == "rng":
            operands = (*operands, self._shape_constant(entry))
        return self._add(entry, opcode, operands, given, found, called)

    def _operands(self, entry: WrittenInstruction) -> tuple[str, ...]:
        own = self._own
        try:
            return tuple([own[name] for name, _ in entry.operands])
        except KeyError:
            name, offset = next(pair for pair in entry.operands if pair[0] not in own)
            self.fail(f"unknown operand {name[:80]}: no instruction above has that name", offset)

    def _called(self, opcode: str, given: Given) -> tuple[str, ...]:
        keys = CALLED.get(opcode)
        return self._named(given, [given.name(key) for key in keys], *keys) if keys else ()

    def _named(self, given: Given, names: Sequence[str], *keys: str) -> tuple[str, ...]:
        for index, name in enumerate(names):
            if name not in self.shared.computations:
                key = keys[index] if index < len(keys) else keys[0] if keys else "called_computations"
                given.refuse(f"unknown computation {name[:80]}", key)
        return tuple(names)

    def _add(
        self,
        entry: WrittenInstruction,
        opcode: str,
        operands: tuple[str, ...],
        given: Given,
        found: dict[str, Any],
        called: tuple[str, ...] = (),
        kind: Type | None = None,
    ) -> str:
        if entry.attributes:
            found.update(common(given))
        attributes = Attributes(found) if found else NO_ATTRIBUTES
        return self._put(entry, entry.name, opcode, operands, attributes, called, kind or entry.kind)

    def _put(
        self,
        entry: WrittenInstruction,
        written_name: str,
        opcode: str,
        operands: tuple[str, ...],
        attributes: Attributes,
        called: tuple[str, ...],
        kind: Type,
    ) -> str:
        names = self.shared.names
        name = names.take(written_name) if written_name == entry.name else names.derive(written_name)
        location = self.shared.location(entry.attributes.get("metadata"))
        self.made[name] = Instruction(name, opcode, kind, operands, attributes, called, location)
        self.shared.offsets[name] = entry.offset
        return name

    def _bitcast(self, entry: WrittenInstruction, operands: tuple[str, ...], given: Given) -> str:
        """HLO's bitcast may read the bits as another type at once; here that is a `bitcast_convert` before it."""
        source = self.made[operands[0]].type if operands else None
        kind = entry.kind
        if (
            not isinstance(source, TensorType)
            or not isinstance(kind, TensorType)
            or source.element == kind.element
            or source.element.bits != kind.element.bits
        ):
            return self._add(entry, "bitcast", operands, given, {})
        if source.shape == kind.shape and source.minor_to_major == kind.minor_to_major:
            return self._add(entry, "bitcast_convert", operands, given, {})
        other = source.with_element(kind.element)
        bits = self._put(entry, f"{entry.name}.bits", "bitcast_convert", operands, NO_ATTRIBUTES, (), other)
        return self._add(entry, "bitcast", (bits,), given, {})

    # ---- constants -------------------------------------------------------------------------------------------------

    def _constant(self, entry: WrittenInstruction) -> str:
        if entry.literal is None:
            self.fail("a constant needs its value", entry.opcode_offset)
        given = Given(entry.attributes, entry.opcode_offset)
        body, offset = entry.literal
        if is_elided(body) and not isinstance(entry.kind, TokenType):
            return self._add(entry, ELIDED, (), given, {})
        if isinstance(entry.kind, TupleType):
            return self._tuple_constant(entry, given)
        if not isinstance(entry.kind, TensorType):
            self.fail(f"a constant cannot have type {entry.kind}", entry.offset)
        try:
            value = constant_literal(body, entry.kind)
        except ValueError as error:
            self.fail(str(error), offset)
        return self._add(entry, "constant", (), given, {"value": value})

    def _tuple_constant(self, entry: WrittenInstruction, given: Given) -> str:
        """`(f32[], s32[2]) constant((1, {2, 3}))`: a constant for each element, and a tuple of them."""
        assert isinstance(entry.kind, TupleType) and entry.literal is not None
        body, offset = entry.literal[0].strip(), entry.literal[1]
        parts = _split(body[1:-1]) if body[:1] == "(" and body[-1:] == ")" else []
        if len(parts) != len(entry.kind.elements):
            self.fail(f"a constant of {entry.kind} must list {len(entry.kind.elements)} values", offset)
        names = []
        for index, (part, kind) in enumerate(zip(parts, entry.kind.elements, strict=True)):
            if not isinstance(kind, TensorType):
                self.fail("a constant's tuple must hold arrays", offset)
            try:
                value = Attributes(value=constant_literal(part, kind))
            except ValueError as error:
                self.fail(str(error), offset)
            names.append(self._put(entry, f"{entry.name}.{index}", "constant", (), value, (), kind))
        return self._add(entry, "tuple", tuple(names), given, {})

    def _shape_constant(self, entry: WrittenInstruction) -> str:
        """StableHLO's `rng` takes its result's shape as an operand."""
        written = f"{entry.name}.shape"
        if written in self._own and self.made[self._own[written]].opcode == "constant":
            return self._own[written]
        shape = entry.kind.shape if isinstance(entry.kind, TensorType) else ()
        kind = tensor(I64, len(shape))
        value = Attributes(value=Literal(kind, np.array(shape, np.int64)))
        return self._put(entry, written, "constant", (), value, (), kind)

    # ---- control flow and asynchronous pairs -----------------------------------------------------------------------

    def _conditional(self, entry: WrittenInstruction, operands: tuple[str, ...], given: Given) -> str:
        if "branch_computations" in given:
            called = self._named(given, given.names("branch_computations"), "branch_computations")
        else:
            keys = ("true_computation", "false_computation")
            called = self._named(given, [given.name(key) for key in keys], *keys)
        selector = self.made[operands[0]].type if operands else None
        is_if = isinstance(selector, TensorType) and selector.element is I1
        if is_if and len(called) != 2:
            self.fail(
                f"a conditional on a predicate has two branches, not {len(called)}", entry.opcode_offset
            )
        return self._add(entry, "if" if is_if else "case", operands, given, {}, called)

    def _asynchronous(self, entry: WrittenInstruction, operands: tuple[str, ...], given: Given) -> str:
        base, part = _parts(entry.opcode)
        if not part or (base != "async" and base not in STABLEHLO):
            self.fail(f"unknown opcode '{entry.opcode[:60]}'", entry.opcode_offset)
        if part == "-start":
            called = (
                self._called("async-start", given)
                if base == "async"
                else (self._wrapped(entry, base, operands),)
            )
            if base != "async":
                given = Given(
                    {k: v for k, v in entry.attributes.items() if k == "metadata"}, entry.opcode_offset
                )
            return self._add(entry, "async_start", operands, given, {}, called, self._future(entry))
        if len(operands) != 1 or not isinstance(self.made[operands[0]].type, FutureType):
            self.fail(f"the operand of {entry.opcode} must be what a start yields", entry.opcode_offset)
        if part == "-update":
            return operands[0]
        given.optional("calls")
        return self._add(entry, "async_done", operands, given, {})

    def _future(self, entry: WrittenInstruction) -> FutureType:
        """`((operands), results, …)`, HLO's type of what is under way, as the results alone."""
        kind = entry.kind
        if not isinstance(kind, TupleType) or len(kind.elements) < 2:
            self.fail(f"{entry.opcode} must have a type ((operands), results), not {kind}", entry.offset)
        results = kind.elements[1]
        return FutureType(results.elements if isinstance(results, TupleType) else (results,))

    def _wrapped(self, entry: WrittenInstruction, base: str, operands: tuple[str, ...]) -> str:
        """The computation of one operation that `NAME-start` runs."""
        future = self._future(entry)
        kind: Type = future.elements[0] if len(future.elements) == 1 else TupleType(future.elements)
        names = [f"{entry.name}.operand{index}" for index in range(len(operands))]
        where = entry.offset
        inner = [
            WrittenInstruction(name, where, self.made[given].type, "parameter", where, [], {}, None, index)
            for index, (name, given) in enumerate(zip(names, operands, strict=True))
        ]
        root = replace(
            entry,
            name=f"{entry.name}.wrapped",
            kind=kind,
            opcode=base,
            operands=[(name, where) for name in names],
        )
        written = WrittenComputation(f"{entry.name}.computation", where, False, [*inner, root], root.name)
        if written.name in self.shared.computations:
            self.fail(f"computation {written.name} is defined twice", where)
        body = Body(self.shared, written)
        last = body.instructions_of(written)
        self.shared.computations[written.name] = make_computation(written.name, body.made, last)
        return written.name


def _is_known(opcode: str) -> bool:
    return opcode in STABLEHLO or opcode == "conditional" or bool(_parts(opcode)[1])


def _parts(opcode: str) -> tuple[str, str]:
    """`dot-start` as `dot` and `-start`."""
    for part in _ASYNC_PARTS:
        if opcode.endswith(part):
            return opcode.removesuffix(part), part
    return opcode, ""


def _split(text: str) -> list[str]:
    """A text at its commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "({":
            depth += 1
        elif char in ")}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]] if text.strip() else []
