"""Programs of several processes: collectives meet on virtual devices, on both backends."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.driver import compile_module
from compiler.frontend.mlir import parse
from compiler.options import CompileOptions
from compiler.virtual_devices import GridExecutable, grid_of

SUM_OF_IDS = """
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %id = stablehlo.partition_id : tensor<ui32>
    %f = stablehlo.convert %id : (tensor<ui32>) -> tensor<f32>
    %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %y = stablehlo.add %x, %b : tensor<2xf32>
    %s = "stablehlo.all_reduce"(%y) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
        replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %c: tensor<f32>):
      %r = stablehlo.add %a, %c : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<2xf32>) -> tensor<2xf32>
    return %s : tensor<2xf32>
  }
}
"""


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_a_sum_over_four_partitions(backend: str) -> None:
    executable = compile_module(parse(SUM_OF_IDS).module, CompileOptions(backend=backend)).executable
    assert isinstance(executable, GridExecutable)
    for _ in range(3):
        (got,) = executable.run([np.array([1.0, -2.0], np.float32)])
        np.testing.assert_array_equal(got, np.array([4.0 + 6.0, -8.0 + 6.0], np.float32))
    executable.close()


def test_annotations_alone_need_one_device() -> None:
    text = SUM_OF_IDS.split("%id")[0] + "return %x : tensor<2xf32>\n  }\n}\n"
    assert grid_of(parse(text).module) == (1, 1)
    assert grid_of(parse(SUM_OF_IDS).module) == (1, 4)
