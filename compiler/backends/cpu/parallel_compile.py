"""Compiles many modules at once in worker processes.

LLVM's binding holds one lock for the whole process, so threads would compile one after the other; processes
do not. They are started only where the work pays for starting them.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from compiler.backends.cpu.jit import Level, ModuleCompiler
from compiler.backends.cpu.target import Target

# Starting workers takes about 0.6 s, in which this process compiles about half as many characters of IR
# itself.
_WORTHWHILE_CHARACTERS = 1_500_000


def compile_modules(
    compiler: ModuleCompiler, texts: Sequence[str], level: Level = "light", workers: int | None = None
) -> list[bytes]:
    """The object files of several modules, in order.

    Args:
        compiler: what to compile for, and its cache.
        texts: the modules.
        level: how much LLVM optimises.
        workers: the number of processes; by default one a core where the text left to compile is long
            enough, else none.

    Raises:
        CodeGenerationError: LLVM did not accept one of them.
    """
    objects: list[bytes | None] = [None] * len(texts)
    if compiler.cache is not None:
        objects = [compiler.cache.get(compiler.key(text, level)) for text in texts]
    missing = [position for position, contents in enumerate(objects) if contents is None]
    if workers is None:
        characters = sum(len(texts[position]) for position in missing)
        workers = compiler.target.cores if characters > _WORTHWHILE_CHARACTERS else 1
    workers = min(workers, len(missing))
    if workers > 1:
        for position, contents in _in_processes(compiler, texts, missing, level, workers):
            objects[position] = contents
            if compiler.cache is not None:
                compiler.cache.put(compiler.key(texts[position], level), contents)
    return [
        contents if contents is not None else compiler.object_code(text, level)
        for contents, text in zip(objects, texts, strict=True)
    ]


def _in_processes(
    compiler: ModuleCompiler, texts: Sequence[str], positions: Sequence[int], level: Level, workers: int
) -> list[tuple[int, bytes]]:
    """Compiles the modules at `positions`; returns none of them where processes cannot be had."""
    # Not fork: the parent may have threads that hold locks.
    context = multiprocessing.get_context("spawn")
    longest_first = sorted(positions, key=lambda position: -len(texts[position]))
    try:
        with ProcessPoolExecutor(
            workers, context, _start_worker, (compiler.target, compiler.codegen_level)
        ) as pool:
            compiled = pool.map(_compile_in_worker, [(texts[position], level) for position in longest_first])
            return list(zip(longest_first, compiled, strict=True))
    except (BrokenProcessPool, OSError):
        return []


class _Worker:
    """What a worker process keeps between modules."""

    compiler: ModuleCompiler


def _start_worker(target: Target, codegen_level: int) -> None:
    _Worker.compiler = ModuleCompiler(target, None, codegen_level)


def _compile_in_worker(work: tuple[str, Level]) -> bytes:
    return _Worker.compiler.object_code(*work)
