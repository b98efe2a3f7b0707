"""The static counterpart of each operation whose sizes are operands.

Used by shape refinement: once the values of the size operands are known, `dynamic_reshape` is a `reshape`,
`real_dynamic_slice` a `slice`, `custom_call @stablehlo.dynamic_top_k` a `chlo.top_k`, and so on. Nothing here looks at a
program; a use of an operation goes in, its static form comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.ir.literal import Literal
from compiler.ir.program import Attributes, Instruction
from compiler.ir.semantics import OperationError
from compiler.ir.types import I32, TensorType, TupleType, Type, tensor
from compiler.ops.constraints import same_shape, shape_text

Array = np.ndarray[Any, np.dtype[Any]]


class UnknownSize(Exception):
    """A size that an operation needs is not known."""


@dataclass(frozen=True)
class Use:
    """One use of an operation: the instruction, its operands' static types, and their values where known."""

    instruction: Instruction
    types: Sequence[Type]
    values: Sequence[object]
    distance: tuple[int, ...] | None = None
    """Of a `real_dynamic_slice`: how far each limit is from its start, where that much is known."""

    def tensor(self, index: int) -> TensorType:
        """An operand's type."""
        kind = self.types[index]
        if not isinstance(kind, TensorType):
            raise OperationError(f"operand #{index} must be a tensor, but has type {kind}")
        return kind

    def ints(self, index: int) -> tuple[int, ...]:
        """The integers of an operand, flattened. Raises UnknownSize when they are not known."""
        value = self.values[index]
        if not isinstance(value, np.ndarray):
            operand = self.instruction.operands[index]
            raise UnknownSize(
                f"the sizes in operand #{index} ({operand}) do not follow from the argument shapes"
            )
        return tuple(int(entry) for entry in value.reshape(-1))

    def sizes(self, index: int) -> tuple[int, ...]:
        """The sizes of the result, given by an operand and agreeing with the declared type, which may know better."""
        declared = self.instruction.type
        if isinstance(declared, TensorType) and declared.is_static and self.values[index] is None:
            return declared.shape
        shape = self.ints(index)
        if any(size < 0 for size in shape):
            raise OperationError(f"operand #{index} gives the negative size {min(shape)}")
        if isinstance(declared, TensorType) and not same_shape(shape, declared.shape):
            raise OperationError(
                f"operand #{index} gives the shape {shape_text(shape)}, but the type is {declared}"
            )
        return shape

    def result(self, shape: tuple[int, ...]) -> TensorType:
        """The declared type with another shape."""
        return self.instruction.tensor.with_shape(shape)


@dataclass(frozen=True)
class Form:
    """A static instruction: `operands` are indices into those of the dynamic one; a type of None is inferred."""

    opcode: str
    operands: tuple[int, ...]
    attributes: Attributes
    type: Type | None = None


def static_form(use: Use) -> Form | None:
    """The static form of an operation with dynamic sizes; None for operations that are static as they stand.

    Raises:
        UnknownSize: when a size it needs is not known.
        OperationError: when the sizes make no sense.
    """
    instruction = use.instruction
    rule = _RULES.get(instruction.opcode)
    if instruction.opcode == "custom_call":
        rule = _TARGETS.get(str(instruction.attributes["call_target_name"]))
    return rule(use) if rule else None


def is_dynamic(instruction: Instruction) -> bool:
    """True for operations that have a static form."""
    if instruction.opcode == "custom_call":
        return str(instruction.attributes["call_target_name"]) in _TARGETS
    return instruction.opcode in _RULES


def _dimension_size(use: Use) -> Form:
    size = np.asarray(use.tensor(0).shape[use.instruction.attributes["dimension"]], np.int32)
    kind = tensor(I32)
    return Form("constant", (), Attributes(value=Literal(kind, size)), kind)


def _set_dimension_size(use: Use) -> Form:
    operand, (size,), dimension = use.tensor(0), use.ints(1), use.instruction.attributes["dimension"]
    if not 0 <= size <= operand.shape[dimension]:
        raise OperationError(f"the size {size} is beyond dimension {dimension} of {operand}")
    limits = (*operand.shape[:dimension], size, *operand.shape[dimension + 1 :])
    return _sliced((0,) * operand.rank, limits, (1,) * operand.rank)


