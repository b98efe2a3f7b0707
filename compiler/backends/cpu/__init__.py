"""The CPU target: LLVM IR text, its compilation in process, and the native runtime beneath it."""
