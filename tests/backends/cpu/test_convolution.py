"""Convolutions against a direct NumPy sum: strides, padding, dilation, groups, layouts, any rank."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from guarded import Array, Side, run_kernel

from compiler.backends.cpu.contraction import TileVector
from compiler.backends.cpu.contraction.convolution import (
    ConvolutionSpec,
    TensorView,
    emit_convolution,
    product_of,
)
from compiler.backends.cpu.contraction.depthwise import suits_depthwise
from compiler.backends.cpu.jit import ModuleCompiler
from compiler.backends.cpu.kernel_code import kernel_module
from compiler.backends.cpu.target import Target, detect
from compiler.backends.cpu.text_builder import TextBuilder, llvm_type

_DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}


@dataclass(frozen=True)
class Shape:
    """A convolution in words; layouts are permutations of N or O, spatial digits, C or I."""

    batch: int
    inputs: int
    outputs: int
    image: tuple[int, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...] = ()
    padding: tuple[tuple[int, int], ...] = ()
    lhs_dilation: tuple[int, ...] = ()
    rhs_dilation: tuple[int, ...] = ()
    feature_groups: int = 1
    batch_groups: int = 1
    layouts: tuple[str, str, str] = ("", "", "")
    reverse: bool = False
    element: str = "f32"


def _strides(array: Array, layout: str) -> dict[str, int]:
    size = array.dtype.itemsize
    return {letter: stride // size for letter, stride in zip(layout, array.strides, strict=True)}


def _direct(lhs: Array, rhs: Array, shape: Shape, spec: ConvolutionSpec) -> Array:
    """The sum itself; `lhs` is N, spatial, C, `rhs` spatial, I, O, the result N, spatial, F."""
    out = np.zeros((spec.output_batch, *spec.output_spatial, shape.outputs))
    per_group = spec.group_outputs
    for group in range(spec.groups):
        image = lhs
        if shape.feature_groups > 1:
            image = lhs[..., group * spec.group_inputs : (group + 1) * spec.group_inputs]
        if shape.batch_groups > 1:
            image = lhs[group * spec.output_batch : (group + 1) * spec.output_batch]
        features = slice(group * per_group, (group + 1) * per_group)
        for position in itertools.product(*map(range, spec.output_spatial)):
            for tap in itertools.product(*map(range, spec.kernel_spatial)):
                at = [
                    o * s + t * d - p
                    for o, s, t, d, p in zip(
                        position, spec.strides, tap, spec.rhs_dilation, spec.padding_low, strict=True
                    )
                ]
                places = [divmod(a, d) for a, d in zip(at, spec.lhs_dilation, strict=True)]
                if any(
                    rest or not 0 <= p < e for (p, rest), e in zip(places, spec.input_spatial, strict=True)
                ):
                    continue
                index: Any = (slice(None), *(place for place, _ in places))
                where: Any = (slice(None), *position, features)
                out[where] += image[index] @ rhs[tap][:, features]
    return out


def _build(shape: Shape) -> tuple[ConvolutionSpec, list[Array], Array]:
    """The spec, the buffers in their layouts, and the right result in the output's layout."""
    rank = len(shape.image)
    digits = "".join(str(axis) for axis in range(rank))
    natural = (f"N{digits}C", f"{digits}IO", f"N{digits}F")
    layouts = [given or usual for given, usual in zip(shape.layouts, natural, strict=True)]
    strides, dilations = shape.strides or (1,) * rank, shape.lhs_dilation or (1,) * rank
    rhs_dilation, padding = shape.rhs_dilation or (1,) * rank, shape.padding or ((0, 0),) * rank
    out_spatial = []
    for size, window, s, (low, high), d, r in zip(
        shape.image, shape.window, strides, padding, dilations, rhs_dilation, strict=True
    ):
        padded = (max(size - 1, -1) * d + 1 if size else 0) + low + high
        reach = (window - 1) * r + 1
        out_spatial.append((padded - reach) // s + 1 if padded >= reach else 0)
    rng = np.random.default_rng(5)
    dtype = _DTYPES[shape.element]
    lhs = rng.uniform(-1, 1, (shape.batch, *shape.image, shape.inputs)).astype(dtype)
    rhs = rng.uniform(-1, 1, (*shape.window, shape.inputs // shape.feature_groups, shape.outputs)).astype(
        dtype
    )
    accumulate = "f64" if shape.element == "f64" else "f32"
    out = np.zeros((shape.batch // shape.batch_groups, *out_spatial, shape.outputs), _DTYPES[accumulate])
    arrays, views = [], []
    for buffer, (array, usual, layout) in enumerate(zip((lhs, rhs, out), natural, layouts, strict=True)):
        stored = np.ascontiguousarray(np.transpose(array, [usual.index(letter) for letter in layout]))
        steps = _strides(stored, layout)
        spatial, offset = [steps[digit] for digit in digits], 0
        if buffer == 1 and shape.reverse:
            offset = sum((w - 1) * step for w, step in zip(shape.window, spatial, strict=True))
            spatial = [-step for step in spatial]
        outer, feature = ("I", "O") if buffer == 1 else ("N", layout.strip("N" + digits))
        element = accumulate if buffer == 2 else shape.element
        views.append(TensorView(buffer, element, steps[outer], steps[feature], tuple(spatial), offset))
        arrays.append(stored)
    spec = ConvolutionSpec(
        shape.batch,
        shape.inputs,
        shape.outputs,
        shape.image,
        shape.window,
        tuple(out_spatial),
        strides,
        tuple(low for low, _ in padding),
        dilations,
        rhs_dilation,
        lhs=views[0],
        rhs=views[1],
        out=views[2],
        feature_groups=shape.feature_groups,
        batch_groups=shape.batch_groups,
        accumulate=accumulate,
    )
    window = rhs[tuple(slice(None, None, -1) for _ in range(rank))] if shape.reverse else rhs
    right = _direct(lhs.astype(np.float64), window.astype(np.float64), shape, spec)
    return spec, arrays, np.transpose(right, [natural[2].index(letter) for letter in layouts[2]])


def _check(shapes: Sequence[Shape], target: Target, side: Side = "end", threads: int = 1) -> None:
    built = [_build(shape) for shape in shapes]
    codes = [
        emit_convolution(f"conv.{number}", spec, target, threads=threads)
        for number, (spec, _, _) in enumerate(built)
    ]
    library = ModuleCompiler(target).load(kernel_module(codes))
    for shape, code, (spec, arrays, right) in zip(shapes, codes, built, strict=True):
        result = run_kernel(library, code, arrays, side, min(3, max(code.tasks, 1)))[2]
        bound = (spec.taps * spec.group_inputs + 2) * (1e-14 if shape.element == "f64" else 5e-7)
        np.testing.assert_allclose(result, right, atol=bound, rtol=0, err_msg=str(shape))


@pytest.fixture(scope="module")
def target() -> Target:
    return detect()


_SHAPES = [
    Shape(1, 3, 5, (7, 8), (3, 3)),
    Shape(2, 4, 33, (9, 7), (3, 2), padding=((1, 1), (0, 2))),
    Shape(2, 16, 8, (8, 8), (1, 1)),
    Shape(1, 5, 7, (11, 9), (3, 3), strides=(2, 3), padding=((2, 1), (1, 1))),
    Shape(1, 3, 4, (9, 9), (3, 3), padding=((-1, -2), (-2, 1))),
    Shape(1, 6, 4, (5, 6), (3, 3), padding=((2, 2), (2, 2)), lhs_dilation=(2, 3)),
    Shape(1, 6, 4, (9, 9), (3, 2), padding=((2, 2), (1, 1)), rhs_dilation=(2, 3)),
    Shape(1, 4, 6, (6, 5), (2, 3), strides=(2, 1), lhs_dilation=(2, 2), rhs_dilation=(1, 2)),
    Shape(2, 6, 9, (6, 6), (3, 3), feature_groups=3, padding=((1, 1), (1, 1))),
    Shape(6, 4, 6, (5, 5), (3, 3), batch_groups=3),
    Shape(2, 4, 5, (6, 7), (3, 3), padding=((1, 1), (1, 1)), reverse=True),
    Shape(1, 3, 4, (5,), (9,), padding=((4, 4),)),
    Shape(2, 3, 4, (4, 5, 6), (2, 3, 2), padding=((1, 0), (0, 1), (1, 1))),
    Shape(3, 5, 4, (), ()),
    Shape(1, 3, 4, (3, 3), (5, 5)),
    Shape(1, 0, 4, (3, 3), (2, 2)),
    Shape(1, 2, 3, (0, 4), (2, 2), padding=((2, 2), (0, 0))),
    Shape(1, 2, 0, (4, 4), (2, 2)),
]


@pytest.mark.parametrize("side", ["start", "end"])
def test_dimensions_padding_dilation_and_groups(target: Target, side: Side) -> None:
    _check(_SHAPES, target, side)


def test_any_layout(target: Target) -> None:
    common = {"padding": ((1, 1), (1, 0)), "strides": (1, 2)}
    layouts = [
        ("NC01", "OI01", "NF01"),
        ("01NC", "10IO", "F1N0"),
        ("N10C", "O01I", "N10F"),
        ("C01N", "I01O", "0N1F"),
    ]
    shapes = [Shape(2, 5, 7, (6, 8), (3, 3), layouts=layout, **common) for layout in layouts]  # type: ignore[arg-type]
    shapes += [
        Shape(2, 6, 4, (6, 8), (3, 3), layouts=layout, feature_groups=2, **common)  # type: ignore[arg-type]
        for layout in layouts
    ]
    _check(shapes, target)


def _features_first(shape: Shape) -> Shape:
    digits = "".join(str(axis) for axis in range(len(shape.image)))
    return replace(shape, layouts=(f"NC{digits}", f"OI{digits}", f"NF{digits}"))


@pytest.mark.parametrize("side", ["start", "end"])
@pytest.mark.parametrize("masked", [True, False])
def test_features_before_positions(target: Target, side: Side, masked: bool) -> None:
    """The layout of most exported vision models; it is computed transposed."""
    shapes = [_features_first(shape) for shape in _SHAPES]
    shapes += [
        _features_first(Shape(2, 3, 14, (40, 37), (3, 3), padding=((1, 1), (1, 1)))),
        _features_first(Shape(1, 3, 14, (9, 37), (2, 3), padding=((0, 1), (4, 3)), strides=(2, 1))),
        _features_first(Shape(1, 19, 19, (6, 20), (3, 3), padding=((1, 1), (1, 1)), feature_groups=19)),
        _features_first(Shape(1, 4, 6, (6, 20), (3, 3), padding=((1, 1), (1, 1)), element="bf16")),
    ]
    _check(shapes, replace(target, has_masked_memory=masked), side, threads=3)


@pytest.mark.parametrize("element", ["f64", "f16", "bf16"])
def test_other_element_types(target: Target, element: str) -> None:
    _check(
        [
            Shape(1, 5, 18, (6, 6), (3, 3), padding=((1, 1), (1, 1)), element=element),
            Shape(1, 19, 19, (6, 6), (3, 3), padding=((1, 1), (1, 1)), feature_groups=19, element=element),
        ],
        target,
    )


def test_depthwise(target: Target) -> None:
    shapes = [
        Shape(1, features, features, (7, 6), (3, 3), padding=((1, 1), (2, 0)), feature_groups=features)
        for features in (2, 16, 19, 64, 83, 130)
    ]
    shapes.append(
        Shape(
            2,
            9,
            9,
            (8, 7),
            (2, 3),
            strides=(2, 1),
            rhs_dilation=(2, 1),
            lhs_dilation=(1, 2),
            feature_groups=9,
        )
    )
    shapes.append(Shape(2, 4, 12, (5, 5), (3, 3), feature_groups=4))
    assert suits_depthwise(_build(shapes[0])[0])
    for side in ("start", "end"):
        _check(shapes, target, side, threads=3)


def test_large_enough_for_blocks_and_tasks(target: Target) -> None:
    shape = Shape(2, 24, 70, (20, 17), (3, 3), padding=((1, 1), (1, 1)))
    spec = _build(shape)[0]
    assert emit_convolution("conv", spec, target, threads=4).tasks > 1
    _check([shape], target, threads=4)


@dataclass(frozen=True)
class AddFeatureBias:
    """Adds ``bias[column]``."""

    key: str = "feature-bias"

    def emit(self, b: TextBuilder, value: str, where: TileVector) -> str:
        bias = where.load(b, where.buffer(b, 4), where.column, int(where.axis == "column"), where.element)
        return b.op(f"fadd {llvm_type(where.element, where.lanes)} {value}, {bias}")


@pytest.mark.parametrize(("groups", "first"), [(1, False), (37, False), (1, True)])
def test_an_epilogue_knows_its_feature(target: Target, groups: int, first: bool) -> None:
    shape = Shape(2, 37, 37, (5, 6), (3, 3), feature_groups=groups)
    spec, arrays, right = _build(_features_first(shape) if first else shape)
    bias = np.linspace(-3, 3, 37).astype(np.float32)
    code = emit_convolution("conv", spec, target, AddFeatureBias())
    library = ModuleCompiler(target).load(kernel_module([code]))
    result = run_kernel(library, code, [*arrays[:3], np.zeros(code.scratch_bytes, np.uint8), bias])[2]
    np.testing.assert_allclose(result, right + (bias[:, None, None] if first else bias), atol=1e-4)


def test_natural_layouts_become_one_product(target: Target) -> None:
    product = product_of(_build(Shape(2, 4, 6, (5, 6), (3, 3)))[0])
    assert (product.apart, product.gemm.m, product.gemm.n, product.gemm.k) == (0, 2 * 3 * 4, 6, 36)
