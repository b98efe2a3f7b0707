"""Operations that HLO text has and StableHLO has not, or has in another shape; named `hlo.` and XLA's opcode.

Copies and collectives in two steps (the work is done where they start), transfers in HLO's own form, and small things. They come
from HLO text alone; the interpreter evaluates them, no pass makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from compiler.ir.program import Attributes, Computation
from compiler.ir.semantics import OperationError
from compiler.ir.types import TensorType, TokenType, TupleType, Type
from compiler.ops import collective_reductions, collectives
from compiler.ops.applied import grouped
from compiler.ops.collective_reductions import COLLECTIVE_TRAITS, GROUPS, meet, place_in, results_of, zeros_of
from compiler.ops.constraints import compatible, require
from compiler.ops.host_transfer import Channels
from compiler.ops.process_groups import channel_id, exchange_groups
from compiler.ops.record import (
    VARIADIC,
    Array,
    Attribute,
    Devices,
    Evaluation,
    Operation,
    Site,
    Token,
    Trait,
    Value,
)

_HLO_ONLY = frozenset((Trait.HLO_ONLY,))
_EFFECT = frozenset((Trait.HLO_ONLY, Trait.SIDE_EFFECT))


def _declared(site: Site) -> Type:
    if site.result is None:
        raise OperationError(f"the result type of {site.opcode} must be given")
    return site.result


def _same(site: Site) -> Type:
    require(len(site.operands) > 0, "needs an operand")
    return site.operands[0]


def _first(evaluation: Evaluation, x: Value, *others: Value) -> Value:
    return x


# ---- work in two steps -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Within:
    """One use of an operation inside another, whose result is a part of the other's."""

    opcode: str
    attributes: Attributes
    result: Type
    operand_types: tuple[Type, ...]
    called: tuple[Computation, ...]
    outer: Evaluation

    @property
    def devices(self) -> Devices:
        return self.outer.devices

    def call(self, index: int, *arguments: Value) -> Value:
        return self.outer.call(index, *arguments)

    def call_elementwise(self, index: int, *arguments: Array) -> Value | None:
        return self.outer.call_elementwise(index, *arguments)

    def custom_call(self, target: str) -> Any:
        return self.outer.custom_call(target)


def _inner(evaluation: Evaluation, record: Operation, result: Type, operands: Sequence[Value]) -> Value:
    within = _Within(
        record.opcode,
        evaluation.attributes,
        result,
        evaluation.operand_types,
        evaluation.called,
        evaluation,
    )
    return record.evaluate(within, *operands)


def _blank(kind: Type) -> Value:
    """What a context holds that the runtime keeps of work under way: nothing anybody reads."""
    if isinstance(kind, TupleType):
        return tuple(_blank(entry) for entry in kind.elements)
    if isinstance(kind, TokenType):
        return Token()
    return np.zeros(kind.shape, kind.element.dtype)


def _parts(kind: Type, count: int) -> tuple[Type, ...]:
    if not isinstance(kind, TupleType) or len(kind.elements) < count:
        raise OperationError(f"the result must be a tuple of {count} or more, but is {kind}")
    return kind.elements


def _infer_copy_start(site: Site) -> Type:
    found = _declared(site)
    target, source = _parts(found, 2)[:2]
    operand = site.operands[0]
    require(
        compatible(target, operand) and compatible(source, operand),
        f"the result must hold the copy and its source, of type {operand}, but is {found}",
    )
    return found


def _copy_start(evaluation: Evaluation, x: Value) -> Value:
    return (x, x, *map(_blank, _parts(evaluation.result, 2)[2:]))


def _element(index: int) -> tuple[Any, Any]:
    """Inference and evaluation of an operation that takes one element of its operand."""

    def infer(site: Site) -> Type:
        return _parts(site.operands[0], index + 1)[index]

    def evaluate(evaluation: Evaluation, x: tuple[Value, ...]) -> Value:
        return x[index]

    return infer, evaluate


def _infer_pair(site: Site) -> Type:
    """`(operand, result, …)`, both tuples when there are several operands."""
    found = _declared(site)
    given = grouped(tuple(site.operands))
    require(
        compatible(_parts(found, 2)[0], given),
        f"the result must begin with its operand's type, but is {found}",
    )
    return found


def _pair(record: Operation) -> Any:
    """Runs the operation, gives `(operand, result, …)`."""

    def evaluate(evaluation: Evaluation, *operands: Array) -> Value:
        kinds = _parts(evaluation.result, 2)
        value = _inner(evaluation, record, kinds[1], operands)
        return (results_of(operands), value, *map(_blank, kinds[2:]))

    return evaluate


def _all_reduce_start(evaluation: Evaluation, *operands: Array) -> Value:
    return _inner(evaluation, _ALL_REDUCE, evaluation.result, operands)


def _infer_all_reduce_start(site: Site) -> Type:
    return grouped(tuple(site.operands))


# ---- exchange of a tuple's elements ----------------------------------------------------------------------------------


def _infer_exchange(site: Site) -> Type:
    require(len(site.operands) > 0, "needs at least one operand")
    for operand in site.operands:
        require(compatible(operand, site.operands[0]), "all operands must have one type")
    return TupleType(tuple(site.operands))


