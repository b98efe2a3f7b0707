"""Programs with dynamic sizes, made static and run by both backends."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.analysis.refined_types import RefinementError
from compiler.analysis.shape_refinement import is_dynamic_module
from compiler.frontend.mlir import parse_module
from compiler.reference import evaluate
from tests.analysis.refining import floats, opcodes, refined, run

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
