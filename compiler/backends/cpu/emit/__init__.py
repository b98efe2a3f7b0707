"""From kernels as loop nests to LLVM IR: one module a kind of kernel, over one elemental emitter."""
