"""What a region reads from outside, and when two regions are the same little function."""

from __future__ import annotations

import re
from typing import Any

from compiler.frontend.mlir.tree import Block
from compiler.ir.program import Attributes
from compiler.ir.types import TensorType


def free_values(block: Block) -> list[str]:
    """Values that a block (or a region inside it) reads without defining them, in order of first use."""
    found: dict[str, None] = {}
    _collect(block, set(), found)
    return list(found)


def _collect(block: Block, outer: set[str], found: dict[str, None]) -> None:
    defined = outer | {name for name, _, _ in block.arguments}
    for op in block.operations:
        for operand in op.operands:
            if operand not in defined and f"{operand}#0" not in defined:
                found[operand] = None
        for region in op.regions:
            _collect(region, defined, found)
        defined.update(op.results)


def applied_name(block: Block) -> str:
    """`add_f32` for a region that applies one operation to its two scalars and returns the result, else empty."""
    if len(block.operations) != 2 or len(block.arguments) != 2:
        return ""
    first, last = block.operations
    kind = block.arguments[0][1]
    names = [name for name, _, _ in block.arguments]
    if (
        first.operands != names
        or last.operands != first.results
        or not isinstance(kind, TensorType)
        or kind.shape
    ):
        return ""
    element = re.sub(r"\W+", "_", kind.element.name).strip("_")
    return f"{first.name.split('.')[-1]}_{element}"


def reducer_key(block: Block) -> Any:
    """Equal for blocks that compute the same of their arguments; None for blocks that are large or reach outside."""
    if len(block.operations) > 4:
        return None
    names = {name: index for index, (name, _, _) in enumerate(block.arguments)}
    rows: list[Any] = [tuple(kind for _, kind, _ in block.arguments)]
    for op in block.operations:
        if op.regions or any(operand not in names for operand in op.operands):
            return None
        for result in op.results:
            names[result] = len(names)
        try:
            attributes = hash(Attributes(op.attributes))
        except TypeError:
            return None
        rows.append((op.name, tuple(names[o] for o in op.operands), tuple(op.result_types), attributes))
    return tuple(rows)
