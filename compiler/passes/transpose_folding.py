"""Lets products read transposed operands in place: the dimension numbers say what the transpose did.

A transpose folds when it leaves the order of the operand's free dimensions alone, since the result lists them in that
order; the order of batching and contracting dimensions is named and may change freely.
"""

from __future__ import annotations

from compiler.analysis.call_graph import reachable
from compiler.ir.editor import Editor
from compiler.ir.program import Instruction
from compiler.passes.base import Option, PassContext
from compiler.passes.rules.contractions import dot_dimensions
from compiler.passes.rules.pattern import Build, Site, pattern
from compiler.passes.worklist import apply_patterns, index_by_opcode

_SIDES = ("lhs", "rhs")


@pattern("dot-of-transpose", "dot(transpose(x), y) = dot(x, y) with other dimension numbers", "dot_general")
def _dot_of_transpose(site: Site, i: Instruction) -> Build | None:
    dims = dot_dimensions(site, i)
    for side, free in enumerate((dims.lhs_free, dims.rhs_free)):
        turned = site.operand(i, side)
        if turned.opcode != "transpose":
            continue
        permutation = turned.attributes["permutation"]
        moved = [permutation[d] for d in free]
        if moved != sorted(moved):
            continue
        return _folded(i, side, turned.operands[0], permutation)
    return None


def _folded(i: Instruction, side: int, source: str, permutation: tuple[int, ...]) -> Build:
    keys = (f"{_SIDES[side]}_batching_dimensions", f"{_SIDES[side]}_contracting_dimensions")
    changes = {key: tuple(permutation[d] for d in i.attributes[key]) for key in keys}
    operands = tuple(source if k == side else name for k, name in enumerate(i.operands))
    return lambda b: b.add("dot_general", operands, i.type, i.attributes.having(**changes))


PATTERNS = (_dot_of_transpose,)


class TransposeFolding:
    """Folds transposes into dot_general."""

    name = "transpose-folding"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Works on every computation that the entry reaches."""
        apply_patterns(editor, context, index_by_opcode(PATTERNS), list(reachable(editor)))
