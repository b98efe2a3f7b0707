"""Convolutions as matrix products whose left operand is made a block of rows at a time.

A row of the product is an output position, a column an output feature; the sums run over taps and input
features. The packed kernel, the register tiles, the split into tasks and the epilogues are those of any
other product. Depthwise convolutions, which would be products with one column, have a kernel of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from compiler.backends.cpu.contraction.convolution_spec import ConvolutionSpec, TensorView
from compiler.backends.cpu.contraction.depthwise import emit_depthwise, suits_depthwise
from compiler.backends.cpu.contraction.epilogue import EpilogueEmitter
from compiler.backends.cpu.contraction.gemm import GemmEmitter
from compiler.backends.cpu.contraction.image_panels import emit_image_panel
from compiler.backends.cpu.contraction.image_rows import emit_image_rows
from compiler.backends.cpu.contraction.schedule import plan
from compiler.backends.cpu.contraction.spec import GemmSpec, MatrixView
from compiler.backends.cpu.kernel_code import KernelCode
from compiler.backends.cpu.target import Target
from compiler.backends.cpu.text_builder import TextBuilder

__all__ = ["ConvolutionSpec", "TensorView", "emit_convolution", "product_of"]


@dataclass(frozen=True, slots=True)
class ConvolutionProduct:
    """The matrix product a convolution becomes.

    Attributes:
        gemm: the product. Its batch counts the groups first, then `apart` leading output dimensions; its
            rows count the other output dimensions (batch, then spatial ones) row-major; its columns count
            the output features of a group.
        apart: how many leading output dimensions are in the batch, because their strides do not fit those
            of the rows.
    """

    gemm: GemmSpec
    apart: int


def product_of(spec: ConvolutionSpec) -> ConvolutionProduct:
    """Lays a convolution out as a product; an epilogue learns from it what its row, column and batch mean."""
    sizes = (spec.output_batch, *spec.output_spatial)
    strides = (spec.out.outer_stride, *spec.out.spatial_strides)
    apart = len(sizes) - 1
    while apart > 0 and strides[apart - 1] == strides[apart] * sizes[apart]:
        apart -= 1
    rows = math.prod(sizes[apart:])
    k = spec.taps * spec.group_inputs
    batch = (spec.groups, *sizes[:apart])
    none = (0,) * apart
    outputs = spec.group_outputs
    group_rhs, group_out = outputs * spec.rhs.feature_stride, outputs * spec.out.feature_stride
    gemm = GemmSpec(
        m=rows,
        n=outputs,
        k=k,
        lhs=MatrixView(spec.lhs.buffer, spec.accumulate, k, 1, (0, *none)),
        rhs=MatrixView(
            spec.rhs.buffer,
            spec.rhs.element,
            spec.rhs.outer_stride,
            spec.rhs.feature_stride,
            (group_rhs, *none),
            spec.rhs.offset,
        ),
        out=MatrixView(
            spec.out.buffer,
            spec.out.element,
            strides[-1],
            spec.out.feature_stride,
            (group_out, *strides[:apart]),
            spec.out.offset,
        ),
        batch=batch,
        accumulate=spec.accumulate,
        scratch_buffer=spec.scratch_buffer,
    )
    return ConvolutionProduct(gemm, apart)


def emit_convolution(
    name: str,
    spec: ConvolutionSpec,
    target: Target,
    epilogue: EpilogueEmitter | None = None,
    threads: int | None = None,
) -> KernelCode:
    """The kernel of a convolution.

    Args:
        name: its symbol.
        spec: the convolution.
        target: the processor.
        epilogue: what is done to each element before it is stored, by the rows and columns of `product_of`.
        threads: how many threads will share the work; the target's cores by default.
    """
    threads = target.cores if threads is None else threads
    if suits_depthwise(spec):
        return emit_depthwise(name, spec, target, epilogue, threads)
    gemm = product_of(spec).gemm
    levels = _transposed_levels(spec)
    if gemm.out.row_stride == 1 and gemm.out.column_stride != 1 and levels is not None:
        return _emit_by_panels(name, spec, target, epilogue, threads, levels)
    return _emit_by_rows(name, spec, target, epilogue, threads)


def _emit_by_rows(
    name: str, spec: ConvolutionSpec, target: Target, epilogue: EpilogueEmitter | None, threads: int
) -> KernelCode:
    """Output positions are the rows of the product."""
    gemm = product_of(spec).gemm
    rows = emit_image_rows(f"{name}.rows", spec, target)
    levels = _kernel_levels(spec)
    schedule = plan(gemm, target, threads, lhs_is_made=True, rhs_levels=len(levels))

    def make_rows(b: TextBuilder, to: str, batch: str, first: str, count: str, stride: int) -> None:
        image, group, number = _position(b, spec, gemm.batch, gemm.m, batch, first)
        arguments = (
            f"ptr {to}",
            f"i64 {stride}",
            f"ptr {image}",
            f"i64 {group}",
            f"i64 {number}",
            f"i64 {count}",
        )
        b.call("void", rows.name, *arguments)

    emitter = GemmEmitter(name, gemm, target, schedule, epilogue, make_rows=make_rows, rhs_levels=levels)
    emitter.shared[rows.name] = rows
    return emitter.emit()


def _emit_by_panels(
    name: str,
    spec: ConvolutionSpec,
    target: Target,
    epilogue: EpilogueEmitter | None,
    threads: int,
    levels: _TransposedLevels,
) -> KernelCode:
    """Output positions are the columns of the product, since there they are next to one another."""
    gemm = product_of(spec).gemm.transposed
    # The panels lie in no buffer; what counts here are the unit strides and the type of the copy.
    panels = replace(gemm.rhs, row_stride=gemm.n, column_stride=1)
    gemm = replace(gemm, lhs=replace(gemm.lhs, column_stride=levels.k_stride), rhs=panels)
    schedule = plan(gemm, target, threads, rhs_is_made=True)
    panel = emit_image_panel(
        f"{name}.panel", spec, target, levels.feature_step, levels.tap_steps, schedule.tile.columns
    )

    def make_panel(b: TextBuilder, to: str, batch: str, first: str, count: str) -> None:
        image, group, number = _position(b, spec, gemm.batch, gemm.n, batch, first)
        arguments = (f"ptr {to}", f"ptr {image}", f"i64 {group}", f"i64 {number}", f"i64 {count}")
        b.call("void", panel.name, *arguments)

    emitter = GemmEmitter(name, gemm, target, schedule, epilogue, swapped=True, make_panel=make_panel)
    emitter.shared[panel.name] = panel
    return emitter.emit()


def _position(
    b: TextBuilder,
    spec: ConvolutionSpec,
    batch_sizes: tuple[int, ...],
    positions: int,
    batch: str,
    first: str,
) -> tuple[str, str, str]:
    """The input's address, the group, and the number of an output position in the whole output."""
    image = b.load("ptr", b.gep("%buffers", spec.lhs.buffer, "ptr"), 8, hint="image")
    image = b.gep(image, spec.lhs.offset * spec.lhs.element_bytes)
    # The dimensions that are apart come before those counted by `first`.
    leading = math.prod(batch_sizes[1:])
    return image, b.div(batch, leading), b.add(b.mul(b.rem(batch, leading), positions), first)


