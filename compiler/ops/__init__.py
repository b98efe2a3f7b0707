"""Operations: one record each, in one table. See `compiler.ops.record` and `compiler.ops.table`."""

from compiler.ops.table import OPERATIONS, SEMANTICS, flops, is_elementwise, operation

__all__ = ["OPERATIONS", "SEMANTICS", "flops", "is_elementwise", "operation"]
