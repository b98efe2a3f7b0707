"""The instructions of functions and regions, made from the operations of a text.

Each operation becomes one instruction named `opcode.N`, N counting over the module in the order of the text. Several results
become a tuple, taken apart where they are used. Regions are made isolated: constants they capture are repeated inside, other
values travel through a loop's state or a branch's operand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NoReturn

from compiler.frontend.mlir.normalise import normalise
from compiler.frontend.mlir.opset import OPERATIONS
from compiler.frontend.mlir.positions import Lines, Source
from compiler.frontend.mlir.regions import applied_name, reducer_key
from compiler.frontend.mlir.tree import Block, Operation
from compiler.ir.location import FileLocation, Location
from compiler.ir.program import NO_ATTRIBUTES, Attributes, Computation, Instruction, make_computation
from compiler.ir.types import DYNAMIC, TensorType, TupleType, Type, same_value_type

_RETURNS = frozenset({"return", "func.return", "stablehlo.return", "sdy.return"})
_UNNAMED = {
    "func.call": "call",
    "arith.constant": "constant",
    "chlo.constant": "constant",
    "hlo.bitcast": "bitcast",
    "hlo.copy": "copy",
    "hlo.fusion": "fusion",
}


class Body:
    """A computation being made. `names` maps a value of the text to an instruction, or to (tuple, index)."""

    def __init__(self, name: str, outer: Body | None) -> None:
        self.name = name
        self.outer = outer
        self.terminator: Operation | None = None
        self.instructions: dict[str, Instruction] = {}
        self.names: dict[str, str | tuple[str, int]] = {}


class BodyImporter(ABC):
    """Makes computations; what they are for, the module importer knows."""

    def __init__(self, reader: Source) -> None:
        self.reader = reader
        self.lines = Lines(reader.text, reader.filename, reader.line_offset)
        self.number = 0
        self.computations: dict[str, Computation] = {}
        self.functions: dict[str, Operation] = {}
        self.positions: dict[str, tuple[int, int]] = {}
        self.reducers: dict[Any, str] = {}

    def fail(self, op: Operation, message: str) -> NoReturn:
        """Raises the error at an operation."""
        self.reader.fail(message, op.offset)

    # ---- instructions ----------------------------------------------------------------------------------------------

    def _name(self, stem: str) -> str:
        self.number += 1
        return f"{stem}.{self.number}"

    def _parameter(self, body: Body, index: int, kind: Type, location: Any, op: Operation) -> str:
        name = self._name(f"arg{index}")
        place = self.reader.resolve(location) or self._place(op)
        self.positions[name] = self.lines.at(op.offset)
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
        elif found is None and name.endswith("#0"):
            found = body.names.get(name[:-2]) if name[:-1] + "1" not in body.names else None
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
                body.terminator = op
                return [self._operand(body, op, index) for index in range(len(op.operands))]
            self._operation(body, op)
        return []

    def _operand(self, body: Body, op: Operation, index: int) -> str:
        value = self._value(body, op, op.operands[index])
        actual = body.instructions[value].type
        if index < len(op.operand_types):
            declared = op.operand_types[index]
            if declared is not actual and not compatible(declared, actual) and not _is_check(op):
                self.fail(op, f"{op.operands[index]} is {actual}, but {declared} is written here")
        return value

    def _operation(self, body: Body, op: Operation) -> None:
        opcode = _UNNAMED.get(op.name, op.name.removeprefix("stablehlo."))
        if op.name not in OPERATIONS:
            self.fail(op, f"unknown operation '{op.name}'")
        if not self._control_flow(body, op, opcode):
            operands = [self._operand(body, op, index) for index in range(len(op.operands))]
            types = [body.instructions[operand].type for operand in operands]
            called = self._called(body, op, opcode, types)
            attributes = self._attributes(op, opcode, types)
            if opcode == "optimization_barrier" and len(operands) > 1:
                operands = [self._add(body, op, "tuple", TupleType(tuple(types)), operands)]
            self._define(body, op, self._add(body, op, opcode, result_type(op), operands, attributes, called))

    @abstractmethod
    def _control_flow(self, body: Body, op: Operation, opcode: str) -> bool:
        """Adds a loop or a branch; False for any other operation."""

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


def result_type(op: Operation) -> Type:
    """The type of the instruction: a tuple unless there is exactly one result."""
    return op.result_types[0] if len(op.result_types) == 1 else TupleType(tuple(op.result_types))


def compatible(left: Type, right: Type) -> bool:
    """True when two types may be the same value at run time: regions may know sizes that the outside does not."""
    if isinstance(left, TensorType) and isinstance(right, TensorType) and left.rank == right.rank:
        sizes = zip(left.shape, right.shape, strict=True)
        return left.element == right.element and all(a == b or DYNAMIC in (a, b) for a, b in sizes)
    return same_value_type(left, right)


def _is_check(op: Operation) -> bool:
    return op.name.startswith("check.")
