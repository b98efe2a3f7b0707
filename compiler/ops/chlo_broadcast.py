"""CHLO's operations with implicit broadcasting: `broadcast_add` and the like, `broadcast_compare`, `broadcast_select`.

The operand of lower rank is placed along `broadcast_dimensions` of the other (its trailing dimensions when absent), and
dimensions of size 1 are repeated. Each decomposes into `broadcast_in_dim` and the plain operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler.ir.program import Attributes
from compiler.ir.semantics import OperationError
from compiler.ir.types import DYNAMIC, I1, ElementType, TensorType, Type
from compiler.ops import chlo_elementwise, elementwise_binary, elementwise_other
from compiler.ops.constraints import require, require_in_range, same_baseline
from compiler.ops.decompose import Builder
from compiler.ops.record import Array, Attribute, Evaluation, Operation, Site, Trait, Value
from compiler.ops.shape import broadcast

_DIMENSIONS = Attribute("broadcast_dimensions", "i64s")


def _dimensions(attributes: Attributes, ranks: Sequence[int]) -> list[tuple[int, ...]]:
    """For each operand, the result dimensions that its own stand for."""
    rank = max(ranks, default=0)
    given = attributes.get("broadcast_dimensions")
    placed = []
    for own in ranks:
        trailing = tuple(range(rank - own, rank))
        placed.append(tuple(given) if given is not None and own < rank and len(given) == own else trailing)
    return placed


def _common(sizes: Sequence[int]) -> int | None:
    """The size that dimensions of these sizes are broadcast to, or None when they cannot be."""
    wide = {size for size in sizes if size != 1}
    known = wide - {DYNAMIC}
    if len(known) > 1:
        return None
    return next(iter(known)) if known else (DYNAMIC if wide else 1)


def broadcast_shape(attributes: Attributes, types: Sequence[TensorType]) -> tuple[int, ...]:
    """The shape that operands of these types are broadcast to. Raises OperationError when they do not fit."""
    placed = _dimensions(attributes, [entry.rank for entry in types])
    rank = max((entry.rank for entry in types), default=0)
    given = attributes.get("broadcast_dimensions")
    if given is not None:
        lowest = min(entry.rank for entry in types)
        require(
            len(given) == lowest or lowest == rank,
            f"broadcast_dimensions must have an entry for each of {lowest} dimensions, but is {list(given)}",
        )
        require_in_range(given, rank, "broadcast_dimensions must be dimensions of the result")
        require(
            list(given) == sorted(set(given)), f"broadcast_dimensions must be in order, but is {list(given)}"
        )
    shape = []
    for dimension in range(rank):
        sizes = [
            entry.shape[own.index(dimension)]
            for entry, own in zip(types, placed, strict=True)
            if dimension in own
        ]
        size = _common(sizes)
        if size is None:
            listed = ", ".join(map(str, types))
            raise OperationError(f"dimension {dimension} cannot be broadcast: operands are {listed}")
        shape.append(size)
    return tuple(shape)


def _place(evaluation: Evaluation, operands: Sequence[Array]) -> list[Array]:
    placed = _dimensions(evaluation.attributes, [x.ndim for x in operands])
    types = [
        TensorType(entry.element, x.shape)
        for entry, x in zip(evaluation.operand_types, operands, strict=True)
        if isinstance(entry, TensorType)
    ]
    shape = broadcast_shape(evaluation.attributes, types)
    return [broadcast(x, own, shape) for x, own in zip(operands, placed, strict=True)]


def _record(plain: Operation, opcode: str) -> Operation:
    def infer(site: Site) -> Type:
        shape = broadcast_shape(site.attributes, site.tensors)
        spread = [entry.with_shape(shape) for entry in site.tensors]
        return plain.infer(Site(plain.opcode, spread, site.attributes))

    def verify(site: Site) -> None:
        shape = broadcast_shape(site.attributes, site.tensors)
        spread = [entry.with_shape(shape) for entry in site.tensors]
        if plain.verify is not None:
            plain.verify(Site(plain.opcode, spread, site.attributes, (), site.result))

    def evaluate(evaluation: Evaluation, *operands: Array) -> Value:
        return plain.evaluate(evaluation, *_place(evaluation, operands))

    def decompose(builder: Builder, *operands: str) -> str:
        return _decompose(builder, plain.opcode, operands)

    return Operation(
        opcode,
        infer,
        evaluate,
        arity=plain.arity,
        attributes=(*plain.attributes, _DIMENSIONS),
        verify=verify,
        traits=frozenset((Trait.CHLO,)),
        transcendental=plain.transcendental,
        spec=f"CHLO, {opcode.removeprefix('chlo.')}",
        decompose=decompose,
    )


def _decompose(builder: Builder, opcode: str, operands: Sequence[str]) -> str:
    types = [builder.type_of(name) for name in operands]
    tensors = [entry for entry in types if isinstance(entry, TensorType)]
    shape = broadcast_shape(builder.attributes, tensors)
    placed = _dimensions(builder.attributes, [entry.rank for entry in tensors])
    spread = []
    for name, kind, own in zip(operands, tensors, placed, strict=True):
        if kind.shape != shape:
            attributes = Attributes(broadcast_dimensions=own)
            name = builder.add(
                "broadcast_in_dim", (name,), type=kind.with_shape(shape), attributes=attributes
            )
        spread.append(name)
    kept = {k: v for k, v in builder.attributes.items() if k != "broadcast_dimensions"}
    return builder.add(opcode, spread, type=builder.result, attributes=Attributes(kept))


def _infer_select(site: Site) -> Type:
    predicate, first, second = site.tensors
    require(predicate.element is I1, f"pred must have i1 elements, but is {predicate}")
    require(
        same_baseline(first.element, second.element),
        f"branches must have one type, but are {first}, {second}",
    )
    return first.with_shape(broadcast_shape(site.attributes, site.tensors))


def _select(evaluation: Evaluation, *operands: Array) -> Array:
    predicate, first, second = _place(evaluation, operands)
    return np.asarray(np.where(predicate, first, second))


def _infer_like(site: Site) -> Type:
    operand = site.tensor(0)
    value = site.attributes["value"]
    element = getattr(getattr(value, "type", None), "element", operand.element)
    require(element == operand.element, f"value must have the operand's elements, but is {value!r}")
    return operand


def _fill(value: Any, kind: TensorType) -> Array:
    assert isinstance(kind.element, ElementType)
    number = value.array.reshape(-1)[0] if hasattr(value, "array") else value
    return np.asarray(number).astype(kind.element.dtype)


def _constant_like(evaluation: Evaluation, x: Array) -> Array:
    kind = evaluation.operand_types[0]
    assert isinstance(kind, TensorType)
    return np.broadcast_to(_fill(evaluation.attributes["value"], kind), x.shape)


def _decompose_like(builder: Builder, operand: str) -> str:
    from compiler.ir.literal import Literal

    kind = builder.result
    assert isinstance(kind, TensorType)
    literal = Literal(kind.with_layout(None), _fill(builder.attributes["value"], kind))
    return builder.add("constant", type=kind, attributes=Attributes(value=literal))


_PLAIN = {entry.opcode: entry for entry in (*elementwise_binary.OPERATIONS, *elementwise_other.OPERATIONS)}
_PLAIN |= {entry.opcode: entry for entry in chlo_elementwise.OPERATIONS}
_BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "remainder",
    "power",
    "atan2",
    "maximum",
    "minimum",
    "and",
    "or",
    "xor",
    "shift_left",
    "shift_right_logical",
    "shift_right_arithmetic",
    "complex",
    "compare",
]

OPERATIONS: tuple[Operation, ...] = (
    *(_record(_PLAIN[name], f"chlo.broadcast_{name}") for name in _BINARY),
    *(
        _record(_PLAIN[f"chlo.{name}"], f"chlo.broadcast_{name}")
        for name in ("next_after", "polygamma", "zeta")
    ),
    Operation(
        "chlo.broadcast_select",
        _infer_select,
        _select,
        arity=3,
        traits=frozenset((Trait.CHLO,)),
        spec="CHLO, broadcast_select",
        decompose=lambda builder, *operands: _decompose(builder, "select", operands),
    ),
    Operation(
        "chlo.constant_like",
        _infer_like,
        _constant_like,
        arity=1,
        attributes=(Attribute("value", "any", required=True),),
        traits=frozenset((Trait.CHLO,)),
        spec="CHLO, constant_like",
        decompose=_decompose_like,
    ),
)
