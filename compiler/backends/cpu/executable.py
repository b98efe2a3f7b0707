"""A compiled program, loaded: memory, threads, and the call."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler.analysis.values import leaves
from compiler.backends.base import BackendError, KernelRecord, KernelTime
from compiler.backends.cpu.array_address import address_reader
from compiler.backends.cpu.driver import DriverWriter
from compiler.backends.cpu.jit import Library, ModuleCompiler
from compiler.backends.cpu.kernel_code import KernelCode, kernel_module
from compiler.backends.cpu.library import LibraryKernels
from compiler.backends.cpu.lowered import LibraryCall
from compiler.backends.cpu.nest_text import nest_text
from compiler.backends.cpu.program import KernelCall, Program
from compiler.backends.cpu.result_memory import ResultMemory
from compiler.backends.cpu.runtime import NativeRuntime, Pool
from compiler.ir.literal import Literal
from compiler.ir.types import TensorType

Array = np.ndarray[Any, np.dtype[Any]]
_ALIGNMENT = 64


def aligned_bytes(size: int) -> Array:
    """Uninitialised memory at a multiple of 64 bytes."""
    raw = np.empty(max(size, 1) + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + max(size, 1)]


def _placed(literal: Literal, kind: TensorType) -> Array:
    """A constant's elements in the order of its layout, aligned."""
    order = tuple(reversed(kind.minor_to_major))
    memory = aligned_bytes(kind.bytes)
    if kind.bytes:
        target = memory[: kind.bytes].view(kind.element.dtype).reshape([kind.shape[d] for d in order])
        target[...] = literal.array.transpose(order) if kind.rank else literal.array
    return memory


