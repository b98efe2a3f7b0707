"""One computation made static for the types of its arguments: the walk over its instructions.

Used by `compiler.analysis.shape_refinement`, which decides what is cloned and runs the walks. A walk stops wherever it needs
another computation (a callee, a loop's body, a branch) and goes on with what was made.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol, TypeVar

from compiler.analysis.distances import Distances
from compiler.analysis.known_values import Fact, Known, evaluate, run, together
from compiler.analysis.refined_types import RefinementError, is_static, refined_type
from compiler.analysis.static_forms import Form, UnknownSize, Use, static_form
from compiler.ir.program import Attributes, Computation, Instruction, Module
from compiler.ir.semantics import OperationError
from compiler.ir.types import TOKEN, TensorType, TupleType, Type

Request = tuple[str, tuple[Fact, ...]]
"""A computation that is needed for arguments."""
Made = tuple[str, Fact]
"""The clone's name, and what is known of its result."""
_Result = TypeVar("_Result")
Asking = Generator[Request, Made | None, _Result]
"""Work that stops wherever it needs a computation, and goes on with what was made."""
Walk = Asking[None]

_RUN_AS_THEY_STAND = frozenset({"call", "composite", "while", "case", "if"})
_ASSERTION = "shape_assertion"


class Refiner(Protocol):
    """What a walk needs of the refinement that it is part of."""

    @property
    def module(self) -> Module:
        """The program as it was read."""
        ...

    def is_static(self, name: str) -> bool:
        """True when a computation, and whatever it calls, is static as it stands."""
        ...

    def keep(self, name: str) -> None:
        """Takes a static computation and its callees over as they are."""
        ...

    def fresh(self, opcode: str, origin: str) -> str:
        """A name for a new instruction that descends from one of the program read."""
        ...


