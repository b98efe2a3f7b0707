"""What a convolution is, to the emitters: StableHLO's, with every dimension number turned into a stride.

``out[n, o, f] = sum over taps t and features c of lhs[n, position(o, t), c] * rhs[t, c, f]`` with
``position(o, t) = (o * stride + t * rhs_dilation - padding_low) / lhs_dilation``; where that is no position
of the input, the product is zero (StableHLO specification, `convolution`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from compiler.backends.cpu.contraction.spec import ELEMENT_BYTES


@dataclass(frozen=True, slots=True)
class TensorView:
    """An operand or the result inside a buffer; strides and offset count elements.

    Attributes:
        buffer: which of the kernel's buffers.
        element: ``f16``, ``bf16``, ``f32`` or ``f64``.
        outer_stride: of the batch dimension; for the kernel, of its input features.
        feature_stride: of the features; for the kernel, of its output features.
        spatial_strides: one for each spatial dimension; negative for a reversed window, with a suitable
            `offset`.
        offset: where the first element is.
    """

    buffer: int
    element: str
    outer_stride: int
    feature_stride: int
    spatial_strides: tuple[int, ...]
    offset: int = 0

    @property
    def element_bytes(self) -> int:
        """The size of an element."""
        return ELEMENT_BYTES[self.element]


@dataclass(frozen=True, slots=True)
class ConvolutionSpec:
    """A convolution.

    Attributes:
        batch: size of the input's batch dimension.
        input_features: features of the input, of all groups together.
        output_features: features of the output, of all groups together.
        input_spatial: sizes of the input.
        kernel_spatial: sizes of the window.
        output_spatial: sizes of the output.
        strides: window strides.
        padding_low: elements added before each spatial dimension; negative ones are taken away.
        lhs_dilation: distance of input elements in the padded input.
        rhs_dilation: distance of the taps.
        lhs: the input.
        rhs: the kernel; it has ``input_features / feature_groups`` input features.
        out: the output.
        feature_groups: groups of features that do not mix.
        batch_groups: groups of the batch, each with output features of its own.
        accumulate: the type of the sums, ``f32`` or ``f64``.
        scratch_buffer: which of the kernel's buffers the scratch is.
    """

    batch: int
    input_features: int
    output_features: int
    input_spatial: tuple[int, ...]
    kernel_spatial: tuple[int, ...]
    output_spatial: tuple[int, ...]
    strides: tuple[int, ...]
    padding_low: tuple[int, ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    lhs: TensorView
    rhs: TensorView
    out: TensorView
    feature_groups: int = 1
    batch_groups: int = 1
    accumulate: str = "f32"
    scratch_buffer: int = 3

    @property
    def groups(self) -> int:
        """Groups of either kind; only one of the two may be more than 1."""
        return self.feature_groups * self.batch_groups

    @property
    def output_batch(self) -> int:
        """Size of the output's batch dimension."""
        return self.batch // self.batch_groups

    @property
    def group_inputs(self) -> int:
        """Input features of a group."""
        return self.input_features // self.feature_groups

    @property
    def group_outputs(self) -> int:
        """Output features of a group."""
        return self.output_features // self.groups

    @property
    def taps(self) -> int:
        """Elements of the window."""
        return math.prod(self.kernel_spatial)

    @property
    def group_lhs_stride(self) -> int:
        """Elements from the input of one group to that of the next."""
        if self.feature_groups > 1:
            return self.group_inputs * self.lhs.feature_stride
        return self.output_batch * self.lhs.outer_stride