@dataclass(frozen=True, slots=True)
class _TransposedLevels:
    """An order of taps and input features in which one stride steps through the kernel.

    Attributes:
        k_stride: that stride, in elements.
        feature_step: steps between input features.
        tap_steps: steps between taps, for each spatial dimension.
    """

    k_stride: int
    feature_step: int
    tap_steps: tuple[int, ...]


def _transposed_levels(spec: ConvolutionSpec) -> _TransposedLevels | None:
    """The order in which the kernel itself lies in memory; None if it is not dense."""
    sizes = (*spec.kernel_spatial, spec.group_inputs)
    strides = (*spec.rhs.spatial_strides, spec.rhs.outer_stride)
    inward = sorted((axis for axis, size in enumerate(sizes) if size != 1), key=lambda axis: strides[axis])
    if not spec.kernel_spatial or (inward and strides[inward[0]] <= 0):
        return None
    steps, step = [0] * len(sizes), 1
    unit = strides[inward[0]] if inward else 1
    for axis in inward:
        if strides[axis] != step * unit:
            return None
        steps[axis] = step
        step *= sizes[axis]
    return _TransposedLevels(unit, steps[-1], tuple(steps[:-1]))


def _kernel_levels(spec: ConvolutionSpec) -> tuple[tuple[int, int], ...]:
    """Sizes and strides of the kernel's taps and input features, merged where one continues the other."""
    sizes = (*spec.kernel_spatial, spec.group_inputs)
    strides = (*spec.rhs.spatial_strides, spec.rhs.outer_stride)
    levels = [(size, stride) for size, stride in zip(sizes, strides, strict=True) if size != 1]
    merged: list[tuple[int, int]] = []
    for size, stride in levels:
        if merged and merged[-1][1] == size * stride:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    return tuple(merged) or ((1, spec.rhs.outer_stride),)
