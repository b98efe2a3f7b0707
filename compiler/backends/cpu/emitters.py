"""Which operations have kernels of their own."""

from __future__ import annotations

from collections.abc import Mapping

from compiler.backends.cpu.emit.contraction_kernel import dot_use
from compiler.backends.cpu.emit.convolution_kernel import convolution_use
from compiler.backends.cpu.emit.linalg_kernel import cholesky_use, triangular_solve_use
from compiler.backends.cpu.emit.random_kernel import generator_use
from compiler.backends.cpu.emit.scatter_kernel import scatter_use
from compiler.backends.cpu.emit.select_scatter_kernel import select_and_scatter_use
from compiler.backends.cpu.emit.sort_kernel import sort_use, top_k_use
from compiler.backends.cpu.emit.window_kernel import window_use
from compiler.backends.cpu.lowering import Emitter

EMITTERS: Mapping[str, Emitter] = {
    "chlo.top_k": top_k_use,
    "cholesky": cholesky_use,
    "convolution": convolution_use,
    "dot": dot_use,
    "dot_general": dot_use,
    "reduce_window": window_use,
    "rng_bit_generator": generator_use,
    "scatter": scatter_use,
    "select_and_scatter": select_and_scatter_use,
    "sort": sort_use,
    "triangular_solve": triangular_solve_use,
}