class Clone:
    """One computation in the making. `facts` and `renamed` go by the original's names."""

    def __init__(
        self, refiner: Refiner, original: Computation, arguments: tuple[Fact, ...], *, keeps_names: bool
    ) -> None:
        self.refiner = refiner
        self.original = original
        self.arguments = arguments
        self.keeps_names = keeps_names
        self.facts: dict[str, Fact] = {}
        self.renamed: dict[str, str] = {}
        self.instructions: dict[str, Instruction] = {}

    def walk(self) -> Walk:
        """Refines every instruction in order, asking for the computations that they run. Raises RefinementError."""
        for instruction in self.original:
            operands = tuple(self.facts[name] for name in instruction.operands)
            try:
                if instruction.opcode in _RUN_AS_THEY_STAND:
                    yield from self._control(instruction, operands)
                else:
                    self._refine(instruction, operands)
            except UnknownSize as error:
                raise RefinementError(f"stays dynamic: {error}", instruction) from None
            except OperationError as error:
                raise RefinementError(str(error), instruction) from None

    def _refine(self, instruction: Instruction, operands: tuple[Fact, ...]) -> None:
        if instruction.opcode == "parameter":
            fact = self.arguments[instruction.attributes["index"]]
            self._emit(instruction.with_type(fact.type), instruction, fact)
        elif is_assertion(instruction):
            self._check_assertion(instruction, operands)
        else:
            types, values = [fact.type for fact in operands], [fact.value for fact in operands]
            use = Use(instruction, types, values, self._distance(instruction))
            form = static_form(use)
            if form is not None and form.opcode == "dynamic_slice":
                self._dynamic_slice(instruction, form)
            else:
                self._plain(instruction, form, operands)

    def _plain(self, instruction: Instruction, form: Form | None, operands: tuple[Fact, ...]) -> None:
        """An instruction that calls nothing, or only computations on scalars."""
        made = instruction
        if form is not None:
            chosen = tuple(instruction.operands[index] for index in form.operands)
            operands = tuple(operands[index] for index in form.operands)
            made = Instruction(
                instruction.name,
                form.opcode,
                form.type or instruction.type,
                chosen,
                form.attributes,
                instruction.called,
                instruction.location,
            )
        called = []
        for name in made.called:
            if not self.refiner.is_static(name):
                raise UnknownSize(f"its computation {name} has values of dynamic size")
            self.refiner.keep(name)
            called.append(self.refiner.module.computations[name])
        made = made.with_type(refined_type(made, [fact.type for fact in operands], called))
        self._emit(made, instruction, Fact(made.type, self._value(made, operands)))

    def _distance(self, instruction: Instruction) -> tuple[int, ...] | None:
        """The sizes of a slice from its starts to its limits, if they follow from the program."""
        if instruction.opcode != "real_dynamic_slice":
            return None
        if instruction.tensor.is_static:
            return instruction.tensor.shape
        _, starts, limits, _ = instruction.operands
        found = Distances(self.original, self.facts).between(starts, limits)
        return None if found is None else tuple(int(size) for size in found)

    def _value(self, made: Instruction, operands: tuple[Fact, ...]) -> Known:
        if made.opcode == "tuple":
            return together([fact.value for fact in operands])
        if made.opcode == "get_tuple_element":
            return operands[0].part(made.attributes["index"]).value
        if made.opcode == "optimization_barrier":
            return operands[0].value if len(operands) == 1 else together([fact.value for fact in operands])
        return evaluate(self.refiner.module, made, operands)

    def _emit(self, made: Instruction, origin: Instruction, fact: Fact) -> None:
        name = origin.name if self.keeps_names else self.refiner.fresh(made.opcode, origin.name)
        self.renamed[origin.name] = name
        self.facts[origin.name] = fact
        operands = tuple(self.renamed[operand] for operand in made.operands)
        self.instructions[name] = Instruction(
            name, made.opcode, made.type, operands, made.attributes, made.called, made.location
        )

    def _check_assertion(self, instruction: Instruction, operands: tuple[Fact, ...]) -> None:
        """A `shape_assertion` that holds leaves nothing behind."""
        for index, fact in enumerate(operands):
            if fact.value is None:
                raise UnknownSize(
                    f"operand #{index} ({instruction.operands[index]}) does not follow from shapes"
                )
        run(self.refiner.module, instruction, operands)
        opcode = "tuple" if isinstance(instruction.type, TupleType) else "create_token"
        made = Instruction(
            instruction.name,
            opcode,
            TupleType(()) if opcode == "tuple" else TOKEN,
            location=instruction.location,
        )
        self._emit(made, instruction, Fact(made.type))

    # ---- Control flow -----------------------------------------------------------------------------------------------

    def _control(self, instruction: Instruction, operands: tuple[Fact, ...]) -> Walk:
        if instruction.opcode == "while":
            called, fact = yield from self._loop(instruction, operands[0])
        elif instruction.opcode in ("case", "if"):
            called, fact = yield from self._branches(instruction, operands)
        else:
            name, fact = yield from _ask(instruction.called[0], operands)
            called = (name,)
        if not is_static(fact.type):
            raise UnknownSize(f"its result has the type {fact.type}")
        self._emit(instruction.with_called(called).with_type(fact.type), instruction, fact)

    def _loop(self, instruction: Instruction, state: Fact) -> Asking[tuple[tuple[str, ...], Fact]]:
        """A loop; of its state only what the body hands on unchanged is known inside."""
        body = self.refiner.module.computations[instruction.called[1]]
        kept = Fact(state.type, _invariant(body, state))
        condition, _ = yield from _ask(instruction.called[0], (kept,))
        name, result = yield from _ask(instruction.called[1], (kept,))
        if result.type != state.type:
            raise OperationError(f"the loop's state is {state.type}, but its body returns {result.type}")
        return (condition, name), kept

    def _branches(
        self, instruction: Instruction, operands: tuple[Fact, ...]
    ) -> Asking[tuple[tuple[str, ...], Fact]]:
        made = []
        for name, captured in zip(instruction.called, operands[1:], strict=True):
            made.append((yield from _ask(name, (captured,))))
        first = made[0][1].type
        for index, (_, fact) in enumerate(made):
            if fact.type != first:
                raise OperationError(f"branch 0 returns {first}, but branch {index} returns {fact.type}")
        return tuple(name for name, _ in made), Fact(first, self._chosen(instruction, operands[0], made))

    def _chosen(self, instruction: Instruction, index: Fact, made: Sequence[tuple[str, Fact]]) -> Known:
        if not hasattr(index.value, "shape") or index.value is None:
            return None
        value = int(index.value)  # type: ignore[arg-type]
        if instruction.opcode == "if":
            return made[0 if value else 1][1].value
        return made[value if 0 <= value < len(made) else -1][1].value

    def _dynamic_slice(self, instruction: Instruction, form: Form) -> None:
        """A slice of static sizes from starts that are known at run time: one scalar start for each dimension."""
        operand, starts = (self.renamed[instruction.operands[index]] for index in form.operands)
        kind = self.facts[instruction.operands[1]].type
        assert isinstance(kind, TensorType) and isinstance(form.type, TensorType)
        scalars = []
        for index in range(kind.shape[0]):
            place = Attributes(start_indices=(index,), limit_indices=(index + 1,), strides=(1,))
            part = self._add("slice", kind.with_shape((1,)), (starts,), place, instruction)
            scalars.append(self._add("reshape", kind.with_shape(()), (part,), Attributes(), instruction))
        name = instruction.name if self.keeps_names else self.refiner.fresh("dynamic_slice", instruction.name)
        self.renamed[instruction.name] = name
        self.facts[instruction.name] = Fact(form.type)
        self.instructions[name] = Instruction(
            name, "dynamic_slice", form.type, (operand, *scalars), form.attributes, (), instruction.location
        )

    def _add(
        self, opcode: str, kind: Type, operands: tuple[str, ...], attributes: Attributes, origin: Instruction
    ) -> str:
        name = self.refiner.fresh(opcode, origin.name)
        self.instructions[name] = Instruction(name, opcode, kind, operands, attributes, (), origin.location)
        return name


def _ask(name: str, arguments: tuple[Fact, ...]) -> Asking[Made]:
    answer = yield name, arguments
    assert answer is not None
    return answer


def is_assertion(instruction: Instruction) -> bool:
    """True for `custom_call @shape_assertion`."""
    return instruction.opcode == "custom_call" and instruction.attributes["call_target_name"] == _ASSERTION


def _invariant(body: Computation, state: Fact) -> Known:
    """The parts of a loop's state that the body returns as it got them."""
    root, parameter = body.root_instruction, body.parameters[0]
    if body.root == parameter:
        return state.value
    if root.opcode != "tuple" or not isinstance(state.value, tuple):
        return None
    kept: list[Known] = []
    for index, name in enumerate(root.operands):
        part = body[name]
        is_kept = part.opcode == "get_tuple_element" and part.operands == (parameter,)
        kept.append(state.value[index] if is_kept and part.attributes["index"] == index else None)
    return together(kept)
