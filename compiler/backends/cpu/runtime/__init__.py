"""The native runtime beneath compiled code: worker threads, the parallel loop, a clock."""

from compiler.backends.cpu.runtime.pool import NativeRuntime, Pool

__all__ = ["NativeRuntime", "Pool"]
