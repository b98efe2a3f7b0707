"""Turns `map` over elementwise computations into elementwise operations on whole tensors."""

from __future__ import annotations

import numpy as np

from compiler.analysis.call_graph import reachable
from compiler.ir.editor import Editor
from compiler.ir.program import Computation, Instruction
from compiler.ir.types import TensorType
from compiler.ops import OPERATIONS
from compiler.ops.record import Trait
from compiler.passes.base import Option, PassContext
from compiler.passes.rules.pattern import Build, Builder, Site, pattern
from compiler.passes.worklist import apply_patterns, index_by_opcode


@pattern("map-inline", "map(f, x) = f on whole tensors, for an elementwise f", "map")
def _map_inline(site: Site, i: Instruction) -> Build | None:
    body = site.editor.computation(i.called[0])
    if not all(_is_elementwise(inner) for inner in body):
        return None
    return lambda b: _inlined(b, i, body)


def _is_elementwise(i: Instruction) -> bool:
    if i.opcode in ("parameter", "constant"):
        return True
    traits = OPERATIONS[i.opcode].traits
    return Trait.ELEMENTWISE in traits and Trait.NON_DETERMINISTIC not in traits and not i.called


def _inlined(b: Builder, i: Instruction, body: Computation) -> str:
    names = dict(zip(body.parameters, i.operands, strict=True))
    for inner in body:
        if inner.opcode == "parameter":
            continue
        kind = TensorType(inner.tensor.element, i.tensor.shape)
        if inner.opcode == "constant":
            names[inner.name] = b.splat(kind, np.asarray(inner.literal.array[()]))
        else:
            operands = [names[operand] for operand in inner.operands]
            names[inner.name] = b.add(inner.opcode, operands, kind, inner.attributes)
    return names[body.root]


PATTERNS = (_map_inline,)


class MapInliner:
    """Inlines the computations of `map`."""

    name = "map-inliner"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Works on every computation that the entry reaches."""
        apply_patterns(editor, context, index_by_opcode(PATTERNS), list(reachable(editor)))
