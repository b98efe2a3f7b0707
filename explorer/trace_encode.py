"""Trace to file: tables of interned parts, as JSON members of one zip archive, arrays as raw bytes.

Everything that snapshots share is written once: an instruction that 40 snapshots hold is one row. The members are
separate, so that a reader takes only what it needs (`decisions` of a large trace without its programs). Format version 1;
`trace_decode` reads it.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from compiler.analysis.plan import BufferPlan
from compiler.decisions.log import Decision
from compiler.ir.literal import Literal
from compiler.ir.location import CallSite, FileLocation, FusedLocation, Location, NameLocation
from compiler.ir.program import Attributes, Computation, Instruction, Module
from compiler.ir.rewrite import Rewrite, Rule
from compiler.ir.types import ElementType, QuantizedType, TensorType, TokenType, TupleType, Type
from compiler.ir.working import Change
from explorer.trace import StageRecord, Trace

FORMAT = "xla-explore-trace"
VERSION = 1


class _Table:
    """Rows interned by a key; the key's owner is kept alive so that identities stay unique."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._index: dict[Any, int] = {}
        self._alive: list[Any] = []

    def find(self, key: Any) -> int | None:
        return self._index.get(key)

    def add(self, key: Any, row: Any, owner: Any = None) -> int:
        number = len(self.rows)
        self.rows.append(row)
        self._index[key] = number
        self._alive.append(owner)
        return number


class Encoder:
    """Interns the parts of one trace."""

    def __init__(self) -> None:
        self.tables = {
            name: _Table()
            for name in (
                "strings",
                "types",
                "locations",
                "attributes",
                "instructions",
                "computations",
                "modules",
                "rules",
            )
        }
        self.arrays = io.BytesIO()
        self.literals: list[Any] = []
        self._literal_index: dict[bytes, int] = {}

    def _intern(self, table: str, owner: Any, make: Any) -> int:
        """By identity: parts are shared objects, and equal twins may as well be two rows."""
        rows = self.tables[table]
        found = rows.find(id(owner))
        return found if found is not None else rows.add(id(owner), make(owner), owner)

    def string(self, text: str) -> int:
        """A name or opcode."""
        table = self.tables["strings"]
        found = table.find(text)
        return found if found is not None else table.add(text, text)

    def type(self, value: Type) -> int:
        """A type; equal types are one row."""
        table = self.tables["types"]
        found = table.find(value)
        return found if found is not None else table.add(value, self._type(value))

    def _type(self, value: Type) -> Any:
        if isinstance(value, TokenType):
            return ["token"]
        if isinstance(value, TupleType):
            return ["tuple", [self.type(inner) for inner in value.elements]]
        layout = [list(value.layout.minor_to_major), value.layout.suffix] if value.layout else None
        return ["tensor", _element(value.element), list(value.shape), layout, value.bounds]

    def location(self, value: Location | None) -> int | None:
        """A location, or None."""
        return None if value is None else self._intern("locations", value, self._location)

    def _location(self, value: Location) -> Any:
        if isinstance(value, FileLocation):
            return ["file", value.file, value.line, value.column]
        if isinstance(value, NameLocation):
            return ["name", value.name, self.location(value.child)]
        if isinstance(value, CallSite):
            return ["call", self.location(value.callee), self.location(value.caller)]
        return ["fused", [self.location(child) for child in value.children], value.metadata]

    def attributes(self, value: Attributes) -> int:
        """A whole attribute dictionary."""
        return self._intern("attributes", value, lambda a: {key: self.value(v) for key, v in a.items()})

    def value(self, value: Any) -> Any:
        """One attribute value, tagged where JSON has no such thing."""
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if np.isfinite(value) else {"float": repr(value)}
        if isinstance(value, tuple | list):
            return [self.value(inner) for inner in value]
        if isinstance(value, Literal):
            return {"literal": self.literal(value)}
        if isinstance(value, Mapping):
            return {"dict": {str(key): self.value(inner) for key, inner in value.items()}}
        if isinstance(value, TensorType | TupleType | TokenType):
            return {"type": self.type(value)}
        if isinstance(value, ElementType | QuantizedType):
            return {"element": _element(value)}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, np.generic):
            return self.value(value.item())
        return {"text": str(value)}

    def literal(self, value: Literal) -> int:
        """A constant; equal ones are stored once, splats as one element."""
        found = self._literal_index.get(value.digest)
        if found is not None:
            return found
        array = np.asarray(value.splat_value) if value.is_splat and value.array.size else value.array
        raw = np.ascontiguousarray(array).tobytes()
        offset = self.arrays.tell()
        self.arrays.write(raw)
        self.literals.append([self.type(value.type), offset, len(raw), value.is_splat])
        self._literal_index[value.digest] = len(self.literals) - 1
        return len(self.literals) - 1

    def instruction(self, value: Instruction | None) -> int | None:
        """An instruction, or None."""
        return None if value is None else self._intern("instructions", value, self._instruction)

    def _instruction(self, value: Instruction) -> Any:
        return [
            self.string(value.name),
            self.string(value.opcode),
            self.type(value.type),
            [self.string(operand) for operand in value.operands],
            self.attributes(value.attributes),
            [self.string(name) for name in value.called],
            self.location(value.location),
        ]

    def computation(self, value: Computation | None) -> int | None:
        """A computation, or None."""
        return None if value is None else self._intern("computations", value, self._computation)

    def _computation(self, value: Computation) -> Any:
        return [value.name, [self.instruction(i) for i in value], value.root]

    def module(self, value: Module) -> int:
        """A snapshot."""
        return self._intern("modules", value, self._module)

    def _module(self, value: Module) -> Any:
        return {
            "name": value.name,
            "computations": [self.computation(c) for c in value.computations.values()],
            "entry": value.entry,
            "attributes": self.attributes(value.attributes),
            "parameter_attributes": [self.attributes(a) for a in value.parameter_attributes],
            "result_attributes": [self.attributes(a) for a in value.result_attributes],
            "lineages": dict(value.lineages),
            "is_scheduled": value.is_scheduled,
        }

    def rule(self, value: Rule) -> int:
        """A rewrite rule."""
        return self._intern("rules", value, lambda r: [r.id, r.law, r.source, r.fast_math])

    def rewrite(self, value: Rewrite) -> Any:
        """A rewrite with its changes."""
        return [
            value.id,
            value.stage,
            self.rule(value.rule),
            value.computation,
            value.root,
            self.location(value.location),
            value.note,
            [self._change(change) for change in value.changes],
        ]

    def _change(self, value: Change) -> Any:
        row: list[Any] = [value.computation, value.name]
        row += [self.instruction(value.before), self.instruction(value.after)]
        if value.root or value.order or value.computation_before or value.computation_after or value.anchor:
            before, after = value.computation_before, value.computation_after
            more: list[Any] = [value.root, value.order, self.computation(before), self.computation(after)]
            row += [*more, value.anchor]
        return row

    def decision(self, value: Decision) -> Any:
        """A decision; its locations are kept as text rows of their own."""
        row = asdict(value)
        row["evidence"] = {key: self.value(inner) for key, inner in value.evidence.items()}
        row["locations"] = [self._location_tree(found) for found in value.locations]
        return row

    def _location_tree(self, value: Location | None) -> Any:
        """A location without the table, so that decisions can be read alone."""
        if value is None:
            return None
        if isinstance(value, FileLocation):
            return ["file", value.file, value.line, value.column]
        if isinstance(value, NameLocation):
            return ["name", value.name, self._location_tree(value.child)]
        if isinstance(value, CallSite):
            return ["call", self._location_tree(value.callee), self._location_tree(value.caller)]
        assert isinstance(value, FusedLocation)
        return ["fused", [self._location_tree(child) for child in value.children], value.metadata]


