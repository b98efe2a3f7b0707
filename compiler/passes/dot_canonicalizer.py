"""Brings every product into one form: batches of matrices, ``[b.., m, k] x [b.., k, n] -> [b.., m, n]``.

Operands are transposed and reshaped into it (for most, that moves nothing: layout assignment turns such transposes into
views), and the result is reshaped back. `dot` becomes `dot_general`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from compiler.analysis.call_graph import reachable
from compiler.ir.editor import Editor
from compiler.ir.program import Attributes, Instruction
from compiler.ir.types import ElementType, TensorType
from compiler.passes.base import Option, PassContext
from compiler.passes.rules.contractions import dot_dimensions
from compiler.passes.rules.pattern import Build, Builder, Site, pattern
from compiler.passes.worklist import apply_patterns, index_by_opcode


@pattern("dot-to-general", "dot(x, y) = dot_general(x, y) over x's last and y's first dimension", "dot")
def _dot_to_general(site: Site, i: Instruction) -> Build | None:
    attributes = i.attributes.having(
        lhs_batching_dimensions=(),
        rhs_batching_dimensions=(),
        lhs_contracting_dimensions=(site.operand(i, 0).tensor.rank - 1,),
        rhs_contracting_dimensions=(0,),
    )
    return lambda b: b.add("dot_general", i.operands, i.type, attributes)


@pattern("dot-to-matrices", "a product over any dimensions = a product of matrices", "dot_general")
def _dot_to_matrices(site: Site, i: Instruction) -> Build | None:
    dims, (left, right) = dot_dimensions(site, i), (site.operand(i, 0).tensor, site.operand(i, 1).tensor)
    if not all(isinstance(kind.element, ElementType) for kind in (left, right, i.tensor)):
        return None
    lhs_order = (*dims.lhs_batching, *dims.lhs_free, *dims.lhs_contracting)
    rhs_order = (*dims.rhs_batching, *dims.rhs_contracting, *dims.rhs_free)
    batch = len(dims.lhs_batching)
    is_canonical = len(lhs_order) == len(rhs_order) == batch + 2 and len(dims.lhs_contracting) == 1
    if is_canonical and lhs_order == tuple(range(batch + 2)) == rhs_order:
        return None
    m, n, k = (
        math.prod(kind.shape[d] for d in group)
        for kind, group in ((left, dims.lhs_free), (right, dims.rhs_free), (left, dims.lhs_contracting))
    )
    sizes = tuple(left.shape[d] for d in dims.lhs_batching)

    def build(b: Builder) -> str:
        lhs = b.reshape(b.transpose(i.operands[0], lhs_order), (*sizes, m, k))
        rhs = b.reshape(b.transpose(i.operands[1], rhs_order), (*sizes, k, n))
        result = TensorType(i.tensor.element, (*sizes, m, n))
        product = b.add("dot_general", (lhs, rhs), result, _numbers(i.attributes, range(batch)))
        return b.reshape(product, i.tensor.shape)

    return build


def _numbers(base: Attributes, batch: Sequence[int]) -> Attributes:
    places = tuple(batch)
    return base.having(
        lhs_batching_dimensions=places,
        rhs_batching_dimensions=places,
        lhs_contracting_dimensions=(len(places) + 1,),
        rhs_contracting_dimensions=(len(places),),
    )


PATTERNS = (_dot_to_general, _dot_to_matrices)


class DotCanonicalizer:
    """Makes every product a batch of matrix products."""

    name = "dot-canonicalizer"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Works on every computation that the entry reaches."""
        apply_patterns(editor, context, index_by_opcode(PATTERNS), list(reachable(editor)))
