"""What the program representation needs to know about operations, as a protocol.

`compiler.ops` implements it from its operation records; `ir` itself knows no operation. This is what lets the
editor infer types and the verifier check them without an import from below to above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from compiler.ir.literal import Literal
from compiler.ir.program import Attributes, Computation
from compiler.ir.types import Type

NO_CONSTANTS: Mapping[int, Literal] = MappingProxyType({})


class OperationError(Exception):
    """An instruction breaks a rule of its operation; the message says which constraint, in words."""


class Semantics(Protocol):
    """Knowledge of all operations."""

    def infer(
        self,
        opcode: str,
        operands: Sequence[Type],
        attributes: Attributes,
        called: Sequence[Computation],
    ) -> Type:
        """The result type. Raises OperationError when the operation cannot be applied so."""
        ...

    def verify(
        self,
        opcode: str,
        operands: Sequence[Type],
        attributes: Attributes,
        called: Sequence[Computation],
        result: Type,
        constants: Mapping[int, Literal] = NO_CONSTANTS,
    ) -> None:
        """Checks every constraint of the operation. Raises OperationError naming the first that fails.

        `constants` holds the values of those operands, by number, that are constants and that `size_operands` names.
        """
        ...

    def size_operands(self, opcode: str) -> tuple[int, ...]:
        """Operands that hold sizes: constraints look at their values where these are known."""
        ...

    def has_side_effect(self, opcode: str, attributes: Attributes) -> bool:
        """True when an unused instruction of this kind must stay."""
        ...

    def called_computations_matter(self, opcode: str) -> bool:
        """True when side effects inside called computations make the instruction itself effectful."""
        ...


Computations = Mapping[str, Computation]
