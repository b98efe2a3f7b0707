"""Batch normalisation in terms of sums and elementwise arithmetic, as the specification defines it.

Ahead of simplification and fusion, which then see ordinary reductions.
"""

from __future__ import annotations

import numpy as np

from compiler.ir.editor import Edit, Editor
from compiler.ir.literal import Literal
from compiler.ir.program import Attributes, Instruction
from compiler.ir.rewrite import Rule
from compiler.ir.types import TensorType
from compiler.passes.base import Option, PassContext

INFERENCE = Rule("batch-norm-inference", "scale * (x - mean) / sqrt(variance + epsilon) + offset")
TRAINING = Rule("batch-norm-training", "inference with the batch's own mean and variance")
GRAD = Rule("batch-norm-grad", "the gradient of batch normalisation by its definition")


class BatchNormExpander:
    """See the module's docstring."""

    name = "batch-norm-expander"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Expands what the target has no kernel for."""
        expansions = {
            "batch_norm_inference": (INFERENCE, _inference),
            "batch_norm_training": (TRAINING, _training),
            "batch_norm_grad": (GRAD, _grad),
        }
        for computation in editor.computations():
            for instruction in list(editor.computation(computation)):
                if instruction.opcode in expansions:
                    rule, expand = expansions[instruction.opcode]
                    with editor.rewrite(rule, computation, instruction.name) as edit:
                        edit.replace(
                            instruction.name, expand(_Builder(editor, edit, instruction), instruction)
                        )


class _Builder:
    """Arithmetic on tensors of the operand's shape; vectors have one element a feature."""

    def __init__(self, editor: Editor, edit: Edit, instruction: Instruction) -> None:
        self._editor = editor
        self._edit = edit
        kind = editor.get(edit.computation, instruction.operands[0]).type
        assert isinstance(kind, TensorType)
        self.kind = TensorType(kind.element, kind.shape)
        self.feature = int(instruction.attributes["feature_index"])
        self.vector_kind = TensorType(kind.element, (kind.shape[self.feature],))
        self.others = tuple(dim for dim in range(kind.rank) if dim != self.feature)
        self.count = float(np.prod([kind.shape[dim] for dim in self.others]))
        self.epsilon = float(instruction.attributes["epsilon"])

    def op(self, opcode: str, *operands: str) -> str:
        """An elementwise operation."""
        kind = self._editor.get(self._edit.computation, operands[0]).type
        return self._edit.add(opcode, operands, type=kind)

    def constant(self, value: float, kind: TensorType) -> str:
        """A splat."""
        array = np.asarray(value, np.float64).astype(kind.element.dtype)
        return self._edit.add("constant", type=kind, attributes=Attributes(value=Literal(kind, array)))

    def spread(self, vector: str) -> str:
        """A vector over the whole shape."""
        attributes = Attributes(broadcast_dimensions=(self.feature,))
        return self._edit.add("broadcast_in_dim", [vector], type=self.kind, attributes=attributes)

    def total(self, value: str) -> str:
        """Sums over all dimensions but the features'."""
        scalar = TensorType(self.kind.element, ())
        zero = self.constant(0.0, scalar)
        names = [self._edit.fresh_name("param") for _ in range(2)]
        body = [
            Instruction(name, "parameter", scalar, (), Attributes(index=index))
            for index, name in enumerate(names)
        ]
        root = self._edit.fresh_name("add")
        body.append(Instruction(root, "add", scalar, tuple(names)))
        adder = self._edit.add_computation("batch_norm_sum", body, root)
        return self._edit.add(
            "reduce",
            [value, zero],
            type=self.vector_kind,
            attributes=Attributes(dimensions=self.others),
            called=(adder,),
        )

    def mean(self, value: str) -> str:
        """The mean a feature."""
        return self.op("divide", self.total(value), self.constant(self.count, self.vector_kind))

    def deviation(self, variance: str) -> str:
        """sqrt(variance + epsilon), a feature."""
        return self.op("sqrt", self.op("add", variance, self.constant(self.epsilon, self.vector_kind)))

    def tuple(self, *values: str) -> str:
        """Several results."""
        return self._edit.add("tuple", values)


def _normal(b: _Builder, x: str, scale: str, offset: str, mean: str, variance: str) -> str:
    centred = b.op("subtract", x, b.spread(mean))
    normal = b.op("divide", centred, b.spread(b.deviation(variance)))
    return b.op("add", b.op("multiply", b.spread(scale), normal), b.spread(offset))


def _inference(b: _Builder, instruction: Instruction) -> str:
    x, scale, offset, mean, variance = instruction.operands
    return _normal(b, x, scale, offset, mean, variance)


def _training(b: _Builder, instruction: Instruction) -> str:
    x, scale, offset = instruction.operands
    mean = b.mean(x)
    centred = b.op("subtract", x, b.spread(mean))
    variance = b.mean(b.op("multiply", centred, centred))
    return b.tuple(_normal(b, x, scale, offset, mean, variance), mean, variance)


def _grad(b: _Builder, instruction: Instruction) -> str:
    x, scale, mean, variance, gradient = instruction.operands
    centred = b.op("subtract", x, b.spread(mean))
    shifted = b.op("add", variance, b.constant(b.epsilon, b.vector_kind))
    deviation = b.op("sqrt", shifted)
    grad_offset = b.total(gradient)
    along = b.total(b.op("multiply", gradient, centred))
    scaled = b.op("multiply", gradient, b.constant(b.count, b.kind))
    drift = b.op("divide", b.op("multiply", b.spread(along), centred), b.spread(shifted))
    inner = b.op("subtract", b.op("subtract", scaled, b.spread(grad_offset)), drift)
    factor = b.op("divide", b.op("divide", scale, deviation), b.constant(b.count, b.vector_kind))
    grad_x = b.op("multiply", b.spread(factor), inner)
    grad_scale = b.total(b.op("multiply", gradient, b.op("divide", centred, b.spread(deviation))))
    return b.tuple(grad_x, grad_scale, grad_offset)
