"""Which instruction's buffer a value lives in, and in which order everything runs.

A tuple has no buffer; `tuple`, `get_tuple_element`, `bitcast` and `call` only give names to buffers that others make.
`Values.source` follows such names to the leaf that owns the buffer. A leaf of a `while` state that the body returns
unchanged is invariant: it is the initial value's own buffer, never written. Any other leaf of a `while` owns one
buffer that the initial value, the body's parameter and the body's result share (copy insertion makes that legal).

Requires that every computation called by control flow has one caller (`flatten-call-graph`).
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler.analysis.plan import ValueKey
from compiler.ir.program import Computation, Instruction, Module
from compiler.ir.types import TensorType, TupleType, Type

CONTROL = frozenset({"while", "case", "if", "call"})
ALIASES = frozenset({"tuple", "get_tuple_element", "bitcast", "optimization_barrier"})
"""Operations that make no buffer of their own."""
NO_CODE = frozenset({"parameter", "constant", "after_all", "create_token"}) | ALIASES
"""Operations for which nothing is run."""


def leaves(value_type: Type, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], TensorType]]:
    """The tensors inside a type with their paths, in order; tokens have none."""
    if isinstance(value_type, TupleType):
        for index, inner in enumerate(value_type.elements):
            yield from leaves(inner, (*path, index))
    elif isinstance(value_type, TensorType):
        yield path, value_type


class Values:
    """Sources of leaves and the flattened order of a module. See the module's docstring."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.callers: dict[str, tuple[str, str]] = {}
        """Computation run by control flow -> (computation, instruction) that runs it."""
        self.steps: list[tuple[str, str]] = []
        """All instructions in order of execution, inner computations ahead of the instruction that runs them."""
        self._sources: dict[ValueKey, ValueKey] = {}
        self._through: dict[tuple[str, tuple[int, ...]], bool] = {}
        self._flatten(module.entry)
        self.step_of = {place: step for step, place in enumerate(self.steps)}

    def _flatten(self, name: str) -> None:
        for instruction in self.module.computations[name]:
            if instruction.opcode in CONTROL:
                for callee in instruction.called:
                    if callee in self.callers:
                        raise ValueError(
                            f"{callee} is run from {self.callers[callee]} and from {instruction.name}"
                        )
                    self.callers[callee] = (name, instruction.name)
                    self._flatten(callee)
            self.steps.append((name, instruction.name))

    @property
    def computations(self) -> list[Computation]:
        """The computations that run as they stand, innermost first, the entry last."""
        names = dict.fromkeys(computation for computation, _ in self.steps)
        ordered = [name for name in self.module.computations if name in names]
        return [self.module.computations[name] for name in ordered]

    def is_invariant(self, loop: Instruction, path: tuple[int, ...]) -> bool:
        """True when a loop's body hands this leaf on untouched."""
        return self._passes_through(self.module.computations[loop.called[1]], path)

    def _passes_through(self, body: Computation, path: tuple[int, ...]) -> bool:
        key = (body.name, path)
        if key not in self._through:
            found = self._follow_names(body, body.root, path)
            self._through[key] = found == (body.parameters[0], path)
        return self._through[key]

    def _follow_names(
        self, computation: Computation, name: str, path: tuple[int, ...]
    ) -> tuple[str, tuple[int, ...]]:
        """Follows aliases inside one computation, and through inner loops that hand a leaf on untouched."""
        while True:
            instruction = computation.instructions[name]
            if instruction.opcode == "tuple":
                name, path = instruction.operands[path[0]], path[1:]
            elif instruction.opcode == "get_tuple_element":
                name, path = instruction.operands[0], (instruction.attributes["index"], *path)
            elif instruction.opcode == "bitcast":
                name = instruction.operands[0]
            elif instruction.opcode == "optimization_barrier":
                name, path = _through_barrier(instruction, path)
            elif instruction.opcode == "while" and self._passes_through(
                self.module.computations[instruction.called[1]], path
            ):
                name = instruction.operands[0]
            else:
                return name, path

    def source(self, computation: str, name: str, path: tuple[int, ...] = ()) -> ValueKey:
        """The leaf that owns the buffer in which a value lives."""
        key = (computation, name, path)
        found = self._sources.get(key)
        if found is None:
            found = self._find(computation, name, path)
            self._sources[key] = found
        return found

    def _find(self, computation: str, name: str, path: tuple[int, ...]) -> ValueKey:
        while True:
            body = self.module.computations[computation]
            name, path = self._follow_names(body, name, path)
            instruction = body.instructions[name]
            if instruction.opcode == "call":
                computation = instruction.called[0]
                name = self.module.computations[computation].root
            elif instruction.opcode == "parameter" and computation in self.callers:
                outer, caller_name = self.callers[computation]
                caller = self.module.instruction(outer, caller_name)
                if caller.opcode == "while":
                    loop_body = self.module.computations[caller.called[1]]
                    if not self._passes_through(loop_body, path):
                        return (outer, caller_name, path)
                    operand = caller.operands[0]
                elif caller.opcode == "call":
                    operand = caller.operands[instruction.attributes["index"]]
                else:
                    operand = caller.operands[1 + caller.called.index(computation)]
                computation, name = outer, operand
            else:
                return (computation, name, path)


def _through_barrier(instruction: Instruction, path: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    if len(instruction.operands) == 1:
        return instruction.operands[0], path
    return instruction.operands[path[0]], path[1:]
