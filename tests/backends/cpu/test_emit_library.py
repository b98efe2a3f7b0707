"""Operations handed back to NumPy: values, layouts, several results, custom calls, and what happens to mistakes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from guarded import Array, GuardedMemory, Side
from one_kernel import find, same_bits

from compiler.analysis.values import leaves
from compiler.backends.base import BackendError
from compiler.backends.cpu.library import KERNEL_TYPE, LibraryKernels, array_at
from compiler.backends.cpu.lowering import library_use
from compiler.backends.cpu.program import KernelCall
from compiler.frontend.mlir import parse_module
from compiler.ir.semantics import OperationError
from compiler.ir.types import F32, I8, Layout, TensorType
from compiler.ops.checks import CheckFailed
from compiler.reference import evaluate

CustomCalls = dict[str, Callable[..., Any]]


def _run(
    text: str,
    opcode: str,
    arguments: Sequence[Array],
    custom_calls: CustomCalls | None = None,
    side: Side = "end",
) -> list[Array]:
    """Calls the library kernel of a program's one instruction of an opcode by its address, as compiled code does."""
    module = parse_module(text)
    computation, instruction = module.entry_computation, find(module, opcode)
    use = library_use(computation, instruction)
    assert use.kind == "library"
    call = KernelCall(0, computation.name, instruction.name, use, "symbol")
    kernels = LibraryKernels(module, [call], custom_calls)
    outputs = [np.zeros(kind.shape, kind.element.dtype) for _, kind in leaves(instruction.type)]
    assert len(use.buffers) == len(arguments) + len(outputs)
    memories = [GuardedMemory(array.nbytes, side) for array in (*arguments, *outputs)]
    for memory, array in zip(memories, arguments, strict=False):
        memory.bytes[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    pointers = (ctypes.c_void_p * len(memories))(*[memory.bytes.ctypes.data for memory in memories])
    KERNEL_TYPE(kernels.symbols["symbol"])(ctypes.addressof(pointers), 0, 1)
    kernels.raise_failure()
    assert all(memory.intact() for memory in memories)
    results = memories[len(arguments) :]
    return [
        memory.bytes.view(array.dtype).reshape(array.shape).copy()
        for memory, array in zip(results, outputs, strict=True)
    ]


def _check(text: str, opcode: str, arguments: Sequence[Array], **options: Any) -> None:
    found = _run(text, opcode, arguments, **options)
    right = evaluate(parse_module(text), list(arguments))
    assert len(found) == len(right)
    assert all(same_bits(left, expected) for left, expected in zip(found, right, strict=True))


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("FFT", "complex<f32>", "complex<f32>"),
        ("IFFT", "complex<f64>", "complex<f64>"),
        ("RFFT", "f32", "complex<f32>"),
        ("IRFFT", "complex<f64>", "f64"),
    ],
)
@pytest.mark.parametrize("side", ["start", "end"])
def test_fourier_transforms(kind: str, before: str, after: str, side: Side) -> None:
    full, half = "tensor<3x4x9x{}>", "tensor<3x4x5x{}>"
    source = (half if kind == "IRFFT" else full).format(before)
    result = (half if kind == "RFFT" else full).format(after)
    text = f"""
func.func @main(%x: {source}) -> {result} {{
  %y = stablehlo.fft %x, type = {kind}, length = [4, 9] : ({source}) -> {result}
  return %y : {result}
}}
"""
    rng = np.random.default_rng(3)
    shape = (3, 4, 5 if kind == "IRFFT" else 9)
    values = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    dtype = {"f32": np.float32, "complex<f32>": np.complex64, "complex<f64>": np.complex128}[before]
    array = (values.real if kind == "RFFT" else values).astype(dtype)
    _check(text, "fft", [array], side=side)


def test_called_computations_and_several_results() -> None:
    text = """
func.func @main(%x: tensor<4x6xf32>, %i: tensor<4x6xi32>) -> (tensor<4x6xf32>, tensor<4x6xi32>) {
  %r:2 = "stablehlo.sort"(%x, %i) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %m = stablehlo.multiply %a, %a : tensor<f32>
    %n = stablehlo.multiply %b, %b : tensor<f32>
    %p = stablehlo.compare LT, %m, %n : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<4x6xf32>, tensor<4x6xi32>) -> (tensor<4x6xf32>, tensor<4x6xi32>)
  return %r#0, %r#1 : tensor<4x6xf32>, tensor<4x6xi32>
}
"""
    rng = np.random.default_rng(5)
    values = rng.normal(size=(4, 6)).astype(np.float32)
    _check(text, "sort", [values, np.arange(24, dtype=np.int32).reshape(4, 6)])


_CUSTOM = """
func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xi8>) {
  %y:2 = stablehlo.custom_call @mine(%x) : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xi8>)
  return %y#0, %y#1 : tensor<2x3xf32>, tensor<3xi8>
}
"""
_X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_custom_calls_of_the_user() -> None:
    def mine(evaluation: Any, x: Array) -> tuple[Array, Array]:
        assert evaluation.attributes["call_target_name"] == "mine"
        return x * 2, x.sum(axis=0).astype(np.int8)

    doubled, sums = _run(_CUSTOM, "custom_call", [_X], {"mine": mine})
    assert same_bits(doubled, _X * 2)
    assert same_bits(sums, np.array([3, 5, 7], np.int8))


def _raising(error: BaseException) -> CustomCalls:
    def mine(evaluation: Any, x: Array) -> Any:
        raise error

    return {"mine": mine}


def test_mistakes_come_out_of_the_run_as_errors_and_nothing_is_printed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(BackendError, match=r"custom_call\S* \(custom_call\): not today"):
        _run(_CUSTOM, "custom_call", [_X], _raising(OperationError("not today")))
    with pytest.raises(BackendError, match=r"\(custom_call\): ZeroDivisionError: no$"):
        _run(_CUSTOM, "custom_call", [_X], _raising(ZeroDivisionError("no")))
    with pytest.raises(BackendError, match="mine"):
        _run(_CUSTOM, "custom_call", [_X])
    for wrong in ((_X, np.zeros(1, np.int8)), (_X.astype(np.float64), np.zeros(3, np.int8)), (_X,)):
        with pytest.raises(BackendError, match=r"was given for|were given for"):
            _run(_CUSTOM, "custom_call", [_X], {"mine": lambda evaluation, x, wrong=wrong: wrong})
    with pytest.raises(CheckFailed, match=r"\(custom_call\): differs"):
        _run(_CUSTOM, "custom_call", [_X], _raising(CheckFailed("differs")))
    with pytest.raises(KeyboardInterrupt):
        _run(_CUSTOM, "custom_call", [_X], _raising(KeyboardInterrupt()))
    assert capfd.readouterr() == ("", "")


def test_views_follow_the_layout() -> None:
    stored = np.arange(24, dtype=np.int8)
    kind = TensorType(I8, (2, 3, 4), Layout((1, 2, 0)))
    view = array_at(stored.ctypes.data, kind)
    assert np.array_equal(view, stored.reshape(2, 4, 3).transpose(0, 2, 1))
    view[1, 2, 3] = -1
    assert stored[-1] == -1
    assert array_at(0, TensorType(F32, (2, 0))).shape == (2, 0)
    assert array_at(stored.ctypes.data, TensorType(I8, ())).shape == ()
