"""Manual computations on the devices of a mesh, by their global meaning."""

import numpy as np
import pytest

from compiler.ir.semantics import OperationError
from compiler.ops.sharding import parse_mesh, parse_shardings, shard_index
from compiler.reference import evaluate

TEXT = """
module {
  sdy.mesh @mesh = <["x"=2, "y"=3]>
  func.func @main(%arg0: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<2x2xf32>) {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {}]> : tensor<4x6xf32>
    %1:2 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {"y"}]>]
      out_shardings=[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{}, {}]>] manual_axes={"x", "y"} (%arg1: tensor<2x2xf32>) {
      %2 = "stablehlo.all_reduce"(%arg1) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %4 = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %4 : tensor<f32>
      }) {replica_groups = dense<[[0, 1, 2, 3, 4, 5]]> : tensor<1x6xi64>,
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}
        : (tensor<2x2xf32>) -> tensor<2x2xf32>
      %3 = stablehlo.negate %arg1 : tensor<2x2xf32>
      sdy.return %3, %2 : tensor<2x2xf32>, tensor<2x2xf32>
    } : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<2x2xf32>)
    return %1#0, %1#1 : tensor<4x6xf32>, tensor<2x2xf32>
  }
}
"""


def test_every_device_runs_on_its_part():
    from compiler.frontend.mlir import parse

    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    first, second = evaluate(parse(TEXT).module, [x])
    np.testing.assert_array_equal(first, -x)
    np.testing.assert_array_equal(second, x.reshape(2, 2, 3, 2).sum((0, 2)))


def test_devices_count_through_the_axes():
    mesh = parse_mesh('<["x"=2, "y"=3]>')
    assert mesh.size == 6
    assert mesh.coordinates(4) == {"x": 1, "y": 1}
    ((name, axes),) = parse_shardings('[<@mesh, [{"y", "x"}, {}]>]')
    assert name == "mesh" and axes == [["y", "x"], []]
    assert shard_index((12, 5), axes, mesh, 4) == (slice(6, 8), slice(0, 5))
    with pytest.raises(OperationError, match="6 equal parts"):
        shard_index((4, 5), axes, mesh, 0)
    with pytest.raises(OperationError, match="parts of axes"):
        parse_shardings('<@mesh, [{"x":(1)2}]>')
