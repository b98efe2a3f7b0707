"""Loops and branches: what their regions read from outside travels through a loop's state or a branch's operand.

A loop has one operand, the tuple of its carried values and captures (the value itself if there is exactly one); a branch is
given a tuple of its captures. Constants are repeated inside instead of being carried.
"""

from __future__ import annotations

from compiler.frontend.mlir.bodies import Body, BodyImporter, compatible, result_type
from compiler.frontend.mlir.regions import free_values
from compiler.frontend.mlir.tree import Block, Operation
from compiler.ir.program import make_computation
from compiler.ir.types import TupleType, Type


class ControlFlowImporter(BodyImporter):
    """Adds loops and branches to what single operations need."""

    def _control_flow(self, body: Body, op: Operation, opcode: str) -> bool:
        """Adds a loop or a branch; False for any other operation."""
        if opcode == "while":
            self._while(body, op)
        elif opcode in ("case", "if"):
            self._branches(body, op, opcode)
        else:
            return False
        return True

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
        self._check_arguments(op, types)
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

    def _check_arguments(self, op: Operation, types: list[Type]) -> None:
        """The regions' own idea of the state must agree with what they are given."""
        for block in op.regions:
            for (name, declared, _), actual in zip(block.arguments, types, strict=False):
                if not compatible(declared, actual):
                    self.fail(op, f"the loop's {name} is {declared}, but it is given {actual}")

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
            if block.arguments:
                self.fail(op, f"branch {index} must not have arguments, but has {len(block.arguments)}")
            captures = self._captures(body, [block])
            values = [self._value(body, op, name) for name in captures]
            kind = TupleType(tuple(body.instructions[value].type for value in values))
            operands.append(self._add(body, op, "tuple", kind, values))
            inner = Body(self._computation_name(f"{opcode}_branch_{index}.{number}"), body)
            self._enter(inner, op, kind, captures, False)
            self._finish(inner, self._operations(inner, block), op)
            called.append(inner.name)
        attributes = self._attributes(op, opcode, [])
        made = self._add(body, op, opcode, result_type(op), operands, attributes, tuple(called))
        self._define(body, op, made)
