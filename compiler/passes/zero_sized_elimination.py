"""Removes values without elements, and what operations make of them.

Whatever computes a tensor of no elements is the empty constant; sums of nothing are zero, and what is padded, joined
with, or updated by nothing is plain. Backends need not think of empty operands then.
"""

from __future__ import annotations

import numpy as np

from compiler.analysis.call_graph import is_pure, reachable
from compiler.ir.editor import Editor
from compiler.ir.literal import Literal
from compiler.ir.program import Instruction
from compiler.ir.types import ElementType, TensorType
from compiler.ops import OPERATIONS
from compiler.passes.base import Option, PassContext
from compiler.passes.rules.pattern import Build, Site, pattern
from compiler.passes.worklist import apply_patterns, index_by_opcode

_ALL = tuple(opcode for opcode in OPERATIONS if opcode not in ("parameter", "constant", "get_tuple_element"))


@pattern("empty-value", "a tensor without elements = the empty constant", *_ALL)
def _empty_value(site: Site, i: Instruction) -> Build | None:
    kind = i.type
    if not isinstance(kind, TensorType) or not isinstance(kind.element, ElementType) or 0 not in kind.shape:
        return None
    if not kind.is_static or not is_pure(site.editor, i):
        return None
    empty = Literal(TensorType(kind.element, kind.shape), np.empty(kind.shape, kind.element.dtype))
    return lambda b: b.constant(empty)


@pattern("sum-of-no-products", "dot or convolution over nothing = 0", "dot_general", "convolution")
def _sum_of_no_products(site: Site, i: Instruction) -> Build | None:
    if i.tensor.size == 0 or all(site.operand(i, k).tensor.size for k in (0, 1)):
        return None
    return (lambda b: b.splat(i.tensor, 0)) if isinstance(i.tensor.element, ElementType) else None


@pattern("pad-of-nothing", "pad(empty, v) = broadcast(v)", "pad")
def _pad_of_nothing(site: Site, i: Instruction) -> Build | None:
    if i.tensor.size == 0 or site.operand(i).tensor.size != 0:
        return None
    return lambda b: b.broadcast(i.operands[1], i.tensor.shape, ())


@pattern("scatter-of-nothing", "scatter(x, i, empty) = x", "scatter")
def _scatter_of_nothing(site: Site, i: Instruction) -> Build | None:
    if len(i.operands) != 3 or site.operand(i, 2).tensor.size != 0:
        return None
    return lambda b: i.operands[0]


PATTERNS = (_empty_value, _sum_of_no_products, _pad_of_nothing, _scatter_of_nothing)


class ZeroSizedElimination:
    """Replaces empty values by empty constants, and simplifies what reads them."""

    name = "zero-sized-hlo-elimination"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Works on every computation that the entry reaches."""
        apply_patterns(editor, context, index_by_opcode(PATTERNS), list(reachable(editor)))
