"""Buffer assignment: gives every value of the scheduled module a place in memory.

The last stage ahead of code generation. Values that must share a buffer (a loop's state, a conditional's result) are
joined first, then values that may (an operand that dies where its result is born); then each remaining buffer gets an
offset in one arena by the best of several strategies. Changes nothing in the module; hands on a `BufferPlan`.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.analysis.aliasing import may_share
from compiler.analysis.lifetimes import Buffer, Buffers
from compiler.analysis.plan import BufferPlan, Lifetime, Slot, ValueKey
from compiler.analysis.values import ALIASES, CONTROL, Values, leaves
from compiler.decisions.log import Choice, Kind
from compiler.ir.editor import Editor
from compiler.ir.program import Computation, Instruction
from compiler.passes.arena import ALIGNMENT, STRATEGIES, aligned, live_bytes
from compiler.passes.base import Option, PassContext

SHARING = Kind("in-place", "Write a result over an operand that is no longer needed", "own-buffer")
PLACEMENT = Kind("arena", "How buffers are placed in the arena", "best-fit")


class BufferAssignment:
    """See the module's docstring."""

    name = "buffer-assignment"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Makes the plan and leaves it in `context.results['buffer_plan']`."""
        module = editor.snapshot()
        values = Values(module)
        buffers = Buffers(values)
        _join_required(values, buffers)
        _join_in_place(values, buffers, context)
        context.results["buffer_plan"] = _plan(values, buffers, context)


def _join_required(values: Values, buffers: Buffers) -> None:
    """Loops and conditionals: the values that stand for one another by the language's own rules."""
    for computation in values.computations:
        for instruction in computation:
            if instruction.opcode == "while":
                body = values.module.computations[instruction.called[1]]
                for path, _ in leaves(instruction.type):
                    if values.is_invariant(instruction, path):
                        continue
                    key = (computation.name, instruction.name, path)
                    buffers.join(key, values.source(computation.name, instruction.operands[0], path))
                    buffers.join(key, values.source(body.name, body.root, path))
            elif instruction.opcode in ("case", "if"):
                for path, _ in leaves(instruction.type):
                    key = (computation.name, instruction.name, path)
                    for branch in instruction.called:
                        root = values.module.computations[branch].root
                        buffers.join(key, values.source(branch, root, path))


def _join_in_place(values: Values, buffers: Buffers, context: PassContext) -> None:
    for computation in values.computations:
        for instruction in computation:
            if instruction.opcode in CONTROL or instruction.opcode in ALIASES or not instruction.operands:
                continue
            taken: set[int] = set()
            for path, _ in leaves(instruction.type):
                _share_one(values, buffers, context, computation, instruction, path, taken)


def _share_one(
    values: Values,
    buffers: Buffers,
    context: PassContext,
    computation: Computation,
    instruction: Instruction,
    path: tuple[int, ...],
    taken: set[int],
) -> None:
    """Joins one result leaf with the first operand that it may overwrite; `taken` buffers hold other leaves."""
    step = values.step_of[(computation.name, instruction.name)]
    result = buffers.of((computation.name, instruction.name, path))
    if result.first != step or result.fixed:
        return
    for index, operand in enumerate(instruction.operands):
        if any(True for inner, _ in leaves(computation[operand].type) if inner):
            continue
        source = buffers.find(values.source(computation.name, operand, ()))
        if source is None or source is result or source.fixed or id(source) in taken or source.last != step:
            continue
        if source.size != result.size or not may_share(values.module, instruction, index):
            continue
        if _lives_elsewhere(values, source, computation.name):
            continue
        subject = f"{computation.name}/{instruction.name}" + "".join(f".{i}" for i in path)
        choices = [Choice(f"over:{operand}", 0, "bytes"), Choice("own-buffer", float(result.size), "bytes")]
        reason = f"{operand} is read here for the last time, element by element"
        chosen = context.decider.decide(
            SHARING, subject, choices, f"over:{operand}", reason, locations=(instruction.location,)
        )
        if chosen != "own-buffer":
            key = (computation.name, instruction.name, path)
            buffers.join(key, source.values[0])
            taken.add(id(buffers.of(key)))
        return


