"""Copies whole computations, every instruction under a fresh name of its own lineage."""

from __future__ import annotations

from compiler.ir.editor import Edit
from compiler.ir.program import Computation, Instruction


def clone_computation(edit: Edit, body: Computation, base: str | None = None) -> str:
    """Adds a copy of a computation and returns its name."""
    names: dict[str, str] = {}
    copies: list[Instruction] = []
    for i in body:
        prefix = i.name.split(".")[0] if i.opcode == "parameter" else i.opcode
        names[i.name] = edit.fresh_name(prefix, i.name)
        operands = tuple(names[operand] for operand in i.operands)
        copies.append(
            Instruction(names[i.name], i.opcode, i.type, operands, i.attributes, i.called, i.location)
        )
    return edit.add_computation(base or body.name, copies, names[body.root])
