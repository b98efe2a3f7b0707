"""Verification of whole modules: structure first, then every instruction by its operation's own rules.

Run on what the frontend made, and in tests after every stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compiler.ir.program import Computation, Instruction, Module
from compiler.ir.semantics import OperationError, Semantics


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule."""

    computation: str
    instruction: Instruction | None
    message: str

    def __str__(self) -> str:
        where = f"{self.computation}/{self.instruction.name}" if self.instruction else self.computation
        return f"{where}: {self.message}"


class VerificationError(ValueError):
    """The module is not valid; `problems` say where and why."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{problems[0]}{more}")


def verify(module: Module, semantics: Semantics) -> None:
    """Checks a module.

    Raises:
        VerificationError: with every problem found.
    """
    found = list(problems(module, semantics))
    if found:
        raise VerificationError(found)


def problems(module: Module, semantics: Semantics) -> Iterator[Problem]:
    """Everything that is wrong with a module, in order of the text."""
    if module.entry not in module.computations:
        yield Problem(module.entry, None, "the entry computation is missing")
        return
    owners: dict[str, str] = {}
    done: set[str] = set()
    for computation in module.computations.values():
        for instruction in computation:
            if instruction.name in owners:
                yield Problem(
                    computation.name, instruction, f"its name is also used in {owners[instruction.name]}"
                )
            owners[instruction.name] = computation.name
        yield from _structure(module, computation, done)
        yield from _instructions(module, computation, semantics)
        done.add(computation.name)


def _structure(module: Module, computation: Computation, done: set[str]) -> Iterator[Problem]:
    if computation.root not in computation.instructions:
        yield Problem(computation.name, None, f"its root {computation.root} is missing")
    for index, name in enumerate(computation.parameters):
        found = computation.instructions.get(name)
        if found is None or found.opcode != "parameter" or found.attributes.get("index") != index:
            yield Problem(computation.name, found, f"parameter {index} is not in its place")
    seen: set[str] = set()
    for instruction in computation:
        for operand in instruction.operands:
            if operand not in seen:
                state = "stands later" if operand in computation.instructions else "does not exist"
                yield Problem(computation.name, instruction, f"reads {operand}, which {state}")
        for callee in instruction.called:
            if callee not in module.computations:
                yield Problem(computation.name, instruction, f"calls {callee}, which does not exist")
            elif callee not in done:
                yield Problem(
                    computation.name, instruction, f"calls {callee}, which calls it or stands later"
                )
        seen.add(instruction.name)


def _instructions(module: Module, computation: Computation, semantics: Semantics) -> Iterator[Problem]:
    for instruction in computation:
        operands = [computation.instructions.get(operand) for operand in instruction.operands]
        called = [module.computations.get(callee) for callee in instruction.called]
        if None in operands or None in called:
            continue
        try:
            semantics.verify(
                instruction.opcode,
                [operand.type for operand in operands if operand is not None],
                instruction.attributes,
                [callee for callee in called if callee is not None],
                instruction.type,
            )
        except OperationError as error:
            yield Problem(computation.name, instruction, str(error))
