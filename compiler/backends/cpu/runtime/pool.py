"""The Python side of the runtime: loads it once, makes and ends pools of worker threads."""

from __future__ import annotations

import ctypes
import os
import signal
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from compiler.backends.cpu.jit import Library, ModuleCompiler
from compiler.backends.cpu.runtime.pool_text import CALLER_SPIN, WORKER_SPIN, pool_bytes, pool_text

_ALIGNMENT = 64
# Rounds of a few dozen nanoseconds each. A worker watches for about as long as falling asleep and being
# woken would cost; a caller has just finished its own share, so the rest is nearly done.
_WORKER_SPINS = 8000
_CALLER_SPINS = 500

SYMBOLS = ("xe.parallel_for", "xe.now_ns")


class NativeRuntime:
    """The runtime's machine code.

    Args:
        compiler: compiles it, and knows the target.
        portable: wait with mutex and condition variable even where there is a futex.
    """

    def __init__(self, compiler: ModuleCompiler, *, portable: bool = False) -> None:
        self._library: Library = compiler.load(pool_text(compiler.target, portable=portable))
        void, i64, pointer = None, ctypes.c_int64, ctypes.c_void_p
        address = self._library.address
        self.start = ctypes.CFUNCTYPE(i64, pointer, i64)(address("xe.pool_start"))
        self.stop = ctypes.CFUNCTYPE(void, pointer)(address("xe.pool_stop"))
        self.parallel_for = ctypes.CFUNCTYPE(void, pointer, pointer, pointer, i64)(address("xe.parallel_for"))
        self.now_ns = ctypes.CFUNCTYPE(i64)(address("xe.now_ns"))

    @property
    def symbols(self) -> dict[str, int]:
        """The addresses that kernels link against (`ModuleCompiler.link`'s imports)."""
        return {name: self._library.address(name) for name in SYMBOLS}


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Workers inherit the mask: no signal for Python may arrive in a thread that knows no Python."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stop(runtime: NativeRuntime, block: ctypes.Array[ctypes.c_char], address: int, process: int) -> None:
    # After a fork the child has the memory and not the threads. (`block` is held until here, for the
    # threads.)
    if os.getpid() == process and block is not None:
        runtime.stop(address)


class Pool:
    """Threads that run the tasks of kernels; any number of executables may share one.

    Args:
        runtime: the machine code.
        threads: how many threads work together, the caller among them. With one, no thread is started.
    """

    def __init__(self, runtime: NativeRuntime, threads: int) -> None:
        if threads < 1:
            raise ValueError(f"a pool has at least one thread, not {threads}")
        self._runtime = runtime
        self._wanted = threads
        self._closed = False
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._address = 0
        self._threads = 1
        self._finalizer: weakref.finalize[..., Pool] | None = None
        if self._wanted == 1:
            return
        block = ctypes.create_string_buffer(pool_bytes(self._wanted) + _ALIGNMENT)
        address = ctypes.addressof(block)
        address += -address % _ALIGNMENT
        ctypes.c_int64.from_address(address + WORKER_SPIN).value = _WORKER_SPINS
        ctypes.c_int64.from_address(address + CALLER_SPIN).value = _CALLER_SPINS
        with _signals_blocked():
            self._threads = 1 + int(self._runtime.start(address, self._wanted - 1))
        self._address = address
        self._finalizer = weakref.finalize(self, _stop, self._runtime, block, address, self._process)

    @property
    def address(self) -> int:
        """What to pass as ``%pool`` to ``@xe.parallel_for``; 0 for a pool without workers.

        The first use in a forked process starts threads of its own.
        """
        if os.getpid() != self._process and not self._closed:
            self._start()
        return self._address

    @property
    def threads(self) -> int:
        """How many threads work together; fewer than asked for if the system refused some."""
        return self._threads

    def run(self, function: int, arguments: int, tasks: int) -> None:
        """Calls ``void function(ptr arguments, i64 begin, i64 end)`` over ``[0, tasks)``."""
        self._runtime.parallel_for(self.address, function, arguments, tasks)

    def close(self) -> None:
        """Ends the threads and waits for them; the pool then runs everything on the caller."""
        if self._finalizer is not None:
            self._finalizer()
        self._closed = True
        self._address = 0
        self._threads = 1

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
