"""Makes a program with `?` dimensions static, given the types of the actual arguments.

Runs between reading a model and compiling it. Types are propagated from the entry's parameters through every instruction
by the operations' own inference; computations that are called with several types, or with several known sizes, are
cloned for each. Sizes that the program computes (`get_dimension_size` and arithmetic on it, the leading dimension
arguments of exported programs) are followed as values, operations that take sizes as operands become their static forms,
and `custom_call @shape_assertion` is checked and dropped.

The first clone of a computation keeps all names, so an instruction is called as it was in the program that was read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from compiler.analysis.distances import Distances
from compiler.analysis.known_values import (
    Array,
    Fact,
    Known,
    digest,
    evaluate,
    relevant,
    run,
    run_computation,
    together,
)
from compiler.analysis.refined_types import RefinementError, entry_type, is_static, refined_type
from compiler.analysis.static_forms import Form, UnknownSize, Use, is_dynamic, static_form
from compiler.ir.names import NameSource
from compiler.ir.program import Attributes, Computation, Instruction, Module
from compiler.ir.semantics import OperationError
from compiler.ir.types import TOKEN, TensorType, TupleType, Type

_RUN_AS_THEY_STAND = frozenset({"call", "composite", "while", "case", "if"})
_ASSERTION = "shape_assertion"


@dataclass(frozen=True)
class Refined:
    """A static module; `origins` tells of each instruction with a new name which one of the program read it was."""

    module: Module
    origins: Mapping[str, str] = field(default_factory=dict)


def is_dynamic_module(module: Module) -> bool:
    """True when some type or operation waits for refinement."""
    return any(
        not is_static(instruction.type) or _needs_refinement(instruction)
        for computation in module.computations.values()
        for instruction in computation
    )


def refine(module: Module, entry_types: Sequence[Type], values: Mapping[int, Array] | None = None) -> Refined:
    """The module for arguments of the given static types.

    `values` holds the values of entry parameters that sizes depend on; the result is right for these alone.

    Raises:
        RefinementError: when an argument does not fit, an assertion on shapes fails, or something stays dynamic.
    """
    entry = module.entry_computation
    if len(entry_types) != len(entry.parameters):
        raise RefinementError(f"{entry.name} takes {len(entry.parameters)} arguments, not {len(entry_types)}")
    facts = []
    for index, (declared, given) in enumerate(zip(entry.parameter_types, entry_types, strict=True)):
        facts.append(Fact(entry_type(index, declared, given), (values or {}).get(index)))
    refiner = _Refiner(module)
    try:
        name, _ = refiner.specialise(entry.name, tuple(facts))
    except RecursionError:
        raise RefinementError("calls are nested too deeply to be refined") from None
    return refiner.finish(name)


class _Refiner:
    """The clones made so far, callees ahead of callers."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.made: dict[str, Computation] = {}
        self.origins: dict[str, str] = {}
        self._names = NameSource(module.lineages, module.computations)
        self._by_key: dict[object, tuple[str, Fact]] = {}
        self._taken: set[str] = set()
        self._static: dict[str, bool] = {}

    def finish(self, entry: str) -> Refined:
        """The module of everything that was made."""
        old = self.module
        module = Module(
            old.name,
            MappingProxyType(self.made),
            entry,
            old.attributes,
            old.parameter_attributes,
            old.result_attributes,
            dict(self._names.lineages),
        )
        return Refined(module, self.origins)

    def is_static(self, name: str) -> bool:
        """True when a computation, and whatever it calls, is static as it stands."""
        found = self._static.get(name)
        if found is None:
            found = all(
                is_static(instruction.type)
                and not _needs_refinement(instruction)
                and all(map(self.is_static, instruction.called))
                for instruction in self.module.computations[name]
            )
            self._static[name] = found
        return found

    def keep(self, name: str) -> None:
        """Takes a static computation and its callees over as they are."""
        if name not in self.made:
            for instruction in self.module.computations[name]:
                for callee in instruction.called:
                    self.keep(callee)
            self._taken.add(name)
            self.made[name] = self.module.computations[name]

    def specialise(self, name: str, arguments: tuple[Fact, ...]) -> tuple[str, Fact]:
        """The clone of a computation for arguments, and what is known of its result."""
        original = self.module.computations[name]
        if self.is_static(name) and all(
            fact.type == kind for fact, kind in zip(arguments, original.parameter_types, strict=True)
        ):
            self.keep(name)
            return name, Fact(original.result_type, run_computation(self.module, name, arguments))
        arguments = tuple(map(relevant, arguments))
        key = (name, tuple((fact.type, digest(fact.value)) for fact in arguments))
        if key not in self._by_key:
            self._by_key[key] = self._clone(original, arguments)
        return self._by_key[key]

    def _clone(self, original: Computation, arguments: tuple[Fact, ...]) -> tuple[str, Fact]:
        is_first = original.name not in self._taken
        self._taken.add(original.name)
        clone = _Clone(self, original, arguments, keeps_names=is_first)
        clone.walk()
        name = original.name if is_first else self._names.computation(original.name)[0]
        parameters = tuple(clone.renamed[parameter] for parameter in original.parameters)
        root = clone.renamed[original.root]
        self.made[name] = Computation(name, MappingProxyType(clone.instructions), root, parameters)
        return name, clone.facts[original.root]

    def fresh(self, opcode: str, origin: str) -> str:
        """A name for a new instruction that descends from one of the program read."""
        name = self._names.instruction(opcode, origin)[0]
        self.origins[name] = origin
        return name