def _exchange(evaluation: Evaluation, *operands: Array) -> Value:
    """Operand i goes to the group's member i, from whom result i comes."""
    group, everyone = meet(evaluation, exchange_groups(evaluation.devices, evaluation.attributes), operands)
    if group is None:
        return tuple(zeros_of([operand]) for operand in operands)
    if len(group) != len(operands):
        raise OperationError(f"{len(operands)} operands cannot go to a group of {len(group)}")
    place = place_in(evaluation, group)
    return tuple(everyone[member][place] for member in group)


# ---- transfers in HLO's form -----------------------------------------------------------------------------------------


def _channels(evaluation: Evaluation) -> Channels:
    return cast(Channels, evaluation.devices)


def _infeed(evaluation: Evaluation, *token: Value) -> Value:
    return _as(_parts(evaluation.result, 2)[0], _channels(evaluation).next_infeed()), Token()


def _as(kind: Type, value: Value) -> Value:
    """A transferred value, whose single element may stand alone."""
    flat = value if isinstance(value, tuple) else (value,)
    return flat if isinstance(kind, TupleType) else flat[0]


def _channel_of(evaluation: Evaluation) -> int:
    return channel_id(evaluation.attributes) or int(evaluation.attributes.get("hlo.channel_id", 0))


def _send(evaluation: Evaluation, data: Value, token: Value) -> Value:
    _channels(evaluation).send(_channel_of(evaluation), data if isinstance(data, tuple) else (data,))
    return (data, *map(_blank, _parts(evaluation.result, 2)[1:]))


def _recv(evaluation: Evaluation, token: Value) -> Value:
    kinds = _parts(evaluation.result, 2)
    value = _as(kinds[0], _channels(evaluation).receive(_channel_of(evaluation)))
    return (value, *map(_blank, kinds[1:]))


def _recv_done(evaluation: Evaluation, started: tuple[Value, ...]) -> Value:
    return started[0], Token()


def _token(evaluation: Evaluation, *operands: Value) -> Value:
    return Token()


# ---- constants that are not there ------------------------------------------------------------------------------------


def _infer_elided(site: Site) -> Type:
    found = _declared(site)
    require(isinstance(found, TensorType | TupleType), f"a constant cannot have type {found}")
    return found


def _elided(evaluation: Evaluation) -> Value:
    raise OperationError(
        "this constant's elements were left out of the HLO text ('{...}'); print it with all constants to evaluate it"
    )


def _hlo(
    name: str,
    infer: Any,
    evaluate: Any,
    arity: int,
    *attributes: Attribute,
    traits: frozenset[Trait] = _HLO_ONLY,
    regions: tuple[str, ...] = (),
) -> Operation:
    return Operation(
        f"hlo.{name}",
        infer,
        evaluate,
        arity=arity,
        attributes=attributes,
        regions=regions,
        traits=traits,
        hlo=name,
        spec=f"HLO, {name}",
    )


def _record(family: tuple[Operation, ...], opcode: str) -> Operation:
    return next(entry for entry in family if entry.opcode == opcode)


_ALL_REDUCE = _record(collective_reductions.OPERATIONS, "all_reduce")
_ALL_GATHER = _record(collectives.OPERATIONS, "all_gather")
_PERMUTE = _record(collectives.OPERATIONS, "collective_permute")
_COLLECTIVE = COLLECTIVE_TRAITS | _HLO_ONLY

OPERATIONS: tuple[Operation, ...] = (
    _hlo("add-dependency", _same, _first, 2),
    _hlo("domain", _same, _first, 1),
    _hlo("elided-constant", _infer_elided, _elided, 0),
    _hlo("copy-start", _infer_copy_start, _copy_start, 1),
    _hlo("copy-done", *_element(0), 1),
    _hlo(
        "all-reduce-start",
        _infer_all_reduce_start,
        _all_reduce_start,
        VARIADIC,
        *_ALL_REDUCE.attributes,
        traits=_COLLECTIVE,
        regions=("to_apply",),
    ),
    _hlo("all-reduce-done", _same, _first, 1),
    _hlo(
        "all-gather-start",
        _infer_pair,
        _pair(_ALL_GATHER),
        VARIADIC,
        *_ALL_GATHER.attributes,
        traits=_COLLECTIVE,
    ),
    _hlo("all-gather-done", *_element(1), 1),
    _hlo(
        "collective-permute-start",
        _infer_pair,
        _pair(_PERMUTE),
        VARIADIC,
        *_PERMUTE.attributes,
        traits=_COLLECTIVE,
    ),
    _hlo("collective-permute-done", *_element(1), 1),
    _hlo("all-to-all", _infer_exchange, _exchange, VARIADIC, GROUPS, traits=_COLLECTIVE),
    _hlo("infeed", _declared, _infeed, VARIADIC, traits=_EFFECT),
    _hlo("outfeed", _declared, _token, 2, traits=_EFFECT),
    _hlo("send", _declared, _send, 2, traits=_EFFECT),
    _hlo("send-done", _declared, _token, 1, traits=_EFFECT),
    _hlo("recv", _declared, _recv, 1, traits=_EFFECT),
    _hlo("recv-done", _declared, _recv_done, 1, traits=_EFFECT),
)
