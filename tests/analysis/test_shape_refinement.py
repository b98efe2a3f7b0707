"""Programs with dynamic sizes, made static and run by both backends."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.analysis.refined_types import RefinementError, is_static
from compiler.analysis.shape_refinement import Refined, is_dynamic_module, refine
from compiler.driver import compile_module
from compiler.frontend.mlir import parse_module
from compiler.ir.program import Module
from compiler.ir.types import TensorType, element_of_dtype
from compiler.ir.verifier import verify
from compiler.ops import SEMANTICS
from compiler.reference import evaluate


def refined(text: str, *arguments: np.ndarray, sizes: int = 0) -> Refined:
    """The program for some arguments, of which the first `sizes` tell sizes; it must be static and valid."""
    types = [TensorType(element_of_dtype(array.dtype), array.shape) for array in arguments]
    found = refine(parse_module(text), types, {index: arguments[index] for index in range(sizes)})
    verify(found.module, SEMANTICS)
    assert not is_dynamic_module(found.module)
    for computation in found.module.computations.values():
        assert all(is_static(instruction.type) for instruction in computation)
    return found


def run(module: Module, *arguments: np.ndarray) -> list[np.ndarray]:
    """The outputs, which must be the same on both backends."""
    wanted = evaluate(module, arguments)
    executable = compile_module(module).executable
    try:
        got = executable.run(list(arguments))
    finally:
        executable.close()
    for left, right in zip(got, wanted, strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)
    return list(wanted)


def opcodes(module: Module) -> set[str]:
    return {i.opcode for computation in module.computations.values() for i in computation}


def floats(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape), dtype=np.float32) - 3).reshape(shape)


ROW_SUMS = """
func.func @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sums = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
  %m = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %shape = stablehlo.concatenate %n1, %m1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %wide = stablehlo.dynamic_broadcast_in_dim %sums, %shape, dims = [0]
      : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %out = stablehlo.subtract %x, %wide : tensor<?x?xf32>
  return %out : tensor<?x?xf32>
}
"""


@pytest.mark.parametrize("shape", [(2, 3), (1, 1), (4, 0), (7, 16)])
def test_sizes_flow_from_the_arguments_through_the_program(shape):
    x = floats(*shape)
    module = refined(ROW_SUMS, x).module
    assert "dynamic_broadcast_in_dim" not in opcodes(module)
    assert "broadcast_in_dim" in opcodes(module)
    np.testing.assert_array_equal(run(module, x)[0], x - x.sum(axis=1, keepdims=True))


def test_instructions_keep_their_names():
    before = parse_module(ROW_SUMS)
    after = refined(ROW_SUMS, floats(2, 3))
    assert list(after.module.entry_computation.instructions) == list(before.entry_computation.instructions)
    assert not after.origins


def test_argument_that_does_not_fit():
    with pytest.raises(RefinementError, match=r"argument #0 is tensor<2x3x1xf32>, but the model takes"):
        refined(ROW_SUMS, floats(2, 3, 1))


def test_number_of_arguments():
    with pytest.raises(RefinementError, match="main takes 1 arguments, not 2"):
        refined(ROW_SUMS, floats(2, 3), floats(2, 3))


TWO_CALLS = """
func.func @main(%n: tensor<i64>, %m: tensor<i64>, %x: tensor<?xf32>, %y: tensor<?xf32>)
    -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %0 = call @up(%n, %x) : (tensor<i64>, tensor<?xf32>) -> tensor<?xf32>
  %1 = call @up(%m, %y) : (tensor<i64>, tensor<?xf32>) -> tensor<?xf32>
  %2 = call @up(%n, %0) : (tensor<i64>, tensor<?xf32>) -> tensor<?xf32>
  return %0, %1, %2 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
