"""In-place kernels: the rule stands in `compiler.analysis.aliasing`, where the memory passes ask it too."""

from compiler.analysis.aliasing import may_share

__all__ = ["may_share"]
