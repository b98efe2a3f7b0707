"""Products and convolutions of any element type as loop nests: multiply, then fold with add."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.ir.program import Attributes, Computation, Instruction, make_computation
from compiler.ir.types import TensorType
from compiler.kernel.elemental import Compute, External, Fold, Node, Within
from compiler.kernel.expansion import Expansion, plain
from compiler.kernel.index_expression import (
    ZERO,
    Axis,
    Index,
    axis_index,
    constant_index,
    dot,
    physical_strides,
)
from compiler.kernel.loop_nest import LoopNest, Store

if TYPE_CHECKING:
    from compiler.backends.cpu.emit.contraction_kernel import DotDimensions


def _loops(shape: tuple[int, ...], first: int) -> tuple[list[Axis], tuple[Index, ...]]:
    axes = [Axis(first + d, size) for d, size in enumerate(shape)]
    used = [axis for axis in axes if axis.extent != 1]
    return used, tuple(axis_index(axis) if axis.extent != 1 else ZERO for axis in axes)


def _sum_nest(
    expansion: Expansion,
    result: TensorType,
    kept: list[Axis],
    at: tuple[Index, ...],
    folded: list[Axis],
    factors: tuple[Node, Node],
    conditions: tuple[Within, ...] = (),
) -> LoopNest:
    """`result[at] = sum over folded of factor * factor`, zero where conditions fail."""
    e = plain(result)
    wide = [node if node.element is e else expansion.compute("convert", e, (node,)) for node in factors]
    value = expansion.compute("multiply", e, tuple(wide))
    if conditions:
        value = expansion.choose([(conditions, value), ((), expansion.constant(e, 0))])
    zero = expansion.constant(e, 0)
    offset = dot(at, physical_strides(result.shape, result.minor_to_major))
    axes = tuple(sorted(kept, key=lambda axis: -offset.coefficient(axis)))
    if not folded:
        return LoopNest(axes, (Store(0, e, offset, value),))
    left, right = (External(e, frozenset(), f"%{number}", number) for number in (0, 1))
    body = Compute(e, frozenset(), "add", "add", Attributes(), (left, right))
    fold = Fold(e, frozenset(kept), "sum", tuple(folded), (zero,), (value,), (body,), 0)
    return LoopNest(axes, (Store(0, e, offset, fold),), (), tuple(folded))


def _operands(types: tuple[TensorType, TensorType]) -> Expansion:
    parameters = {
        f"operand.{index}": Instruction(f"operand.{index}", "parameter", kind, (), Attributes(index=index))
        for index, kind in enumerate(types)
    }
    return Expansion(make_computation("operands", parameters, "operand.0"), {})


def sum_of_products(dims: DotDimensions, product: Instruction) -> LoopNest:
    """A dot_general."""
    kept, at = _loops(product.tensor.shape, 0)
    folded, inner = _loops(tuple(dims.lhs.shape[d] for d in dims.lhs_summed), 500)
    first = len(dims.lhs_batch)
    middle = first + len(dims.lhs_free)

    def indices(
        rank: int, batch: tuple[int, ...], summed: tuple[int, ...], own: dict[int, Index]
    ) -> tuple[Index, ...]:
        known = {d: at[number] for number, d in enumerate(batch)}
        known |= {d: inner[number] for number, d in enumerate(summed)}
        return tuple((known | own)[d] for d in range(rank))

    left = indices(
        dims.lhs.rank,
        dims.lhs_batch,
        dims.lhs_summed,
        dict(zip(dims.lhs_free, at[first:middle], strict=True)),
    )
    right = indices(
        dims.rhs.rank, dims.rhs_batch, dims.rhs_summed, dict(zip(dims.rhs_free, at[middle:], strict=True))
    )
    expansion = _operands((dims.lhs, dims.rhs))
    factors = (expansion.value("operand.0", left), expansion.value("operand.1", right))
    return _sum_nest(expansion, product.tensor, kept, at, folded, factors)


def sum_of_window(computation: Computation, convolution: Instruction) -> LoopNest:
    """A convolution (StableHLO specification, `convolution`)."""
    a = convolution.attributes
    lhs, rhs = (computation[name].tensor for name in convolution.operands)
    kept, at = _loops(convolution.tensor.shape, 0)
    spatial = tuple(a["input_spatial_dimensions"])
    window = tuple(rhs.shape[d] for d in a["kernel_spatial_dimensions"])
    group_inputs = rhs.shape[a["kernel_input_feature_dimension"]]
    folded, inner = _loops((*window, group_inputs), 500)
    batch, feature = at[a["output_batch_dimension"]], at[a["output_feature_dimension"]]
    outputs = convolution.tensor.shape[a["output_feature_dimension"]]
    groups, batch_groups = a.get("feature_group_count", 1), a.get("batch_group_count", 1)
    channel = inner[-1]
    if groups > 1:
        channel = channel + feature.divided(outputs // groups)[0] * group_inputs
    if batch_groups > 1:
        size = lhs.shape[a["input_batch_dimension"]] // batch_groups
        batch = batch + feature.divided(outputs // batch_groups)[0] * size
    conditions: list[Within] = []
    left: dict[int, Index] = {a["input_batch_dimension"]: batch, a["input_feature_dimension"]: channel}
    right: dict[int, Index] = {
        a["kernel_output_feature_dimension"]: feature,
        a["kernel_input_feature_dimension"]: inner[-1],
    }
    reversal = a.get("window_reversal") or (False,) * len(spatial)
    for number, d in enumerate(spatial):
        tap = inner[number]
        place = at[a["output_spatial_dimensions"][number]] * a["window_strides"][number]
        place = place + tap * a["rhs_dilation"][number] - a["padding"][number][0]
        dilation, size = a["lhs_dilation"][number], lhs.shape[d]
        conditions.append(Within(place, 0, (size - 1) * dilation + 1))
        if dilation > 1:
            place, rest = place.divided(dilation)
            conditions.append(Within(rest, 0, 1))
        left[d] = place
        turned = constant_index(window[number] - 1) - tap if reversal[number] else tap
        right[a["kernel_spatial_dimensions"][number]] = turned
    expansion = _operands((lhs, rhs))
    factors = (
        expansion.value("operand.0", tuple(left[d] for d in range(lhs.rank))),
        expansion.value("operand.1", tuple(right[d] for d in range(rhs.rank))),
    )
    return _sum_nest(expansion, convolution.tensor, kept, at, folded, factors, tuple(conditions))
