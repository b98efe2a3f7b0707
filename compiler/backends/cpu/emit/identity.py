"""Which reductions may be done in any order, and from what neutral element they start.

The order of additions in a reduction is the compiler's to choose; the initial value is taken in once, so that it need
not be neutral.
"""

from __future__ import annotations

import math
from dataclasses import replace

from compiler.ir.program import NO_ATTRIBUTES
from compiler.ir.types import F32, ElementType
from compiler.kernel.elemental import Compute, Constant, External, Fold, Node
from compiler.kernel.loop_nest import LoopNest

_REORDERED = frozenset(("add", "multiply", "maximum", "minimum", "and", "or", "xor"))


def simple_operation(fold: Fold) -> str:
    """The operation that a fold's body consists of, or an empty string."""
    if len(fold.body) != 1:
        return ""
    body = fold.body[0]
    if not isinstance(body, Compute) or body.opcode not in _REORDERED or len(body.operands) != 2:
        return ""
    numbers = [node.number for node in body.operands if isinstance(node, External)]
    return body.opcode if sorted(numbers) == [0, 1] else ""


def identity_of(fold: Fold) -> complex | None:
    """The neutral element of a fold that may be reordered; None for any other."""
    return _identity(simple_operation(fold), fold.initial[0].element)


def _identity(opcode: str, e: ElementType) -> complex | None:
    if opcode == "add":
        return (
            -0.0 if e.is_float else complex(-0.0, -0.0) if e.is_complex else None if e.kind == "bool" else 0
        )
    if opcode == "multiply" and not e.is_complex:
        return 1
    if e.is_complex:
        return None
    if opcode in ("and", "minimum"):
        if e.is_float:
            return math.inf if _has_infinity(e) else None
        return (
            1 if e.kind == "bool" else (1 << (e.bits - (e.kind == "int"))) - 1 if opcode == "minimum" else -1
        )
    if opcode in ("or", "xor", "maximum"):
        if e.is_float:
            return -math.inf if _has_infinity(e) else None
        return -(1 << (e.bits - 1)) if opcode == "maximum" and e.kind == "int" else 0
    return None


def _has_infinity(e: ElementType) -> bool:
    return e.bits >= 16 or e.name in ("f8E5M2", "f8E4M3", "f8E3M4")


def widened(nest: LoopNest, fold: Fold) -> tuple[LoopNest, Fold]:
    """A sum or product of narrow floats is kept in f32 and rounded once, when it is stored."""
    e = fold.initial[0].element
    if simple_operation(fold) not in ("add", "multiply") or not e.is_float or e.bits >= 32:
        return nest, fold
    body = fold.body[0]
    assert isinstance(body, Compute)
    externals = tuple(
        External(F32, node.axes, node.label, node.number)
        for node in body.operands
        if isinstance(node, External)
    )
    wide = replace(
        fold,
        initial=tuple(_as_f32(node) for node in fold.initial),
        inputs=tuple(_as_f32(node) for node in fold.inputs),
        body=(replace(body, element=F32, operands=externals),),
    )
    return replace(nest, stores=tuple(replace(store, value=wide) for store in nest.stores)), wide


def _as_f32(node: Node) -> Node:
    if isinstance(node, Constant):
        return replace(node, element=F32)
    return Compute(F32, node.axes, node.label, "convert", NO_ATTRIBUTES, (node,))
