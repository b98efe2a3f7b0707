"""How far apart two integer values are that are known only at run time, when the program's own formulas tell.

`real_dynamic_slice` takes starts and limits; frameworks write a slice of known size from a start that is not known as
`limit = start + size`. Used by shape refinement, which can then make it a `dynamic_slice`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compiler.analysis.known_values import Array, Fact
from compiler.ir.program import Computation, Instruction
from compiler.ir.types import TensorType
from compiler.ops import OPERATIONS
from compiler.ops.record import Trait

_DEPTH = 64
"""Formulas nested deeper than this are not compared."""
_MOVES = frozenset({"reshape", "convert", "broadcast_in_dim"})
_NEVER_EQUAL = frozenset({Trait.SIDE_EFFECT, Trait.NON_DETERMINISTIC, Trait.COLLECTIVE})


class Distances:
    """Differences between values of one computation; `facts` are what is known of them."""

    def __init__(self, computation: Computation, facts: Mapping[str, Fact]) -> None:
        self._computation = computation
        self._facts = facts
        self._equal: dict[tuple[str, str], bool] = {}

    def between(self, low: str, high: str, depth: int = _DEPTH) -> Array | None:
        """`high - low`, element by element; None when the formulas do not tell."""
        first, second = self._known(low), self._known(high)
        if first is not None and second is not None:
            return second.astype(np.int64) - first.astype(np.int64)
        if self.are_equal(low, high, depth):
            return np.zeros(self._shape(high), np.int64)
        if depth == 0:
            return None
        upper, lower = self._computation[high], self._computation[low]
        if upper.opcode == "add":
            for base, step in (upper.operands, upper.operands[::-1]):
                amount = self._known(step)
                found = None if amount is None else self.between(low, base, depth - 1)
                if found is not None and amount is not None:
                    return found + amount.astype(np.int64)
        return self._through(lower, upper, depth)

    def _through(self, lower: Instruction, upper: Instruction, depth: int) -> Array | None:
        """The difference of two values that move other values' elements alike."""
        if lower.opcode != upper.opcode or lower.attributes != upper.attributes:
            return None
        if (
            lower.opcode == "concatenate"
            and len(lower.operands) == len(upper.operands)
            and lower.tensor.rank == 1
        ):
            parts = [
                self.between(a, b, depth - 1) for a, b in zip(lower.operands, upper.operands, strict=True)
            ]
            found = [part for part in parts if part is not None]
            return np.concatenate(found) if len(found) == len(parts) else None
        if lower.opcode in _MOVES and self._computation[upper.operands[0]].tensor.element.is_integer:
            moved = self.between(lower.operands[0], upper.operands[0], depth - 1)
            return moved.reshape(self._shape(upper.name)) if moved is not None and moved.size == 1 else None
        return None

    def are_equal(self, left: str, right: str, depth: int = _DEPTH) -> bool:
        """True when both are the same formula of the same values."""
        if left == right:
            return True
        if depth == 0:
            return False
        key = (left, right)
        if key not in self._equal:
            self._equal[key] = self._compare(self._computation[left], self._computation[right], depth)
        return self._equal[key]

    def _compare(self, left: Instruction, right: Instruction, depth: int) -> bool:
        record = OPERATIONS[left.opcode]
        if left.opcode != right.opcode or left.called or record.traits & _NEVER_EQUAL:
            return False
        if left.opcode == "custom_call" or left.type != right.type or left.attributes != right.attributes:
            return False
        if len(left.operands) != len(right.operands):
            return False
        pairs = zip(left.operands, right.operands, strict=True)
        return all(self.are_equal(a, b, depth - 1) for a, b in pairs)

    def _shape(self, name: str) -> tuple[int, ...]:
        kind = self._facts[name].type
        assert isinstance(kind, TensorType)
        return kind.shape

    def _known(self, name: str) -> Array | None:
        value = self._facts[name].value
        return value if isinstance(value, np.ndarray) else None
