"""Whether an instruction does more than yield its value: on its own, or through what it calls.

Asked by the editor before it sweeps, and by passes before they merge, move or drop an instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from compiler.ir.program import Instruction
from compiler.ir.semantics import Semantics


def effectful(
    instruction: Instruction, semantics: Semantics, body: Callable[[str], Iterable[Instruction]]
) -> bool:
    """True when an unused instruction must stay. `body` gives the instructions of a computation by name."""
    if semantics.has_side_effect(instruction.opcode, instruction.attributes):
        return True
    if not instruction.called or not semantics.called_computations_matter(instruction.opcode):
        return False
    return any(
        effectful(inner, semantics, body)
        for name in instruction.called
        for inner in body(name)
        if inner.opcode not in ("parameter", "constant")
    )
