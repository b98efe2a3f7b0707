"""Applies rewriting rules to a program until none fires any more.

Each instruction is offered to the rules of its opcode, in their order; the first that fires and is not refused wins.
What a rewrite made, and what reads it, is looked at again. A refused rewrite is not offered twice, and the number of
rewrites is bounded by the size of the program, so a pair of rules that undo each other cannot keep a compile busy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from compiler.ir.editor import Editor
from compiler.ir.program import Instruction
from compiler.ir.types import DYNAMIC, TensorType, same_value_type
from compiler.passes.base import PassContext
from compiler.passes.rules.pattern import Build, Builder, Pattern, Site

REWRITES_PER_INSTRUCTION = 20
_CHECK_EVERY = 4096


def index_by_opcode(patterns: Iterable[Pattern]) -> dict[str, tuple[Pattern, ...]]:
    """The rules that may start at each opcode, in order."""
    found: dict[str, list[Pattern]] = {}
    for entry in patterns:
        for opcode in entry.opcodes:
            found.setdefault(opcode, []).append(entry)
    return {opcode: tuple(entries) for opcode, entries in found.items()}


def apply_patterns(
    editor: Editor,
    context: PassContext,
    patterns: Mapping[str, Sequence[Pattern]],
    computations: Iterable[str],
) -> None:
    """Rewrites computations in turn. Rules that need `--fp fast` are skipped without it."""
    allowed = {
        opcode: [entry for entry in entries if context.fp_fast or not entry.rule.fast_math]
        for opcode, entries in patterns.items()
    }
    for computation in computations:
        if not _has_dynamic_sizes(editor, computation):
            _Worklist(editor, context, allowed, computation).run()


def _has_dynamic_sizes(editor: Editor, computation: str) -> bool:
    """True before shape refinement; rules compute with sizes and wait for it."""
    return any(
        isinstance(i.type, TensorType) and DYNAMIC in i.type.shape
        for i in editor.working(computation).instructions.values()
    )


class _Worklist:
    """One computation's instructions that are still to be looked at."""

    def __init__(
        self,
        editor: Editor,
        context: PassContext,
        patterns: Mapping[str, Sequence[Pattern]],
        computation: str,
    ) -> None:
        self.editor = editor
        self.context = context
        self.patterns = patterns
        self.site = Site(editor, computation)
        self.refused: set[tuple[str, str]] = set()
        names = [n for n in self.site.state.names() if self.site.instructions[n].opcode in patterns]
        self.queue: deque[str] = deque(names)
        self.queued: set[str] = set(names)
        self.budget = REWRITES_PER_INSTRUCTION * len(self.site.instructions) + 100

    def run(self) -> None:
        """Works until nothing is left, or the budget is."""
        instructions, patterns = self.site.instructions, self.patterns
        looked_at = 0
        while self.queue and self.budget > 0:
            looked_at += 1
            if looked_at % _CHECK_EVERY == 0:
                self.context.check_cancelled()
            name = self.queue.popleft()
            self.queued.discard(name)
            instruction = instructions.get(name)
            if instruction is None:
                continue
            for entry in patterns.get(instruction.opcode, ()):
                build = entry.match(self.site, instruction)
                if build is not None and self._rewrite(entry, instruction, build):
                    break

    def _rewrite(self, entry: Pattern, instruction: Instruction, build: Build) -> bool:
        name = instruction.name
        if (entry.rule.id, name) in self.refused:
            return False
        self.budget -= 1
        with self.editor.rewrite(entry.rule, self.site.computation, name) as edit:
            builder = Builder(self.site, edit)
            new = build(builder)
            if new != name:
                made = self.site.instructions[new]
                if not same_value_type(made.type, instruction.type):
                    raise TypeError(f"{entry.rule.id} makes {made.type} of {instruction.type} at {name}")
                edit.replace(name, new)
        if not edit.committed:
            self.refused.add((entry.rule.id, name))
            return False
        for touched in (*builder.made, new, *self.site.state.users(new), *instruction.operands):
            self._enqueue(touched)
        return True

    def _enqueue(self, name: str) -> None:
        instruction = self.site.instructions.get(name)
        if instruction is None or name in self.queued or instruction.opcode not in self.patterns:
            return
        self.queued.add(name)
        self.queue.append(name)
