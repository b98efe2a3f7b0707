"""Moves the instructions of one fusion into a computation of their own.

The last step of the fusion pass. Instructions that move keep their names, since they still mean the same values; only
those that are duplicated into several fusions get new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compiler.ir.editor import Edit, Editor
from compiler.ir.program import Attributes, Instruction
from compiler.ir.rewrite import Rule

FUSE = Rule("fuse", "a value computed where it is used is the same value")


def outline(
    editor: Editor,
    computation: str,
    root: Instruction,
    order: Sequence[str],
    duplicated: set[str],
    hero: str,
) -> str:
    """Replaces a connected set of instructions, given in program order, by one `fusion`; returns its name.

    The name is empty when the rewrite was refused.
    """
    state = editor.working(computation)
    present = {name: state.instructions[name] for name in order}
    with editor.rewrite(FUSE, computation, root.name) as edit:
        operands: dict[str, str] = {}
        body: list[Instruction] = []
        renamed: dict[str, str] = {}
        for name in order:
            instruction = present[name]
            inner = tuple(
                _inner(editor, edit, computation, renamed, operands, body, o) for o in instruction.operands
            )
            new_name = edit.fresh_name(instruction.opcode, name) if name in duplicated else name
            renamed[name] = new_name
            moved = instruction.with_operands(inner)
            body.append(_renamed(moved, new_name))
        kind = _kind(present, hero)
        called = edit.add_computation(f"fused_{root.name}", body, renamed[root.name])
        fused = edit.add(
            "fusion",
            operands,
            type=root.type,
            attributes=Attributes(kind=kind),
            called=(called,),
            location=root.location,
        )
        edit.note = f"{len(body) - len(operands)} instructions, {kind}"
        edit.replace(root.name, fused)
    return fused if edit.committed else ""


def _inner(
    editor: Editor,
    edit: Edit,
    computation: str,
    renamed: dict[str, str],
    operands: dict[str, str],
    body: list[Instruction],
    name: str,
) -> str:
    """The name inside the fusion of a value: a member's, or a parameter made for it on first use."""
    if name in renamed:
        return renamed[name]
    outer = editor.get(computation, name)
    parameter = edit.fresh_name("param", name)
    attributes = Attributes(index=len(operands))
    body.append(Instruction(parameter, "parameter", outer.type, (), attributes, (), outer.location))
    operands[name] = parameter
    renamed[name] = parameter
    return parameter


def _renamed(instruction: Instruction, name: str) -> Instruction:
    if name == instruction.name:
        return instruction
    return Instruction(
        name,
        instruction.opcode,
        instruction.type,
        instruction.operands,
        instruction.attributes,
        instruction.called,
        instruction.location,
    )


def _kind(members: Mapping[str, Instruction], hero: str) -> str:
    if not hero:
        return "kLoop"
    opcode = members[hero].opcode
    if opcode in ("dot_general", "convolution"):
        return "kOutput"
    return "kInput" if opcode == "reduce" else "kLoop"