class CpuExecutable:
    """Implements `compiler.backends.base.Executable`."""

    def __init__(
        self,
        program: Program,
        compiler: ModuleCompiler,
        library: Library,
        runtime: NativeRuntime,
        pool: Pool,
        callbacks: LibraryKernels,
        objects: Sequence[bytes],
    ) -> None:
        self._program, self._compiler, self._library = program, compiler, library
        self._runtime, self._pool, self._callbacks = runtime, pool, callbacks
        self._objects = list(objects)
        self._lock = threading.Lock()
        self._address_of = address_reader()
        entry = program.module.entry_computation
        self._types = [leaf for kind in entry.parameter_types for _, leaf in leaves(kind)]
        self._results = [(leaf.shape, leaf.element.dtype) for _, leaf in leaves(entry.result_type)]
        self._result_memory = [ResultMemory(shape, dtype) for shape, dtype in self._results]
        self._wanted = [(leaf.shape, leaf.element.dtype) for leaf in self._types]
        self.kernels = tuple(_records(program))
        self._entry = self._function(library, DriverWriter(program).entry)
        self._timed: Any = None
        self._timed_library: Library | None = None
        self._fill_table()

    def _function(self, library: Library, name: str) -> Any:
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address(name))

    def _fill_table(self) -> None:
        program, table = self._program, self._program.table
        self._table = np.zeros(table.size, np.int64)
        self._memory: list[Array] = []
        module = program.module
        for number, (computation, name) in enumerate(program.plan.constants):
            instruction = module.instruction(computation, name)
            self._table[table.constants + number] = self._hold(
                _placed(instruction.literal, instruction.tensor)
            )
        for number, literal in enumerate(program.embedded):
            self._table[table.embedded + number] = self._hold(_placed(literal, literal.type))
        self._table[table.arena] = self._hold(aligned_bytes(program.plan.arena_bytes))
        self._table[table.scratch] = self._hold(aligned_bytes(program.scratch_bytes))
        self._clock = np.zeros(2 * max(len(program.calls), 1), np.int64)
        self._table[table.clock] = self._hold(self._clock)
        self._address = self._table.ctypes.data

    def _hold(self, memory: Array) -> int:
        self._memory.append(memory)
        return int(memory.ctypes.data)

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """See the protocol."""
        return self._run(arguments, self._entry)

    def _run(self, arguments: Sequence[Array], entry: Any) -> list[Array]:
        if len(arguments) != len(self._wanted):
            raise BackendError(f"the program takes {len(self._wanted)} arrays, not {len(arguments)}")
        held = []
        for number, (argument, (shape, dtype)) in enumerate(zip(arguments, self._wanted, strict=True)):
            array = argument if isinstance(argument, np.ndarray) else np.asarray(argument)
            if (array.dtype is not dtype and array.dtype != dtype) or array.shape != shape:
                raise BackendError(
                    f"argument {number} must be {self._types[number]}, but is {array.dtype} of shape {array.shape}"
                )
            held.append(array if array.flags.c_contiguous else np.ascontiguousarray(array))
        with self._lock:
            results = [memory.array() for memory in self._result_memory]
            table, first, address = self._table, self._program.table.results, self._address_of
            for number, array in enumerate(held):
                table[number] = address(array)
            for number, array in enumerate(results):
                table[first + number] = address(array)
            table[self._program.table.pool] = self._pool.address
            entry(self._address)
            self._callbacks.raise_failure()
        return results

    def profile(self, arguments: Sequence[Array]) -> list[KernelTime]:
        """See the protocol; the instrumented driver is compiled on first use."""
        if self._timed is None:
            writer = DriverWriter(self._program, instrumented=True)
            imports = {**self._runtime.symbols, **self._callbacks.symbols}
            objects = [*self._objects, self._compiler.object_code(writer.text())]
            self._timed_library = self._compiler.link(objects, imports)
            self._timed = self._function(self._timed_library, writer.entry)
        self._clock[:] = 0
        self._run(arguments, self._timed)
        times = self._clock.reshape(-1, 2).tolist()
        return [
            KernelTime(kernel_name(call), nanoseconds, count)
            for call, (nanoseconds, count) in zip(self._program.calls, times, strict=False)
        ]

    def kernel_form(self, name: str, form: str) -> str:
        """See the protocol: `loops`, `llvm`, `optimised-llvm` or `asm`."""
        call = next((entry for entry in self._program.calls if kernel_name(entry) == name), None)
        if call is None:
            raise BackendError(f"there is no kernel {name!r}")
        code = call.use.code
        if isinstance(code, LibraryCall):
            raise BackendError(f"{name} is done by a library; it has no {form} form")
        if form == "loops":
            return nest_text(call, self._program)
        text = kernel_module([code])
        if form == "llvm":
            return text
        if form == "optimised-llvm":
            return self._compiler.optimised_text(text)
        if form == "asm":
            return self._compiler.assembly(text)
        raise BackendError(f"kernels have the forms loops, llvm, optimised-llvm and asm, not {form!r}")

    def close(self) -> None:
        """See the protocol."""
        self._pool.close()


def kernel_name(call: KernelCall) -> str:
    """What people call a kernel: its instruction, and a number where that has several."""
    return call.instruction if not call.suffix else f"{call.instruction}/{call.suffix}"


def _records(program: Program) -> list[KernelRecord]:
    from compiler.ops import flops
    from compiler.ops.record import Site

    found = []
    for call in program.calls:
        computation = program.module.computations[call.computation]
        instruction = computation[call.instruction]
        inner = [computation[call.instruction]]
        owner = computation
        if instruction.opcode == "fusion":
            owner = program.module.computations[instruction.called[0]]
            inner = [entry for entry in owner if entry.opcode not in ("parameter", "constant", "tuple")]
        total = 0.0
        for entry in inner:
            operands = [owner[name].type for name in entry.operands]
            called = [program.module.computations[name] for name in entry.called]
            total += flops(Site(entry.opcode, operands, entry.attributes, called, entry.type))
        read = sum(computation[name].type.bytes for name in instruction.operands)
        tasks = call.use.code.tasks if isinstance(call.use.code, KernelCode) else 1
        places = (
            (call.computation, call.instruction),
            *((owner.name, entry.name) for entry in inner if owner is not computation),
        )
        found.append(
            KernelRecord(
                kernel_name(call),
                call.use.kind,
                places,
                read,
                instruction.type.bytes,
                total,
                tasks,
                call.symbol,
            )
        )
    return found
