"""Layout normalization: everything row-major and in nobody's fusions, as the passes after it and the kernels expect.

Programs that are read from HLO text may hold layouts and fusions of another compiler's choice. Here they go: a `bitcast` that
reads memory in another order becomes the transposes and the reshape that it stands for, a `copy` its operand, a `fusion` a call
(which is inlined next, and fused as this compiler sees fit), and the schedule that the text may have had is no longer one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compiler.ir.editor import Edit, Editor
from compiler.ir.program import NO_ATTRIBUTES, Attributes, Instruction
from compiler.ir.rewrite import Rule
from compiler.ir.types import TensorType, TupleType, Type
from compiler.passes.base import Option, PassContext

ROW_MAJOR = Rule("row-major", "a layout says where elements are, not what they are")
FUSION_IS_CALL = Rule("fusion-is-call", "a fusion computes what its computation does")
COPY_IS_OPERAND = Rule("copy-is-operand", "copy(x) = x")


class LayoutNormalization:
    """See the module's docstring."""

    name = "layout-normalization"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Changes the whole program in one step: a layout on one side alone would be a mistake."""
        before = {name: editor.computation(name) for name in editor.computations()}
        found = [(name, i) for name, body in before.items() for i in body if _has_layout(i)]
        if found:
            entry = editor.entry
            with editor.rewrite(ROW_MAJOR, entry, before[entry].root) as edit:
                for where, instruction in found:
                    if instruction.opcode == "bitcast":
                        source = before[where][instruction.operands[0]].tensor
                        _explicit(edit, editor, where, instruction, source)
                for where, instruction in found:
                    if instruction.opcode != "bitcast":
                        present = editor.get(where, instruction.name)
                        edit.update(present.with_type(without_layouts(present.type)), where)
            if not edit.committed:
                return
        for name, body in before.items():
            for instruction in body:
                if instruction.opcode == "copy":
                    with editor.rewrite(COPY_IS_OPERAND, name, instruction.name) as edit:
                        edit.replace(instruction.name, editor.get(name, instruction.name).operands[0])
                elif instruction.opcode == "fusion":
                    present = editor.get(name, instruction.name)
                    with editor.rewrite(FUSION_IS_CALL, name, instruction.name) as edit:
                        edit.update(replace(present, opcode="call", attributes=NO_ATTRIBUTES))
        if editor.base.is_scheduled:
            editor.set_module(is_scheduled=False)


def without_layouts(kind: Type) -> Type:
    """The same type, all arrays in it row-major."""
    if isinstance(kind, TupleType):
        return type(kind)(tuple(map(without_layouts, kind.elements)))
    return replace(kind, layout=None) if isinstance(kind, TensorType) else kind


def _has_layout(instruction: Instruction) -> bool:
    return instruction.opcode == "bitcast" or _is_laid_out(instruction.type)


def _is_laid_out(kind: Type) -> bool:
    if isinstance(kind, TupleType):
        return any(map(_is_laid_out, kind.elements))
    return isinstance(kind, TensorType) and kind.layout is not None


def _explicit(
    edit: Edit, editor: Editor, computation: str, instruction: Instruction, source: TensorType
) -> None:
    """A bitcast as a transpose into the operand's memory order, a reshape, and a transpose out of the result's.

    `source` is the operand's type as it was read.
    """
    result = instruction.tensor
    stored, target = source.minor_to_major[::-1], result.minor_to_major[::-1]
    name = editor.get(computation, instruction.name).operands[0]
    where = {"computation": computation, "before": instruction.name, "location": instruction.location}

    def step(opcode: str, shape: tuple[int, ...], attributes: Attributes) -> str:
        kind = TensorType(source.element, shape)
        return edit.add(opcode, [name], type=kind, attributes=attributes, **where)  # type: ignore[arg-type]

    if stored != tuple(range(source.rank)):
        name = step(
            "transpose", tuple(source.shape[d] for d in stored), Attributes(permutation=tuple(stored))
        )
    physical = tuple(result.shape[d] for d in target)
    if physical != tuple(source.shape[d] for d in stored):
        name = step("reshape", physical, Attributes())
    if target != tuple(range(result.rank)):
        order = tuple(int(place) for place in np.argsort(target))
        name = step("transpose", result.shape, Attributes(permutation=order))
    edit.replace(instruction.name, name, computation)
