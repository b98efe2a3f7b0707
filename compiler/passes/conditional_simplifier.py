"""Branches whose choice is known are inlined; branches that cost next to nothing become selections."""

from __future__ import annotations

from compiler.analysis.call_graph import is_pure, reachable
from compiler.ir.editor import Edit, Editor
from compiler.ir.program import Attributes, Computation, Instruction
from compiler.ir.rewrite import Rule
from compiler.ir.types import TensorType, TupleType
from compiler.ops import OPERATIONS
from compiler.ops.record import Trait
from compiler.passes.base import Option, PassContext
from compiler.passes.inlining import clone_into

KNOWN = Rule("known-branch", "if(true, f, g) = f, and likewise for a known index")
SELECT = Rule("branch-to-select", "if(p, f(x), g(y)) = select(p, f(x), g(y)), for f and g without effects")


class ConditionalSimplifier:
    """Removes `if` and `case` where it can tell or where both ways are cheap."""

    name = "conditional-simplifier"
    options = (
        Option("select-instructions", 8, "a branch of more instructions stays a branch"),
        Option("select-bytes", 1024, "a branch that computes a larger value stays a branch"),
    )

    def run(self, editor: Editor, context: PassContext) -> None:
        """Simplifies in every computation, callers first, so that an inlined branch is looked at too."""
        count = int(context.options.get("select-instructions", self.options[0].default))
        size = int(context.options.get("select-bytes", self.options[1].default))
        for computation in reversed(list(reachable(editor))):
            while _sweep(editor, computation, count, size):
                context.check_cancelled()


def _sweep(editor: Editor, computation: str, count: int, size: int) -> bool:
    """Offers each conditional once; True when one went, since what it held may now be known too."""
    found = [i for i in editor.computation(computation) if i.opcode in ("if", "case")]
    gone = [_simplify(editor, computation, i.name, count, size) for i in found]
    return any(gone)


def _known(editor: Editor, computation: str, i: Instruction) -> int | None:
    """Which branch is taken, if that is known."""
    choice = editor.get(computation, i.operands[0])
    if len(i.called) == 1:
        return 0
    if choice.opcode != "constant":
        return None
    value = int(choice.literal.array)
    if i.opcode == "if":
        return 0 if value else 1
    return value if 0 <= value < len(i.called) else len(i.called) - 1


def _is_cheap(editor: Editor, body: Computation, count: int, size: int) -> bool:
    kinds = body.result_type.elements if isinstance(body.result_type, TupleType) else (body.result_type,)
    if not all(isinstance(kind, TensorType) for kind in kinds):
        return False
    own = [i for i in body if i.opcode not in ("parameter", "constant", "get_tuple_element", "tuple")]
    if len(own) > count:
        return False
    for i in own:
        traits = OPERATIONS[i.opcode].traits
        if not traits & {Trait.ELEMENTWISE, Trait.DATA_MOVEMENT} or i.called or i.type.bytes > size:
            return False
        if not is_pure(editor, i):
            return False
    return sum(kind.bytes for kind in kinds) <= size


def _simplify(editor: Editor, computation: str, name: str, count: int, size: int) -> bool:
    if name not in editor.working(computation).instructions:
        return False
    i = editor.get(computation, name)
    taken = _known(editor, computation, i)
    if taken is None:
        bodies = [editor.computation(called) for called in i.called]
        if i.opcode != "if" or not all(_is_cheap(editor, body, count, size) for body in bodies):
            return False
    with editor.rewrite(KNOWN if taken is not None else SELECT, computation, i.name) as edit:
        if taken is not None:
            body = editor.computation(i.called[taken])
            edit.replace(i.name, clone_into(edit, body, [i.operands[taken + 1]], i.location))
        else:
            ways = [
                clone_into(edit, editor.computation(called), [operand], i.location)
                for called, operand in zip(i.called, i.operands[1:], strict=True)
            ]
            edit.replace(i.name, _selected(editor, edit, i, ways))
    return edit.committed


def _selected(editor: Editor, edit: Edit, i: Instruction, ways: list[str]) -> str:
    predicate = i.operands[0]
    if not isinstance(i.type, TupleType):
        return edit.add("select", (predicate, *ways))
    parts: list[str] = []
    for index in range(len(i.type.elements)):
        picked = [edit.add("get_tuple_element", (way,), attributes=_index(index)) for way in ways]
        parts.append(edit.add("select", (predicate, *picked)))
    return edit.add("tuple", parts)


def _index(index: int) -> Attributes:
    return Attributes(index=index)
