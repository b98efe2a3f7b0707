"""Compiles a module for the CPU and runs it beside the reference interpreter, parameters on guarded memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from guarded import Array, GuardedMemory

from compiler.driver import compile_module
from compiler.ir.program import Module
from compiler.options import CompileOptions
from compiler.reference import evaluate


def guarded_copy(array: Array) -> tuple[Array, GuardedMemory]:
    """The same elements in memory that ends where they end; the second value keeps it alive."""
    memory = GuardedMemory(array.nbytes, "end")
    memory.bytes[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memory.bytes.view(array.dtype).reshape(array.shape), memory


def run_cpu(
    module: Module, arguments: Sequence[Array], *, threads: int = 3, disable: str = ""
) -> list[Array]:
    """The results of compiled code; also checks that the parameters were left alone."""
    values = {"disable": disable} if disable else {}
    compiled = compile_module(module, CompileOptions(backend="cpu", threads=threads, values=values))
    held = [guarded_copy(np.asarray(argument)) for argument in arguments]
    try:
        results = compiled.executable.run([array for array, _ in held])
        for (after, memory), before in zip(held, arguments, strict=True):
            assert after.tobytes() == np.asarray(before).tobytes()
            assert memory.intact()
    finally:
        compiled.executable.close()
    return results


def assert_same(got: Sequence[Array], wanted: Sequence[Array], rtol: float = 0.0, atol: float = 0.0) -> None:
    """Equal elements (NaN as NaN), or within a tolerance of the wanted ones."""
    assert len(got) == len(wanted)
    for number, (left, right) in enumerate(zip(got, wanted, strict=True)):
        assert left.shape == right.shape and left.dtype == right.dtype, (number, left.dtype, right.dtype)
        kind = np.complex128 if left.dtype.kind == "c" else np.float64
        if (
            left.dtype.kind in "iub"
            and left.dtype.itemsize >= 1
            and left.dtype.name[:3] in ("int", "uin", "boo")
        ):
            assert np.array_equal(left, right), (number, left, right)
            continue
        a, b = left.astype(kind), right.astype(kind)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= atol + rtol * np.abs(b)
        assert (same | near).all(), (number, left[~(same | near)][:5], right[~(same | near)][:5])


def check(
    module: Module, arguments: Sequence[Array], rtol: float = 0.0, atol: float = 0.0, **options: object
) -> None:
    """Compiled code against the interpreter."""
    wanted = evaluate(module, list(arguments))
    assert_same(run_cpu(module, arguments, **options), wanted, rtol, atol)  # type: ignore[arg-type]
