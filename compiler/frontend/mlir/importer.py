"""Tree to module: functions and regions become computations, captured values become operands.

Each operation becomes one instruction named `opcode.N`, N counting over the module in the order of the text. Several results
become a tuple, taken apart where they are used. Regions are made isolated: constants they capture are repeated inside, other
values travel through a loop's state or a branch's operand.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Any, NoReturn

from compiler.frontend.mlir.normalise import normalise, plain
from compiler.frontend.mlir.opset import OPERATIONS
from compiler.frontend.mlir.positions import Lines
from compiler.frontend.mlir.reader import Reader
from compiler.frontend.mlir.regions import applied_name, free_values, reducer_key
from compiler.frontend.mlir.tree import Block, Operation
from compiler.frontend.parsed import Parsed
from compiler.ir.location import FileLocation, Location
from compiler.ir.order import callees_first
from compiler.ir.program import NO_ATTRIBUTES, Attributes, Computation, Instruction, Module, make_computation
from compiler.ir.types import DYNAMIC, TensorType, TupleType, Type, same_value_type

_RETURNS = frozenset({"return", "func.return", "stablehlo.return", "sdy.return"})
_UNNAMED = {
    "func.call": "call",
    "arith.constant": "constant",
    "hlo.bitcast": "bitcast",
    "hlo.copy": "copy",
    "hlo.fusion": "fusion",
}


class Body:
    """A computation being made. `names` maps a value of the text to an instruction, or to (tuple, index)."""

    def __init__(self, name: str, outer: Body | None) -> None:
        self.name = name
        self.outer = outer
        self.instructions: dict[str, Instruction] = {}
        self.names: dict[str, str | tuple[str, int]] = {}


def import_tree(tree: Operation, reader: Reader) -> Parsed:
    """Makes the module. Raises SourceError for what it cannot make sense of."""
    return _Importer(reader).module(tree)


class _Importer:
    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.lines = Lines(reader.text, reader.filename, reader.line_offset)
        self.number = 0
        self.computations: dict[str, Computation] = {}
        self.functions: dict[str, Operation] = {}
        self.positions: dict[str, tuple[int, int]] = {}
        self.reducers: dict[Any, str] = {}

    def fail(self, op: Operation, message: str) -> NoReturn:
        self.reader.fail(message, op.offset)

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
        got = [body.instructions[r].type for r in results]
        if len(got) != len(op.result_types):
            self.fail(op, f"the function returns {len(got)} values, but declares {len(op.result_types)}")
        for index, (made, declared) in enumerate(zip(got, op.result_types, strict=True)):
            if not _compatible(made, declared):
                self.fail(op, f"result #{index} is {made}, but {declared} is declared")

    # ---- instructions ----------------------------------------------------------------------------------------------

    def _name(self, stem: str) -> str:
        self.number += 1
        return f"{stem}.{self.number}"

    def _parameter(self, body: Body, index: int, kind: Type, location: Any, op: Operation) -> str:
        name = self._name(f"arg{index}")
        place = self.reader.resolve(location) or self._place(op)
        body.instructions[name] = Instruction(name, "parameter", kind, (), Attributes(index=index), (), place)
        return name

    def _place(self, op: Operation) -> FileLocation:
        line, column = self.lines.at(op.offset)
        return FileLocation(self.reader.filename, line, column)

    def _location(self, op: Operation) -> Location | None:
        found = self.reader.resolve(op.location) if op.location is not None else None
        return found or self._place(op)

    def _add(
        self,
        body: Body,
        op: Operation,
        opcode: str,
        kind: Type,
        operands: Iterable[str] = (),
        attributes: Attributes = NO_ATTRIBUTES,
        called: tuple[str, ...] = (),
    ) -> str:
        name = self._name(opcode.removeprefix("chlo.").replace(".", "_"))
        body.instructions[name] = Instruction(
            name, opcode, kind, tuple(operands), attributes, called, self._location(op)
        )
        self.positions[name] = self.lines.at(op.offset)
        return name

    def _value(self, body: Body, op: Operation, name: str) -> str:
        """The instruction that a value of the text is; takes tuples apart."""
        found = body.names.get(name)
        if found is None and "#" not in name:
            found = body.names.get(f"{name}#0") if name + "#1" not in body.names else None
        if found is None:
            found = self._captured_constant(body, op, name)
        if isinstance(found, str):
            return found
        owner, index = found
        kind = body.instructions[owner].type
        assert isinstance(kind, TupleType)
        made = self._add(
            body, op, "get_tuple_element", kind.elements[index], (owner,), Attributes(index=index)
        )
        body.names[name] = made
        return made

    def _captured_constant(self, body: Body, op: Operation, name: str) -> str:
        """Repeats a constant of an enclosing region."""
        constant = self._outer_constant(body, name)
        if constant is None:
            if self._is_defined_outside(body, name):
                self.fail(
                    op, f"{name} is defined outside of the region, which may only use its own arguments"
                )
            self.fail(op, f"{name} is not defined")
        copy = self._name("constant")
        body.instructions[copy] = Instruction(
            copy, "constant", constant.type, (), constant.attributes, (), constant.location
        )
        self.positions[copy] = self.lines.at(op.offset)
        body.names[name] = copy
        return copy

    def _outer_constant(self, body: Body, name: str) -> Instruction | None:
        outer = body.outer
        while outer is not None:
            found = outer.names.get(name)
            if isinstance(found, str):
                made = outer.instructions[found]
                return made if made.opcode == "constant" else None
            outer = outer.outer
        return None

    def _is_defined_outside(self, body: Body, name: str) -> bool:
        outer = body.outer
        while outer is not None:
            if name in outer.names:
                return True
            outer = outer.outer
        return False

    # ---- operations ------------------------------------------------------------------------------------------------

    def _operations(self, body: Body, block: Block) -> list[str]:
        """Adds a block's operations and gives the values that it returns."""
        for op in block.operations:
            if op.name in _RETURNS:
                return [self._operand(body, op, index) for index in range(len(op.operands))]
            self._operation(body, op)
        return []

    def _operand(self, body: Body, op: Operation, index: int) -> str:
        value = self._value(body, op, op.operands[index])
        actual = body.instructions[value].type
        if index < len(op.operand_types):
            declared = op.operand_types[index]
            if declared is not actual and not _compatible(declared, actual) and not _is_check(op):
                self.fail(op, f"{op.operands[index]} is {actual}, but {declared} is written here")
        return value

    def _operation(self, body: Body, op: Operation) -> None:
        opcode = _UNNAMED.get(op.name, op.name.removeprefix("stablehlo."))
        if op.name not in OPERATIONS:
            self.fail(op, f"unknown operation '{op.name}'")
        if opcode == "while":
            self._while(body, op)
        elif opcode in ("case", "if"):
            self._branches(body, op, opcode)
        else:
            operands = [self._operand(body, op, index) for index in range(len(op.operands))]
            types = [body.instructions[operand].type for operand in operands]
            called = self._called(body, op, opcode, types)
            attributes = self._attributes(op, opcode, types)
            if opcode == "optimization_barrier" and len(operands) > 1:
                operands = [self._add(body, op, "tuple", TupleType(tuple(types)), operands)]
            self._define(body, op, self._add(body, op, opcode, _result(op), operands, attributes, called))

    def _attributes(self, op: Operation, opcode: str, types: list[Type]) -> Attributes:
        raw = op.attributes
        if opcode in ("call", "composite", "reduce"):
            raw = {k: v for k, v in raw.items() if k not in ("callee", "decomposition", "applies")}
        try:
            found = normalise(opcode, raw, types)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            self.fail(op, f"{op.name}: {error}")
        return Attributes(found) if found else NO_ATTRIBUTES

    def _define(self, body: Body, op: Operation, made: str) -> None:
        for result in op.results:
            if result in body.names:
                self.fail(op, f"{result} is defined twice")
        if len(op.result_types) == 1:
            for result in op.results:
                body.names[result] = made
        else:
            for index, result in enumerate(op.results):
                body.names[result] = (made, index)

    def _called(self, body: Body, op: Operation, opcode: str, types: list[Type]) -> tuple[str, ...]:
        if opcode in ("call", "composite"):
            callee = op.attributes.get("callee" if opcode == "call" else "decomposition")
            name = str(callee)
            if name not in self.functions:
                self.fail(op, f"function @{name} is not defined")
            if not self.functions[name].regions:
                self.fail(op, f"function @{name} has no body")
            return (name,)
        if "applies" in op.attributes:
            return (self._applied(op, str(op.attributes["applies"]), types),)
        called = op.attributes.get("called_computations")
        if isinstance(called, tuple) and not op.regions:
            return tuple(str(name) for name in called if name in self.functions)
        return tuple(self._region(body, op, block, index) for index, block in enumerate(op.regions))

    def _applied(self, op: Operation, applied: str, types: list[Type]) -> str:
        """The body of `reduce … applies op`: one for each operation and element type of the module."""
        kind = types[0]
        if not isinstance(kind, TensorType):
            self.fail(op, f"{kind} cannot be reduced by {applied}")
        scalar = TensorType(kind.element, ())
        names = ["%0", "%1", "%2"]
        block = Block([(name, scalar, None) for name in names[:2]])
        block.operations.append(Operation(applied, op.offset, names[:2], [scalar] * 2, names[2:], [scalar]))
        block.operations.append(Operation("stablehlo.return", op.offset, names[2:], [scalar]))
        return self._region(Body("", None), op, block, 0)

    def _computation_name(self, stem: str) -> str:
        name, serial = stem, 0
        while name in self.computations or name in self.functions:
            serial += 1
            name = f"{stem}.{serial}"
        return name

    def _region(self, body: Body, op: Operation, block: Block, index: int) -> str:
        """A region that takes its arguments one by one; equal small ones are made once."""
        key = reducer_key(block) if op.name != "hlo.fusion" else None
        if key is not None and key in self.reducers:
            return self.reducers[key]
        stem = applied_name(block) or f"{op.name.split('.')[-1]}_region_{index}.{self.number + 1}"
        inner = Body(self._computation_name(stem), body)
        for position, (argument, kind, location) in enumerate(block.arguments):
            inner.names[argument] = self._parameter(inner, position, kind, location, op)
        self._finish(inner, self._operations(inner, block), op)
        if key is not None:
            self.reducers[key] = inner.name
        return inner.name

    def _finish(self, body: Body, results: list[str], op: Operation) -> None:
        if len(results) == 1:
            root = results[0]
        else:
            kind = TupleType(tuple(body.instructions[result].type for result in results))
            root = self._add(body, op, "tuple", kind, results)
        self.computations[body.name] = make_computation(body.name, body.instructions, root)

    # ---- control flow ------------------------------------------------------------------------------------------------

    def _captures(self, body: Body, blocks: list[Block]) -> list[str]:
        """Values of the enclosing regions that blocks read, constants left out."""
        found: dict[str, None] = {}
        for block in blocks:
            for name in free_values(block):
                if name not in body.names and self._outer_constant(body, name) is not None:
                    continue
                made = body.names.get(name)
                if isinstance(made, str) and body.instructions[made].opcode == "constant":
                    continue
                found[name] = None
        return list(found)

    def _while(self, body: Body, op: Operation) -> None:
        captures = self._captures(body, op.regions)
        state = [self._operand(body, op, index) for index in range(len(op.operands))]
        state += [self._value(body, op, name) for name in captures]
        types = [body.instructions[value].type for value in state]
        single = len(state) == 1
        kind: Type = types[0] if single else TupleType(tuple(types))
        operand = state[0] if single else self._add(body, op, "tuple", kind, state)
        called = []
        number = self.number + 1
        for role, block in zip(("condition", "body"), op.regions, strict=True):
            inner = Body(self._computation_name(f"while_{role}.{number}"), body)
            names = [argument for argument, _, _ in block.arguments] + captures
            self._enter(inner, op, kind, names, single)
            results = self._operations(inner, block)
            if role == "body":
                results += [self._value(inner, op, name) for name in captures]
            if role == "body" and not single:
                inner_kind = TupleType(tuple(inner.instructions[r].type for r in results))
                results = [self._add(inner, op, "tuple", inner_kind, results)]
            if len(results) != 1:
                self.fail(
                    op,
                    f"the {role} of a while must return {'one value' if role == 'condition' else 'its state'}",
                )
            self.computations[inner.name] = make_computation(inner.name, inner.instructions, results[0])
            called.append(inner.name)
        attributes = self._attributes(op, "while", types)
        made = self._add(body, op, "while", kind, (operand,), attributes, tuple(called))
        for index, result in enumerate(op.results):
            body.names[result] = made if single else (made, index)

    def _enter(self, inner: Body, op: Operation, kind: Type, names: list[str], single: bool) -> None:
        """The one parameter of a loop's or branch's computation, its elements under the names of the text."""
        parameter = self._parameter(inner, 0, kind, None, op)
        for index, name in enumerate(names):
            inner.names[name] = parameter if single else (parameter, index)

    def _branches(self, body: Body, op: Operation, opcode: str) -> None:
        operands = [self._operand(body, op, 0)]
        called = []
        number = self.number + 1
        for index, block in enumerate(op.regions):
            captures = self._captures(body, [block])
            values = [self._value(body, op, name) for name in captures]
            kind = TupleType(tuple(body.instructions[value].type for value in values))
            operands.append(self._add(body, op, "tuple", kind, values))
            inner = Body(self._computation_name(f"{opcode}_branch_{index}.{number}"), body)
            self._enter(inner, op, kind, captures, False)
            self._finish(inner, self._operations(inner, block), op)
            called.append(inner.name)
        attributes = self._attributes(op, opcode, [])
        made = self._add(body, op, opcode, _result(op), operands, attributes, tuple(called))
        self._define(body, op, made)


def _result(op: Operation) -> Type:
    return op.result_types[0] if len(op.result_types) == 1 else TupleType(tuple(op.result_types))


def _compatible(left: Type, right: Type) -> bool:
    """True when two types may be the same value at run time: regions may know sizes that the outside does not."""
    if isinstance(left, TensorType) and isinstance(right, TensorType) and left.rank == right.rank:
        sizes = zip(left.shape, right.shape, strict=True)
        return left.element == right.element and all(a == b or DYNAMIC in (a, b) for a, b in sizes)
    return same_value_type(left, right)


def _is_check(op: Operation) -> bool:
    return op.name.startswith("check.")


def _attribute_list(raw: Any, count: int) -> tuple[Attributes, ...]:
    entries = list(raw or ())
    entries += [{}] * (count - len(entries))
    return tuple(Attributes({key: plain(value) for key, value in entry.items()}) for entry in entries[:count])
