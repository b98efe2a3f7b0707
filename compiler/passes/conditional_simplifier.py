"""Conditionals whose branch is known, and tiny ones that are better computed both ways.

After constant folding, ahead of fusion: a branch that is known becomes part of the program around it, and a scalar choice
between pure scalar computations becomes a `select`, which loops can take in.
"""

from __future__ import annotations

from compiler.analysis.values import CONTROL, leaves
from compiler.ir.editor import Edit, Editor
from compiler.ir.program import Attributes, Computation, Instruction
from compiler.ir.rewrite import Rule
from compiler.ir.types import TensorType, TupleType
from compiler.passes.base import Option, PassContext
from compiler.passes.inlining import clone_into

KNOWN = Rule(
    "known-branch", "if(true, f, g) = f; case(i, f...) = f[i], the last one for an index out of range"
)
SELECT = Rule("branch-to-select", "if(p, f(x), g(y)) = select(p, f(x), g(y)) when both are pure")

MAX_INSTRUCTIONS = 6
"""Of a branch that is computed although it may not be taken."""


class ConditionalSimplifier:
    """See the module's docstring."""

    name = "conditional-simplifier"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Looks at every conditional."""
        for computation in editor.computations():
            for name in editor.working(computation).names():
                state = editor.working(computation).instructions
                if name in state and state[name].opcode in ("if", "case"):
                    _simplify(editor, computation, state[name])


def _simplify(editor: Editor, computation: str, conditional: Instruction) -> None:
    chooser = editor.get(computation, conditional.operands[0])
    if chooser.opcode == "constant":
        branch = _branch(conditional, int(chooser.literal.array.reshape(-1)[0]))
    elif len(conditional.called) == 1:
        branch = 0
    else:
        branch = None
    if branch is not None:
        with editor.rewrite(KNOWN, computation, conditional.name) as edit:
            edit.replace(conditional.name, _inline(editor, edit, conditional, branch))
    elif conditional.opcode == "if" and _both_are_tiny(editor, conditional):
        with editor.rewrite(SELECT, computation, conditional.name) as edit:
            values = [_inline(editor, edit, conditional, index) for index in range(2)]
            edit.replace(conditional.name, _select(editor, edit, conditional, values))


def _branch(conditional: Instruction, value: int) -> int:
    if conditional.opcode == "if":
        return 0 if value else 1
    last = len(conditional.called) - 1
    return value if 0 <= value <= last else last


def _inline(editor: Editor, edit: Edit, conditional: Instruction, branch: int) -> str:
    body = editor.computation(conditional.called[branch])
    return clone_into(edit, body, [conditional.operands[1 + branch]], conditional.location)


def _both_are_tiny(editor: Editor, conditional: Instruction) -> bool:
    if any(leaf.size != 1 for _, leaf in leaves(conditional.type)) or editor.effectful(conditional):
        return False
    flat = isinstance(conditional.type, TensorType) or all(
        isinstance(kind, TensorType)
        for kind in conditional.type.elements  # type: ignore[union-attr]
    )
    return flat and all(_is_tiny(editor.computation(name)) for name in conditional.called)


def _is_tiny(body: Computation) -> bool:
    free = ("parameter", "constant", "tuple", "get_tuple_element")
    work = [instruction for instruction in body if instruction.opcode not in free]
    if len(work) > MAX_INSTRUCTIONS:
        return False
    return all(
        isinstance(i.type, TensorType) and i.type.size == 1 and i.opcode not in CONTROL and not i.called
        for i in work
    )


def _select(editor: Editor, edit: Edit, conditional: Instruction, values: list[str]) -> str:
    chooser = conditional.operands[0]
    if isinstance(conditional.type, TensorType):
        return _one(editor, edit, chooser, values)
    assert isinstance(conditional.type, TupleType)
    parts = []
    for index, kind in enumerate(conditional.type.elements):
        sides = [_part(editor, edit, value, index) for value in values]
        assert isinstance(kind, TensorType)
        parts.append(_one(editor, edit, chooser, sides))
    return edit.add("tuple", parts, type=conditional.type)


def _part(editor: Editor, edit: Edit, value: str, index: int) -> str:
    instruction = editor.get(edit.computation, value)
    if instruction.opcode == "tuple":
        return instruction.operands[index]
    return edit.add("get_tuple_element", [value], attributes=Attributes(index=index))


def _one(editor: Editor, edit: Edit, chooser: str, sides: list[str]) -> str:
    kind = editor.get(edit.computation, sides[0]).type
    return edit.add("select", [chooser, *sides], type=kind)
