"""What every backend promises. A backend of another package passes these too: parametrise them with its name."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from compiler.backends.base import BackendError
from compiler.backends.registry import backend_names, find_backend
from compiler.driver import compile_module
from compiler.frontend.mlir import parse
from compiler.ir.program import Module
from compiler.options import CompileOptions
from compiler.passes.base import Capabilities

BACKENDS = ["cpu", "interpreter"]

AFFINE = """func.func @main(%x: tensor<3x4xf32>, %w: tensor<4x2xf32>, %b: tensor<2xf32>) -> (tensor<3x2xf32>, tensor<f32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<2xf32>) -> tensor<3x2xf32>
  %2 = stablehlo.add %0, %1 : tensor<3x2xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = stablehlo.reduce(%2 init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x2xf32>, tensor<f32>) -> tensor<f32>
  return %2, %3 : tensor<3x2xf32>, tensor<f32>
}"""

COUNT = """func.func @main(%n: tensor<i32>, %x: tensor<5xf32>) -> (tensor<i32>, tensor<5xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<5xf32>
  cond {
    %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %w = stablehlo.add %v, %v : tensor<5xf32>
    stablehlo.return %j, %w : tensor<i32>, tensor<5xf32>
  }
  return %0#0, %0#1 : tensor<i32>, tensor<5xf32>
}"""

SAME = "func.func @main(%x: tensor<2xi8>) -> (tensor<2xi8>, tensor<2xi8>) { return %x, %x : tensor<2xi8>, tensor<2xi8> }"
CALL = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.custom_call @nobody_knows(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}"""


def module(text: str) -> Module:
    return parse(text).module


@pytest.fixture(params=BACKENDS)
def options(request: pytest.FixtureRequest) -> CompileOptions:
    return CompileOptions(backend=request.param)


def affine_inputs() -> list[np.ndarray]:
    random = np.random.default_rng(7)
    return [random.normal(size=s).astype(np.float32) for s in ((3, 4), (4, 2), (2,))]


def test_it_says_what_it_is(options: CompileOptions) -> None:
    backend = find_backend(options.backend)
    availability = backend.availability()
    capabilities: Capabilities = backend.capabilities()
    assert backend.name == options.backend == capabilities.name
    assert availability.ok and availability.reason
    assert capabilities.threads >= 1 and capabilities.vector_bytes > 0
    assert all(size > 0 for size in capabilities.cache_bytes)
    assert isinstance(capabilities.supports("add"), bool)
    assert capabilities.accepts_fusion("kLoop", frozenset({"add", "multiply"})) == ""
    assert options.backend in backend_names()


def test_results_are_right_fresh_and_repeatable(options: CompileOptions) -> None:
    executable = compile_module(module(AFFINE), options).executable
    x, w, b = affine_inputs()
    first, total = executable.run([x, w, b])
    np.testing.assert_allclose(first, x @ w + b, rtol=1e-5)
    np.testing.assert_allclose(total, (x @ w + b).sum(), rtol=1e-5)
    kept = first.copy()
    second, _ = executable.run([2 * x, w, b])
    np.testing.assert_array_equal(first, kept)
    assert not np.shares_memory(first, second) and total.shape == ()
    executable.close()


def test_arguments_are_never_written(options: CompileOptions) -> None:
    executable = compile_module(module(COUNT), options).executable
    x = np.arange(5, dtype=np.float32)
    x.flags.writeable = False
    turns, doubled = executable.run([np.array(4, np.int32), x])
    assert turns == 4
    np.testing.assert_array_equal(doubled, 16 * np.arange(5, dtype=np.float32))
    np.testing.assert_array_equal(x, np.arange(5, dtype=np.float32))
    executable.close()


def test_a_result_may_be_a_parameter_and_twice(options: CompileOptions) -> None:
    executable = compile_module(module(SAME), options).executable
    x = np.array([3, -4], np.int8)
    left, right = executable.run([x])
    assert left.tolist() == right.tolist() == [3, -4]
    left[0] = 0
    assert right[0] == 3 and x[0] == 3
    executable.close()


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        [np.zeros((3, 4), np.float32)] * 3,
        [np.zeros((3, 4), np.float64), np.zeros((4, 2), np.float32), np.zeros(2, np.float32)],
    ],
    ids=["none", "shapes", "dtype"],
)
def test_arguments_that_do_not_fit_are_refused(options: CompileOptions, wrong: list[np.ndarray]) -> None:
    executable = compile_module(module(AFFINE), options).executable
    with pytest.raises(BackendError):
        executable.run(wrong)
    executable.close()


def test_kernels_are_listed_and_profiled(options: CompileOptions) -> None:
    executable = compile_module(module(COUNT), options).executable
    names = [kernel.name for kernel in executable.kernels]
    assert names and len(set(names)) == len(names)
    assert all(kernel.instructions and kernel.kind for kernel in executable.kernels)
    times = executable.profile([np.array(3, np.int32), np.ones(5, np.float32)])
    assert {entry.kernel for entry in times} <= set(names)
    assert max(entry.calls for entry in times) >= 3
    assert all(entry.nanoseconds >= 0 for entry in times)
    with pytest.raises(BackendError):
        executable.kernel_form(names[0], "no such form")
    executable.close()


def test_an_unknown_custom_call_names_its_target(options: CompileOptions) -> None:
    with pytest.raises(BackendError, match="nobody_knows"):
        compile_module(module(CALL), options).executable.run([np.ones(2, np.float32)])


def test_calls_from_several_threads_do_not_mix(options: CompileOptions) -> None:
    executable = compile_module(module(AFFINE), options).executable
    x, w, b = affine_inputs()
    wrong: list[int] = []

    def work(factor: int) -> None:
        for _ in range(20):
            got, _ = executable.run([x * np.float32(factor), w, b])
            if not np.allclose(got, factor * (x @ w) + b, rtol=1e-4, atol=1e-4):
                wrong.append(factor)

    threads = [threading.Thread(target=work, args=(factor,)) for factor in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    executable.close()


def test_an_unknown_backend_is_told_with_those_there_are() -> None:
    with pytest.raises(BackendError, match="there are cpu, interpreter"):
        find_backend("abacus")
