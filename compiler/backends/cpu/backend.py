"""The `cpu` backend: the host processor, through LLVM."""

from __future__ import annotations

import os
from functools import cache

from compiler.backends.base import Availability, BackendError, CompileRequest, Insertion
from compiler.backends.cpu.driver import DriverWriter
from compiler.backends.cpu.emitters import EMITTERS
from compiler.backends.cpu.executable import CpuExecutable
from compiler.backends.cpu.jit import CodeGenerationError, ModuleCompiler
from compiler.backends.cpu.kernel_code import KernelCode, kernel_module
from compiler.backends.cpu.library import LibraryKernels
from compiler.backends.cpu.lowered import LibraryCall
from compiler.backends.cpu.lowering import Lowering
from compiler.backends.cpu.object_cache import ObjectCache
from compiler.backends.cpu.parallel_compile import compile_modules
from compiler.backends.cpu.program import Program, build_program, require_entry
from compiler.backends.cpu.runtime import NativeRuntime, Pool
from compiler.backends.cpu.target import Target, detect
from compiler.passes.base import Capabilities

_MODULE_CHARACTERS = 120_000
"""About as much text as one LLVM module should hold: small enough for several to be compiled at once."""


class CpuCapabilities:
    """What passes may ask; sizes are the detected processor's."""

    name = "cpu"

    def __init__(self, target: Target) -> None:
        self._target = target

    @property
    def vector_bytes(self) -> int:
        """Width of a vector register."""
        return self._target.vector_bits // 8

    @property
    def cache_bytes(self) -> tuple[int, ...]:
        """Sizes of the data caches of one core."""
        return (self._target.l1_bytes, self._target.l2_bytes)

    @property
    def threads(self) -> int:
        """Cores this process may use."""
        return self._target.cores

    def supports(self, opcode: str) -> bool:
        """Whether the operation has a kernel, or no simpler form than a library call."""
        from compiler.ops import OPERATIONS

        record = OPERATIONS.get(opcode)
        if record is None or opcode.startswith("batch_norm_"):
            return False
        return record.scalar is not None or opcode in EMITTERS or record.decompose is None

    def accepts_fusion(self, kind: str, opcodes: frozenset[str]) -> str:
        """Any fusion of elementwise operations and data movement can be compiled."""
        return ""


@cache
def _target() -> Target:
    return detect()


@cache
def _compiler() -> ModuleCompiler:
    cached = os.environ.get("XLA_EXPLORE_OBJECT_CACHE", "1") != "0"
    return ModuleCompiler(_target(), ObjectCache() if cached else None)


@cache
def _runtime() -> NativeRuntime:
    return NativeRuntime(_compiler())


class CpuBackend:
    """Implements `compiler.backends.base.Backend`."""

    name = "cpu"

    def availability(self) -> Availability:
        """Wherever llvmlite runs."""
        try:
            target = _target()
        except (RuntimeError, OSError, ImportError) as error:
            return Availability(False, str(error))
        return Availability(True, f"{target.cpu}, {target.vector_bits}-bit vectors, {target.cores} cores")

    def capabilities(self) -> Capabilities:
        """The detected processor's."""
        return CpuCapabilities(_target())

    def stages(self) -> tuple[Insertion, ...]:
        """None of its own."""
        return ()

    def skips(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def compile(self, request: CompileRequest) -> CpuExecutable:
        """See the protocol."""
        require_entry(request.module)
        compiler, runtime = _compiler(), _runtime()
        threads = request.threads or compiler.target.cores
        lowering = Lowering(request.module, compiler.target, threads, EMITTERS)
        program = build_program(request.module, request.plan, lowering)
        texts = [*module_texts(program), DriverWriter(program).text()]
        library_calls = [call for call in program.calls if isinstance(call.use.code, LibraryCall)]
        callbacks = LibraryKernels(request.module, library_calls, request.custom_calls, request.devices)
        try:
            objects = compile_modules(compiler, texts)
            library = compiler.link(objects, {**runtime.symbols, **callbacks.symbols})
        except CodeGenerationError as error:
            raise BackendError(f"code generation failed: {error}") from error
        pool = Pool(runtime, threads)
        return CpuExecutable(program, compiler, library, runtime, pool, callbacks, objects[:-1])


def module_texts(program: Program) -> list[str]:
    """The kernels in modules of a reasonable size."""
    texts: list[str] = []
    group: list[KernelCode] = []
    size = 0
    for code in program.kernels.values():
        group.append(code)
        size += len(code.text) + sum(len(function.text) for function in code.shared)
        if size > _MODULE_CHARACTERS:
            texts.append(kernel_module(group))
            group, size = [], 0
    if group:
        texts.append(kernel_module(group))
    return texts
