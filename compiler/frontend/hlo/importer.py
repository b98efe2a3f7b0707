"""Written HLO to a module: the entry is found, callees stand before callers, names become unique, positions are kept."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import NoReturn

from compiler.frontend.hlo.bodies import Body, Shared
from compiler.frontend.hlo.given import BadAttribute, Given
from compiler.frontend.hlo.header import read_header
from compiler.frontend.hlo.names import UniqueNames
from compiler.frontend.hlo.reader import Reader
from compiler.frontend.hlo.tree import WrittenComputation, WrittenModule
from compiler.frontend.parsed import Parsed
from compiler.ir.order import callees_first
from compiler.ir.program import Attributes, Computation, Module, make_computation
from compiler.ir.types import same_value_type


def import_module(written: WrittenModule, reader: Reader) -> Parsed:
    """Makes the module. Raises SourceError for what it cannot make sense of."""
    importer = _Importer(written, reader)
    try:
        return importer.module()
    except BadAttribute as error:
        reader.fail(str(error), error.offset)


class _Importer:
    def __init__(self, written: WrittenModule, reader: Reader) -> None:
        self.written = written
        self.reader = reader
        self.fail: Callable[[str, int], NoReturn] = reader.fail
        self.names = UniqueNames(written.computations)

    def module(self) -> Parsed:
        header = read_header(Given(self.written.attributes, 0))
        entry = self._entry()
        shared = Shared(self.reader, self.names, self.written.tables)
        for computation in self.written.computations:
            if computation.name in shared.computations:
                self.fail(f"computation {computation.name} is defined twice", computation.offset)
            shared.computations[computation.name] = None
        for computation in self.written.computations:
            shared.computations[computation.name] = self._computation(computation, shared)
        found = {name: made for name, made in shared.computations.items() if made is not None}
        self._check_calls(found, shared)
        ordered = callees_first(found, entry.name)
        parameters = len(ordered[entry.name].parameters)
        module = Module(
            self.written.name,
            MappingProxyType(ordered),
            entry.name,
            Attributes(header.attributes),
            header.parameter_attributes(parameters),
            lineages=MappingProxyType(dict(self.names.lineages())),
            is_scheduled=header.is_scheduled,
        )
        return Parsed(module, shared.positions(), self.reader.filename)

    def _entry(self) -> WrittenComputation:
        entries = [computation for computation in self.written.computations if computation.is_entry]
        if len(entries) > 1:
            self.fail("the module has two entries", entries[1].offset)
        if not entries and len(self.written.computations) > 1:
            self.fail(
                "no computation is the entry: one must begin with ENTRY", self.written.computations[-1].offset
            )
        return entries[0] if entries else self.written.computations[0]

    def _computation(self, written: WrittenComputation, shared: Shared) -> Computation:
        body = Body(shared, written)
        root = body.instructions_of(written)
        try:
            made = make_computation(written.name, body.made, root)
        except ValueError:
            self.fail(
                f"the parameters of {written.name} must be numbered 0, 1, … each once, but are {body.numbers()}",
                written.offset,
            )
        for given, kind in zip(written.signature or (), made.parameter_types, strict=False):
            if not same_value_type(given[0], kind):
                self.fail(f"the computation's parameter is declared {given[0]}, but is {kind}", given[1])
        if written.signature is not None and len(written.signature) != len(made.parameters):
            self.fail(
                f"{written.name} declares {len(written.signature)} parameters, but has {len(made.parameters)}",
                written.offset,
            )
        return made

    def _check_calls(self, found: dict[str, Computation], shared: Shared) -> None:
        """No computation may reach itself: HLO has no recursion."""
        done: set[str] = set()
        for start in found:
            stack = [(start, iter(_callees(found[start])))]
            active = [start]
            while stack:
                name, rest = stack[-1]
                callee = next((c for c in rest if c not in done), None)
                if callee is None:
                    done.add(name)
                    active.remove(name)
                    stack.pop()
                elif callee in active:
                    self.fail(f"computation {callee} calls itself", shared.offsets_of[callee])
                else:
                    active.append(callee)
                    stack.append((callee, iter(_callees(found[callee]))))


def _callees(computation: Computation) -> list[str]:
    return [name for instruction in computation for name in instruction.called]
