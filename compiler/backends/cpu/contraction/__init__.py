"""Matrix products and convolutions of the CPU backend: packing, register tiles, epilogues in place."""

from compiler.backends.cpu.contraction.epilogue import EpilogueEmitter, TileVector
from compiler.backends.cpu.contraction.gemm import emit_gemm
from compiler.backends.cpu.contraction.spec import GemmSpec, MatrixView

__all__ = ["EpilogueEmitter", "GemmSpec", "MatrixView", "TileVector", "emit_gemm"]
