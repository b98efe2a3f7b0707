"""Dense constants: every element type, every way of writing them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from compiler.frontend.mlir import parse_module
from compiler.frontend.mlir.attribute_text import dense
from compiler.ir.literal import Literal
from compiler.ir.types import ELEMENTS, TensorType


def constant(value: str, kind: str, extra: str = "") -> Literal:
    """The constant that `dense<value> : kind` is."""
    text = f"func.func @main() -> {kind} {{ %0 = stablehlo.constant {value} : {kind} return %0 : {kind} }}\n{extra}"
    return parse_module(text).entry_computation.root_instruction.literal


def bits(literal: Literal) -> list[int]:
    """The elements' bits."""
    width = literal.array.dtype.itemsize
    return np.ascontiguousarray(literal.array).view(f"u{width}").reshape(-1).tolist()


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (
            "dense<[1.0, -0.0, 0x7FC00000, 0xFF800000]>",
            "tensor<4xf32>",
            [0x3F800000, 0x80000000, 0x7FC00000, 0xFF800000],
        ),
        ("dense<[0x7FA00001, 1.0]>", "tensor<2xf32>", [0x7FA00001, 0x3F800000]),
        ("dense<[1.0, 0x7F80]>", "tensor<2xbf16>", [0x3F80, 0x7F80]),
        ("dense<[0.1, 65504.0]>", "tensor<2xf16>", [0x2E66, 0x7BFF]),
        ("dense<[1.0, 0x7F]>", "tensor<2xf8E4M3FN>", [0x38, 0x7F]),
        ("dense<[1, -1, 255]>", "tensor<3xi16>", [1, 0xFFFF, 255]),
        ("dense<[1, 255]>", "tensor<2xui8>", [1, 255]),
        ("dense<[true, false]>", "tensor<2xi1>", [1, 0]),
        ('dense<"0x0000803F00000040">', "tensor<2xf32>", [0x3F800000, 0x40000000]),
        ('dense<"0x0D">', "tensor<4xi1>", [1, 0, 1, 1]),
        ('dense<"0x01000101">', "tensor<4xi1>", [1, 0, 1, 1]),
        ('dense<"0xCDCC4C3D">', "tensor<2xf32>", [0x3D4CCCCD] * 2),
        ("dense<>", "tensor<0x3xf32>", []),
        ("dense<[-8, 7]>", "tensor<2xi4>", None),
    ],
)
def test_elements(value: str, kind: str, expected: list[int] | None) -> None:
    literal = constant(value, kind)
    if expected is not None:
        assert bits(literal) == expected
    else:
        assert literal.array.astype(np.int64).tolist() == [-8, 7]


def test_complex_elements() -> None:
    literal = constant("dense<[(1.0, -2.0), (0x7F800000, 0.5)]>", "tensor<2xcomplex<f32>>")
    assert literal.array.tolist() == [1 - 2j, complex(float("inf"), 0.5)]
    assert constant("dense<(1.5, 2.5)>", "tensor<3xcomplex<f64>>").splat_value == 1.5 + 2.5j


def test_a_splat_of_any_size_stays_a_splat() -> None:
    literal = constant("dense<1.0>", "tensor<1000000x1000000xf32>")
    assert literal.is_splat
    assert literal.splat_value == np.float32(1.0)
    assert dense(literal) == "dense<1.0>"


def test_resources_at_the_end_of_the_file() -> None:
    blob = "04000000" + np.array([1.5, 2.5], np.float32).tobytes().hex()
    section = (
        f'{{-#\n  dialect_resources: {{\n    builtin: {{\n      weights: "0x{blob}"\n    }}\n  }}\n#-}}\n'
    )
    literal = constant("dense_resource<weights>", "tensor<2xf32>", section)
    assert literal.array.tolist() == [1.5, 2.5]


@pytest.mark.parametrize("name", sorted(ELEMENTS))
@pytest.mark.parametrize("count", [1, 5, 100])
def test_what_is_printed_reads_back_to_the_same_bits(name: str, count: int) -> None:
    element = ELEMENTS[name]
    random = np.random.default_rng(len(name) + count)
    raw = random.integers(0, 256, count * element.dtype.itemsize, np.uint8)
    if element.kind == "bool":
        array = (raw & 1).astype(np.bool_)
    elif element.bits < 8:
        array = (
            (raw & ((1 << element.bits) - 1)).view(element.dtype)
            if element.is_float
            else _narrow(raw, element.name)
        )
    else:
        array = raw.view(element.dtype)
    literal = Literal(TensorType(element, (count,)), array)
    again = constant(dense(literal), str(literal.type))
    assert again.array.tobytes() == array.tobytes()


def _narrow(raw: np.ndarray, name: str) -> np.ndarray:
    width = int(name[-1])
    low = 0 if name.startswith("u") else -(1 << (width - 1))
    values = raw.astype(np.int64) % (1 << width) + low
    return values.astype(getattr(ml_dtypes, f"{'u' if name.startswith('u') else ''}int{width}"))
