"""Operations that compiled code hands back to a library: the record's NumPy rule on views of the buffers.

For what a library does better than generated code (Fourier transforms, LAPACK) and for what has no kernel yet. The
callback has the signature of a kernel, so that the driver need not know the difference.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from compiler.analysis.values import leaves
from compiler.backends.base import BackendError
from compiler.backends.cpu.program import KernelCall
from compiler.ir.location import source_line
from compiler.ir.program import Computation, Instruction, Module
from compiler.ir.semantics import OperationError
from compiler.ir.types import TensorType, TokenType, TupleType, Type
from compiler.ops import operation
from compiler.ops.checks import CheckFailed
from compiler.ops.record import Token, Value
from compiler.reference import Evaluation, EvaluationError, Interpreter, flatten

Array = np.ndarray[Any, np.dtype[Any]]
KERNEL_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class LibraryKernels:
    """The callbacks of one executable, and the first exception that one of them raised."""

    def __init__(
        self, module: Module, calls: list[KernelCall], custom_calls: Any = None, devices: Any = None
    ) -> None:
        self._interpreter = Interpreter(module, custom_calls=custom_calls, devices=devices)
        self._module = module
        self.failure: BaseException | None = None
        self._held = {call.symbol: KERNEL_TYPE(self._callback(call)) for call in calls}
        self.symbols = {
            name: ctypes.cast(held, ctypes.c_void_p).value or 0 for name, held in self._held.items()
        }

    def raise_failure(self) -> None:
        """Raises what a callback could not, if anything."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def _callback(self, call: KernelCall) -> Callable[[int, int, int], None]:
        computation = self._module.computations[call.use.code.computation]  # type: ignore[union-attr]
        instruction = computation[call.use.code.instruction]  # type: ignore[union-attr]
        run = self._runner(computation, instruction)

        def callback(buffers: int, begin: int, end: int) -> None:
            if self.failure is not None:
                return
            try:
                run(buffers)
            except BaseException as error:  # must not unwind through compiled code
                self.failure = _named(instruction, error)

        return callback

    def _runner(self, computation: Computation, instruction: Instruction) -> Callable[[int], None]:
        evaluation = Evaluation(self._interpreter, computation, instruction)
        record = operation(instruction.opcode)
        types = [computation[name].type for name in instruction.operands]
        outputs = [kind for _, kind in leaves(instruction.type)]

        def run(buffers: int) -> None:
            pointers = iter(range(1 << 30))

            def view(kind: TensorType) -> Array:
                address = ctypes.c_void_p.from_address(buffers + 8 * next(pointers)).value or 0
                return array_at(address, kind)

            def value(kind: Type) -> Value:
                if isinstance(kind, TupleType):
                    return tuple(value(entry) for entry in kind.elements)
                return Token() if isinstance(kind, TokenType) else view(kind)

            operands = [value(kind) for kind in types]
            with np.errstate(all="ignore"):
                found = flatten(record.evaluate(evaluation, *operands))
            if len(found) != len(outputs):
                raise OperationError(f"{len(found)} arrays were given for {len(outputs)} results")
            for kind, made in zip(outputs, found, strict=True):
                if made.shape != kind.shape or made.dtype != kind.element.dtype:
                    raise OperationError(f"{made.dtype} of shape {made.shape} was given for {kind}")
                view(kind)[...] = made

        return run


def _named(instruction: Instruction, error: BaseException) -> BaseException:
    """What went wrong and where, in one line; an interrupt stays what it is."""
    line = source_line(instruction.location)
    place = f"{f'{line}: ' if line else ''}{instruction.name} ({instruction.opcode})"
    if isinstance(error, CheckFailed):
        return error.at(place)
    if isinstance(error, EvaluationError):
        # It names an instruction of a called computation already.
        return BackendError(str(error))
    if isinstance(error, OperationError):
        return BackendError(f"{place}: {error}")
    if isinstance(error, Exception):
        named = BackendError(f"{place}: {type(error).__name__}: {error}")
        named.__cause__ = error
        return named
    return error


def array_at(address: int, kind: TensorType) -> Array:
    """Memory of a tensor type, in its layout, as an array of its logical shape."""
    if kind.bytes == 0:
        return np.empty(kind.shape, kind.element.dtype)
    raw = np.ctypeslib.as_array((ctypes.c_ubyte * kind.bytes).from_address(address))
    order = tuple(reversed(kind.minor_to_major))
    stored = raw.view(kind.element.dtype).reshape([kind.shape[d] for d in order])
    return stored.transpose(np.argsort(order)) if order != tuple(range(kind.rank)) else stored


__all__ = ["KERNEL_TYPE", "LibraryKernels", "array_at"]