def _element(value: ElementType | QuantizedType) -> Any:
    if isinstance(value, ElementType):
        return value.name
    return {
        "storage": value.storage.name,
        "expressed": value.expressed.name,
        "scales": value.scales,
        "zero_points": value.zero_points,
        "limits": [value.storage_min, value.storage_max],
        "axis": value.axis,
    }


def _stage(encoder: Encoder, stage: StageRecord) -> Any:
    return {
        "index": stage.index,
        "id": stage.id,
        "pass_name": stage.pass_name,
        "why": stage.why,
        "before": encoder.module(stage.before),
        "after": encoder.module(stage.after),
        "rewrites": [encoder.rewrite(rewrite) for rewrite in stage.rewrites],
        "seconds": stage.seconds,
        "refused": stage.refused,
        "skipped": stage.skipped,
    }


def _plan(plan: BufferPlan | None) -> Any:
    if plan is None:
        return None
    row = {
        name: getattr(plan, name) for name in plan.__dataclass_fields__ if name not in ("slots", "lifetimes")
    }
    row["slots"] = [[list(key), _slot(slot)] for key, slot in plan.slots.items()]
    row["lifetimes"] = [[e.values, _slot(e.slot), e.first, e.last, e.note] for e in plan.lifetimes]
    return row


def _slot(slot: Any) -> list[Any]:
    return [slot.kind, slot.index, slot.offset, slot.size]


def members(trace: Trace) -> Iterable[tuple[str, bytes]]:
    """The archive's members, by name."""
    encoder = Encoder()
    programs = {
        "input": encoder.module(trace.input),
        "stages": [_stage(encoder, stage) for stage in trace.stages],
    }
    decisions = [[stage.index, [encoder.decision(d) for d in stage.decisions]] for stage in trace.stages]
    about = {
        "format": FORMAT,
        "version": VERSION,
        "model": trace.model,
        "producer": trace.producer,
        "options": {key: encoder.value(value) for key, value in trace.options.items()},
        "overrides": dict(trace.overrides),
        "unmatched_overrides": trace.unmatched_overrides,
        "pending": trace.pending,
        "finished": trace.finished,
        "error": trace.error,
        "positions": {name: list(place) for name, place in trace.positions.items()},
        "code": _code(trace),
        "profile": [[t.kernel, t.nanoseconds, t.calls] for t in trace.profile],
    }
    tables = {name: table.rows for name, table in encoder.tables.items()}
    tables["literals"] = encoder.literals
    yield "about.json", _json(about)
    yield "decisions.json", _json(decisions)
    yield "tables.json", _json(tables)
    yield "programs.json", _json(programs)
    yield "plan.json", _json(_plan(trace.plan))
    yield "sources.json", _json(dict(trace.sources))
    yield "arrays.bin", encoder.arrays.getvalue()


def _code(trace: Trace) -> Any:
    if trace.code is None:
        return None
    kernels = [asdict(kernel) for kernel in trace.code.kernels]
    return {"backend": trace.code.backend, "seconds": trace.code.seconds, "kernels": kernels}


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def save_trace(trace: Trace, path: str) -> None:
    """Writes a trace, as a whole or not at all. Raises OSError when the place cannot be written."""
    target = Path(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with (
            os.fdopen(handle, "wb") as stream,
            zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive,
        ):
            for name, data in members(trace):
                archive.writestr(name, data)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


__all__ = ["FORMAT", "VERSION", "Encoder", "save_trace"]
