"""Constraints that look at sizes where these are constants: what is refused by value, and what stays open."""

from __future__ import annotations

import pytest

from compiler.frontend.mlir import parse
from compiler.ir.verifier import VerificationError, verify
from compiler.ops import SEMANTICS

CASES = {
    "dynamic_broadcast_in_dim": """
      %s = stablehlo.constant dense<[2, {0}]> : tensor<2xi32>
      %r = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1]
        : (tensor<4xf32>, tensor<2xi32>) -> tensor<?x?xf32>""",
    "dynamic_reshape": """
      %s = stablehlo.constant dense<[1, {0}]> : tensor<2xi32>
      %r = stablehlo.dynamic_reshape %x, %s : (tensor<4xf32>, tensor<2xi32>) -> tensor<?x?xf32>""",
    "dynamic_iota": """
      %s = stablehlo.constant dense<[{0}]> : tensor<1xi64>
      %r = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi64>) -> tensor<4xf32>""",
    "dynamic_pad": """
      %s = stablehlo.constant dense<1> : tensor<1xi32>
      %n = stablehlo.constant dense<{0}> : tensor<1xi32>
      %v = stablehlo.constant dense<0.0> : tensor<f32>
      %r = stablehlo.dynamic_pad %x, %v, %s, %n, %s
        : (tensor<4xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<12xf32>""",
    "real_dynamic_slice": """
      %s = stablehlo.constant dense<0> : tensor<1xi32>
      %n = stablehlo.constant dense<{0}> : tensor<1xi32>
      %t = stablehlo.constant dense<2> : tensor<1xi32>
      %r = stablehlo.real_dynamic_slice %x, %s, %n, %t
        : (tensor<4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2xf32>""",
    "rng": """
      %s = stablehlo.constant dense<[{0}]> : tensor<1xi64>
      %v = stablehlo.constant dense<0.0> : tensor<f32>
      %r = stablehlo.rng %v, %v, %s, distribution = UNIFORM
        : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>""",
    "dynamic_gather": """
      %s = stablehlo.constant dense<{0}> : tensor<1xi32>
      %i = stablehlo.constant dense<0> : tensor<2x1xi32>
      %r = "stablehlo.dynamic_gather"(%x, %i, %s) {{dimension_numbers = #stablehlo.gather<offset_dims = [1],
        start_index_map = [0], index_vector_dim = 1>}}
        : (tensor<4xf32>, tensor<2x1xi32>, tensor<1xi32>) -> tensor<2x?xf32>""",
}


def _verify(body: str) -> None:
    text = f"func.func @main(%x: tensor<4xf32>) {{ {body}\n  return }}"
    verify(parse(text, "t.mlir").module, SEMANTICS)


@pytest.mark.parametrize(
    ("opcode", "value"),
    [
        ("dynamic_broadcast_in_dim", 3),
        ("dynamic_reshape", 5),
        ("dynamic_iota", -1),
        ("dynamic_iota", 5),
        ("dynamic_pad", 2),
        ("real_dynamic_slice", 5),
        ("real_dynamic_slice", 2),
        ("rng", 7),
        ("dynamic_gather", 5),
    ],
)
def test_refused(opcode, value):
    with pytest.raises(VerificationError):
        _verify(CASES[opcode].format(value))


@pytest.mark.parametrize("opcode", CASES)
def test_accepted(opcode):
    _verify(CASES[opcode].format(4))


def test_branches_take_no_arguments():
    from compiler.frontend.errors import SourceError

    text = """func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
      %r = "stablehlo.if"(%p) ({
        "stablehlo.return"(%x) : (tensor<f32>) -> ()
      }, {
      ^bb0(%a: tensor<f32>):
        "stablehlo.return"(%x) : (tensor<f32>) -> ()
      }) : (tensor<i1>) -> tensor<f32>
      return %r : tensor<f32>
    }"""
    with pytest.raises(SourceError, match=r"t\.mlir:2:12: error: branch 1 must not have arguments"):
        parse(text, "t.mlir")
