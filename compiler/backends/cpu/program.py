"""What there is to compile and to run: every instruction lowered, its kernels numbered, its buffers counted.

Stands between `compiler.backends.cpu.lowering` and `compiler.backends.cpu.driver`, which writes the code that calls the
kernels in the order of the schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from compiler.analysis.plan import BufferPlan
from compiler.analysis.values import NO_CODE, leaves
from compiler.backends.base import BackendError
from compiler.backends.cpu.kernel_code import KernelCode
from compiler.backends.cpu.lowered import Buffer, Embedded, LibraryCall, Lowered, Move, Use
from compiler.backends.cpu.lowering import Lowering
from compiler.ir.literal import Literal
from compiler.ir.program import Computation, Instruction, Module
from compiler.passes.arena import ALIGNMENT

_LIBRARY_PREFIX = "xe.library."


@dataclass(frozen=True, slots=True)
class Table:
    """Positions in the table of pointers."""

    parameters: int
    results: int
    constants: int
    embedded: int
    arena: int
    scratch: int
    pool: int
    clock: int
    size: int


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One place in the program where a kernel is called."""

    number: int
    computation: str
    instruction: str
    use: Use
    symbol: str
    suffix: str = ""
    """Tells the kernels of one instruction apart."""


@dataclass
class Program:
    """What there is to compile and to run.

    Attributes:
        kernels: distinct kernels by symbol.
        calls: every place where one is called, in order of the schedule.
        embedded: constants inside fusions that need memory.
        scratch_bytes: size of the buffer for temporaries and the kernels' own scratch.
    """

    module: Module
    plan: BufferPlan
    kernels: dict[str, KernelCode] = field(default_factory=dict)
    calls: list[KernelCall] = field(default_factory=list)
    embedded: list[Literal] = field(default_factory=list)
    scratch_bytes: int = 0
    table: Table = field(default_factory=lambda: Table(0, 0, 0, 0, 0, 0, 0, 0, 0))
    steps: dict[tuple[str, str], list[KernelCall | Move]] = field(default_factory=dict)
    lowered: dict[tuple[str, str], Lowered] = field(default_factory=dict)


def build_program(module: Module, plan: BufferPlan, lowering: Lowering) -> Program:
    """Lowers everything that runs.

    Raises:
        BackendError: an instruction cannot be compiled; names it.
    """
    program = Program(module, plan)
    for computation_name, name in plan.steps:
        computation = module.computations[computation_name]
        instruction = computation[name]
        if instruction.opcode in NO_CODE or instruction.opcode in ("while", "case", "if", "call"):
            continue
        lowered = lowering.lower(computation, instruction)
        _note(program, computation, instruction, lowered)
    entry = module.entry_computation
    parameters = sum(1 for kind in entry.parameter_types for _ in leaves(kind))
    results = sum(1 for _ in leaves(entry.result_type))
    constants, embedded = len(plan.constants), len(program.embedded)
    last = parameters + results + constants + embedded
    program.table = Table(
        0,
        parameters,
        parameters + results,
        parameters + results + constants,
        last,
        last + 1,
        last + 2,
        last + 3,
        last + 4,
    )
    return program


def _note(program: Program, computation: Computation, instruction: Instruction, lowered: Lowered) -> None:
    place = (computation.name, instruction.name)
    program.lowered[place] = lowered
    steps: list[KernelCall | Move] = []
    temporary = sum(aligned(size) for size in lowered.temporaries)
    most = temporary
    several = sum(isinstance(step, Use) for step in lowered.steps) > 1
    for position, step in enumerate(lowered.steps):
        if isinstance(step, Move):
            steps.append(step)
            continue
        number = len(program.calls)
        if isinstance(step.code, LibraryCall):
            symbol = f"{_LIBRARY_PREFIX}{number}"
        else:
            symbol = step.code.name
            program.kernels.setdefault(symbol, step.code)
            most = max(most, temporary + aligned(step.code.scratch_bytes))
        call = KernelCall(
            number, computation.name, instruction.name, step, symbol, str(position) if several else ""
        )
        program.calls.append(call)
        steps.append(call)
    for step in lowered.steps:
        for buffer in _buffers(step):
            if isinstance(buffer, Embedded) and buffer.literal not in program.embedded:
                program.embedded.append(buffer.literal)
    program.scratch_bytes = max(program.scratch_bytes, most)
    program.steps[place] = steps


def _buffers(step: Use | Move) -> Sequence[Buffer]:
    if isinstance(step, Move):
        return (step.source, step.target)
    return (*step.buffers, *(buffer for move in step.before for buffer in (move.source, move.target)))


def aligned(size: int) -> int:
    """A size rounded up to where the next buffer may start."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def require_entry(module: Module) -> None:
    """Raises BackendError when the module is not in the form that code is made from."""
    if not module.is_scheduled:
        raise BackendError("the module is not scheduled; code can be made only from a scheduled one")
