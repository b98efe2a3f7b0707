"""Which operations have kernels of their own."""

from __future__ import annotations

from collections.abc import Mapping

from compiler.backends.cpu.emit.contraction_kernel import dot_use
from compiler.backends.cpu.emit.convolution_kernel import convolution_use
from compiler.backends.cpu.lowering import Emitter

EMITTERS: Mapping[str, Emitter] = {
    "dot_general": dot_use,
    "convolution": convolution_use,
}
