"""Copy insertion: puts copies where one buffer would have to hold two values at once.

Runs on the scheduled module, ahead of buffer assignment. After it, for every leaf of a loop's state that changes, the
initial value and the body's result can live in the loop's one buffer; each branch's result can live in the
conditional's; each entry result has a buffer of its own. Copies stand as late (or, into a loop, as early) as they can.
"""

from __future__ import annotations

from collections import Counter

from compiler.analysis.aliasing import may_share
from compiler.analysis.plan import ValueKey
from compiler.analysis.values import ALIASES, CONTROL, Values, leaves
from compiler.ir.editor import Edit, Editor
from compiler.ir.program import Attributes, Computation, Instruction
from compiler.ir.rewrite import Rule
from compiler.ir.types import TupleType, Type
from compiler.passes.base import Option, PassContext

INTO_LOOP = Rule("copy-loop-init", "a loop's buffer must not be another value's")
OUT_OF_BODY = Rule(
    "copy-loop-result", "a loop's next value must not overwrite the present one while it is read"
)
OUT_OF_BRANCH = Rule("copy-branch-result", "a branch must write its result into the conditional's buffer")
OUT_OF_ENTRY = Rule("copy-entry-result", "a result must not be a parameter, a constant or another result")

AT_END = ""
"""An anchor that is no instruction's name: what is placed there comes last in its computation."""

Path = tuple[int, ...]


class CopyInsertion:
    """See the module's docstring."""

    name = "copy-insertion"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Adds copies, innermost computations first."""
        order = [computation.name for computation in Values(editor.snapshot()).computations]
        for name in order:
            for instruction in list(editor.computation(name)):
                if instruction.opcode == "while":
                    _guard_body(editor, Values(editor.snapshot()), name, instruction)
                    _guard_init(editor, Values(editor.snapshot()), name, editor.get(name, instruction.name))
                elif instruction.opcode in ("case", "if"):
                    for branch in instruction.called:
                        _guard_result(editor, Values(editor.snapshot()), branch, OUT_OF_BRANCH)
        _guard_result(editor, Values(editor.snapshot()), editor.entry, OUT_OF_ENTRY)


def _is_own(values: Values, source: ValueKey, computation: str) -> bool:
    """True when a value is made by an instruction of this very computation, into a buffer that can be chosen."""
    if source[0] != computation:
        return False
    return values.module.instruction(computation, source[1]).opcode not in ("parameter", "constant")


class _Uses:
    """Readers of every buffer, found in one walk."""

    def __init__(self, values: Values) -> None:
        self.of: dict[ValueKey, list[tuple[int, str, str]]] = {}
        for computation in values.computations:
            for instruction in computation:
                if instruction.opcode not in ALIASES:
                    self._note(values, computation, instruction)

    def _note(self, values: Values, computation: Computation, instruction: Instruction) -> None:
        step = values.step_of[(computation.name, instruction.name)]
        for operand in instruction.operands:
            for path, _ in leaves(computation.instructions[operand].type):
                key = values.source(computation.name, operand, path)
                self.of.setdefault(key, []).append((step, computation.name, instruction.name))


def _guard_init(editor: Editor, values: Values, computation: str, loop: Instruction) -> None:
    """Copies initial values that something else still needs, or that nobody may write to."""
    uses = _Uses(values)
    state_type = values.module.instruction(computation, loop.operands[0]).type
    paths = [path for path, _ in leaves(state_type)]
    sources = {path: values.source(computation, loop.operands[0], path) for path in paths}
    counts = Counter(sources.values())
    step = values.step_of[(computation, loop.name)]
    results = _result_sources(values, computation)
    needed = []
    for path, source in sources.items():
        if values.is_invariant(loop, path):
            continue
        later = any(use[0] > step for use in uses.of.get(source, ()))
        if not _is_own(values, source, computation) or counts[source] > 1 or later or source in results:
            needed.append(path)
    if needed:
        with editor.rewrite(INTO_LOOP, computation, loop.name) as edit:
            state = _with_copies(editor, edit, computation, loop.operands[0], needed, loop.name)
            edit.update(loop.with_operands((state,)))
            _drop_tuple(editor, edit, computation, loop.operands[0])


def _result_sources(values: Values, computation: str) -> set[ValueKey]:
    root = values.module.computations[computation].root_instruction
    return {values.source(computation, root.name, path) for path, _ in leaves(root.type)}


def _guard_body(editor: Editor, values: Values, computation: str, loop: Instruction) -> None:
    """Copies next values whose making would destroy a present value that is still to be read."""
    body = values.module.computations[loop.called[1]]
    uses = _Uses(values)
    paths = [path for path, _ in leaves(body.result_type) if not values.is_invariant(loop, path)]
    sources = {path: values.source(body.name, body.root, path) for path in paths}
    taken: set[ValueKey] = set()
    needed: list[Path] = []
    shuffled = {source for path, source in sources.items() if source != (computation, loop.name, path)}
    for path, source in sources.items():
        buffer = (computation, loop.name, path)
        fine = _is_own(values, source, body.name) and source not in taken and buffer not in shuffled
        if fine and _may_write(values, uses, buffer, source, body.name):
            taken.add(source)
        else:
            needed.append(path)
    if not needed:
        return
    moved = {path: sources[path] for path in needed}
    with editor.rewrite(OUT_OF_BODY, body.name, body.root) as edit:
        root = _parallel_copies(editor, edit, body.name, body.root, computation, loop.name, moved)
        _make_root(editor, edit, body.name, body.root, root)


def _first_write(values: Values, source: ValueKey) -> int:
    """The step at which a buffer is first written: where its value is made, or a loop's initial value is."""
    computation, name, path = source
    instruction = values.module.instruction(computation, name)
    if instruction.opcode == "while":
        return _first_write(values, values.source(computation, instruction.operands[0], path))
    if instruction.opcode in ("case", "if"):
        roots = [(branch, values.module.computations[branch].root) for branch in instruction.called]
        return min(_first_write(values, values.source(branch, root, path)) for branch, root in roots)
    return values.step_of[(computation, name)]


