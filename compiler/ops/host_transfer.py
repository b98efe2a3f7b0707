"""Transfers to and from the host and between programs: infeed, outfeed, send, recv, and asynchronous pairs.

A send puts its values into the channel, a receive waits for them. What is fed out has no reader in the interpreter and is
dropped. Asynchronous operations are evaluated where they start.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

from compiler.ir.semantics import OperationError
from compiler.ir.types import TOKEN, FutureType, TensorType, TokenType, TupleType, Type
from compiler.ops.applied import as_tuple, grouped, outputs
from compiler.ops.constraints import compatible, require
from compiler.ops.process_groups import channel_id, channel_type
from compiler.ops.record import VARIADIC, Attribute, Devices, Evaluation, Operation, Site, Token, Trait, Value

_BETWEEN_DEVICES, _DEVICE_TO_HOST, _HOST_TO_DEVICE = 1, 2, 3


class Channels(Devices, Protocol):
    """What transfers need of the devices besides."""

    def send(self, channel: object, value: Value) -> None:
        """Puts a value into a channel."""
        ...

    def receive(self, channel: object) -> Value:
        """Waits for a channel's next value."""
        ...

    def next_infeed(self) -> Value:
        """The next value fed in."""
        ...


def _channels(evaluation: Evaluation) -> Channels:
    return cast(Channels, evaluation.devices)


def _require_token(kind: Type, what: str) -> None:
    require(isinstance(kind, TokenType), f"{what} must be a token, but is {kind}")


def _infer_outward(site: Site) -> Type:
    """Operands, the last one a token, to a token."""
    require(len(site.operands) > 0, "needs a token")
    for index, operand in enumerate(site.operands[:-1]):
        require(isinstance(operand, TensorType), f"operand #{index} must be a tensor, but is {operand}")
    _require_token(site.operands[-1], "the last operand")
    return TOKEN


def _infer_inward(site: Site) -> Type:
    """A token to tensors and a token."""
    _require_token(site.operands[0], "the operand")
    if site.result is None:
        raise OperationError(f"the result types of {site.opcode} must be given")
    found = site.result.elements if isinstance(site.result, TupleType) else (site.result,)
    require(len(found) > 0, "(C2) needs at least one result, the token")
    for index, entry in enumerate(found[:-1]):
        require(isinstance(entry, TensorType), f"(C2) result #{index} must be a tensor, but is {entry}")
    require(isinstance(found[-1], TokenType), f"(C3) the last result must be a token, but is {found[-1]}")
    return site.result


def _verify_infeed(site: Site) -> None:
    layouts = site.attributes.get("layout")
    if layouts is None:
        return
    require(isinstance(layouts, tuple), "layout must be a list")
    results = len(site.result.elements) - 1 if isinstance(site.result, TupleType) else 0
    require(
        len(layouts) == results,
        f"layout must have {results} entries, one for each tensor, but has {len(layouts)}",
    )
    for entry in layouts:
        require(isinstance(entry, tuple), f"layout must hold lists, but has {entry!r}")
        require(
            all(isinstance(leaf, int) for leaf in entry),
            f"layouts must be lists of integers, but one is {entry!r}",
        )


def _verify_channel(site: Site, host_type: int, constraint: str) -> None:
    kind = channel_type(site.attributes)
    if kind is None:
        return
    is_host = bool(site.attributes.get("is_host_transfer"))
    wanted = host_type if is_host else _BETWEEN_DEVICES
    require(
        kind == wanted,
        f"{constraint} the channel's type must be {wanted} when is_host_transfer is {str(is_host).lower()}, but is {kind}",
    )


def _verify_send(site: Site) -> None:
    _verify_channel(site, _DEVICE_TO_HOST, "(C1)")


def _verify_recv(site: Site) -> None:
    _verify_channel(site, _HOST_TO_DEVICE, "(C1)")


def _infeed(evaluation: Evaluation, token: Token) -> Value:
    return _received(evaluation, _channels(evaluation).next_infeed())


def _received(evaluation: Evaluation, value: Value) -> Value:
    """What came, with a token after it. Raises OperationError when it is not what the program expects."""
    if not isinstance(evaluation.result, TupleType):
        return Token()
    found = value if isinstance(value, tuple) else (value,)
    kinds = evaluation.result.elements[:-1]
    if len(found) != len(kinds):
        raise OperationError(f"{len(found)} values arrived where {len(kinds)} are expected")
    return (*found, Token())


def _outfeed(evaluation: Evaluation, *operands: Value) -> Value:
    return Token()


def _send(evaluation: Evaluation, *operands: Value) -> Value:
    _channels(evaluation).send(channel_id(evaluation.attributes), operands[:-1])
    return Token()


def _recv(evaluation: Evaluation, token: Token) -> Value:
    return _received(evaluation, _channels(evaluation).receive(channel_id(evaluation.attributes)))


# ---- asynchronous pairs ------------------------------------------------------------------------------------------


def _infer_start(site: Site) -> Type:
    called = site.called[0]
    require(
        len(called.parameters) == len(site.operands),
        f"(C1) the computation takes {len(called.parameters)} values, but is given {len(site.operands)}",
    )
    for index, (parameter, operand) in enumerate(zip(called.parameter_types, site.operands, strict=True)):
        require(
            compatible(parameter, operand),
            f"(C1) the computation takes {parameter} as #{index}, but is given {operand}",
        )
    return FutureType(outputs(called.result_type))


def _start(evaluation: Evaluation, *operands: Value) -> Value:
    return as_tuple(evaluation.call(0, *operands))


def _infer_done(site: Site) -> Type:
    future = site.operands[0]
    if not isinstance(future, FutureType):
        raise OperationError(f"the operand must be what async_start yields, but is {future}")
    return grouped(future.elements)


def _done(evaluation: Evaluation, future: tuple[Value, ...]) -> Value:
    return future[0] if len(future) == 1 else future


def _transfer(
    opcode: str, infer: Any, evaluate: Any, arity: int, *attributes: Attribute, verify: Any = None
) -> Operation:
    return Operation(
        opcode,
        infer,
        evaluate,
        arity=arity,
        attributes=attributes,
        verify=verify,
        traits=frozenset((Trait.SIDE_EFFECT,)),
        spec=f"StableHLO, {opcode}",
    )


_CHANNEL = (
    Attribute("channel_handle", "record", required=True),
    Attribute("is_host_transfer", "bool", False),
    Attribute("source_target_pairs", "pairs"),
)

OPERATIONS: tuple[Operation, ...] = (
    _transfer(
        "infeed",
        _infer_inward,
        _infeed,
        1,
        Attribute("infeed_config", "str", ""),
        Attribute("layout", "any"),
        verify=_verify_infeed,
    ),
    _transfer("outfeed", _infer_outward, _outfeed, VARIADIC, Attribute("outfeed_config", "str", "")),
    _transfer("send", _infer_outward, _send, VARIADIC, *_CHANNEL, verify=_verify_send),
    _transfer("recv", _infer_inward, _recv, 1, *_CHANNEL, verify=_verify_recv),
    Operation(
        "async_start",
        _infer_start,
        _start,
        arity=VARIADIC,
        regions=("calls",),
        traits=frozenset((Trait.CONTROL,)),
        spec="StableHLO, async_start",
    ),
    Operation("async_done", _infer_done, _done, arity=1, spec="StableHLO, async_done"),
)
