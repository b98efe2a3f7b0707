"""Tree to module: functions become computations, the entry and its attributes are found, meshes are kept."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from compiler.frontend.mlir.bodies import Body, compatible
from compiler.frontend.mlir.control_flow import ControlFlowImporter
from compiler.frontend.mlir.normalise import plain
from compiler.frontend.mlir.positions import Source
from compiler.frontend.mlir.tree import Operation
from compiler.frontend.parsed import Parsed
from compiler.ir.order import callees_first
from compiler.ir.program import Attributes, Module


def import_tree(tree: Operation, reader: Source) -> Parsed:
    """Makes the module. Raises SourceError for what it cannot make sense of."""
    return _Importer(reader).module(tree)


class _Importer(ControlFlowImporter):
    # ---- module and functions --------------------------------------------------------------------------------------

    def module(self, tree: Operation) -> Parsed:
        attributes = {k: plain(v) for k, v in tree.attributes.items() if k != "sym_name"}
        for op in tree.regions[0].operations:
            if op.name == "func.func":
                self._declare(op)
            elif op.name == "sdy.mesh":
                mesh = str(op.attributes.get("mesh", ""))
                attributes[f"sdy.mesh.{op.attributes['sym_name']}"] = mesh.removeprefix("#sdy.mesh")
            else:
                self.fail(op, f"unexpected operation '{op.name}' outside of a function")
        entry = self._entry(tree)
        for name, op in self.functions.items():
            if op.regions:
                self._function(name, op)
        if entry not in self.computations:
            self.fail(self.functions[entry], f"function @{entry} has no body")
        main = self.functions[entry]
        ordered = callees_first(self.computations, entry)
        module = Module(
            str(tree.attributes.get("sym_name", "module")),
            MappingProxyType(ordered),
            entry,
            Attributes(attributes),
            _attribute_list(main.attributes.get("arg_attrs"), len(main.regions[0].arguments)),
            _attribute_list(main.attributes.get("res_attrs"), len(main.result_types)),
        )
        return Parsed(module, self.positions, self.reader.filename)

    def _declare(self, op: Operation) -> None:
        name = str(op.attributes.get("sym_name", ""))
        if not name:
            self.fail(op, "a function needs a name")
        if name in self.functions:
            self.fail(op, f"function @{name} is defined twice")
        kind = op.attributes.get("function_type")
        if isinstance(kind, tuple) and len(kind) == 2:
            op.result_types = list(kind[1])
        self.functions[name] = op

    def _entry(self, tree: Operation) -> str:
        if "main" in self.functions:
            return "main"
        public = [n for n, op in self.functions.items() if op.attributes.get("sym_visibility") != "private"]
        if not public:
            self.fail(tree, "the module has no function to run")
        return public[0]

    def _function(self, name: str, op: Operation) -> None:
        body = Body(name, None)
        for index, (argument, kind, location) in enumerate(op.regions[0].arguments):
            made = self._parameter(body, index, kind, location, op)
            body.names[argument] = made
        results = self._operations(body, op.regions[0])
        if op.result_types and [body.instructions[r].type for r in results] != list(op.result_types):
            self._check_results(op, body, results)
        self._finish(body, results, op)

    def _check_results(self, op: Operation, body: Body, results: list[str]) -> None:
        place = body.terminator or op
        got = [body.instructions[r].type for r in results]
        if len(got) != len(op.result_types):
            self.fail(place, f"the function returns {len(got)} values, but declares {len(op.result_types)}")
        for index, (made, declared) in enumerate(zip(got, op.result_types, strict=True)):
            if not compatible(made, declared):
                self.fail(place, f"result #{index} is {made}, but {declared} is declared")


def _attribute_list(raw: Any, count: int) -> tuple[Attributes, ...]:
    entries = list(raw or ())
    entries += [{}] * (count - len(entries))
    return tuple(Attributes({key: plain(value) for key, value in entry.items()}) for entry in entries[:count])
