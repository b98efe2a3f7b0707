"""All operations in one table, and what the program representation wants to know of them.

`OPERATIONS` maps opcodes to records; `SEMANTICS` answers the editor and the verifier from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from types import MappingProxyType

from compiler.ir.literal import Literal
from compiler.ir.program import Attributes, Computation
from compiler.ir.semantics import NO_CONSTANTS, OperationError
from compiler.ir.types import TensorType, Type
from compiler.ops.constraints import compatible
from compiler.ops.record import VARIADIC, Operation, Site, Trait
from compiler.ops.type_rules import check_types

FAMILIES = (
    "structure",
    "elementwise_unary",
    "elementwise_binary",
    "elementwise_other",
    "conversion",
    "shape",
    "slicing",
    "dynamic_shape",
    "chlo_elementwise",
    "chlo_broadcast",
    "chlo_structured",
    "chlo_ragged_dot",
    "checks",
    "contraction",
    "convolution",
    "reduction",
    "window",
    "gathering",
    "scattering",
    "sorting",
    "linalg",
    "fft",
    "normalization",
    "random",
    "control",
    "collective_reductions",
    "collectives",
    "host_transfer",
    "hlo_only",
    "custom_call",
    "sharding",
)
"""The modules of `compiler.ops` that export `OPERATIONS`."""


def _collect(families: Sequence[str]) -> Mapping[str, Operation]:
    table: dict[str, Operation] = {}
    for family in families:
        module = import_module(f"compiler.ops.{family}")
        for entry in module.OPERATIONS:
            if entry.opcode in table:
                raise ValueError(f"{entry.opcode} is defined twice, the second time by {family}")
            table[entry.opcode] = entry
    return MappingProxyType(table)


OPERATIONS: Mapping[str, Operation] = _collect(FAMILIES)


def operation(opcode: str) -> Operation:
    """The record of an opcode. Raises OperationError for an unknown one."""
    found = OPERATIONS.get(opcode)
    if found is None:
        raise OperationError(f"unknown operation '{opcode}'")
    return found


def is_elementwise(opcode: str, operands: Sequence[Type], result: Type) -> bool:
    """True when each result element depends on the same-indexed operand elements alone.

    Rank-0 operands among others (`select`'s predicate, `clamp`'s limits) do not count as same-indexed; a
    `bitcast_convert` between widths is not elementwise.
    """
    found = OPERATIONS.get(opcode)
    if found is None or Trait.ELEMENTWISE not in found.traits or not isinstance(result, TensorType):
        return False
    return all(isinstance(entry, TensorType) and entry.shape == result.shape for entry in operands)


def flops(site: Site) -> float:
    """Arithmetic operations of one execution: the record's own count, or one an element of elementwise results."""
    record = operation(site.opcode)
    if record.flops is not None:
        return record.flops(site)
    if Trait.ELEMENTWISE in record.traits and isinstance(site.result, TensorType) and site.result.is_static:
        return float(site.result.size)
    return 0.0


class OperationSemantics:
    """Implements `compiler.ir.semantics.Semantics` from the table."""

    def infer(
        self,
        opcode: str,
        operands: Sequence[Type],
        attributes: Attributes,
        called: Sequence[Computation],
    ) -> Type:
        """The result type. Raises OperationError when the operation cannot be applied so."""
        if called or opcode == "constant":
            # (A constant's attributes hash by its bits, which costs more than the check.)
            return _checked(Site(opcode, operands, attributes, called))
        return _inferred(opcode, tuple(operands), attributes)

    def verify(
        self,
        opcode: str,
        operands: Sequence[Type],
        attributes: Attributes,
        called: Sequence[Computation],
        result: Type,
        constants: Mapping[int, Literal] = NO_CONSTANTS,
    ) -> None:
        """Checks every constraint of the operation. Raises OperationError naming the first that fails."""
        if called or constants or opcode == "constant":
            _verify(Site(opcode, operands, attributes, called, result, constants))
        else:
            _verified(opcode, tuple(operands), attributes, result)

    def size_operands(self, opcode: str) -> tuple[int, ...]:
        """Operands that hold sizes: constraints look at their values where these are known."""
        record = OPERATIONS.get(opcode)
        return () if record is None else record.size_operands

    def has_side_effect(self, opcode: str, attributes: Attributes) -> bool:
        """True when an unused instruction of this kind must stay."""
        record = OPERATIONS.get(opcode)
        if record is None:
            return True
        if opcode == "custom_call":
            return bool(attributes.get("has_side_effect"))
        return Trait.SIDE_EFFECT in record.traits

    def called_computations_matter(self, opcode: str) -> bool:
        """True when side effects inside called computations make the instruction itself effectful."""
        record = OPERATIONS.get(opcode)
        return record is not None and bool(record.regions)


def _checked(site: Site) -> Type:
    record = operation(site.opcode)
    count = len(site.operands)
    if record.arity not in (VARIADIC, count):
        raise OperationError(f"{site.opcode} takes {record.arity} operands, not {count}")
    for entry in record.attributes:
        value = site.attributes.get(entry.name)
        if value is None and entry.required:
            raise OperationError(f"{site.opcode} needs the attribute {entry.name}")
        if value is not None and entry.values and value not in entry.values:
            raise OperationError(f"{entry.name} must be one of {', '.join(entry.values)}, not {value}")
    _check_regions(record, len(site.called))
    return record.infer(site)


def _check_regions(record: Operation, count: int) -> None:
    wanted = len(record.regions)
    if wanted and record.regions[-1].endswith("*"):
        if count < wanted - 1:
            raise OperationError(
                f"{record.opcode} needs at least {wanted - 1} called computations, not {count}"
            )
    elif count != wanted:
        raise OperationError(f"{record.opcode} calls {wanted} computations, not {count}")


def _verify(site: Site) -> None:
    inferred = _checked(site)
    if inferred is not site.result:
        assert site.result is not None
        if not compatible(inferred, site.result):
            raise OperationError(
                f"inferred result type {inferred} does not match the declared type {site.result}"
            )
    check_types(site)
    record = operation(site.opcode)
    if record.verify is not None:
        record.verify(site)


@lru_cache(maxsize=1 << 14)
def _inferred(opcode: str, operands: tuple[Type, ...], attributes: Attributes) -> Type:
    return _checked(Site(opcode, operands, attributes))


@lru_cache(maxsize=1 << 14)
def _verified(opcode: str, operands: tuple[Type, ...], attributes: Attributes, result: Type) -> None:
    _verify(Site(opcode, operands, attributes, (), result))


SEMANTICS = OperationSemantics()
