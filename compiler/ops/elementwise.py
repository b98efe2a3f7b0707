"""What all elementwise operations share: inference, evaluation by kind of element, verification of element kinds.

A family module states for each operation what it computes on arrays of each kind of element; this module widens the
operands, calls that, rounds or wraps the result once, and routes quantised operands through their real values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from compiler.ir.semantics import OperationError
from compiler.ir.types import ElementType, QuantizedType, TensorType, Type
from compiler.ops.constraints import merged_shape, same_baseline
from compiler.ops.element_arrays import narrow, widen, widen_twice
from compiler.ops.quantization import dequantize, quantize
from compiler.ops.record import Array, Attribute, Evaluate, Evaluation, Infer, Operation, Site, Trait, Verify
from compiler.ops.scalar import ScalarBuilder, ScalarRule, ScalarSite, ScalarValue

Compute = Callable[..., Any]
"""Arrays of one kind of element (already widened) to the array of results, by NumPy's broadcasting."""

BOOL, INT, UINT, FLOAT, COMPLEX = "bool", "int", "uint", "float", "complex"
INTEGERS = (INT, UINT)
LOGICAL = (BOOL, INT, UINT)
FLOATING = (FLOAT, COMPLEX)
SIGNED = (INT, FLOAT, COMPLEX)
NUMBERS = (INT, UINT, FLOAT, COMPLEX)
EVERY = (BOOL, INT, UINT, FLOAT, COMPLEX)


def infer_same(site: Site) -> Type:
    """The operands' common type: the first operand's, with sizes that only another one knows filled in."""
    first = site.tensor(0)
    for other in site.operands[1:]:
        if other is not first and other != first:
            return _merge(site, first)
    return first


def _merge(site: Site, first: TensorType) -> TensorType:
    tensors = site.tensors
    for index, other in enumerate(tensors):
        if not same_baseline(other.element, first.element):
            raise OperationError(
                f"(C1) operands must have one type, but operand #{index} is {other} beside {first}"
            )
    shape = merged_shape(tensors)
    if shape is None:
        listed = ", ".join(map(str, tensors))
        raise OperationError(f"(C1) operands must have one shape, but have types {listed}")
    return first if shape == first.shape else TensorType(first.element, shape, first.layout, first.bounds)


def infer_with_element(choose: Callable[[ElementType], ElementType]) -> Infer:
    """Inference for operations whose result has the operands' shape and other elements."""

    def infer(site: Site) -> Type:
        operand = infer_same(site)
        assert isinstance(operand, TensorType)
        if isinstance(operand.element, QuantizedType):
            return operand
        return operand.with_element(choose(operand.element))

    return infer


def evaluator(compute: Mapping[str, Compute], *, wide: bool) -> Evaluate:
    """Evaluation: picks the rule for the first operand's kind of element, widens, computes, and rounds once.

    `wide` evaluates floating point with spare precision (for transcendental functions).
    """
    spread = widen_twice if wide else widen

    def evaluate(evaluation: Evaluation, *operands: Array) -> Array:
        types = [entry.element for entry in evaluation.operand_types if isinstance(entry, TensorType)]
        result = evaluation.result
        assert isinstance(result, TensorType)
        target = result.element
        with np.errstate(all="ignore"):
            plain_types, arrays = unquantized(types, operands)
            rule = compute[plain_types[0].kind]
            widened = [spread(array, kind) for array, kind in zip(arrays, plain_types, strict=True)]
            found = rule(*widened)
            if isinstance(target, QuantizedType):
                return quantize(narrow(found, target.expressed), target)
            return narrow(found, target)

    return evaluate


def unquantized(
    elements: Sequence[ElementType | QuantizedType], arrays: Sequence[Array]
) -> tuple[list[ElementType], list[Array]]:
    """Operands with the quantised ones replaced by the real values that they stand for."""
    plain_types: list[ElementType] = []
    values: list[Array] = []
    for kind, array in zip(elements, arrays, strict=True):
        if isinstance(kind, QuantizedType):
            plain_types.append(kind.expressed)
            values.append(dequantize(array, kind))
        else:
            plain_types.append(kind)
            values.append(array)
    return plain_types, values


def accepts(kinds: Sequence[str], extra: Verify | None = None) -> Verify:
    """Verification that every operand's elements are of the kinds the operation is defined for."""
    allowed = frozenset(kinds) | ({"quantized"} if FLOAT in kinds else set())

    def verify(site: Site) -> None:
        for index, operand in enumerate(site.operands):
            if isinstance(operand, TensorType) and operand.element.kind not in allowed:
                names = ", ".join(kinds)
                raise OperationError(f"operand #{index} must have elements of kind {names}, but is {operand}")
        if extra is not None:
            extra(site)

    return verify


def by_kind(**rules: ScalarRule) -> ScalarRule:
    """A scalar rule that depends on the first operand's kind: `integer` (both), `bool`, `int`, `uint`, `float`, `complex`."""

    def rule(b: ScalarBuilder, site: ScalarSite, x: Sequence[ScalarValue]) -> ScalarValue:
        kind = site.operands[0].kind
        chosen = rules.get(kind)
        if chosen is None and kind in INTEGERS:
            chosen = rules.get("integer")
        if chosen is None:
            raise OperationError(f"no scalar rule for {site.operands[0].name}")
        return chosen(b, site, x)

    return rule


def float_rule(op: str) -> ScalarRule:
    """The rule that is one `float_op`."""
    return lambda b, site, x: b.float_op(site.operands[0], op, *x)


def int_rule(op: str) -> ScalarRule:
    """The rule that is one `int_op`."""
    return lambda b, site, x: b.int_op(site.operands[0], op, *x)


def math_rule(op: str) -> ScalarRule:
    """The rule that is one `math` function."""
    return lambda b, site, x: b.math(site.operands[0], op, *x)


def elementwise(
    opcode: str,
    compute: Mapping[str, Compute],
    *,
    arity: int,
    scalar: ScalarRule | None,
    transcendental: bool = False,
    wide: bool | None = None,
    traits: Sequence[Trait] = (),
    infer: Infer = infer_same,
    verify: Verify | None = None,
    attributes: tuple[Attribute, ...] = (),
    evaluate: Evaluate | None = None,
    hlo: str = "",
    spec: str = "",
    decompose: Any = None,
) -> Operation:
    """The record of an elementwise operation. `compute` maps each kind of element it takes to what it computes.

    `wide` asks for evaluation with spare precision (by default for transcendental operations).
    """
    is_chlo = opcode.startswith("chlo.")
    default_spec = f"{'CHLO' if is_chlo else 'StableHLO'}, {opcode.removeprefix('chlo.')}"
    return Operation(
        opcode,
        infer,
        evaluate or evaluator(compute, wide=transcendental if wide is None else wide),
        arity=arity,
        attributes=attributes,
        verify=accepts(tuple(compute), verify),
        traits=frozenset((Trait.ELEMENTWISE, *traits, *((Trait.CHLO,) if is_chlo else ()))),
        scalar=scalar,
        transcendental=transcendental,
        hlo=hlo,
        spec=spec or default_spec,
        decompose=decompose,
    )


def elements_of(types: Sequence[Type]) -> list[ElementType]:
    """The plain element types of tensor types."""
    return [
        entry.element
        for entry in types
        if isinstance(entry, TensorType) and isinstance(entry.element, ElementType)
    ]
