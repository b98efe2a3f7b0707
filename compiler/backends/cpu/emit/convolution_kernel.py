"""Convolutions: dimension numbers and layouts to strides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.backends.cpu.contraction.convolution import ConvolutionSpec, TensorView, emit_convolution
from compiler.backends.cpu.emit.contraction_kernel import FAST
from compiler.backends.cpu.emit.naming import PLACEHOLDER, named_after_text
from compiler.backends.cpu.emit.sums import sum_of_window
from compiler.backends.cpu.lowered import Operand, Result, Use
from compiler.ir.program import Computation, Instruction
from compiler.ir.types import TensorType
from compiler.kernel.index_expression import physical_strides

if TYPE_CHECKING:
    from compiler.backends.cpu.lowering import Lowering


def convolution_spec(computation: Computation, convolution: Instruction) -> ConvolutionSpec | None:
    """The convolution as strides; None for element types without a fast kernel."""
    lhs, rhs = (computation[name].tensor for name in convolution.operands)
    out, a = convolution.tensor, convolution.attributes
    names = {kind.element.name for kind in (lhs, rhs, out)}
    if not names <= FAST or ("f64" in names and names != {"f64"}):
        return None

    def sizes(kind: TensorType, dimensions: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(kind.shape[d] for d in dimensions)

    def view(buffer: int, kind: TensorType, outer: int, feature: int, spatial: tuple[int, ...]) -> TensorView:
        strides = physical_strides(kind.shape, kind.minor_to_major)
        return TensorView(
            buffer, kind.element.name, strides[outer], strides[feature], tuple(strides[d] for d in spatial)
        )

    kernel_spatial = tuple(a["kernel_spatial_dimensions"])
    kernel = view(
        1, rhs, a["kernel_input_feature_dimension"], a["kernel_output_feature_dimension"], kernel_spatial
    )
    kernel = _reversed(
        kernel, rhs, kernel_spatial, a.get("window_reversal") or (False,) * len(kernel_spatial)
    )
    spatial_in, spatial_out = tuple(a["input_spatial_dimensions"]), tuple(a["output_spatial_dimensions"])
    return ConvolutionSpec(
        batch=lhs.shape[a["input_batch_dimension"]],
        input_features=lhs.shape[a["input_feature_dimension"]],
        output_features=out.shape[a["output_feature_dimension"]],
        input_spatial=sizes(lhs, spatial_in),
        kernel_spatial=sizes(rhs, kernel_spatial),
        output_spatial=sizes(out, spatial_out),
        strides=tuple(a["window_strides"]),
        padding_low=tuple(low for low, _ in a["padding"]),
        lhs_dilation=tuple(a["lhs_dilation"]),
        rhs_dilation=tuple(a["rhs_dilation"]),
        lhs=view(0, lhs, a["input_batch_dimension"], a["input_feature_dimension"], spatial_in),
        rhs=kernel,
        out=view(2, out, a["output_batch_dimension"], a["output_feature_dimension"], spatial_out),
        feature_groups=a.get("feature_group_count", 1),
        batch_groups=a.get("batch_group_count", 1),
        accumulate="f64" if "f64" in names else "f32",
    )


def _reversed(
    view: TensorView, kind: TensorType, spatial: tuple[int, ...], turned: tuple[bool, ...]
) -> TensorView:
    """Reversed dimensions are walked backwards from their last element."""
    strides = list(view.spatial_strides)
    offset = view.offset
    for number, (dimension, backwards) in enumerate(zip(spatial, turned, strict=True)):
        if backwards:
            offset += (kind.shape[dimension] - 1) * strides[number]
            strides[number] = -strides[number]
    return TensorView(
        view.buffer, view.element, view.outer_stride, view.feature_stride, tuple(strides), offset
    )


def convolution_use(low: Lowering, computation: Computation, convolution: Instruction) -> Use | None:
    """A convolution's kernel."""
    spec = convolution_spec(computation, convolution)
    if spec is None or 0 in spec.kernel_spatial or 0 in spec.input_spatial or not spec.group_inputs:
        return low.nest_use(sum_of_window(computation, convolution), 2)
    code = emit_convolution(PLACEHOLDER, spec, low.target, None, low.threads)
    return Use(named_after_text("convolution", code), (Operand(0), Operand(1), Result(0)), "convolution")
