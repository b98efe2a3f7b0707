"""Brings broadcasts, reshapes and transposes into the form that later passes and backends expect.

Afterwards a broadcast only repeats: it names its operand's dimensions in order, and each of them keeps its size (as in
HLO). Dimensions of size 1 that StableHLO lets a broadcast expand are reshaped away first, and a broadcast that also
permutes is a transpose and a broadcast. Transposes that move only dimensions of size 1 are reshapes.
"""

from __future__ import annotations

from compiler.analysis.call_graph import reachable
from compiler.ir.editor import Editor
from compiler.ir.program import Instruction
from compiler.passes.base import Option, PassContext
from compiler.passes.rules import shapes
from compiler.passes.rules.pattern import Build, Builder, Site, pattern
from compiler.passes.worklist import apply_patterns, index_by_opcode


@pattern(
    "broadcast-expands-nothing",
    "broadcast(x) of size-1 dimensions = broadcast(reshape(x))",
    "broadcast_in_dim",
)
def _broadcast_expands_nothing(site: Site, i: Instruction) -> Build | None:
    x, dims = site.operand(i), i.attributes["broadcast_dimensions"]
    shape, wanted = x.tensor.shape, i.tensor.shape
    kept = [d for d, size in enumerate(shape) if size == wanted[dims[d]]]
    if len(kept) == len(shape):
        return None

    def build(b: Builder) -> str:
        narrow = b.reshape(x.name, [shape[d] for d in kept])
        return b.broadcast(narrow, wanted, [dims[d] for d in kept])

    return build


@pattern("broadcast-in-order", "broadcast(x) that permutes x = broadcast(transpose(x))", "broadcast_in_dim")
def _broadcast_in_order(site: Site, i: Instruction) -> Build | None:
    dims = i.attributes["broadcast_dimensions"]
    if dims == tuple(sorted(dims)):
        return None
    order = sorted(range(len(dims)), key=lambda d: dims[d])
    return lambda b: b.broadcast(b.transpose(i.operands[0], order), i.tensor.shape, sorted(dims))


PATTERNS = (
    *(
        entry
        for entry in shapes.PATTERNS
        if entry.rule.id not in ("elementwise-of-broadcasts", "iota-of-one")
    ),
    _broadcast_expands_nothing,
    _broadcast_in_order,
)


class ShapeCanonicalizer:
    """Canonicalises what moves elements without computing."""

    name = "reshape-broadcast-transpose-canonicalizer"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Works on every computation that the entry reaches."""
        apply_patterns(editor, context, index_by_opcode(PATTERNS), list(reachable(editor)))
