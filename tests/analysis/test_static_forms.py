"""Operations that take sizes as operands become their static forms."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.analysis.refined_types import RefinementError
from tests.analysis.refining import floats, opcodes, refined, run

SIZED = {
    "dynamic_reshape": """
func.func @main(%x: tensor<?x6xf32>) -> tensor<?x?xf32> {
  %shape = stablehlo.constant dense<[4, 3]> : tensor<2xi64>
  %0 = stablehlo.dynamic_reshape %x, %shape : (tensor<?x6xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}""",
    "dynamic_pad": """
func.func @main(%x: tensor<?x6xf32>) -> tensor<?x?xf32> {
  %value = stablehlo.constant dense<9.0> : tensor<f32>
  %low = stablehlo.constant dense<[1, 0]> : tensor<2xi64>
  %high = stablehlo.constant dense<[2, -1]> : tensor<2xi64>
  %gap = stablehlo.constant dense<[0, 1]> : tensor<2xi64>
  %0 = stablehlo.dynamic_pad %x, %value, %low, %high, %gap
      : (tensor<?x6xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}""",
    "dynamic_gather": """
func.func @main(%x: tensor<?x6xf32>) -> tensor<?x2xf32> {
  %at = stablehlo.constant dense<3> : tensor<1xi64>
  %sizes = stablehlo.constant dense<[2, 2]> : tensor<2xi64>
  %0 = "stablehlo.dynamic_gather"(%x, %at, %sizes) {dimension_numbers = #stablehlo.gather<offset_dims = [0, 1],
      start_index_map = [1]>, indices_are_sorted = true} : (tensor<?x6xf32>, tensor<1xi64>, tensor<2xi64>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}""",
    "set_dimension_size": """
func.func @main(%x: tensor<?x6xf32>) -> tensor<?x?xf32, #stablehlo.bounds<?, 6>> {
  %size = stablehlo.constant dense<4> : tensor<i32>
  %0 = stablehlo.set_dimension_size %x, %size, dim = 1
      : (tensor<?x6xf32>, tensor<i32>) -> tensor<?x?xf32, #stablehlo.bounds<?, 6>>
  return %0 : tensor<?x?xf32, #stablehlo.bounds<?, 6>>
}""",
    "dynamic_top_k": """
func.func @main(%x: tensor<?x6xf32>) -> (tensor<?x?xf32>, tensor<?x?xi32>) {
  %k = stablehlo.constant dense<2> : tensor<i64>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k)
      : (tensor<?x6xf32>, tensor<i64>) -> (tensor<?x?xf32>, tensor<?x?xi32>)
  return %0#0, %0#1 : tensor<?x?xf32>, tensor<?x?xi32>
}""",
}
SIZED_RESULTS = {
    "dynamic_reshape": lambda x: x.reshape(4, 3),
    "dynamic_pad": lambda x: np.pad(
        np.insert(x, range(1, 6), 9, axis=1), ((1, 2), (0, 0)), constant_values=9
    )[:, :-1],
    "dynamic_gather": lambda x: x[:, 3:5],
    "set_dimension_size": lambda x: x[:, :4],
    "dynamic_top_k": lambda x: x[:, :3:-1],
}


@pytest.mark.parametrize("name", SIZED)
def test_operation_with_sizes_as_operands(name):
    x = floats(2, 6)
    module = refined(SIZED[name], x).module
    assert name not in opcodes(module) and "custom_call" not in opcodes(module)
    np.testing.assert_array_equal(run(module, x)[0], SIZED_RESULTS[name](x))


def test_declared_type_may_know_the_sizes_that_an_operand_gives():
    text = """
func.func @main(%shape: tensor<2xi64>, %x: tensor<?xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.dynamic_reshape %x, %shape : (tensor<?xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}"""
    shape, x = np.asarray([2, 3]), floats(6)
    np.testing.assert_array_equal(run(refined(text, shape, x).module, shape, x)[0], x.reshape(2, 3))


WINDOWS = """
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %size = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %left = stablehlo.subtract %size, %one : tensor<1xi32>
  %none = stablehlo.constant dense<0> : tensor<1xi32>
  %pair = stablehlo.concatenate %left, %none, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %padding = stablehlo.reshape %pair : (tensor<2xi32>) -> tensor<1x2xi32>
  %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %zero, %size, %one, %one, %one, %padding)
      {called_computations = [@sum]} : (tensor<?xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>,
      tensor<1xi32>, tensor<1x2xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
"""


@pytest.mark.parametrize("size", [1, 5])
def test_windows_as_long_as_the_argument(size):
    x = floats(size)
    module = refined(WINDOWS, x).module
    assert "reduce_window" in opcodes(module)
    np.testing.assert_array_equal(run(module, x)[0], np.cumsum(x))


RANDOM = """
func.func @main(%state: tensor<2xui64>, %x: tensor<?xf32>) -> (tensor<2xui64>, tensor<?xui32>) {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %size = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%state, %size)
      {rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}
      : (tensor<2xui64>, tensor<1xi32>) -> (tensor<2xui64>, tensor<?xui32>)
  return %0#0, %0#1 : tensor<2xui64>, tensor<?xui32>
}
"""


def test_random_bits_as_many_as_the_argument_has_elements():
    state, x = np.asarray([1, 2], np.uint64), floats(6)
    module = refined(RANDOM, state, x).module
    assert "rng_bit_generator" in opcodes(module)
    assert run(module, state, x)[1].shape == (6,)


def test_sizes_that_make_no_sense_are_told_with_their_line():
    text = SIZED["dynamic_reshape"].replace("[4, 3]", "[4, 4]")
    with pytest.raises(RefinementError, match=r":4:\d+: dynamic_reshape\.\d+ .*12.*16"):
        refined(text, floats(2, 6))
