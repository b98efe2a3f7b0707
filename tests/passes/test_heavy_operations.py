"""Products, convolutions, sorts, maps, batch normalisation, and the canonical forms of shapes."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.ir.program import Module
from compiler.ir.types import ELEMENTS, F32, I32, TensorType
from compiler.passes.batch_norm_expander import BatchNormExpander
from compiler.passes.convolution_canonicalizer import ConvolutionCanonicalizer
from compiler.passes.dce import DeadCodeElimination
from compiler.passes.dot_canonicalizer import DotCanonicalizer
from compiler.passes.map_inliner import MapInliner
from compiler.passes.shape_canonicalizer import ShapeCanonicalizer
from compiler.passes.sort_simplifier import SortSimplifier
from compiler.passes.transpose_folding import TransposeFolding
from compiler.reference import evaluate
from tests.builder import ModuleBuilder
from tests.passes.harness import context, inputs, opcodes, run, transformed

Dims = tuple[int, ...]


def product(
    lhs: Dims, rhs: Dims, batch: tuple[Dims, Dims], summed: tuple[Dims, Dims], turn: Dims | None = None
) -> Module:
    """A dot_general of integers, whose sums are exact; `turn` transposes the left operand first."""
    m = ModuleBuilder()
    f = m.computation("main")
    x, y = f.parameter(I32, *lhs), f.parameter(I32, *rhs)
    if turn:
        x = f.op("transpose", x, permutation=turn)
    f.root(
        f.op(
            "dot_general",
            x,
            y,
            lhs_batching_dimensions=batch[0],
            rhs_batching_dimensions=batch[1],
            lhs_contracting_dimensions=summed[0],
            rhs_contracting_dimensions=summed[1],
        )
    )
    return m.build()


PRODUCTS = [
    product((3, 4), (4, 5), ((), ()), ((1,), (0,))),
    product((4, 3), (5, 4), ((), ()), ((0,), (1,))),
    product((4,), (4,), ((), ()), ((0,), (0,))),
    product((2, 3, 4), (4,), ((), ()), ((2,), (0,))),
    product((2, 3), (4, 5), ((), ()), ((), ())),
    product((3, 2, 4, 5), (2, 5, 3, 6), ((1,), (0,)), ((0, 3), (2, 1))),
    product((2, 3, 4, 5), (3, 2, 5, 4), ((0, 1), (1, 0)), ((2,), (3,))),
    product((2, 0), (0, 3), ((), ()), ((1,), (0,))),
]


@pytest.mark.parametrize("module", PRODUCTS)
def test_products_become_products_of_matrices(module: Module) -> None:
    after = transformed(module, DotCanonicalizer())
    for i in after.entry_computation:
        if i.opcode == "dot_general":
            batch = i.tensor.rank - 2
            places = tuple(range(batch))
            assert (
                i.attributes["lhs_batching_dimensions"] == i.attributes["rhs_batching_dimensions"] == places
            )
            assert i.attributes["lhs_contracting_dimensions"] == (batch + 1,)
            assert i.attributes["rhs_contracting_dimensions"] == (batch,)


def test_a_matrix_product_is_left_alone() -> None:
    assert opcodes(transformed(PRODUCTS[0], DotCanonicalizer())) == ["dot_general"]


def test_dot_becomes_dot_general() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    f.root(f.op("dot", f.parameter(I32, 3, 4), f.parameter(I32, 4)))
    assert "dot" not in opcodes(transformed(m.build(), DotCanonicalizer()))


@pytest.mark.parametrize(
    ("turn", "summed", "folds"),
    [((1, 0), ((1,), (0,)), True), ((2, 0, 1), ((0,), (0,)), True), ((1, 0, 2), ((2,), (0,)), False)],
)
def test_transposes_fold_where_free_dimensions_keep_their_order(
    turn: Dims, summed: tuple[Dims, Dims], folds: bool
) -> None:
    shape = (4, 3) if len(turn) == 2 else (2, 3, 4)
    module = product(shape, (4, 5), ((), ()), summed, turn)
    after = transformed(module, TransposeFolding())
    assert opcodes(after) == (["dot_general"] if folds else ["transpose", "dot_general"])


def convolution(pads: tuple[Dims, Dims, Dims], flip: Dims = (), value: float = 0.0) -> Module:
    m = ModuleBuilder()
    f = m.computation("main")
    x, w = f.parameter(I32, 1, 6, 7, 2), f.parameter(I32, 3, 2, 2, 4)
    low, high, gaps = pads
    x = f.op(
        "pad", x, f.constant(value, I32), edge_padding_low=low, edge_padding_high=high, interior_padding=gaps
    )
    if flip:
        w = f.op("reverse", w, dimensions=flip)
    f.root(
        f.op(
            "convolution",
            x,
            w,
            window_strides=(1, 2),
            padding=((1, 0), (0, 2)),
            lhs_dilation=(1, 1),
            rhs_dilation=(1, 1),
            window_reversal=(False, True),
            input_batch_dimension=0,
            input_feature_dimension=3,
            input_spatial_dimensions=(1, 2),
            kernel_input_feature_dimension=2,
            kernel_output_feature_dimension=3,
            kernel_spatial_dimensions=(0, 1),
            output_batch_dimension=0,
            output_feature_dimension=3,
            output_spatial_dimensions=(1, 2),
            feature_group_count=1,
            batch_group_count=1,
            precision_config=("DEFAULT", "DEFAULT"),
        )
    )
    return m.build()


def test_padding_and_reversal_move_into_convolutions() -> None:
    module = convolution(((0, 1, 2, 0), (0, 3, 1, 0), (0, 1, 0, 0)), flip=(0, 1))
    assert opcodes(transformed(module, ConvolutionCanonicalizer())) == ["convolution"]


def test_other_padding_stays_outside() -> None:
    for module in (
        convolution(((0, 1, 2, 0), (0, 0, 0, 0), (0, 0, 0, 0)), value=1),
        convolution(((1, 1, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0))),
    ):
        assert opcodes(transformed(module, ConvolutionCanonicalizer())) == ["pad", "convolution"]


def sorting(read: Dims, size: int = 9) -> Module:
    """Sorts three arrays by the first, and reads some of them."""
    m = ModuleBuilder()
    f = m.computation("compare")
    own = [f.parameter(I32) for _ in range(6)]
    f.root(f.op("compare", own[0], own[1], comparison_direction="LT", compare_type="SIGNED"))
    f = m.computation("main")
    done = f.op(
        "sort", *(f.parameter(I32, size) for _ in range(3)), called=("compare",), dimension=0, is_stable=True
    )
    f.root(*[f.element(done, index) for index in read])
    return m.build()


@pytest.mark.parametrize(("read", "width"), [((0,), 1), ((1,), 2), ((2, 0), 2), ((0, 1, 2), 3)])
def test_sorts_carry_what_is_read(read: Dims, width: int) -> None:
    after = transformed(sorting(read), SortSimplifier(), DeadCodeElimination())
    sort = next(i for i in after.entry_computation if i.opcode == "sort")
    assert len(sort.operands) == width


def test_sorting_one_element_is_nothing() -> None:
    assert "sort" not in opcodes(transformed(sorting((0, 2), size=1), SortSimplifier()))


def test_maps_are_inlined() -> None:
    m = ModuleBuilder()
    f = m.computation("f")
    x, y = f.parameter(F32), f.parameter(F32)
    f.root(f.op("multiply", f.op("exponential", x), f.op("add", y, f.constant(2, F32))))
    f = m.computation("main")
    f.root(f.op("map", f.parameter(F32, 3, 4), f.parameter(F32, 3, 4), called=("f",), dimensions=(0, 1)))
    assert "map" not in opcodes(transformed(m.build(), MapInliner()))


@pytest.mark.parametrize("opcode", ["batch_norm_inference", "batch_norm_training", "batch_norm_grad"])
@pytest.mark.parametrize("feature", [0, 2])
def test_batch_normalisation_means_its_definition(opcode: str, feature: int) -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    shape = (4, 5, 3)
    x = f.parameter(F32, *shape)
    count = {"batch_norm_inference": 4, "batch_norm_training": 2, "batch_norm_grad": 3}[opcode]
    rest = [f.parameter(F32, shape[feature]) for _ in range(count)]
    if opcode == "batch_norm_grad":
        rest.append(f.parameter(F32, *shape))
    whole = f.op(opcode, x, *rest, epsilon=0.125, feature_index=feature)
    f.root(whole if opcode == "batch_norm_inference" else f.element(whole, 0))
    module = m.build()
    after, _ = run(module, BatchNormExpander())
    assert opcode not in opcodes(after)
    arguments = [np.abs(value) + np.float32(0.1) for value in inputs(module, 0, special=False)]
    for wanted, found in zip(evaluate(module, arguments), evaluate(after, arguments), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-5)
    assert run(module, BatchNormExpander(), given=context(opcode))[0] is module


def test_broadcasts_only_repeat_afterwards() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    x, y = f.parameter(F32, 1, 3), f.parameter(F32, 2, 3)
    rows = f.shaped("broadcast_in_dim", (2, 3), x, broadcast_dimensions=(0, 1))
    turned = f.shaped("broadcast_in_dim", (3, 4, 2), y, broadcast_dimensions=(2, 0))
    f.root(rows, turned, f.op("transpose", x, permutation=(1, 0)))
    after = transformed(m.build(), ShapeCanonicalizer())
    assert opcodes(after) == [
        "reshape",
        "broadcast_in_dim",
        "transpose",
        "broadcast_in_dim",
        "reshape",
        "tuple",
    ]
    for i in after.entry_computation:
        if i.opcode == "broadcast_in_dim":
            source, dims = (
                after.entry_computation[i.operands[0]].tensor.shape,
                i.attributes["broadcast_dimensions"],
            )
            assert dims == tuple(sorted(dims))
            assert source == tuple(i.tensor.shape[d] for d in dims)


def test_dynamic_sizes_are_left_to_shape_refinement() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    x = f.parameter_of(TensorType(ELEMENTS["f32"], (-1, 3)))
    f.root(f.add("reshape", TensorType(F32, (-1, 3)), x))
    module = m.build()
    from compiler.ir.editor import Editor
    from compiler.ops import SEMANTICS

    editor = Editor(module, SEMANTICS)
    ShapeCanonicalizer().run(editor, context())
    assert editor.snapshot() is module