func.func private @up(%n: tensor<i64>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %shape = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64>
  %steps = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<1xi64>) -> tensor<?xf32>
  %out = stablehlo.add %x, %steps : tensor<?xf32>
  return %out : tensor<?xf32>
}
"""


def test_callee_is_cloned_for_each_size_and_shared_by_calls_of_one():
    n, m = np.asarray(3), np.asarray(5)
    x, y = floats(3), floats(5)
    found = refined(TWO_CALLS, n, m, x, y, sizes=2)
    assert list(found.module.computations) == ["up", "up.1", "main"]
    calls = [i.called[0] for i in found.module.entry_computation if i.opcode == "call"]
    assert calls == ["up", "up.1", "up"]
    names = [i.name for computation in found.module.computations.values() for i in computation]
    assert len(names) == len(set(names))
    originals = set(parse_module(TWO_CALLS).computations["up"].instructions)
    assert set(found.origins) == set(found.module.computations["up.1"].instructions)
    assert set(found.origins.values()) == originals
    for got, wanted in zip(
        run(found.module, n, m, x, y), (x + range(3), y + range(5), x + 2 * np.arange(3)), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


def test_size_that_is_not_known_is_named():
    with pytest.raises(
        RefinementError, match=r"dynamic_iota\.\d+ \(dynamic_iota\): stays dynamic: the sizes in"
    ):
        refined(TWO_CALLS, np.asarray(3), np.asarray(5), floats(3), floats(5))


def test_sizes_that_contradict_the_arguments():
    with pytest.raises(RefinementError, match=r"add\.\d+ \(add\): .*shape"):
        refined(TWO_CALLS, np.asarray(4), np.asarray(5), floats(3), floats(5), sizes=2)


LOOP = """
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %size = %n, %v = %x) : tensor<i32>, tensor<i32>, tensor<?xf32>
  cond {
    %go = stablehlo.compare LT, %i, %size : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %shape = stablehlo.reshape %size : (tensor<i32>) -> tensor<1xi32>
    %steps = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
    %w = stablehlo.add %v, %steps : tensor<?xf32>
    stablehlo.return %next, %size, %w : tensor<i32>, tensor<i32>, tensor<?xf32>
  }
  return %0#2 : tensor<?xf32>
}
"""


def test_loop_knows_the_sizes_that_it_hands_on():
    x = floats(4)
    np.testing.assert_array_equal(run(refined(LOOP, x).module, x)[0], x + 4 * np.arange(4))


def test_loop_does_not_know_what_it_changes():
    changed = LOOP.replace("return %next, %size, %w", "return %next, %next, %w")
    with pytest.raises(RefinementError, match=r"dynamic_iota.*stays dynamic"):
        refined(changed, floats(4))


BRANCHES = """
func.func @main(%which: tensor<i32>, %x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = "stablehlo.case"(%which) ({
    %a = stablehlo.negate %x : tensor<?x2xf32>
    stablehlo.return %a : tensor<?x2xf32>
  }, {
    %b = stablehlo.reverse %x, dims = [0] : tensor<?x2xf32>
    stablehlo.return %b : tensor<?x2xf32>
  }) : (tensor<i32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
"""


@pytest.mark.parametrize(("which", "wanted"), [(0, lambda x: -x), (1, lambda x: x[::-1])])
def test_branches_on_dynamic_values(which, wanted):
    x = floats(3, 2)
    module = refined(BRANCHES, np.asarray(which, np.int32), x).module
    np.testing.assert_array_equal(run(module, np.asarray(which, np.int32), x)[0], wanted(x))


ASSERTED = """
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %rest = stablehlo.remainder %n, %two : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %even = stablehlo.compare EQ, %rest, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%even, %n) {has_side_effect = true,
      error_message = "the size must be even, but is {0}", api_version = 2 : i32} : (tensor<i1>, tensor<i32>) -> ()
  return %x : tensor<?xf32>
}
"""


def test_assertion_that_holds_is_gone():
    module = refined(ASSERTED, floats(4)).module
    assert "custom_call" not in opcodes(module)
    np.testing.assert_array_equal(run(module, floats(4))[0], floats(4))


def test_assertion_that_fails_says_its_message():
    with pytest.raises(
        RefinementError, match=r"custom_call\.\d+ \(custom_call\): the size must be even, but is 3"
    ):
        refined(ASSERTED, floats(3))


PART = """
func.func @main(%n: tensor<i32>, %start: tensor<i32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %first = stablehlo.reshape %start : (tensor<i32>) -> tensor<1xi32>
  %again = stablehlo.reshape %start : (tensor<i32>) -> tensor<1xi32>
  %count = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %last = stablehlo.add %again, %count : tensor<1xi32>
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %out = stablehlo.real_dynamic_slice %x, %first, %last, %one
      : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  return %out : tensor<?xf32>
}
"""


def test_slice_of_known_size_from_a_start_known_at_run_time():
    n, x = np.asarray(3, np.int32), floats(8)
    module = refined(PART, n, np.asarray(0, np.int32), x, sizes=1).module
    assert "dynamic_slice" in opcodes(module)
    for start in (0, 2, 5):
        got = run(module, n, np.asarray(start, np.int32), x)[0]
        np.testing.assert_array_equal(got, x[start : start + 3])


def test_slice_with_known_starts_is_a_plain_slice():
    n, start, x = np.asarray(3, np.int32), np.asarray(2, np.int32), floats(8)
    module = refined(PART, n, start, x, sizes=2).module
    assert "slice" in opcodes(module) and "dynamic_slice" not in opcodes(module)
    np.testing.assert_array_equal(run(module, n, start, x)[0], x[2:5])


def test_slice_from_another_start_stays_dynamic():
    text = PART.replace("stablehlo.add %again", "stablehlo.multiply %again")
    with pytest.raises(RefinementError, match="real_dynamic_slice"):
        refined(text, np.asarray(3, np.int32), np.asarray(0, np.int32), floats(8), sizes=1)


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


def test_only_static_programs_need_nothing():
    static = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}"
    assert not is_dynamic_module(parse_module(static))
    assert is_dynamic_module(parse_module(ROW_SUMS))


def test_calls_may_be_nested_deeper_than_pythons_own():
    depth = 1500
    kind = "tensor<?xf32>"
    texts = [
        f"func.func @main(%x: {kind}) -> {kind} {{\n  %0 = call @f0(%x) : ({kind}) -> {kind}\n  return %0 : {kind}\n}}"
    ]
    for n in range(depth):
        work = (
            f"call @f{n + 1}(%x) : ({kind}) -> {kind}" if n < depth - 1 else f"stablehlo.negate %x : {kind}"
        )
        texts.append(
            f"func.func private @f{n}(%x: {kind}) -> {kind} {{\n  %0 = {work}\n  return %0 : {kind}\n}}"
        )
    x = floats(3)
    module = refined("\n".join(texts), x).module
    assert len(module.computations) == depth + 1
    np.testing.assert_array_equal(evaluate(module, [x])[0], -x)
