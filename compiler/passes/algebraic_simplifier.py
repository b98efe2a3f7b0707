"""The algebraic simplifier: rules by the dozen, each a law that holds to the bit.

It stands in the pipeline again and again, since other passes uncover what it can simplify. The rules are data, in
`compiler.passes.rules`; the worklist finds those that may start at an instruction by its opcode.
"""

from __future__ import annotations

from functools import lru_cache

from compiler.analysis.call_graph import reachable
from compiler.ir.editor import Editor
from compiler.passes.base import Option, PassContext
from compiler.passes.rules import (
    arithmetic,
    contractions,
    conversions,
    fast_math,
    indexing,
    logic,
    reductions,
    shapes,
    slicing,
)
from compiler.passes.rules.pattern import Pattern
from compiler.passes.worklist import apply_patterns, index_by_opcode

FAMILIES = (conversions, arithmetic, logic, shapes, slicing, indexing, reductions, contractions, fast_math)


def all_patterns() -> tuple[Pattern, ...]:
    """Every rule of the simplifier, in the order in which they are tried."""
    return tuple(entry for family in FAMILIES for entry in family.PATTERNS)


@lru_cache(maxsize=1)
def _index() -> dict[str, tuple[Pattern, ...]]:
    return index_by_opcode(all_patterns())


class AlgebraicSimplifier:
    """Applies every rule everywhere until none fires."""

    name = "algebraic-simplifier"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Simplifies each computation that the entry reaches."""
        apply_patterns(editor, context, _index(), list(reachable(editor)))
