"""Whole programs, one for each kind of kernel, against the interpreter: odd shapes, run-time indices out of range."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from guarded import Array
from whole_program import assert_same, check, run_cpu

from compiler.backends.base import BackendError
from compiler.driver import compile_module
from compiler.frontend.mlir import parse_module
from compiler.options import CompileOptions
from compiler.reference import evaluate


def _run(text: str, arguments: Sequence[Array], rtol: float = 0.0, atol: float = 0.0) -> None:
    module = parse_module(text)
    for disable in ("", "fusion"):
        check(module, arguments, rtol, atol, disable=disable)


def _numbers(shape: tuple[int, ...], seed: int = 0, dtype: str = "f4") -> Array:
    return np.random.default_rng(seed).integers(-5, 6, shape).astype(dtype)


@pytest.mark.parametrize(
    ("shape", "dimensions"),
    [
        ((1,), (0,)),
        ((5, 3), (0,)),
        ((5, 3), (1,)),
        ((70, 1030), (0,)),
        ((3, 2050), (1,)),
        ((4, 5, 6), (0, 2)),
        ((0, 3), (0,)),
        ((200, 33), (0, 1)),
    ],
)
@pytest.mark.parametrize("operation", ["add", "maximum", "multiply"])
@pytest.mark.parametrize("element", ["f32", "i32", "bf16"])
def test_reductions(
    shape: tuple[int, ...], dimensions: tuple[int, ...], operation: str, element: str
) -> None:
    kept = "x".join(str(size) for d, size in enumerate(shape) if d not in dimensions)
    source = f"tensor<{'x'.join(map(str, shape))}x{element}>"
    result = f"tensor<{kept + 'x' if kept else ''}{element}>"
    text = f"""func.func @main(%x: {source}, %z: tensor<{element}>) -> {result} {{
      %0 = stablehlo.reduce(%x init: %z) applies stablehlo.{operation} across dimensions = [{", ".join(map(str, dimensions))}]
        : ({source}, tensor<{element}>) -> {result}
      return %0 : {result} }}"""
    module = parse_module(text)
    numbers = np.random.default_rng(1)
    values = numbers.integers(1, 2 if operation == "multiply" else 3, shape)
    dtype = module.entry_computation.parameter_types[0].element.dtype  # type: ignore[union-attr]
    arguments = [values.astype(dtype), np.asarray(1).astype(dtype)]
    # Sums of bf16 are kept in f32 and rounded once; the interpreter may round after each addition.
    check(module, arguments, rtol=0.02 if element == "bf16" else 0.0)


def test_a_sum_of_many_numbers_is_accurate() -> None:
    text = """func.func @main(%x: tensor<1000003xf32>) -> tensor<f32> {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<1000003xf32>, tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32> }"""
    values = np.random.default_rng(0).random(1000003).astype(np.float32)
    got = run_cpu(parse_module(text), [values])[0]
    exact = float(values.astype(np.float64).sum())
    assert abs(float(got) - exact) / exact < 1e-6


def test_argmax_takes_both_results_in_order() -> None:
    text = """func.func @main(%x: tensor<6x37xf32>) -> (tensor<6xf32>, tensor<6xi32>) {
      %i = stablehlo.iota dim = 1 : tensor<6x37xi32>
      %l = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %z = stablehlo.constant dense<0> : tensor<i32>
      %0:2 = stablehlo.reduce(%x init: %l), (%i init: %z) across dimensions = [1]
        : (tensor<6x37xf32>, tensor<6x37xi32>, tensor<f32>, tensor<i32>) -> (tensor<6xf32>, tensor<6xi32>)
        reducer(%a: tensor<f32>, %b: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
          %c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %v = stablehlo.select %c, %a, %b : tensor<i1>, tensor<f32>
          %w = stablehlo.select %c, %p, %q : tensor<i1>, tensor<i32>
          stablehlo.return %v, %w : tensor<f32>, tensor<i32> }
      return %0#0, %0#1 : tensor<6xf32>, tensor<6xi32> }"""
    _run(text, [_numbers((6, 37))])


@pytest.mark.parametrize("element", ["f32", "f64", "bf16", "f16", "i8", "i32", "complex<f32>"])
def test_products_of_every_kind(element: str) -> None:
    text = f"""func.func @main(%x: tensor<2x5x7x{element}>, %y: tensor<7x2x9x{element}>, %b: tensor<9x{element}>) -> tensor<2x5x9x{element}> {{
      %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [1], contracting_dims = [2] x [0]
        : (tensor<2x5x7x{element}>, tensor<7x2x9x{element}>) -> tensor<2x5x9x{element}>
      %1 = stablehlo.broadcast_in_dim %b, dims = [2] : (tensor<9x{element}>) -> tensor<2x5x9x{element}>
      %2 = stablehlo.add %0, %1 : tensor<2x5x9x{element}>
      return %2 : tensor<2x5x9x{element}> }}"""
    module = parse_module(text)
    arguments = [
        _numbers(t.shape, n).astype(t.element.dtype)
        for n, t in enumerate(module.entry_computation.parameter_types)
    ]  # type: ignore[union-attr]
    check(module, arguments, rtol=0.02 if element in ("bf16", "f16") else 0.0)


def test_partial_sums_do_not_overwrite_the_residual() -> None:
    """A long product whose epilogue reads an operand that lies where the result will lie."""
    text = """func.func @main(%x: tensor<16x3072xf32>, %y: tensor<3072x64xf32>, %r: tensor<16x64xf32>) -> tensor<16x64xf32> {
      %s = stablehlo.negate %r : tensor<16x64xf32>
      %t = stablehlo.add %s, %s : tensor<16x64xf32>
      %u = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<16x3072xf32>, tensor<3072x64xf32>) -> tensor<16x64xf32>
      %v = stablehlo.add %u, %t : tensor<16x64xf32>
      %w = stablehlo.multiply %v, %t : tensor<16x64xf32>
      return %w : tensor<16x64xf32> }"""
    _run(text, [_numbers((16, 3072)), _numbers((3072, 64), 1), _numbers((16, 64), 2)])


@pytest.mark.parametrize("start", [-3, 0, 2, 100, -(2**31), 2**31 - 1])
def test_run_time_indices_are_clamped(start: int) -> None:
    text = """func.func @main(%x: tensor<5x40xf32>, %u: tensor<2x17xf32>, %i: tensor<i32>, %j: tensor<3x1xi32>)
        -> (tensor<2x17xf32>, tensor<5x40xf32>, tensor<3x40xf32>, tensor<5x40xf32>) {
      %0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [2, 17] : (tensor<5x40xf32>, tensor<i32>, tensor<i32>) -> tensor<2x17xf32>
      %1 = stablehlo.dynamic_update_slice %x, %u, %i, %i : (tensor<5x40xf32>, tensor<2x17xf32>, tensor<i32>, tensor<i32>) -> tensor<5x40xf32>
      %2 = "stablehlo.gather"(%x, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 40>}> : (tensor<5x40xf32>, tensor<3x1xi32>) -> tensor<3x40xf32>
      %3 = "stablehlo.scatter"(%x, %j, %2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %s = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %s : tensor<f32>
      }) : (tensor<5x40xf32>, tensor<3x1xi32>, tensor<3x40xf32>) -> tensor<5x40xf32>
      return %0, %1, %2, %3 : tensor<2x17xf32>, tensor<5x40xf32>, tensor<3x40xf32>, tensor<5x40xf32> }"""
    indices = np.array([[start], [1], [start]], np.int32)
    _run(text, [_numbers((5, 40)), _numbers((2, 17), 1), np.int32(start).reshape(()), indices])


@pytest.mark.parametrize(("low", "high", "stride"), [(0, 0, 1), (1, 2, 2), (2, 0, 3)])
def test_windows(low: int, high: int, stride: int) -> None:
    size = (37 + low + high - 3) // stride + 1
    rows = (9 + low + high - 3) // stride + 1
    attributes = f"window_dimensions = array<i64: 3, 3, 1>, window_strides = array<i64: {stride}, {stride}, 1>, padding = dense<[[{low}, {high}], [{low}, {high}], [0, 0]]> : tensor<3x2xi64>"
    text = f"""func.func @main(%x: tensor<9x37x2xf32>, %s: tensor<{rows}x{size}x2xf32>) -> (tensor<{rows}x{size}x2xf32>, tensor<9x37x2xf32>) {{
      %z = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %o = stablehlo.constant dense<1.0> : tensor<f32>
      %0 = "stablehlo.reduce_window"(%x, %z) <{{{attributes}}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %m = stablehlo.maximum %a, %b : tensor<f32>
          stablehlo.return %m : tensor<f32>
      }}) : (tensor<9x37x2xf32>, tensor<f32>) -> tensor<{rows}x{size}x2xf32>
      %1 = "stablehlo.select_and_scatter"(%x, %s, %o) <{{{attributes}}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
      }}, {{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %d = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %d : tensor<f32>
      }}) : (tensor<9x37x2xf32>, tensor<{rows}x{size}x2xf32>, tensor<f32>) -> tensor<9x37x2xf32>
      return %0, %1 : tensor<{rows}x{size}x2xf32>, tensor<9x37x2xf32> }}"""
    _run(text, [_numbers((9, 37, 2)), _numbers((rows, size, 2), 1)])


@pytest.mark.parametrize("shape", [(50,), (50, 7), (50, 40)])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(shape: tuple[int, ...], reverse: bool) -> None:
    kind = f"tensor<{'x'.join(map(str, shape))}xf32>"
    ones = ", ".join(["50"] + ["1"] * (len(shape) - 1))
    first = "[0, 49]" if reverse else "[49, 0]"
    pads = ", ".join([first] + ["[0, 0]"] * (len(shape) - 1))
    text = f"""func.func @main(%x: {kind}) -> {kind} {{
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = "stablehlo.reduce_window"(%x, %z) <{{window_dimensions = array<i64: {ones}>, padding = dense<[{pads}]> : tensor<{len(shape)}x2xi64>}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %s = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %s : tensor<f32>
      }}) : ({kind}, tensor<f32>) -> {kind}
      return %0 : {kind} }}"""
    _run(text, [_numbers(shape)])


@pytest.mark.parametrize(("rows", "columns"), [(16, 16), (33, 47), (100, 20), (3, 200), (64, 130)])
@pytest.mark.parametrize("element", ["f32", "f64", "i8", "bf16", "i1", "complex<f64>"])
def test_transposes(rows: int, columns: int, element: str) -> None:
    text = f"""func.func @main(%x: tensor<2x{rows}x{columns}x{element}>) -> tensor<2x{columns}x{rows}x{element}> {{
      %0 = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<2x{rows}x{columns}x{element}>) -> tensor<2x{columns}x{rows}x{element}>
      return %0 : tensor<2x{columns}x{rows}x{element}> }}"""
    module = parse_module(text)
    dtype = module.entry_computation.parameter_types[0].element.dtype  # type: ignore[union-attr]
    check(module, [np.random.default_rng(0).integers(0, 100, (2, rows, columns)).astype(dtype)])


def test_loops_and_branches_run_natively() -> None:
    text = """func.func @main(%n: tensor<i32>, %x: tensor<17xf32>) -> (tensor<i32>, tensor<17xf32>) {
      %z = stablehlo.constant dense<0> : tensor<i32>
      %0:2 = stablehlo.while(%i = %z, %v = %x) : tensor<i32>, tensor<17xf32>
        cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
               stablehlo.return %c : tensor<i1> }
        do { %o = stablehlo.constant dense<1> : tensor<i32>
             %t = stablehlo.constant dense<3> : tensor<i32>
             %j = stablehlo.add %i, %o : tensor<i32>
             %k = stablehlo.remainder %i, %t : tensor<i32>
             %w = "stablehlo.case"(%k) ({ %a = stablehlo.add %v, %v : tensor<17xf32>
                                          stablehlo.return %a : tensor<17xf32> },
                                        { %b = stablehlo.negate %v : tensor<17xf32>
                                          stablehlo.return %b : tensor<17xf32> },
                                        { %r = stablehlo.reverse %v, dims = [0] : tensor<17xf32>
                                          stablehlo.return %r : tensor<17xf32> }) : (tensor<i32>) -> tensor<17xf32>
             stablehlo.return %j, %w : tensor<i32>, tensor<17xf32> }
      return %0#0, %0#1 : tensor<i32>, tensor<17xf32> }"""
    for count in (0, 1, 8):
        _run(text, [np.int32(count).reshape(()), _numbers((17,))])


def test_arguments_are_checked_and_strided_ones_taken() -> None:
    text = """func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
      %0 = stablehlo.add %x, %x : tensor<3x4xf32>
      return %0 : tensor<3x4xf32> }"""
    compiled = compile_module(parse_module(text), CompileOptions(backend="cpu", threads=1)).executable
    turned = _numbers((4, 3)).T
    assert_same(compiled.run([turned]), [turned + turned])
    with pytest.raises(BackendError, match="argument 0 must be tensor<3x4xf32>"):
        compiled.run([np.zeros((4, 3), np.float32)])
    with pytest.raises(BackendError, match="takes 1 arrays, not 2"):
        compiled.run([turned, turned])
    compiled.close()


def test_kernels_have_forms_and_times() -> None:
    text = """func.func @main(%x: tensor<300x40xf32>) -> tensor<300xf32> {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %e = stablehlo.exponential %x : tensor<300x40xf32>
      %0 = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [1] : (tensor<300x40xf32>, tensor<f32>) -> tensor<300xf32>
      return %0 : tensor<300xf32> }"""
    module = parse_module(text)
    compiled = compile_module(module, CompileOptions(backend="cpu", threads=1)).executable
    (kernel,) = compiled.kernels
    assert kernel.kind == "reduction" and kernel.flops > 0
    loops = compiled.kernel_form(kernel.name, "loops")
    assert "for i0 in 0..300" in loops and "exponential" in loops
    assert "define void @reduction." in compiled.kernel_form(kernel.name, "llvm")
    assert "ret" in compiled.kernel_form(kernel.name, "asm")
    with pytest.raises(BackendError, match="no kernel"):
        compiled.kernel_form("nothing", "loops")
    arguments = [_numbers((300, 40)) / 8]
    (time,) = compiled.profile(arguments)
    assert time.kernel == kernel.name and time.calls == 1 and time.nanoseconds > 0
    assert_same(compiled.run(arguments), evaluate(module, arguments), rtol=1e-6)
    compiled.close()


def test_equal_kernels_are_compiled_once() -> None:
    text = """func.func @main(%x: tensor<9xf32>, %y: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
      %0 = stablehlo.sine %x : tensor<9xf32>
      %1 = stablehlo.sine %y : tensor<9xf32>
      return %0, %1 : tensor<9xf32>, tensor<9xf32> }"""
    compiled = compile_module(parse_module(text), CompileOptions(backend="cpu", threads=1)).executable
    first, second = compiled.kernels
    assert first.name != second.name and first.code == second.code
    compiled.close()


def test_concatenations_of_many() -> None:
    """More operands than nested branches could tell apart."""
    count = 400
    names = [f"%x{n}" for n in range(count)]
    kinds = [f"tensor<3x{n % 3}xf32>" for n in range(count)]
    width = sum(n % 3 for n in range(count))
    text = f"""func.func @main({", ".join(f"{n}: {k}" for n, k in zip(names, kinds, strict=True))}) -> tensor<3x{width}xf32> {{
      %0 = stablehlo.concatenate {", ".join(names)}, dim = 1 : ({", ".join(kinds)}) -> tensor<3x{width}xf32>
      %1 = stablehlo.negate %0 : tensor<3x{width}xf32>
      return %1 : tensor<3x{width}xf32> }}"""
    _run(text, [_numbers((3, n % 3), n) for n in range(count)])
