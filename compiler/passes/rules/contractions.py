"""Rules about dot_general: products without a sum, and transposes that exchange the operands."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.program import Attributes, Instruction
from compiler.passes.rules.pattern import Build, Builder, Pattern, Site, element_kind, pattern


@dataclass(frozen=True, slots=True)
class DotDimensions:
    """The roles of a dot_general's dimensions; free ones are those that are neither batching nor contracting."""

    lhs_batching: tuple[int, ...]
    rhs_batching: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]
    lhs_free: tuple[int, ...]
    rhs_free: tuple[int, ...]


def dot_dimensions(site: Site, i: Instruction) -> DotDimensions:
    """Reads the roles off an instruction."""
    a = i.attributes
    batch = a["lhs_batching_dimensions"], a["rhs_batching_dimensions"]
    summed = a["lhs_contracting_dimensions"], a["rhs_contracting_dimensions"]
    ranks = (site.operand(i, 0).tensor.rank, site.operand(i, 1).tensor.rank)
    lhs, rhs = (
        tuple(d for d in range(rank) if d not in b and d not in c)
        for rank, b, c in zip(ranks, batch, summed, strict=True)
    )
    return DotDimensions(*batch, *summed, lhs, rhs)


def dot_attributes(base: Attributes, dims: DotDimensions) -> Attributes:
    """An instruction's attributes with other dimension numbers."""
    return base.having(
        lhs_batching_dimensions=dims.lhs_batching,
        rhs_batching_dimensions=dims.rhs_batching,
        lhs_contracting_dimensions=dims.lhs_contracting,
        rhs_contracting_dimensions=dims.rhs_contracting,
    )


@pattern("dot-without-sum", "dot(x, y) that sums one product = x · y, for integers", "dot_general")
def _dot_without_sum(site: Site, i: Instruction) -> Build | None:
    dims = dot_dimensions(site, i)
    shape = site.operand(i, 0).tensor.shape
    if element_kind(i) not in ("int", "uint") or any(shape[d] != 1 for d in dims.lhs_contracting):
        return None
    if any(element_kind(site.operand(i, k)) not in ("int", "uint") for k in (0, 1)):
        return None
    batch = len(dims.lhs_batching)

    def build(b: Builder) -> str:
        left = _outer(b, i.operands[0], (*dims.lhs_batching, *dims.lhs_free), i, 0, batch)
        right = _outer(b, i.operands[1], (*dims.rhs_batching, *dims.rhs_free), i, len(dims.lhs_free), batch)
        return b.op("multiply", left, right)

    return build


def _outer(b: Builder, name: str, kept: tuple[int, ...], i: Instruction, skip: int, batch: int) -> str:
    """An operand without its contracting dimensions, spread to the result's shape."""
    shape = b.type(name).shape
    squeezed = b.reshape(name, tuple(shape[d] for d in sorted(kept)))
    turned = b.transpose(squeezed, tuple(sorted(kept).index(d) for d in kept))
    places = [*range(batch), *range(batch + skip, skip + len(kept))]
    return b.broadcast(b.convert(turned, i.tensor.element), i.tensor.shape, places)


@pattern(
    "transpose-of-dot", "transpose(dot(x, y)) that exchanges the free dimensions = dot(y, x)", "transpose"
)
def _transpose_of_dot(site: Site, i: Instruction) -> Build | None:
    dot = site.operand(i)
    if dot.opcode != "dot_general" or not site.has_one_user(dot.name) or dot.attributes.get("algorithm"):
        return None
    dims = dot_dimensions(site, dot)
    batch, left, right = len(dims.lhs_batching), len(dims.lhs_free), len(dims.rhs_free)
    exchanged = (*range(batch), *range(batch + left, batch + left + right), *range(batch, batch + left))
    if i.attributes["permutation"] != exchanged or not left or not right:
        return None
    attributes = dot_attributes(
        dot.attributes,
        DotDimensions(
            dims.rhs_batching,
            dims.lhs_batching,
            dims.rhs_contracting,
            dims.lhs_contracting,
            dims.rhs_free,
            dims.lhs_free,
        ),
    )
    precision = attributes.get("precision_config")
    if precision:
        attributes = attributes.having(precision_config=tuple(reversed(precision)))
    return lambda b: b.add("dot_general", (dot.operands[1], dot.operands[0]), i.type, attributes)


PATTERNS: tuple[Pattern, ...] = (_dot_without_sum, _transpose_of_dot)
