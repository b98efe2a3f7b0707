"""What the diff panel shows, as rows that are cheap to make: text is formatted only for rows that are drawn.

Built from a `ModuleDiff`, or from one rewrite's changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from compiler.ir.hlo_text import format_instruction, shape_text
from compiler.ir.location import source_line
from compiler.ir.program import Computation, Instruction, Module
from compiler.ir.rewrite import Rewrite
from explorer.diff import ADDED, CHANGED, REMOVED, SAME, ComputationDiff, DiffLine, ModuleDiff, with_context

_WORD = re.compile(r"%?[\w.\-]+")
MAX_WORDS = 300
CONTEXT = 2
"""Unchanged lines shown on each side of a change."""


class Row(NamedTuple):
    """One line of the panel. `kind` is a diff mark, or `h` for a heading, `g` for a gap, `n` for a note."""

    kind: str
    text: str = ""
    instruction: Instruction | None = None
    computation: Computation | None = None
    is_root: bool = False
    other: Instruction | None = None
    """The same instruction on the other side of a change."""

    @property
    def name(self) -> str:
        """The instruction's name, if the row shows one."""
        return self.instruction.name if self.instruction else ""


def _line(instruction: Instruction, computation: Computation | None) -> str:
    return format_instruction(instruction, computation, layout=_has_layout(instruction))


def _has_layout(instruction: Instruction) -> bool:
    return getattr(instruction.type, "layout", None) is not None


def row_text(row: Row) -> str:
    """The text of a row, without its mark."""
    if row.instruction is None:
        return row.text
    root = "ROOT " if row.is_root else ""
    return root + _line(row.instruction, row.computation)


def differing_spans(row: Row) -> tuple[tuple[int, int], ...]:
    """Parts of a changed row's text that its other side does not have, as (start, end)."""
    if row.other is None or row.instruction is None:
        return ()
    text = row_text(row)
    mine = list(_WORD.finditer(text))
    theirs = _WORD.findall(_line(row.other, None))
    if len(mine) > MAX_WORDS or len(theirs) > MAX_WORDS:
        return ()
    matcher = SequenceMatcher(None, [m.group() for m in mine], theirs, autojunk=False)
    spans = []
    for tag, start, end, _, _ in matcher.get_opcodes():
        if tag in ("replace", "delete"):
            spans.append((mine[start].start(), mine[end - 1].end()))
    return tuple(spans)


def rows_of_diff(diff: ModuleDiff, *, everything: bool = False) -> list[Row]:
    """Rows of a difference: changes with some context, or every line."""
    rows: list[Row] = []
    for computation in diff.changed:
        rows.append(_heading(computation))
        shown: Iterable[DiffLine | int] = (
            computation.lines if everything else with_context(computation.lines, CONTEXT)
        )
        for line in shown:
            if isinstance(line, int):
                rows.append(Row("g", f"⋯ {line} unchanged"))
            else:
                rows.extend(_rows_of_line(line, computation.before, computation.after))
    if not diff.changed:
        rows.append(Row("n", "no change"))
    if everything:
        for name in diff.unchanged:
            found = diff.after.computations.get(name)
            if found is not None:
                rows.extend(rows_of_computation(found))
    elif diff.unchanged and diff.changed:
        count = len(diff.unchanged)
        rows.append(Row("g", f"⋯ {count} computation{'s' * (count > 1)} unchanged"))
    return rows


def _heading(computation: ComputationDiff) -> Row:
    added, removed, changed = computation.counts
    facts = [f"+{added}" * bool(added), f"-{removed}" * bool(removed), f"~{changed}" * bool(changed)]
    facts += ["new order"] * computation.reordered + ["new result"] * computation.root_changed
    counts = " ".join(fact for fact in facts if fact)
    mark = {ADDED: "new ", REMOVED: "gone "}.get(computation.kind, "")
    shown = computation.after or computation.before
    result = f" -> {shape_text(shown.result_type, False)}" if shown else ""
    return Row("h", f"{mark}{computation.name}{result}   {counts}")


def _rows_of_line(line: DiffLine, before: Computation | None, after: Computation | None) -> list[Row]:
    root_before = before is not None and before.root == line.name
    root_after = after is not None and after.root == line.name
    if line.kind == CHANGED:
        return [
            Row(REMOVED, "", line.before, before, root_before, line.after),
            Row(ADDED, "", line.after, after, root_after, line.before),
        ]
    if line.kind == REMOVED:
        return [Row(REMOVED, "", line.before, before, root_before)]
    return [Row(line.kind, "", line.after, after, root_after)]


def rows_of_computation(computation: Computation) -> list[Row]:
    """A heading and every line, unmarked."""
    heading = Row("h", f"{computation.name} -> {shape_text(computation.result_type, False)}")
    lines = [Row(SAME, "", i, computation, i.name == computation.root) for i in computation]
    return [heading, *lines]


def rows_of_module(module: Module) -> list[Row]:
    """A whole program, the entry first."""
    entry = module.entry_computation
    others = [c for c in module.computations.values() if c is not entry]
    return [row for computation in (entry, *others) for row in rows_of_computation(computation)]


def rows_of_rewrite(rewrite: Rewrite, number: int, count: int) -> list[Row]:
    """One rewrite: which rule, its law, where, and what it did."""
    rows = [
        Row("h", f"rewrite {number + 1} of {count}   {rewrite.rule.id}"),
        Row("n", f"law     {rewrite.rule.law}"),
        Row("n", f"at      {rewrite.root} in {rewrite.computation}"),
    ]
    line = source_line(rewrite.location)
    if line is not None:
        rows.append(Row("n", f"source  {line}"))
    if rewrite.rule.source:
        rows.append(Row("n", f"rule in {rewrite.rule.source}"))
    if rewrite.note:
        rows.append(Row("n", f"note    {rewrite.note}"))
    rows.append(Row("n", f"id      {rewrite.id}"))
    rows.append(Row("h", "before and after"))
    return rows + _rows_of_changes(rewrite)


def _rows_of_changes(rewrite: Rewrite) -> list[Row]:
    first: dict[tuple[str, str], Instruction | None] = {}
    last: dict[tuple[str, str], Instruction | None] = {}
    notes: list[Row] = []
    for change in rewrite.changes:
        if change.name:
            key = (change.computation, change.name)
            first.setdefault(key, change.before)
            last[key] = change.after
        if change.root:
            notes.append(
                Row("n", f"result of {change.computation}: {change.root[0]} becomes {change.root[1]}")
            )
        if change.order:
            notes.append(Row("n", f"new order of {change.computation}'s {len(change.order[1])} instructions"))
        if change.computation_after is not None:
            notes.extend(
                Row(ADDED, r.text, r.instruction, r.computation, r.is_root) if r.instruction else r
                for r in rows_of_computation(change.computation_after)
            )
        if change.computation_before is not None:
            notes.append(Row(REMOVED, f"computation {change.computation}"))
    rows = []
    for key, before in first.items():
        after = last[key]
        if before is not None:
            rows.append(Row(REMOVED, "", before, None, other=after))
        if after is not None:
            rows.append(Row(ADDED, "", after, None, other=before))
    return rows + notes


def change_positions(rows: Sequence[Row]) -> list[int]:
    """Indices at which a run of changed rows begins."""
    found = []
    previous = False
    for index, row in enumerate(rows):
        changed = row.kind in (ADDED, REMOVED, CHANGED)
        if changed and not previous:
            found.append(index)
        previous = changed
    return found
