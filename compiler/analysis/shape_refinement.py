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

from compiler.analysis.known_values import (
    Array,
    Fact,
    digest,
    relevant,
    run_computation,
)
from compiler.analysis.refined_types import RefinementError, entry_type, is_static
from compiler.analysis.shape_clone import Clone, Made, Request, Walk, is_assertion
from compiler.analysis.static_forms import is_dynamic
from compiler.ir.names import NameSource
from compiler.ir.program import Computation, Instruction, Module
from compiler.ir.types import Type


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
    return refiner.finish(refiner.specialise(entry.name, tuple(facts))[0])


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
        for name, computation in module.computations.items():
            self._static[name] = all(
                is_static(instruction.type)
                and not _needs_refinement(instruction)
                and all(map(self.is_static, instruction.called))
                for instruction in computation
            )

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
        return self._static[name]

    def keep(self, name: str) -> None:
        """Takes a static computation and its callees over as they are."""
        waiting = [name]
        while waiting:
            computation = self.module.computations[waiting[-1]]
            missing = [c for i in computation for c in i.called if c not in self.made]
            waiting.extend(missing)
            if not missing:
                waiting.pop()
                self._taken.add(computation.name)
                self.made.setdefault(computation.name, computation)

    def specialise(self, name: str, arguments: tuple[Fact, ...]) -> Made:
        """The clone of a computation for arguments, and what is known of its result.

        Callees are walked on an explicit stack: calls may be nested deeper than Python's own.
        """
        pending: Request | None = (name, arguments)
        answer: Made | None = None
        stack: list[tuple[Clone, Walk]] = []
        while True:
            if pending is not None:
                answer = self._made_already(*pending)
                if answer is None:
                    clone = self._begin(*pending)
                    stack.append((clone, clone.walk()))
            if not stack:
                assert answer is not None
                return answer
            try:
                pending = stack[-1][1].send(answer)
            except StopIteration:
                pending, answer = None, self._end(stack.pop()[0])

    def _made_already(self, name: str, arguments: tuple[Fact, ...]) -> Made | None:
        original = self.module.computations[name]
        if self.is_static(name) and original.parameter_types == tuple(fact.type for fact in arguments):
            self.keep(name)
            return name, Fact(original.result_type, run_computation(self.module, name, arguments))
        return self._by_key.get(_key(name, arguments))

    def _begin(self, name: str, arguments: tuple[Fact, ...]) -> Clone:
        is_first = name not in self._taken
        self._taken.add(name)
        arguments = tuple(map(relevant, arguments))
        return Clone(self, self.module.computations[name], arguments, keeps_names=is_first)

    def _end(self, clone: Clone) -> Made:
        original = clone.original
        name = original.name if clone.keeps_names else self._names.computation(original.name)[0]
        parameters = tuple(clone.renamed[parameter] for parameter in original.parameters)
        root = clone.renamed[original.root]
        self.made[name] = Computation(name, MappingProxyType(clone.instructions), root, parameters)
        made = name, clone.facts[original.root]
        self._by_key[_key(original.name, clone.arguments)] = made
        return made

    def fresh(self, opcode: str, origin: str) -> str:
        """A name for a new instruction that descends from one of the program read."""
        name = self._names.instruction(opcode, origin)[0]
        self.origins[name] = origin
        return name


def _key(name: str, arguments: tuple[Fact, ...]) -> object:
    facts = map(relevant, arguments)
    return name, tuple((fact.type, digest(fact.value)) for fact in facts)


def _needs_refinement(instruction: Instruction) -> bool:
    return is_assertion(instruction) or (
        is_dynamic(instruction) and instruction.opcode != "get_dimension_size"
    )
