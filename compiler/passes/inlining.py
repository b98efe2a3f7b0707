"""Puts a called computation's instructions in the place of the call.

The one implementation behind the call inliner, composites, loops that run once and branches that are known. Names
descend from the call's; locations tell both places.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.editor import Edit, Editor
from compiler.ir.location import CallSite, Location
from compiler.ir.program import Computation


def clone_into(edit: Edit, body: Computation, operands: Sequence[str], location: Location | None) -> str:
    """Adds a computation's instructions ahead of the rewrite's root and returns the name of its result.

    Args:
        edit: an open rewrite; its root is the call.
        body: the computation, with one parameter for each operand.
        operands: what the parameters become.
        location: the call's own location.
    """
    names = dict(zip(body.parameters, operands, strict=True))
    for instruction in body:
        if instruction.opcode != "parameter":
            names[instruction.name] = edit.add(
                instruction.opcode,
                [names[operand] for operand in instruction.operands],
                type=instruction.type,
                attributes=instruction.attributes,
                called=instruction.called,
                location=inlined_location(instruction.location, location),
            )
    return names[body.root]


def inlined_location(callee: Location | None, caller: Location | None) -> Location | None:
    """Where an inlined instruction comes from."""
    if callee is None or caller is None:
        return callee or caller
    return CallSite(callee, caller)


def inline_call(editor: Editor, edit: Edit, index: int = 0) -> None:
    """Replaces the rewrite's root, an instruction that calls a computation on its operands, by the computation."""
    call = editor.get(edit.computation, edit.root)
    body = editor.computation(call.called[index])
    result = clone_into(edit, body, call.operands, call.location)
    edit.note = f"{len(body) - len(body.parameters)} instructions of {body.name}"
    edit.replace(call.name, result)
