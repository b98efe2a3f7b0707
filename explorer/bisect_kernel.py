"""The last step of bisection: the program is right, its machine code is not. Which kernel?

Every instruction that becomes a kernel is compiled alone and run on the very operands that the reference interpreter sees
in the whole program; the first whose result differs is named. When each alone is right, the fault lies in how they are put
together (memory plan, order, threads), and the first value that differs in a program cut short after it is named instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.analysis.values import CONTROL, NO_CODE
from compiler.ir.location import source_line
from compiler.ir.program import Attributes, Instruction, Module, make_computation
from compiler.ir.types import TensorType, Type
from explorer.case import BAD, Expected, Verdict

if TYPE_CHECKING:
    from compiler.driver import Optimised
    from explorer.bisect import Bisection, Finding


class _Seen:
    """Operands and results of every kernel at its first execution, as the interpreter sees them."""

    def __init__(self, module: Module) -> None:
        self.values: dict[tuple[str, str], Any] = {}
        self.order: list[tuple[str, str]] = []
        self._module = module

    def __call__(
        self, computation: str, instruction: Instruction, operands: Sequence[Any], value: Any
    ) -> None:
        key = (computation, instruction.name)
        if key in self.values or instruction.opcode in NO_CODE or instruction.opcode in CONTROL:
            return
        self.values[key] = (tuple(operands), value)
        self.order.append(key)


def wrong_kernel(search: Bisection, optimised: Optimised, executable: Any, verdict: Verdict) -> Finding:
    """Names the kernel whose machine code is wrong."""
    from compiler.reference import evaluate
    from explorer.bisect import KERNEL, PLAN, Finding

    module = optimised.module
    seen = _Seen(module)
    evaluate(module, list(search.case.inputs), custom_calls=search.registry.custom_calls, on_value=seen)
    runnable = set(_run_as_they_stand(module))
    for computation, name in seen.order:
        if computation not in runnable:
            continue
        instruction = module.instruction(computation, name)
        operands, value = seen.values[(computation, name)]
        single = _alone(module, computation, instruction)
        judged = _run_alone(search, optimised, single, operands, value, name)
        if judged.result == BAD:
            record = next((k.name for k in executable.kernels if (computation, name) in k.instructions), name)
            line = source_line(instruction.location)
            where = f" at {line}" if line else ""
            return Finding(
                KERNEL,
                f"the program is right, but the machine code of kernel {record} ({instruction.opcode} {name}){where} is wrong",
                kernel=record,
                computation=computation,
                instruction=name,
                source=str(line) if line else "",
                detail=judged.detail,
            )
    return Finding(
        PLAN,
        "every kernel alone is right; the fault lies in the memory plan, the order or the threads",
        detail=verdict.detail,
    )


def _run_as_they_stand(module: Module) -> list[str]:
    found, stack = [], [module.entry]
    while stack:
        name = stack.pop()
        found.append(name)
        for instruction in module.computations[name]:
            if instruction.opcode in CONTROL:
                stack.extend(instruction.called)
    return found


def _alone(module: Module, computation: str, instruction: Instruction) -> Module:
    """A module that computes one instruction from parameters. Constant operands stay constants."""
    body: dict[str, Instruction] = {}
    owner = module.computations[computation]
    parameters = 0
    operands = []
    for operand in dict.fromkeys(instruction.operands):
        source = owner[operand]
        if source.opcode == "constant":
            body[operand] = source
        else:
            attributes = Attributes(index=parameters)
            body[operand] = Instruction(
                operand, "parameter", source.type, (), attributes, (), source.location
            )
            parameters += 1
        operands.append(operand)
    body[instruction.name] = instruction
    entry = make_computation("alone", body, instruction.name)
    needed = _called(module, instruction)
    return replace(
        module,
        computations={**{name: module.computations[name] for name in needed}, entry.name: entry},
        entry=entry.name,
        parameter_attributes=(),
        result_attributes=(),
        is_scheduled=False,
    )


def _add_parameter(body: dict[str, Instruction], source: Instruction, index: int) -> None:
    """A parameter for an operand. Entry parameters are row-major: another order is one as it lies in memory, renamed."""
    attributes = Attributes(index=index)
    kind = source.type
    if isinstance(kind, TensorType) and kind.layout is not None:
        name = f"{source.name}.lying"
        lying = kind.with_shape(tuple(kind.shape[dim] for dim in reversed(kind.minor_to_major)))
        body[name] = Instruction(name, "parameter", lying, (), attributes, (), source.location)
        body[source.name] = Instruction(source.name, "bitcast", kind, (name,), location=source.location)
    else:
        body[source.name] = Instruction(source.name, "parameter", kind, (), attributes, (), source.location)


def _as_it_lies(value: Any, kind: Type) -> Any:
    if isinstance(kind, TensorType) and kind.layout is not None:
        return np.ascontiguousarray(np.transpose(value, tuple(reversed(kind.minor_to_major))))
    return value


def _called(module: Module, instruction: Instruction) -> list[str]:
    found: list[str] = []

    def visit(names: Sequence[str]) -> None:
        for name in names:
            if name not in found:
                for inner in module.computations[name]:
                    visit(inner.called)
                found.append(name)

    visit(instruction.called)
    return found


def _run_alone(
    search: Bisection, optimised: Optimised, single: Module, operands: Sequence[Any], value: Any, name: str
) -> Verdict:
    from compiler.driver import generate, optimise

    entry = single.entry_computation
    instruction = entry.root_instruction
    by_name = dict(zip(instruction.operands, operands, strict=True))
    inputs = [
        _as_it_lies(leaf, entry[name].type)
        for name in dict.fromkeys(instruction.operands)
        if entry[name].opcode != "constant"
        for leaf in _flat(by_name[name])
    ]
    wanted = tuple(_flat(value))
    options = replace(
        search.options,
        overrides={},
        restraint=replace(
            search.options.restraint, stop_before="\0none", skip=frozenset(_optional(optimised))
        ),
    )
    search.progress.check_cancelled()
    search.trials += 1
    search.progress.say(f"trial {search.trials}: {name} alone")
    compiled = generate(optimise(single, options, registry=search.registry))
    try:
        outputs = compiled.executable.run(inputs)
    finally:
        compiled.executable.close()
    tolerance = getattr(search.case.oracle, "tolerance", None)
    oracle = Expected(wanted, tolerance) if tolerance is not None else Expected(wanted)
    return oracle.judge(outputs, single)


def _optional(optimised: Optimised) -> list[str]:
    """Ids of all stages that code can be made without: the program is in its final form already."""
    from compiler.pipeline import build_stages

    stages = build_stages(optimised.backend, optimised.registry.insertions)
    return [stage.id for stage in stages if not stage.required]


def _flat(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [leaf for inner in value for leaf in _flat(inner)]
    return [value] if hasattr(value, "dtype") else []
