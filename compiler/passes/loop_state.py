"""Changes what a loop carries: drops elements, or adds ones that never change.

The loop passes decide; this carries it out. The loop's computations are changed in place, so it must be their only
caller (`flatten-call-graph` sees to that).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from compiler.analysis.call_graph import call_sites
from compiler.analysis.loops import Loop
from compiler.ir.editor import Edit, Editor
from compiler.ir.program import Attributes
from compiler.ir.types import TupleType


class Callers:
    """Answers who calls a computation, from one look at the program."""

    def __init__(self, editor: Editor) -> None:
        self._counts = {name: len(sites) for name, sites in call_sites(editor).items()}

    def is_exclusive(self, loop: Loop) -> bool:
        """True when nobody else calls the loop's computations."""
        return all(self._counts.get(name, 0) == 1 for name in loop.instruction.called)


def change_state(
    editor: Editor, edit: Edit, loop: Loop, dropped: Collection[int] = (), added: Sequence[str] = ()
) -> list[str]:
    """Rebuilds a loop without some elements and with more that it hands on unchanged.

    Nothing in the loop may depend on a dropped element but values that nobody needs and dropped elements' next values;
    all these go too. After the rewrite a dropped element of the result is the element the loop began with.

    Returns:
        For each added element the name under which the body reads it.
    """
    kept = [k for k in range(loop.width) if k not in dropped]
    inits = [*(loop.inits[k] for k in kept), *added]
    outer = editor.working(loop.computation).instructions
    state = TupleType(tuple(outer[name].type for name in inits))
    stale: list[str] = []
    for body in (loop.condition, loop.body):
        parameter = editor.get(body.name, body.parameters[0])
        for name in editor.users(body.name, parameter.name):
            reader = editor.get(body.name, name)
            index = reader.attributes["index"]
            if index not in kept:
                stale.append(name)
            elif kept.index(index) != index:
                edit.update(reader.with_attributes(Attributes(index=kept.index(index))), body.name)
        edit.update(parameter.with_type(state), body.name)
    handed = _new_root(editor, edit, loop, kept, state, len(added))
    _sweep_readers(editor, edit, loop.body.name, stale)
    start = edit.add("tuple", inits)
    attributes = loop.instruction.attributes
    made = edit.add("while", [start], type=state, attributes=attributes, called=loop.instruction.called)
    _replace_results(editor, edit, loop, kept, made)
    return handed


def _new_root(
    editor: Editor, edit: Edit, loop: Loop, kept: list[int], state: TupleType, added: int
) -> list[str]:
    """Ends the body in a tuple of the new state, and removes what only dropped elements needed."""
    body = loop.body
    parameter, old = body.parameters[0], editor.get(body.name, body.root)
    handed = [
        edit.add(
            "get_tuple_element",
            [parameter],
            type=state.elements[len(kept) + k],
            attributes=Attributes(index=len(kept) + k),
            computation=body.name,
            before=body.root,
        )
        for k in range(added)
    ]
    results = [old.operands[k] for k in kept] + handed
    root = edit.add("tuple", results, type=state, computation=body.name, before=body.root)
    edit.set_root(root, body.name)
    edit.sweep(old.name, body.name)
    return handed


def _sweep_readers(editor: Editor, edit: Edit, body: str, stale: list[str]) -> None:
    """Removes reads of dropped elements with all that is computed from them, which nobody needs."""
    users: dict[str, None] = {}
    stack = list(stale)
    while stack:
        name = stack.pop()
        users[name] = None
        stack.extend(user for user in editor.users(body, name) if user not in users)
    order = [name for name in editor.working(body).names() if name in users]
    for name in reversed(order):
        edit.sweep(name, body)


def _replace_results(editor: Editor, edit: Edit, loop: Loop, kept: list[int], made: str) -> None:
    """Lets the readers of the old loop read the new one."""
    old, where = loop.instruction.name, loop.computation
    elements: dict[int, str] = {}

    def element(index: int) -> str:
        if index not in kept:
            return loop.inits[index]
        if index not in elements:
            elements[index] = edit.add(
                "get_tuple_element", [made], attributes=Attributes(index=kept.index(index))
            )
        return elements[index]

    for name in editor.users(where, old):
        reader = editor.get(where, name)
        if reader.opcode == "get_tuple_element":
            edit.replace(name, element(reader.attributes["index"]))
    if old in editor.working(where).instructions:
        if editor.users(where, old) or editor.working(where).root == old:
            edit.replace(old, edit.add("tuple", [element(k) for k in range(loop.width)]))
        else:
            edit.sweep(old)
