"""Runs functions of the vector mathematics on arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from compiler.backends.cpu.jit import Library, ModuleCompiler
from compiler.backends.cpu.target import Target, detect
from compiler.backends.cpu.vector_math import Key, closure, held_kind, operand_count

Array = npt.NDArray[Any]
_LLVM = {"f32": "float", "f64": "double", "i1": "i1"}
_DTYPES = {"f32": "f4", "f64": "f8", "i1": "?", "i8": "u1", "i16": "u2", "i32": "u4", "i64": "u8"}


def _signature(key: Key) -> tuple[list[str], str]:
    op, element, _ = key
    if op == "convert":
        source, target = element.split(".")
        return [held_kind(source)], held_kind(target)
    return [element] * operand_count(op), element


def module_text(key: Key) -> str:
    """A module with the function, all it calls, and ``@run`` that applies it to whole arrays."""
    operands, result = _signature(key)
    lanes = key[2]
    functions = closure([key])
    width = {kind: _LLVM.get(kind, kind) for kind in (*operands, result)}
    vector = {kind: name if lanes == 1 else f"<{lanes} x {name}>" for kind, name in width.items()}
    loads = [
        line
        for index, kind in enumerate(operands)
        for line in (
            f"  %p{index} = getelementptr {width[kind]}, ptr %a{index}, i64 %i",
            f"  %x{index} = load {vector[kind]}, ptr %p{index}, align 1",
        )
    ]
    arguments = ", ".join(f"{vector[kind]} %x{index}" for index, kind in enumerate(operands))
    call = f"  %r = call {vector[result]} @{functions[-1].name}({arguments})"
    stored = width[result]
    body = [
        call,
        f"  %q = getelementptr {stored}, ptr %out, i64 %i",
        f"  store {vector[result]} %r, ptr %q, align 1",
    ]
    if result == "i1":
        # Booleans are bytes in memory.
        bytes_type = "i8" if lanes == 1 else f"<{lanes} x i8>"
        body = [call, f"  %b = zext {vector[result]} %r to {bytes_type}"]
        body += ["  %q = getelementptr i8, ptr %out, i64 %i", f"  store {bytes_type} %b, ptr %q, align 1"]
    lines = sorted({line for function in functions for line in function.declarations})
    lines += [function.text for function in functions]
    lines += [
        f"define void @run({', '.join(f'ptr %a{index}' for index in range(len(operands)))}, ptr %out, i64 %n) {{",
        "entry:",
        "  br label %head",
        "head:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %body ]",
        "  %more = icmp slt i64 %i, %n",
        "  br i1 %more, label %body, label %done",
        "body:",
        *loads,
        *body,
        f"  %next = add i64 %i, {lanes}",
        "  br label %head",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines) + "\n"


class VectorFunction:
    """One function, compiled; calling it with arrays applies it to every element."""

    def __init__(self, op: str, element: str, lanes: int, target: Target | None = None) -> None:
        key = (op, element, lanes)
        self._operands, self._result = _signature(key)
        self._lanes = lanes
        compiler = ModuleCompiler(target or detect())
        self._library: Library = compiler.load(module_text(key))
        types: Sequence[Any] = [ctypes.c_void_p] * (len(self._operands) + 1) + [ctypes.c_int64]
        self._run = ctypes.CFUNCTYPE(None, *types)(self._library.address("run"))

    def __call__(self, *operands: Array) -> Array:
        size = operands[0].size
        padding = -size % self._lanes
        padded = [
            np.concatenate([values.astype(_DTYPES[kind], copy=False), np.ones(padding, _DTYPES[kind])])
            for kind, values in zip(self._operands, operands, strict=True)
        ]
        out = np.empty(size + padding, _DTYPES[self._result])
        self._run(*(values.ctypes.data for values in padded), out.ctypes.data, size + padding)
        return out[:size]


def error_in_ulps(got: Array, right: Array) -> Array:
    """The distance of results from (wider) right values, in units of the last place; infinite where NaN,
    infinity or the sign of zero differ."""
    narrow = got.dtype
    digits, smallest = {4: (24, -125), 8: (53, -1021)}[narrow.itemsize]
    with np.errstate(all="ignore"):
        rounded = right.astype(narrow)
        finite = np.isfinite(rounded) & np.isfinite(got)
        _, exponent = np.frexp(np.where(finite, right, 1))
        place = np.ldexp(right.dtype.type(1), np.maximum(exponent, smallest) - digits)
        error = np.abs(got.astype(right.dtype) - right) / place
        error = np.where(finite, error, np.where(got == rounded, 0, np.inf))
        error = np.where(np.isnan(got) & np.isnan(right), 0, error)
        same_zero = (rounded != 0) | (got != 0) | (np.signbit(got) == np.signbit(rounded))
    return np.asarray(np.where(same_zero, error, np.inf), np.float64)