def _lives_elsewhere(values: Values, source: Buffer, computation: str) -> bool:
    """A buffer made outside this computation may be needed by the next turn of a loop around it."""
    return any(key[0] != computation for key in source.values)


def _plan(values: Values, buffers: Buffers, context: PassContext) -> BufferPlan:
    module = values.module
    constants = _constants(values)
    fixed = _fixed_slots(values, buffers, constants)
    arena = [
        buffer for buffer in buffers.all() if not buffer.fixed and id(buffer) not in fixed and buffer.size
    ]
    profile = live_bytes(arena, len(values.steps))
    strategy, offsets, total = _place(arena, context)
    slots: dict[ValueKey, Slot] = {}
    lifetimes = []
    for buffer in buffers.all():
        slot = fixed.get(id(buffer)) or Slot("arena", 0, offsets.get(id(buffer), 0), buffer.size)
        lifetimes.append(Lifetime(tuple(buffer.values), slot, buffer.first, buffer.last))
        for key in buffer.values:
            slots[key] = slot
    _name_everything(values, slots)
    parameters = [module.entry_computation[name] for name in module.entry_computation.parameters]
    return BufferPlan(
        slots,
        tuple(constants),
        tuple(lifetimes),
        tuple(values.steps),
        total,
        max(profile, default=0),
        sum(t.bytes for parameter in parameters for _, t in leaves(parameter.type)),
        sum(t.bytes for _, t in leaves(module.entry_computation.result_type)),
        sum(module.instruction(*place).tensor.bytes for place in constants),
        tuple(profile),
        strategy,
    )


def _constants(values: Values) -> dict[tuple[str, str], int]:
    """Constants that something at run time reads from memory, numbered."""
    found: dict[tuple[str, str], int] = {}
    for computation in values.computations:
        for instruction in computation:
            if instruction.opcode == "constant":
                found[(computation.name, instruction.name)] = len(found)
    return found


def _fixed_slots(values: Values, buffers: Buffers, constants: dict[tuple[str, str], int]) -> dict[int, Slot]:
    """Slots outside the arena: parameters, constants, and the buffers that the results are made in."""
    module = values.module
    entry = module.entry_computation
    fixed: dict[int, Slot] = {}
    number = 0
    for name in entry.parameters:
        for path, leaf in leaves(entry[name].type):
            fixed[id(buffers.of((entry.name, name, path)))] = Slot("parameter", number, 0, leaf.bytes)
            number += 1
    for place, index in constants.items():
        size = module.instruction(*place).tensor.bytes
        fixed[id(buffers.of((*place, ())))] = Slot("constant", index, 0, size)
    for index, (path, leaf) in enumerate(leaves(entry.result_type)):
        buffer = buffers.of(values.source(entry.name, entry.root, path))
        if id(buffer) in fixed:
            raise AssertionError(f"result {index} has no buffer of its own; copy insertion must run first")
        fixed[id(buffer)] = Slot("result", index, 0, leaf.bytes)
    return fixed


def _place(arena: Sequence[Buffer], context: PassContext) -> tuple[str, dict[int, int], int]:
    """Tries every strategy and takes the one of the smallest arena."""
    attempts = {
        name: place(arena) for name, place in STRATEGIES.items() if name != "by-size" or len(arena) <= 2000
    }
    totals = {
        name: max((offsets[id(b)] + aligned(b.size) for b in arena), default=0)
        for name, offsets in attempts.items()
    }
    best = min(totals, key=lambda name: totals[name])
    choices = [Choice(name, float(total), "bytes") for name, total in totals.items()]
    reason = f"the smallest arena of {len(choices)} strategies, {ALIGNMENT}-byte aligned"
    chosen = context.decider.decide(PLACEMENT, "arena", choices, best, reason)
    return chosen, attempts[chosen], totals[chosen]


def _name_everything(values: Values, slots: dict[ValueKey, Slot]) -> None:
    """Also gives each name for a value (tuple elements, parameters of bodies, …) its slot."""
    for computation in values.computations:
        for instruction in computation:
            for path, _ in leaves(instruction.type):
                key = (computation.name, instruction.name, path)
                if key not in slots:
                    slots[key] = slots[values.source(*key)]
