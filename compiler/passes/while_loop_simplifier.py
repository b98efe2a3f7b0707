"""Makes loops carry less, and removes loops that run once or not at all."""

from __future__ import annotations

from compiler.analysis.call_graph import reachable
from compiler.analysis.loops import Loop, loop_at, trip_count
from compiler.ir.editor import Editor
from compiler.ir.program import Instruction
from compiler.ir.rewrite import Rule
from compiler.passes.base import Option, PassContext
from compiler.passes.dce import remove_unused
from compiler.passes.inlining import clone_into
from compiler.passes.loop_state import Callers, change_state

NEVER = Rule("loop-never-runs", "a loop whose body never runs = its initial state")
ONCE = Rule("loop-runs-once", "a loop whose body runs once = its body")
SINK = Rule("constant-in-loop", "a constant that a loop carries unchanged is that constant inside")
INVARIANT = Rule("loop-invariant-result", "what a loop carries unchanged comes out as it went in")
DROP = Rule("dead-loop-element", "what a loop carries and nobody reads need not be carried")


class WhileLoopSimplifier:
    """Trip counts 0 and 1, constants carried along, unchanged results, dead elements."""

    name = "while-loop-simplifier"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Simplifies every loop, inner ones first."""
        callers = Callers(editor)
        for computation in reachable(editor):
            for i in [i for i in editor.computation(computation) if i.opcode == "while"]:
                _simplify(editor, callers, computation, i.name)


def _simplify(editor: Editor, callers: Callers, computation: str, name: str) -> None:
    loop = loop_at(editor, computation, name)
    if loop is None:
        return
    is_exclusive = callers.is_exclusive(loop)
    if loop.is_tuple and is_exclusive:
        remove_unused(editor, loop.condition.name)
        remove_unused(editor, loop.body.name)
        _sink_constants(editor, loop)
    if loop.is_tuple:
        _forward_invariants(editor, loop)
    loop = loop_at(editor, computation, name)
    if loop is None or _remove(editor, loop) or not (loop.is_tuple and is_exclusive):
        return
    dead = _dead_elements(editor, loop)
    if dead and len(dead) < loop.width:
        with editor.rewrite(DROP, computation, name) as edit:
            edit.note = f"{len(dead)} of {loop.width}"
            change_state(editor, edit, loop, dead)


def _remove(editor: Editor, loop: Loop) -> bool:
    trips = trip_count(editor, loop)
    if trips not in (0, 1) or any(editor.effectful(i) for i in loop.condition):
        return False
    i = loop.instruction
    with editor.rewrite(NEVER if trips == 0 else ONCE, loop.computation, i.name) as edit:
        result = i.operands[0]
        if trips == 1:
            result = clone_into(edit, editor.computation(loop.body.name), i.operands, i.location)
        edit.replace(i.name, result)
    return edit.committed


def _sink_constants(editor: Editor, loop: Loop) -> None:
    """Reads constants that the loop only carries where they are needed, so that folding sees them."""
    for index in sorted(loop.invariant):
        init = editor.get(loop.computation, loop.inits[index])
        if init.opcode != "constant":
            continue
        for body in (loop.condition, loop.body):
            keeper = loop.body.root if body is loop.body else ""
            for i in body:
                if loop.element_of(body, i.name) == index:
                    _read_copy(editor, body.name, i.name, init, keeper)


def _read_copy(editor: Editor, computation: str, element: str, constant: Instruction, keeper: str) -> None:
    """Lets the readers of a carried element read a constant instead; `keeper`, which hands it on, stays."""
    state = editor.working(computation)
    users = [user for user in editor.users(computation, element) if user != keeper]
    if not users and (state.root != element or keeper):
        return
    with editor.rewrite(SINK, computation, element) as edit:
        copy = edit.add("constant", type=constant.type, attributes=constant.attributes)
        if not keeper:
            edit.replace(element, copy)
            return
        for user in users:
            reader = state.instructions[user]
            operands = tuple(copy if name == element else name for name in reader.operands)
            edit.update(reader.with_operands(operands))


def _forward_invariants(editor: Editor, loop: Loop) -> None:
    """What comes out of the loop unchanged is read from before it."""
    invariant = loop.invariant
    for name in editor.users(loop.computation, loop.instruction.name):
        reader = editor.get(loop.computation, name)
        if reader.opcode == "get_tuple_element" and reader.attributes["index"] in invariant:
            with editor.rewrite(INVARIANT, loop.computation, name) as edit:
                edit.replace(name, loop.inits[reader.attributes["index"]])


def _dead_elements(editor: Editor, loop: Loop) -> frozenset[int]:
    """Elements that nothing outside reads, and inside nothing but what makes dead elements' next values."""
    users = [editor.get(loop.computation, n) for n in editor.users(loop.computation, loop.instruction.name)]
    if editor.working(loop.computation).root == loop.instruction.name:
        return frozenset()
    inner = [editor.get(loop.body.name, n) for n in editor.users(loop.body.name, loop.body.parameters[0])]
    if any(reader.opcode != "get_tuple_element" for reader in (*users, *inner)):
        return frozenset()
    live = {reader.attributes["index"] for reader in users}
    for i in loop.condition:
        if i.opcode != "get_tuple_element" and loop.condition.parameters[0] in i.operands:
            return frozenset()
        if (index := loop.element_of(loop.condition, i.name)) is not None:
            live.add(index)
    return frozenset(range(loop.width)) - _spread(editor, loop, live)


def _spread(editor: Editor, loop: Loop, live: set[int]) -> set[int]:
    """All elements that live ones and effects of the body depend on."""
    body = loop.body
    stack = [loop.results[index] for index in live]
    stack += [i.name for i in body if editor.effectful(i)]
    seen: set[str] = set()
    found = set(live)
    while stack:
        name = stack.pop()
        if name in seen:
            continue
        seen.add(name)
        index = loop.element_of(body, name)
        if index is None:
            if name == body.parameters[0]:
                return set(range(loop.width))
            stack.extend(body[name].operands)
        elif index not in found:
            found.add(index)
            stack.append(loop.results[index])
    return found
