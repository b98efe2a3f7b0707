"""HLO text: XLA's own spelling, and helpers where HLO has another shape. Where XLA is at hand, it must accept all of it."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.frontend.mlir import parse_module
from compiler.ir.hlo_text import format_instruction, print_module, shape_text
from compiler.ir.hlo_values import literal_text, name_text
from compiler.ir.literal import Literal
from compiler.ir.program import Module
from compiler.ir.types import ELEMENTS, TOKEN, Layout, TensorType, TupleType, tensor
from tests.frontend.mlir import programs

F32 = ELEMENTS["f32"]


def line(module: Module, opcode: str) -> str:
    """The line of the first instruction of an opcode."""
    for computation in module.computations.values():
        for instruction in computation:
            if instruction.opcode == opcode:
                return format_instruction(instruction, computation)
    raise AssertionError(opcode)


def test_a_whole_module() -> None:
    text = print_module(parse_module(programs.ELEMENTWISE, "m.mlir"), metadata=False)
    assert text == (
        "HloModule small, buffer_donor={ (0, {}) }, entry_computation_layout={(f32[2,3]{1,0}, f32[3]{0})->f32[2,3]{1,0}}\n"
        "\n"
        "ENTRY %main (arg0.1: f32[2,3]{1,0}, arg1.2: f32[3]{0}) -> f32[2,3]{1,0} {\n"
        "  %arg0.1 = f32[2,3]{1,0} parameter(0)\n"
        "  %arg1.2 = f32[3]{0} parameter(1)\n"
        "  %constant.3 = f32[] constant(0.5)\n"
        "  %broadcast_in_dim.4 = f32[2,3]{1,0} broadcast(%arg1.2), dimensions={1}\n"
        "  %broadcast_in_dim.5 = f32[2,3]{1,0} broadcast(%constant.3), dimensions={}\n"
        "  %add.6 = f32[2,3]{1,0} add(%arg0.1, %broadcast_in_dim.4)\n"
        "  %compare.7 = pred[2,3]{1,0} compare(%add.6, %broadcast_in_dim.5), direction=GT\n"
        "  %select.8 = f32[2,3]{1,0} select(%compare.7, %add.6, %broadcast_in_dim.5)\n"
        "  ROOT %erf.9 = f32[2,3]{1,0} erf(%select.8)\n"
        "}\n"
    )


@pytest.mark.parametrize(
    ("program", "opcode", "expected"),
    [
        (
            programs.CONTRACTIONS,
            "dot_general",
            "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}, operand_precision={highest,default}",
        ),
        (
            programs.CONTRACTIONS,
            "convolution",
            "window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        ),
        (programs.REDUCTIONS, "reduce_window", "window={size=2x2 stride=2x2}, to_apply=maximum_f32"),
        (
            programs.INDEXING,
            "gather",
            "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}",
        ),
        (programs.INDEXING, "pad", "padding=1_1x0_0"),
        (programs.INDEXING, "slice", "slice={[0:12:2], [0:4]}"),
        (programs.INDEXING, "dynamic_slice", "dynamic_slice_sizes={1,2}"),
        (programs.SORTING, "compare", "direction=LT, type=TOTALORDER"),
        (programs.SORTING, "chlo.top_k", "k=2, largest=true"),
        (
            programs.BRANCHES,
            "case",
            "branch_computations={case_branch_0.4, case_branch_1.4, case_branch_2.4}",
        ),
        (
            programs.SHARDED,
            "all_reduce",
            "channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add_f32",
        ),
        (
            programs.CALLS,
            "custom_call",
            'custom_call_target="my target", custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI, backend_config="{scale = 1.5 : f32, uplo = 76 : ui8}"',
        ),
    ],
)
def test_attributes_in_xlas_spelling(program: str, opcode: str, expected: str) -> None:
    text = line(parse_module(program), opcode)
    assert text.split("), ", 1)[1] == expected


def test_stretching_a_dimension_takes_a_helper() -> None:
    module = parse_module(
        "func.func @main(%a: tensor<1x4xf32>) -> tensor<3x4xf32> { %0 = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<3x4xf32> return %0 : tensor<3x4xf32> }"
    )
    text = print_module(module, metadata=False)
    assert "%broadcast_in_dim.2.squeezed = f32[4]{0} reshape(%arg0.1)" in text
    assert (
        "ROOT %broadcast_in_dim.2 = f32[3,4]{1,0} broadcast(%broadcast_in_dim.2.squeezed), dimensions={1}"
        in text
    )
    assert line(module, "broadcast_in_dim").endswith("broadcast(%arg0.1), dimensions={0,1}")


def test_a_large_splat_is_a_broadcast_scalar() -> None:
    module = parse_module(
        "func.func @main() -> tensor<100000x100000xf32> { %0 = stablehlo.constant dense<2.0> : tensor<100000x100000xf32> return %0 : tensor<100000x100000xf32> }"
    )
    assert "%constant.1.splat = f32[] constant(2)" in print_module(module)
    assert line(module, "constant").endswith("constant({...})")


def test_metadata_comes_from_the_location() -> None:
    module = parse_module(
        'func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.negate %a : tensor<f32> loc("jit(f)/neg"("a\\22b.py":3:1))\n return %0 : tensor<f32> }'
    )
    assert 'metadata={op_name="jit(f)/neg" source_file="a\\"b.py" source_line=3}' in print_module(module)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (tensor(F32), "f32[]"),
        (TensorType(F32, (2, 3), Layout((0, 1), ":T(8,128)")), "f32[2,3]{0,1:T(8,128)}"),
        (TensorType(F32, (-1, 3)), "f32[?,3]{1,0}"),
        (TensorType(F32, (-1, 3), None, (8, -1)), "f32[<=8,3]{1,0}"),
        (TupleType((tensor(F32), TOKEN)), "(f32[], token[])"),
        (TupleType(()), "()"),
        (tensor(ELEMENTS["f8E4M3FN"], 2), "f8e4m3fn[2]{0}"),
    ],
)
def test_shapes(kind: TensorType, expected: str) -> None:
    assert shape_text(kind) == expected


def test_floats_are_shortest_and_exact() -> None:
    values = np.array([0.1, -0.0, 1e30, np.inf, -np.inf, np.nan, 16777217.0], np.float32)
    text = literal_text(Literal(tensor(F32, 7), values))
    assert text == "{0.1, -0, 1e+30, inf, -inf, nan, 1.6777216e+07}"
    odd = np.array([0x7FC00001, 0xFFC00000], np.uint32).view(np.float32)
    assert literal_text(Literal(tensor(F32, 2), odd)) == "{nan(0x400001), -nan}"


def test_nested_and_empty_constants() -> None:
    assert (
        literal_text(Literal(tensor(ELEMENTS["i32"], 2, 2), np.arange(4, dtype=np.int32).reshape(2, 2)))
        == "{ {0, 1}, {2, 3} }"
    )
    assert literal_text(Literal(tensor(F32, 2, 0), np.zeros((2, 0), np.float32))) == "{ {}, {} }"


def test_names_that_hlo_does_not_know_stay_distinct() -> None:
    assert name_text("add.3") == "add.3"
    first, second = name_text("<lambda>"), name_text("[lambda]")
    assert first != second
    assert first.startswith("_lambda_.")


@pytest.mark.parametrize("name", sorted(programs.ALL))
def test_xla_accepts_it(name: str) -> None:
    xla = pytest.importorskip("jaxlib._hlo")
    xla.hlo_module_from_text(print_module(parse_module(programs.ALL[name])))