def _may_write(values: Values, uses: _Uses, buffer: ValueKey, source: ValueKey, body: str) -> bool:
    """True when making `source` in `buffer` leaves every reader of the present value its due.

    The body's own return and the loop itself are no readers.
    """
    first = _first_write(values, source)
    for step, computation, name in uses.of.get(buffer, ()):
        instruction = values.module.instruction(computation, name)
        if (computation, name) == buffer[:2] or not _inside(values, computation, body):
            continue
        if step > first:
            return False
        if step == first and not _in_place(values, computation, instruction, buffer):
            return False
    return True


def _inside(values: Values, computation: str, body: str) -> bool:
    while computation != body:
        if computation not in values.callers:
            return False
        computation = values.callers[computation][0]
    return True


def _in_place(values: Values, computation: str, instruction: Instruction, buffer: ValueKey) -> bool:
    if instruction.opcode in CONTROL:
        return False
    owner = values.module.computations[computation]
    for index, operand in enumerate(instruction.operands):
        for path, _ in leaves(owner.instructions[operand].type):
            reads = values.source(computation, operand, path) == buffer
            if reads and (path or not may_share(values.module, instruction, index)):
                return False
    return True


def _parallel_copies(
    editor: Editor,
    edit: Edit,
    body: str,
    root: str,
    computation: str,
    loop: str,
    moved: dict[Path, ValueKey],
) -> str:
    """Copies next values into place at the body's end; values that such a copy would destroy are saved first."""
    targets = {(computation, loop, path) for path in moved}
    state = root
    saved = [
        path for path, source in moved.items() if source in targets and source != (computation, loop, path)
    ]
    if saved:
        state = _with_copies(editor, edit, body, state, saved, AT_END)
        first = state
    else:
        first = ""
    final = _with_copies(editor, edit, body, state, list(moved), AT_END)
    if first:
        _drop_tuple(editor, edit, body, first)
    return final


def _guard_result(editor: Editor, values: Values, computation: str, rule: Rule) -> None:
    """Gives every leaf of a computation's result a value of its own."""
    body = values.module.computations[computation]
    taken: set[ValueKey] = set()
    needed: list[Path] = []
    for path, _ in leaves(body.result_type):
        source = values.source(computation, body.root, path)
        if _is_own(values, source, computation) and source not in taken:
            taken.add(source)
        else:
            needed.append(path)
    if needed:
        with editor.rewrite(rule, computation, body.root) as edit:
            root = _with_copies(editor, edit, computation, body.root, needed, AT_END)
            _make_root(editor, edit, computation, body.root, root)


def _make_root(editor: Editor, edit: Edit, computation: str, old: str, new: str) -> None:
    edit.set_root(new, computation)
    _drop_tuple(editor, edit, computation, old)


def _drop_tuple(editor: Editor, edit: Edit, computation: str, name: str) -> None:
    unused = not editor.users(computation, name) and editor.working(computation).root != name
    if unused and editor.get(computation, name).opcode == "tuple":
        edit.remove(name, computation)


def _with_copies(
    editor: Editor, edit: Edit, computation: str, value: str, paths: list[Path], before: str
) -> str:
    """A value like `value` whose leaves at `paths` are copies; rebuilt from its elements where it is a tuple."""
    instruction = editor.get(computation, value)
    if () in paths:
        return edit.add("copy", [value], type=instruction.type, computation=computation, before=before)
    assert isinstance(instruction.type, TupleType)
    parts = []
    for index, element_type in enumerate(instruction.type.elements):
        inner = [path[1:] for path in paths if path[0] == index]
        part = _element(editor, edit, computation, instruction, index, element_type, before)
        parts.append(_with_copies(editor, edit, computation, part, inner, before) if inner else part)
    return edit.add("tuple", parts, computation=computation, before=before)


def _element(
    editor: Editor,
    edit: Edit,
    computation: str,
    instruction: Instruction,
    index: int,
    element_type: Type,
    before: str,
) -> str:
    if instruction.opcode == "tuple":
        return instruction.operands[index]
    return edit.add(
        "get_tuple_element",
        [instruction.name],
        type=element_type,
        attributes=Attributes(index=index),
        computation=computation,
        before=before,
    )
