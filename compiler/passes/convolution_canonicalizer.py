"""Moves into convolutions what they can do themselves: padding with zeros, holes between elements, reversed windows."""

from __future__ import annotations

import numpy as np

from compiler.analysis.call_graph import reachable
from compiler.ir.editor import Editor
from compiler.ir.program import Instruction
from compiler.passes.base import Option, PassContext
from compiler.passes.rules.pattern import Build, Site, pattern
from compiler.passes.worklist import apply_patterns, index_by_opcode


@pattern("convolution-of-pad", "convolution(pad(x, 0)) = convolution(x) with that padding", "convolution")
def _convolution_of_pad(site: Site, i: Instruction) -> Build | None:
    padded, a = site.operand(i), i.attributes
    if padded.opcode != "pad":
        return None
    value = site.splat(padded.operands[1])
    if value is None or value != 0 or bool(np.signbit(value)):
        return None
    low, high, gaps = (
        padded.attributes[key] for key in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    spatial = a["input_spatial_dimensions"]
    others = [d for d in range(padded.tensor.rank) if d not in spatial]
    if any(low[d] or high[d] or gaps[d] for d in others) or any(step != 1 for step in a["lhs_dilation"]):
        return None
    padding = tuple((p + low[d], q + high[d]) for (p, q), d in zip(a["padding"], spatial, strict=True))
    attributes = a.having(padding=padding, lhs_dilation=tuple(gaps[d] + 1 for d in spatial))
    return lambda b: b.add("convolution", (padded.operands[0], i.operands[1]), i.type, attributes)


@pattern(
    "convolution-of-reverse",
    "convolution(x, reverse(w)) = convolution(x, w) with a reversed window",
    "convolution",
)
def _convolution_of_reverse(site: Site, i: Instruction) -> Build | None:
    turned, a = site.operand(i, 1), i.attributes
    spatial = a["kernel_spatial_dimensions"]
    if turned.opcode != "reverse" or any(d not in spatial for d in turned.attributes["dimensions"]):
        return None
    flips = [d in turned.attributes["dimensions"] for d in spatial]
    reversal = tuple(bool(old) != flip for old, flip in zip(a["window_reversal"], flips, strict=True))
    operands = (i.operands[0], turned.operands[0])
    return lambda b: b.add("convolution", operands, i.type, a.having(window_reversal=reversal))


PATTERNS = (_convolution_of_pad, _convolution_of_reverse)


class ConvolutionCanonicalizer:
    """Folds pads and reversals into convolutions."""

    name = "convolution-canonicalizer"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Works on every computation that the entry reaches."""
        apply_patterns(editor, context, index_by_opcode(PATTERNS), list(reachable(editor)))
