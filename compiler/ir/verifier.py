"""Checks that a module is well formed: its structure first, then each instruction by the rules of its operation.

Run on what a frontend read, and on request after every pass. Structure means: names are unique in the module and agree
with their keys, operands stand before their users, called computations exist and do not call themselves, parameters are
complete, roots exist. The operations' own rules come from `Semantics`. All problems are collected, not only the first:
a reader of a broken model wants the whole list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from compiler.ir.literal import Literal
from compiler.ir.location import Location, source_line
from compiler.ir.program import Computation, Instruction, Module
from compiler.ir.semantics import NO_CONSTANTS, OperationError, Semantics

MAX_PROBLEMS = 100
"""Problems after which checking stops: a thoroughly broken module need not be listed line by line."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule: where (names of computation and instruction, source location) and which, in words."""

    computation: str
    instruction: str
    message: str
    location: Location | None = None

    def __str__(self) -> str:
        place = source_line(self.location)
        where = f"{place}: " if place is not None else ""
        subject = f"{self.computation}/{self.instruction}" if self.instruction else self.computation
        return f"{where}{subject}: {self.message}"


class VerificationError(Exception):
    """A module is not well formed; `problems` lists what was found."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def verify(module: Module, semantics: Semantics) -> None:
    """Checks a module.

    Raises:
        VerificationError: listing all problems (at most MAX_PROBLEMS). Operations are checked only where the structure
            holds, since their rules look at operands and called computations.
    """
    problems = _Collector()
    for problem in _structure(module):
        problems.add(problem)
    if not problems.found:
        for computation in module.computations.values():
            for problem in _operations(module, computation, semantics):
                problems.add(problem)
    if problems.found:
        raise VerificationError(problems.found)


class _Collector:
    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, problem: Problem) -> None:
        self.found.append(problem)
        if len(self.found) >= MAX_PROBLEMS:
            raise VerificationError(self.found)


# ---- structure ---------------------------------------------------------------------------------------------------


def _structure(module: Module) -> Iterator[Problem]:
    if module.entry not in module.computations:
        yield Problem(module.entry, "", "the module has no computation of this name to be its entry")
    owners: dict[str, str] = {}
    for name, computation in module.computations.items():
        if name != computation.name:
            yield Problem(name, "", f"the computation is called {computation.name}")
        yield from _body(module, computation, owners)
    cycle = recursion(module.computations)
    if cycle:
        yield Problem(cycle[0], "", f"the computation calls itself: {' -> '.join(cycle)}")


def _body(module: Module, computation: Computation, owners: dict[str, str]) -> Iterator[Problem]:
    where = computation.name
    instructions = computation.instructions
    seen: set[str] = set()
    for name, instruction in instructions.items():
        if name != instruction.name:
            yield _at(where, instruction, f"the instruction is kept under the name {name}")
        other = owners.setdefault(name, where)
        if other is not where:
            yield _at(where, instruction, f"the name is also used in {other}")
        for operand in instruction.operands:
            if operand not in seen:
                state = "stands after its user" if operand in instructions else "is not defined"
                yield _at(where, instruction, f"operand {operand} {state}")
        for callee in instruction.called:
            if callee not in module.computations:
                yield _at(where, instruction, f"calls {callee}, which does not exist")
        seen.add(name)
    if computation.root not in instructions:
        yield Problem(where, "", f"the root {computation.root} does not exist")
    yield from _parameters(computation)


def _parameters(computation: Computation) -> Iterator[Problem]:
    found: dict[int, str] = {}
    is_sound = True
    for instruction in computation:
        if instruction.opcode != "parameter":
            continue
        index = instruction.attributes.get("index")
        if not isinstance(index, int) or index < 0:
            is_sound = False
            yield _at(computation.name, instruction, f"{index!r} is not the index of a parameter")
        elif index in found:
            is_sound = False
            yield _at(computation.name, instruction, f"parameter {index} is also {found[index]}")
        else:
            found[index] = instruction.name
    for index in range(len(found)):
        if index not in found:
            yield Problem(computation.name, "", f"parameter {index} is missing")
            return
    if is_sound and computation.parameters != tuple(found[index] for index in range(len(found))):
        yield Problem(
            computation.name, "", f"the parameters are listed as {', '.join(computation.parameters)}"
        )


def recursion(computations: Mapping[str, Computation]) -> tuple[str, ...]:
    """The names along one circle of calls, its first again last; empty when no computation reaches itself."""
    callees = {
        name: [
            callee for instruction in computation for callee in instruction.called if callee in computations
        ]
        for name, computation in computations.items()
    }
    done: set[str] = set()
    for start in computations:
        if start in done:
            continue
        path = [start]
        on_path = {start}
        rest = [iter(callees[start])]
        while path:
            callee = next(rest[-1], None)
            if callee is None:
                rest.pop()
                on_path.discard(path[-1])
                done.add(path.pop())
            elif callee in on_path:
                return (*path[path.index(callee) :], callee)
            elif callee not in done:
                path.append(callee)
                on_path.add(callee)
                rest.append(iter(callees[callee]))
    return ()


# ---- operations --------------------------------------------------------------------------------------------------


def _operations(module: Module, computation: Computation, semantics: Semantics) -> Iterator[Problem]:
    instructions = computation.instructions
    computations = module.computations
    for instruction in instructions.values():
        operands = [instructions[operand].type for operand in instruction.operands]
        called = [computations[callee] for callee in instruction.called]
        sizes = semantics.size_operands(instruction.opcode)
        constants = _constants(computation, instruction, sizes) if sizes else NO_CONSTANTS
        try:
            semantics.verify(
                instruction.opcode, operands, instruction.attributes, called, instruction.type, constants
            )
        except OperationError as error:
            yield _at(computation.name, instruction, str(error))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # An attribute of another kind than the rule expects: the file's fault, not a reason to stop.
            yield _at(
                computation.name, instruction, f"{instruction.opcode} has malformed attributes ({error})"
            )


def _constants(
    computation: Computation, instruction: Instruction, numbers: Iterable[int]
) -> dict[int, Literal]:
    """The values of those operands, by number, that are constants."""
    found = {}
    for number in numbers:
        if number < len(instruction.operands):
            operand = computation.instructions[instruction.operands[number]]
            value = operand.attributes.get("value")
            if operand.opcode == "constant" and isinstance(value, Literal):
                found[number] = value
    return found


def _at(computation: str, instruction: Instruction, message: str) -> Problem:
    return Problem(computation, instruction.name, message, instruction.location)
