"""The record that describes one operation, and what its rules are given.

An operation is ONE record: signature, attributes, called computations, shape inference, verification, NumPy
evaluation, cost and, for elementwise ones, scalar emission. Families of records live in the sibling modules, each
exporting `OPERATIONS`; `compiler.ops` puts them into one table. Everything else asks the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import numpy as np

from compiler.ir.literal import Literal
from compiler.ir.program import Attributes, Computation
from compiler.ir.semantics import OperationError
from compiler.ir.types import TensorType, Type
from compiler.ops.scalar import ScalarRule

Array = np.ndarray[Any, np.dtype[Any]]


class Token:
    """The value of a token at run time; carries only order."""


Value = Array | tuple[Any, ...] | Token
"""What evaluation passes around: an array, a tuple of values, or a token."""


class Trait(Enum):
    """Facts that passes ask for."""

    ELEMENTWISE = "elementwise"
    """One result element depends on the same-indexed elements of the operands alone."""
    COMMUTATIVE = "commutative"
    ASSOCIATIVE = "associative"
    """For integers and booleans; floating-point sums are only ever reordered inside a reduction."""
    INVOLUTION = "involution"
    IDEMPOTENT = "idempotent"
    SIDE_EFFECT = "side effect"
    CONTROL = "control flow"
    """`called` computations run as they stand (while, case, if, call), as opposed to being applied per element."""
    COLLECTIVE = "collective"
    DATA_MOVEMENT = "data movement"
    """Result elements are copies of operand elements (reshape, transpose, slice, pad, concatenate, …)."""
    DYNAMIC_SHAPE = "dynamic shape"
    """Must be gone after shape refinement."""
    HLO_ONLY = "HLO only"
    """Not a StableHLO operation: fusion, copy, bitcast, …"""
    CHLO = "CHLO"
    """Lowered to StableHLO by the pipeline."""
    NON_DETERMINISTIC = "non-deterministic"
    """`rng`: never merged, folded or duplicated."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: its name as in the specification, how its value is held, and whether it may be absent."""

    name: str
    kind: str
    """`i64`, `i64s` (tuple of int), `bools`, `f64`, `str`, `enum`, `literal`, `element`, `pairs`, `record`, `any`."""
    default: Any = None
    required: bool = False
    values: tuple[str, ...] = ()
    """The members of an `enum`."""


@dataclass(frozen=True, slots=True)
class Site:
    """One use of an operation as inference, verification and cost see it. `result` is None while it is inferred."""

    opcode: str
    operands: Sequence[Type]
    attributes: Attributes
    called: Sequence[Computation] = ()
    result: Type | None = None
    constants: Mapping[int, Literal] | None = None
    """Values of operands that hold sizes, by the operand's number, where these are constants."""

    def sizes(self, index: int) -> tuple[int, ...] | None:
        """The integers of an operand that holds sizes; None when they are not known."""
        found = self.constants.get(index) if self.constants else None
        return None if found is None else tuple(int(value) for value in found.array.reshape(-1))

    def tensor(self, index: int) -> TensorType:
        """The type of an operand that must be a tensor. Raises OperationError otherwise."""
        found = self.operands[index]
        if not isinstance(found, TensorType):
            raise OperationError(f"operand #{index} must be a tensor, but has type {found}")
        return found

    @property
    def tensors(self) -> tuple[TensorType, ...]:
        """All operand types, which must be tensors."""
        return tuple(self.tensor(index) for index in range(len(self.operands)))


class Evaluation(Protocol):
    """One use of an operation as evaluation sees it; made by the reference interpreter."""

    @property
    def opcode(self) -> str:
        """The operation."""
        ...

    @property
    def attributes(self) -> Attributes:
        """The instruction's attributes."""
        ...

    @property
    def result(self) -> Type:
        """The instruction's result type, static."""
        ...

    @property
    def operand_types(self) -> tuple[Type, ...]:
        """Types of the operands."""
        ...

    @property
    def called(self) -> tuple[Computation, ...]:
        """The called computations."""
        ...

    def call(self, index: int, *arguments: Value) -> Value:
        """Runs the index-th called computation on values."""
        ...

    def call_elementwise(self, index: int, *arguments: Array) -> Value | None:
        """Runs a scalar computation on whole arrays at once.

        Every parameter is given an array of one common shape; the result has that shape. None when the computation
        holds something that cannot be widened so (then `call` it element by element).
        """
        ...

    @property
    def devices(self) -> Devices:
        """The virtual devices, for collectives and ids."""
        ...

    def custom_call(self, target: str) -> Callable[..., Value] | None:
        """The Python function registered for a custom call's target, if any: (evaluation, *operands) -> value."""
        ...


class Devices(Protocol):
    """The grid of processes that a module is evaluated on: replicas × partitions."""

    @property
    def num_replicas(self) -> int:
        """Replicas of the grid."""
        ...

    @property
    def num_partitions(self) -> int:
        """Partitions of the grid."""
        ...

    @property
    def replica_id(self) -> int:
        """Of this process."""
        ...

    @property
    def partition_id(self) -> int:
        """Of this process."""
        ...

    def exchange(self, key: object, value: Value) -> dict[tuple[int, int], Value]:
        """Meets every process at one point: gives a value, gets everyone's by (replica, partition)."""
        ...


@dataclass(frozen=True, slots=True)
class Cost:
    """Work of one execution: arithmetic and transcendental operations, and bytes moved if it stood alone."""

    flops: float = 0.0
    transcendentals: float = 0.0
    bytes_read: float = 0.0
    bytes_written: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.bytes_read + other.bytes_read,
            self.bytes_written + other.bytes_written,
        )


VARIADIC = -1

Infer = Callable[[Site], Type]
Verify = Callable[[Site], None]
Evaluate = Callable[..., Value]
"""(evaluation, *operand values) -> value."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Everything there is to know about an operation; see the module's docstring.

    `infer` raises OperationError for operands it cannot take. `verify` (run after inference, with `result` set)
    raises OperationError naming the broken constraint by its number and meaning (`(C2) …`). `evaluate` follows the
    specification's semantics to the letter. `flops` counts arithmetic of one execution (default: one an element for
    elementwise operations, else 0).
    """

    opcode: str
    infer: Infer
    evaluate: Evaluate
    arity: int = VARIADIC
    attributes: tuple[Attribute, ...] = ()
    regions: tuple[str, ...] = ()
    """HLO's roles of the called computations, in `called` order; a trailing `*` repeats the last any number of times."""
    verify: Verify | None = None
    traits: frozenset[Trait] = frozenset()
    scalar: ScalarRule | None = None
    flops: Callable[[Site], float] | None = None
    transcendental: bool = False
    hlo: str = ""
    """XLA's opcode when it differs (`broadcast` for `broadcast_in_dim`)."""
    spec: str = ""
    """Where the operation is specified."""
    size_operands: tuple[int, ...] = ()
    """Operands that hold sizes: `verify` looks at their values where these are constants."""
    decompose: Any = None
    """For CHLO: `(Builder, *operand names) -> name`, see `compiler.ops.chlo`."""

    def attribute(self, name: str) -> Attribute | None:
        """The declaration of an attribute, if the operation has it."""
        return next((entry for entry in self.attributes if entry.name == name), None)
