"""Spells batch normalisation out in elementary operations, as the StableHLO specification defines it.

Applies where the backend has no kernel of its own for it; the parts then fuse like anything else.
"""

from __future__ import annotations

import math

import numpy as np

from compiler.analysis.call_graph import reachable
from compiler.ir.editor import Editor
from compiler.ir.program import Attributes, Instruction
from compiler.ir.rewrite import Rule
from compiler.ir.types import TensorType
from compiler.passes.base import Option, PassContext
from compiler.passes.rules.pattern import Builder, Site

EXPAND = Rule("expand-batch-norm", "batch normalisation means its definition")
OPCODES = ("batch_norm_inference", "batch_norm_training", "batch_norm_grad")


class BatchNormExpander:
    """Expands the three operations."""

    name = "batch-norm-expander"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Expands what the backend does not support."""
        for computation in reachable(editor):
            for i in [i for i in editor.computation(computation) if i.opcode in OPCODES]:
                if context.capabilities.supports(i.opcode):
                    continue
                with editor.rewrite(EXPAND, computation, i.name) as edit:
                    expansion = _Expansion(Builder(Site(editor, computation), edit), i)
                    edit.replace(i.name, expansion.result())


class _Expansion:
    """One operation being spelled out; methods add instructions and return names."""

    def __init__(self, b: Builder, i: Instruction) -> None:
        self.b, self.i = b, i
        self.kind = b.type(i.operands[0])
        self.feature: int = i.attributes["feature_index"]
        self.count = math.prod(s for d, s in enumerate(self.kind.shape) if d != self.feature)
        self.body = ""

    def result(self) -> str:
        x, *rest = self.i.operands
        if self.i.opcode == "batch_norm_inference":
            scale, offset, mean, variance = rest
            return self.scaled(self.normalised(x, mean, variance), scale, offset)
        if self.i.opcode == "batch_norm_training":
            scale, offset = rest
            mean = self.mean(x)
            centred = self.b.op("subtract", x, self.wide(mean))
            variance = self.mean(self.b.op("multiply", centred, centred))
            output = self.scaled(self.normalised(x, mean, variance), scale, offset)
            return self.b.op("tuple", output, mean, variance)
        return self.gradients(x, *rest)

    def gradients(self, x: str, scale: str, mean: str, variance: str, grad: str) -> str:
        b = self.b
        centred = b.op("subtract", x, self.wide(mean))
        biased = self.biased(variance)
        deviation = b.op("sqrt", biased)
        count = b.splat(self.kind, self.count)
        spread = b.op("subtract", b.op("multiply", grad, count), self.wide(self.sum(grad)))
        along = self.wide(self.sum(b.op("multiply", grad, centred)))
        bent = b.op("divide", b.op("multiply", along, centred), biased)
        factor = b.op("divide", b.op("divide", self.wide(scale), deviation), count)
        grad_x = b.op("multiply", factor, b.op("subtract", spread, bent))
        grad_scale = self.sum(b.op("multiply", grad, b.op("divide", centred, deviation)))
        return b.op("tuple", grad_x, grad_scale, self.sum(grad))

    def wide(self, name: str) -> str:
        """A value for each feature, repeated to the operand's shape."""
        return self.b.broadcast(name, self.kind.shape, (self.feature,))

    def biased(self, variance: str) -> str:
        epsilon = np.float32(self.i.attributes["epsilon"])
        return self.b.op("add", self.wide(variance), self.b.splat(self.kind, epsilon))

    def normalised(self, x: str, mean: str, variance: str) -> str:
        centred = self.b.op("subtract", x, self.wide(mean))
        return self.b.op("divide", centred, self.b.op("sqrt", self.biased(variance)))

    def scaled(self, x: str, scale: str, offset: str) -> str:
        return self.b.op("add", self.b.op("multiply", self.wide(scale), x), self.wide(offset))

    def mean(self, x: str) -> str:
        total = self.sum(x)
        return self.b.op("divide", total, self.b.splat(self.b.type(total), self.count))

    def sum(self, x: str) -> str:
        zero = self.b.splat(TensorType(self.kind.element, ()), 0)
        others = tuple(d for d in range(self.kind.rank) if d != self.feature)
        return self.b.add("reduce", (x, zero), None, Attributes(dimensions=others), (self.adder(),))

    def adder(self) -> str:
        """A computation that adds two scalars, made once."""
        if not self.body:
            edit, scalar = self.b.edit, TensorType(self.kind.element, ())
            names = [edit.fresh_name(f"arg{k}") for k in (0, 1)]
            inner = [
                Instruction(name, "parameter", scalar, (), Attributes(index=k))
                for k, name in enumerate(names)
            ]
            inner.append(Instruction(edit.fresh_name("add"), "add", scalar, tuple(names)))
            self.body = edit.add_computation("add", inner, inner[-1].name)
        return self.body