def _sliced(starts: tuple[int, ...], limits: tuple[int, ...], strides: tuple[int, ...]) -> Form:
    return Form("slice", (0,), Attributes(start_indices=starts, limit_indices=limits, strides=strides))


def _broadcast(use: Use) -> Form:
    dimensions = use.instruction.attributes["broadcast_dimensions"]
    return Form(
        "broadcast_in_dim", (0,), Attributes(broadcast_dimensions=dimensions), use.result(use.sizes(1))
    )


def _reshape(use: Use) -> Form:
    return Form("reshape", (0,), Attributes(), use.result(use.sizes(1)))


def _chlo_reshape(use: Use) -> Form:
    """One size may be -1: it is what the number of elements leaves."""
    shape, size = list(use.ints(1)), use.tensor(0).size
    if shape.count(-1) == 1:
        others = int(np.prod([entry for entry in shape if entry != -1], dtype=np.int64))
        shape[shape.index(-1)] = size // others if others else 0
    return Form("reshape", (0,), Attributes(), use.result(tuple(shape)))


def _iota(use: Use) -> Form:
    dimension = use.instruction.attributes["iota_dimension"]
    return Form("iota", (), Attributes(iota_dimension=dimension), use.result(use.sizes(0)))


def _pad(use: Use) -> Form:
    low, high, interior = use.ints(2), use.ints(3), use.ints(4)
    attributes = Attributes(edge_padding_low=low, edge_padding_high=high, interior_padding=interior)
    return Form("pad", (0, 1), attributes)


def _slice(use: Use) -> Form:
    """Where the starts are known only at run time but the sizes before it, the slice is a `dynamic_slice`."""
    sizes = use.distance
    if not isinstance(use.values[1], np.ndarray) and sizes is not None and set(use.ints(3)) <= {1}:
        return Form("dynamic_slice", (0, 1), Attributes(slice_sizes=sizes), use.result(sizes))
    return _sliced(use.ints(1), use.ints(2), use.ints(3))


def _gather(use: Use) -> Form:
    sizes = use.ints(2)
    return Form("gather", (0, 1), use.instruction.attributes.having(slice_sizes=sizes))


def _convolution(use: Use) -> Form:
    pairs = use.ints(2)
    padding = tuple(zip(pairs[::2], pairs[1::2], strict=True))
    return Form("convolution", (0, 1), use.instruction.attributes.having(padding=padding))


def _top_k(use: Use) -> Form:
    (k,) = use.ints(1)
    return Form("chlo.top_k", (0,), Attributes(k=k))


def _generator(use: Use) -> Form:
    declared = use.instruction.type
    assert isinstance(declared, TupleType) and isinstance(declared.elements[1], TensorType)
    output = declared.elements[1].with_shape(use.ints(1))
    text = str(use.instruction.attributes.get("rng_algorithm", "DEFAULT"))
    algorithm = text.rsplit(" ", 1)[-1].rstrip(">")
    return Form(
        "rng_bit_generator", (0,), Attributes(rng_algorithm=algorithm), TupleType((use.types[0], output))
    )


def _reduce_window(use: Use) -> Form:
    count = len(use.types) - 5
    pairs = use.ints(count + 4)
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    attributes = {name: use.ints(count + index) for index, name in enumerate(names)}
    padding = tuple(zip(pairs[::2], pairs[1::2], strict=True))
    return Form("reduce_window", tuple(range(count)), Attributes(**attributes, padding=padding))


_RULES: Mapping[str, Callable[[Use], Form]] = {
    "get_dimension_size": _dimension_size,
    "set_dimension_size": _set_dimension_size,
    "dynamic_broadcast_in_dim": _broadcast,
    "dynamic_reshape": _reshape,
    "chlo.dynamic_reshape": _chlo_reshape,
    "dynamic_iota": _iota,
    "dynamic_pad": _pad,
    "real_dynamic_slice": _slice,
    "dynamic_gather": _gather,
    "dynamic_conv": _convolution,
}
_TARGETS: Mapping[str, Callable[[Use], Form]] = {
    "stablehlo.dynamic_top_k": _top_k,
    "stablehlo.dynamic_rng_bit_generator": _generator,
    "stablehlo.dynamic_reduce_window": _reduce_window,
}
