"""What an emitter hands to the CPU backend: the text of a kernel and what it needs to run.

A kernel is ``void @name(ptr %buffers, i64 %task_begin, i64 %task_end)``. ``%buffers`` points to an array of
pointers: the operands, the results, then the scratch buffer if the kernel asks for one. Tasks are
independent pieces of the output, so any split of ``[0, tasks)`` into ranges, run in any order and on any
threads, gives the same result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compiler.backends.cpu.text_builder import assemble_module


@dataclass(frozen=True, slots=True)
class SharedFunction:
    """A function that many kernels call: a microkernel, a packing routine, a vector function.

    Equal names mean equal texts: a name spells out every parameter the text depends on.
    """

    name: str
    text: str
    declarations: tuple[str, ...] = ()
    calls: tuple[SharedFunction, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelCode:
    """The text of one kernel.

    Attributes:
        name: the symbol, without ``@``.
        text: its definition.
        tasks: how many tasks it is split into, known when it is emitted.
        scratch_bytes: size of its scratch buffer (aligned to 64 bytes), for all its tasks together; 0 for
            none.
        requires: names of functions that the module must supply (the runtime's, for instance).
        shared: functions that come along with the kernel, defined once a module.
        declarations: ``declare`` lines (intrinsics).
    """

    name: str
    text: str
    tasks: int
    scratch_bytes: int = 0
    requires: tuple[str, ...] = ()
    shared: tuple[SharedFunction, ...] = ()
    declarations: tuple[str, ...] = ()


def kernel_module(kernels: Iterable[KernelCode], header: str = "") -> str:
    """The module text of several kernels, with each shared function defined once."""
    functions: dict[str, str] = {}
    declarations: set[str] = set()

    def visit(function: SharedFunction) -> None:
        if function.name in functions:
            return
        functions[function.name] = function.text
        declarations.update(function.declarations)
        for called in function.calls:
            visit(called)

    for kernel in kernels:
        for function in kernel.shared:
            visit(function)
        functions[kernel.name] = kernel.text
        declarations.update(kernel.declarations)
    return assemble_module(functions.values(), declarations, header)
