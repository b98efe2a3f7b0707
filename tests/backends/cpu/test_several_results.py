"""Fusions around an operation of several results, as other compilers make them, keep each result in its place."""

from __future__ import annotations

from dataclasses import replace

from compiler.backends.cpu.lowered import Result
from compiler.backends.cpu.lowering import Lowering, solo
from compiler.backends.cpu.target import detect
from compiler.frontend.mlir import parse
from compiler.ir.program import Attributes, Instruction

WINDOW = """func.func @main(%x: tensor<6xf32>, %i: tensor<6xi32>) -> (tensor<3xf32>, tensor<3xi32>) {
  %z = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %o = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = "stablehlo.reduce_window"(%x, %i, %z, %o) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %p: tensor<i32>, %b: tensor<f32>, %q: tensor<i32>):
    %c = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %s = stablehlo.select %c, %a, %b : tensor<i1>, tensor<f32>
    %t = stablehlo.select %c, %p, %q : tensor<i1>, tensor<i32>
    stablehlo.return %s, %t : tensor<f32>, tensor<i32>
  }) : (tensor<6xf32>, tensor<6xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
  return %r#0, %r#1 : tensor<3xf32>, tensor<3xi32>
}"""


def test_each_result_of_the_inner_operation_is_its_own() -> None:
    from compiler.backends.cpu.emitters import EMITTERS

    module = parse(WINDOW).module
    entry = module.entry_computation
    window = next(i for i in entry if i.opcode == "reduce_window")
    body = replace(solo(entry, window), name="body")
    whole = replace(module, computations={**module.computations, "body": body})
    fusion = Instruction(
        window.name, "fusion", window.type, window.operands, Attributes(kind="kLoop"), ("body",)
    )
    lowered = Lowering(whole, detect(), 1, EMITTERS).lower(entry, fusion)
    written = [buffer for step in lowered.steps for buffer in getattr(step, "buffers", ())]
    assert {b.index for b in written if isinstance(b, Result)} == {0, 1}