class _Clone:
    """One computation in the making. `facts` and `renamed` go by the original's names."""

    def __init__(
        self, refiner: _Refiner, original: Computation, arguments: tuple[Fact, ...], *, keeps_names: bool
    ) -> None:
        self.refiner = refiner
        self.original = original
        self.arguments = arguments
        self.keeps_names = keeps_names
        self.facts: dict[str, Fact] = {}
        self.renamed: dict[str, str] = {}
        self.instructions: dict[str, Instruction] = {}

    def walk(self) -> None:
        """Refines every instruction in order. Raises RefinementError."""
        for instruction in self.original:
            operands = tuple(self.facts[name] for name in instruction.operands)
            try:
                self._refine(instruction, operands)
            except UnknownSize as error:
                raise RefinementError(f"stays dynamic: {error}", instruction) from None
            except OperationError as error:
                raise RefinementError(str(error), instruction) from None

    def _refine(self, instruction: Instruction, operands: tuple[Fact, ...]) -> None:
        if instruction.opcode == "parameter":
            fact = self.arguments[instruction.attributes["index"]]
            self._emit(instruction.with_type(fact.type), instruction, fact)
        elif _is_assertion(instruction):
            self._check_assertion(instruction, operands)
        elif instruction.opcode in _RUN_AS_THEY_STAND:
            self._control(instruction, operands)
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

    def _control(self, instruction: Instruction, operands: tuple[Fact, ...]) -> None:
        if instruction.opcode == "while":
            called, fact = self._loop(instruction, operands[0])
        elif instruction.opcode in ("case", "if"):
            called, fact = self._branches(instruction, operands)
        else:
            name, fact = self.refiner.specialise(instruction.called[0], operands)
            called = (name,)
        if not is_static(fact.type):
            raise UnknownSize(f"its result has the type {fact.type}")
        self._emit(instruction.with_called(called).with_type(fact.type), instruction, fact)

    def _loop(self, instruction: Instruction, state: Fact) -> tuple[tuple[str, ...], Fact]:
        """A loop; of its state only what the body hands on unchanged is known inside."""
        body = self.refiner.module.computations[instruction.called[1]]
        kept = Fact(state.type, _invariant(body, state))
        condition, _ = self.refiner.specialise(instruction.called[0], (kept,))
        name, result = self.refiner.specialise(instruction.called[1], (kept,))
        if result.type != state.type:
            raise OperationError(f"the loop's state is {state.type}, but its body returns {result.type}")
        return (condition, name), kept

    def _branches(self, instruction: Instruction, operands: tuple[Fact, ...]) -> tuple[tuple[str, ...], Fact]:
        made = [
            self.refiner.specialise(name, (captured,))
            for name, captured in zip(instruction.called, operands[1:], strict=True)
        ]
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


def _is_assertion(instruction: Instruction) -> bool:
    return instruction.opcode == "custom_call" and instruction.attributes["call_target_name"] == _ASSERTION


def _needs_refinement(instruction: Instruction) -> bool:
    return _is_assertion(instruction) or (
        is_dynamic(instruction) and instruction.opcode != "get_dimension_size"
    )


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
