"""File to trace: reads what `trace_encode` wrote, believing nothing.

Sizes are checked before memory is taken, indices are checked by use, and anything amiss is one `UserError`.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from compiler.analysis.plan import BufferPlan, Lifetime, Slot
from compiler.backends.base import KernelRecord, KernelTime
from compiler.decisions.log import Choice, Decision
from compiler.ir.literal import Literal
from compiler.ir.location import CallSite, FileLocation, FusedLocation, Location, NameLocation
from compiler.ir.program import Attributes, Computation, Instruction, Module, make_computation
from compiler.ir.rewrite import Rewrite, Rule
from compiler.ir.types import TOKEN, AnyElement, Layout, QuantizedType, TensorType, TupleType, Type, element
from compiler.ir.working import Change
from explorer.session import UserError
from explorer.trace import CodeRecord, StageRecord, Trace
from explorer.trace_encode import FORMAT, VERSION

MAX_MEMBER_BYTES = 4 << 30
MAX_RATIO = 200
"""Text members that claim to be this many times their compressed size are refused; real ones are 10 to 30 times."""
FREE_BYTES = 16 << 20
"""Members up to this size are read whatever their ratio."""

_BROKEN = (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError, AssertionError)


class TraceFile:
    """An open trace. Members are read when first asked for."""

    def __init__(self, path: str) -> None:
        """Opens the archive and reads its heading.

        Raises:
            UserError: when it is not a trace of a version that can be read.
        """
        self.path = path
        self._members: dict[str, Any] = {}
        try:
            self._archive = zipfile.ZipFile(Path(path))
            self._about = self._json("about.json")
            if self._about.get("format") != FORMAT:
                raise UserError(f"{path}: is not an xla-explore trace")
            if self._about.get("version") != VERSION:
                raise UserError(
                    f"{path}: is a trace of format {self._about.get('version')}, this reads {VERSION}"
                )
        except FileNotFoundError:
            raise UserError(f"{path}: no such file") from None
        except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, *_BROKEN) as error:
            raise UserError(f"{path}: is not a readable trace ({error})") from None

    def _raw(self, name: str) -> bytes:
        info = self._archive.getinfo(name)
        bursts = name.endswith(".json") and info.file_size > MAX_RATIO * info.compress_size
        if info.file_size > MAX_MEMBER_BYTES or (bursts and info.file_size > FREE_BYTES):
            raise ValueError(f"{name} claims to hold {info.file_size} bytes")
        return self._archive.read(info)

    def _json(self, name: str) -> Any:
        if name not in self._members:
            self._members[name] = json.loads(self._raw(name))
        return self._members[name]

    def decisions(self) -> list[Decision]:
        """The decision log alone, without the programs.

        Raises:
            UserError: when the file is damaged.
        """
        try:
            return [_decision(row) for _, rows in self._json("decisions.json") for row in rows]
        except (zipfile.BadZipFile, OSError, *_BROKEN) as error:
            raise UserError(f"{self.path}: the decision log is damaged ({error})") from None

    def trace(self) -> Trace:
        """The whole recording.

        Raises:
            UserError: when the file is damaged.
        """
        try:
            return self._trace()
        except UserError:
            raise
        except (zipfile.BadZipFile, OSError, *_BROKEN) as error:
            message = f"{type(error).__name__}: {error}"
            raise UserError(f"{self.path}: the trace is damaged ({message})") from None

    def _trace(self) -> Trace:
        about = self._about
        decoder = _Decoder(self._json("tables.json"), self._raw("arrays.bin"))
        programs = self._json("programs.json")
        decisions = {
            index: tuple(_decision(row) for row in rows) for index, rows in self._json("decisions.json")
        }
        stages = tuple(decoder.stage(row, decisions.get(row["index"], ())) for row in programs["stages"])
        return Trace(
            str(about["model"]),
            decoder.module(programs["input"]),
            stages,
            _plan(self._json("plan.json")),
            _code(about["code"]),
            tuple(KernelTime(*row) for row in about["profile"]),
            {key: decoder.value(value) for key, value in about["options"].items()},
            dict(about["overrides"]),
            tuple(about["unmatched_overrides"]),
            tuple(about["pending"]),
            "",
            bool(about["finished"]),
            str(about["error"]),
            str(about["producer"]),
            dict(self._json("sources.json")),
            {name: (int(place[0]), int(place[1])) for name, place in about["positions"].items()},
        )


def load_trace(path: str) -> Trace:
    """Reads a trace file whole. Raises UserError when it cannot be read."""
    return TraceFile(path).trace()


class _Decoder:
    """Rows back to objects; each row becomes one object, so sharing is as it was."""

    def __init__(self, tables: dict[str, list[Any]], arrays: bytes) -> None:
        self._tables = tables
        self._arrays = arrays
        self._made: dict[str, dict[int, Any]] = {name: {} for name in tables}

    def _get(self, table: str, number: int, make: Any) -> Any:
        made = self._made[table]
        found = made.get(number)
        if found is None:
            if number < 0:
                raise IndexError(f"row {number} of {table}")
            found = make(self._tables[table][number])
            made[number] = found
        return found

    def string(self, number: int) -> str:
        text = self._tables["strings"][number]
        if not isinstance(text, str):
            raise TypeError("a name is not text")
        return text

    def type(self, number: int) -> Type:
        found: Type = self._get("types", number, self._type)
        return found

    def _type(self, row: Any) -> Type:
        if row[0] == "token":
            return TOKEN
        if row[0] == "tuple":
            return TupleType(tuple(self.type(inner) for inner in row[1]))
        layout = Layout(tuple(row[3][0]), row[3][1]) if row[3] else None
        shape = tuple(int(size) for size in row[2])
        return TensorType(_element(row[1]), shape, layout, tuple(row[4]) if row[4] else None)

    def location(self, number: int | None) -> Location | None:
        if number is None:
            return None
        found: Location | None = self._get("locations", number, lambda row: _location(row, self.location))
        return found

    def attributes(self, number: int) -> Attributes:
        found: Attributes = self._get(
            "attributes",
            number,
            lambda row: Attributes({key: self.value(value) for key, value in row.items()}),
        )
        return found

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(self.value(inner) for inner in value)
        if not isinstance(value, dict):
            return value
        (tag, inner), *_ = value.items()
        if tag == "dict":
            return Attributes({key: self.value(entry) for key, entry in inner.items()})
        readers: dict[str, Callable[[Any], Any]] = {
            "float": float,
            "literal": self.literal,
            "type": self.type,
            "element": _element,
            "complex": lambda pair: complex(*pair),
            "text": str,
        }
        return readers[tag](inner)

    def literal(self, number: int) -> Literal:
        found: Literal = self._get("literals", number, self._literal)
        return found

    def _literal(self, row: Any) -> Literal:
        type_number, offset, length, is_splat = row
        tensor_type = self.type(type_number)
        assert isinstance(tensor_type, TensorType)
        raw = self._arrays[offset : offset + length]
        flat = np.frombuffer(raw, tensor_type.element.dtype)
        splat = is_splat and flat.size == 1
        return Literal(tensor_type, flat.reshape(()) if splat else flat.reshape(tensor_type.shape))

    def instruction(self, number: int | None) -> Instruction | None:
        if number is None:
            return None
        found: Instruction = self._get("instructions", number, self._instruction)
        return found

    def _instruction(self, row: Any) -> Instruction:
        name, opcode, type_number, operands, attributes, called, location = row
        return Instruction(
            self.string(name),
            self.string(opcode),
            self.type(type_number),
            tuple(self.string(operand) for operand in operands),
            self.attributes(attributes),
            tuple(self.string(callee) for callee in called),
            self.location(location),
        )

    def computation(self, number: int | None) -> Computation | None:
        if number is None:
            return None
        found: Computation = self._get("computations", number, self._computation)
        return found

    def _computation(self, row: Any) -> Computation:
        name, numbers, root = row
        instructions = [self._instruction_at(number) for number in numbers]
        return make_computation(name, {i.name: i for i in instructions}, root)

    def _instruction_at(self, number: int) -> Instruction:
        found = self.instruction(number)
        assert found is not None
        return found

    def module(self, number: int) -> Module:
        found: Module = self._get("modules", number, self._module)
        return found

    def _module(self, row: Any) -> Module:
        computations = [self.computation(inner) for inner in row["computations"]]
        named = {c.name: c for c in computations if c is not None}
        if row["entry"] not in named:
            raise KeyError(row["entry"])
        return Module(
            row["name"],
            MappingProxyType(named),
            row["entry"],
            self.attributes(row["attributes"]),
            tuple(self.attributes(inner) for inner in row["parameter_attributes"]),
            tuple(self.attributes(inner) for inner in row["result_attributes"]),
            dict(row["lineages"]),
            bool(row["is_scheduled"]),
        )

    def rewrite(self, row: Any) -> Rewrite:
        identity, stage, rule, computation, root, location, note, changes = row
        made: Rule = self._get("rules", rule, lambda r: Rule(*r))
        steps = tuple(self._change(change) for change in changes)
        return Rewrite(identity, stage, made, computation, root, self.location(location), note, steps)

    def _change(self, row: Any) -> Change:
        computation, name, before, after, *rest = row
        change = (computation, name, self.instruction(before), self.instruction(after))
        if not rest:
            return Change(*change)
        root, order, old, new, anchor = rest
        return Change(
            *change,
            root=tuple(root) if root else None,
            order=(tuple(order[0]), tuple(order[1])) if order else None,
            computation_before=self.computation(old),
            computation_after=self.computation(new),
            anchor=anchor,
        )

    def stage(self, row: Any, decisions: Sequence[Decision]) -> StageRecord:
        return StageRecord(
            int(row["index"]),
            str(row["id"]),
            str(row["pass_name"]),
            str(row["why"]),
            self.module(row["before"]),
            self.module(row["after"]),
            tuple(self.rewrite(rewrite) for rewrite in row["rewrites"]),
            tuple(decisions),
            float(row["seconds"]),
            int(row["refused"]),
            str(row["skipped"]),
        )


def _element(row: Any) -> AnyElement:
    if isinstance(row, str):
        return element(row)
    low, high = row["limits"]
    return QuantizedType(
        element(row["storage"]),
        element(row["expressed"]),
        tuple(row["scales"]),
        tuple(row["zero_points"]),
        low,
        high,
        row["axis"],
    )


def _location(row: Any, child: Any) -> Location:
    if row[0] == "file":
        return FileLocation(row[1], row[2], row[3])
    if row[0] == "name":
        return NameLocation(row[1], child(row[2]))
    if row[0] == "call":
        return CallSite(child(row[1]), child(row[2]))
    return FusedLocation(tuple(child(inner) for inner in row[1]), row[2])


def _location_tree(row: Any) -> Location | None:
    return None if row is None else _location(row, _location_tree)


def _decision(row: Any) -> Decision:
    locations = [_location_tree(inner) for inner in row["locations"]]
    return Decision(
        row["id"],
        row["kind"],
        row["subject"],
        row["stage"],
        tuple(Choice(**choice) for choice in row["choices"]),
        row["chosen"],
        row["policy"],
        row["by"],
        row["reason"],
        row["evidence"],
        tuple(found for found in locations if found is not None),
    )


def _code(row: Any) -> CodeRecord | None:
    if row is None:
        return None
    kernels = []
    for kernel in row["kernels"]:
        kernel["instructions"] = tuple(tuple(place) for place in kernel["instructions"])
        kernels.append(KernelRecord(**kernel))
    return CodeRecord(row["backend"], tuple(kernels), row["seconds"])


def _plan(row: Any) -> BufferPlan | None:
    if row is None:
        return None
    slots = {_key(key): Slot(*slot) for key, slot in row.pop("slots")}
    lifetimes = [
        Lifetime(tuple(_key(v) for v in values), Slot(*slot), first, last, note)
        for values, slot, first, last, note in row.pop("lifetimes")
    ]
    for name in ("constants", "steps"):
        row[name] = tuple(tuple(place) for place in row[name])
    row["live_bytes"] = tuple(row["live_bytes"])
    return BufferPlan(slots=slots, lifetimes=tuple(lifetimes), **row)


def _key(row: Any) -> tuple[str, str, tuple[int, ...]]:
    return row[0], row[1], tuple(row[2])
