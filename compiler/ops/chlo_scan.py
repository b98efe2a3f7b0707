"""`chlo.scan` as a StableHLO loop: slices in, slices out, the carries in the loop's state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.ir.literal import Literal
from compiler.ir.program import NO_ATTRIBUTES, Attributes, Instruction
from compiler.ir.types import I1, I64, TensorType, TupleType, Type, tensor
from compiler.ops.decompose import Builder, splat

_COUNTER = tensor(I64)


class _Body:
    """The instructions of one of the loop's computations, which takes the state."""

    def __init__(self, builder: Builder, state: TupleType) -> None:
        self._builder = builder
        self._state = state
        self.instructions: list[Instruction] = []
        self.parameter = self.add("parameter", state, (), Attributes(index=0))

    def add(
        self,
        opcode: str,
        kind: Type,
        operands: Sequence[str] = (),
        attributes: Attributes = NO_ATTRIBUTES,
        called: tuple[str, ...] = (),
    ) -> str:
        name = self._builder.fresh_name(opcode)
        self.instructions.append(Instruction(name, opcode, kind, tuple(operands), attributes, called))
        return name

    def state(self, index: int) -> str:
        """One element of the state."""
        kind = self._state.elements[index]
        return self.add("get_tuple_element", kind, (self.parameter,), Attributes(index=index))

    def number(self, value: int) -> str:
        """A scalar i64."""
        literal = Literal(_COUNTER, np.array(value, np.int64))
        return self.add("constant", _COUNTER, (), Attributes(value=literal))

    def finish(self, base: str, root: str) -> str:
        """Adds the computation to the program."""
        return self._builder.add_computation(base, self.instructions, root)


def scan_as_while(builder: Builder, operands: Sequence[str]) -> str:
    """Builds the loop; its state is (counter, inputs…, outputs…, carries…)."""
    parameters, made = builder.called_types(0)
    dimension = builder.attributes["dimension"]
    types = [_tensor(builder.type_of(name)) for name in operands]
    inputs = _count_inputs(builder.attributes, types, parameters, dimension)
    carries = len(operands) - inputs
    results = builder.result.elements if isinstance(builder.result, TupleType) else (builder.result,)
    outputs = [_tensor(entry) for entry in results[: len(results) - carries]]
    size = types[0].shape[dimension] if inputs else builder.attributes["scan_dim_size"]
    state_types = (_COUNTER, *types[:inputs], *outputs, *types[inputs:])
    state = TupleType(tuple(state_types))
    condition = _condition(builder, state, size)
    body = _body(builder, state, inputs, len(outputs), made, size)
    start = [splat(builder, _COUNTER, 0), *operands[:inputs]]
    start += [splat(builder, kind, 0) for kind in outputs]
    initial = builder.add("tuple", (*start, *operands[inputs:]), type=state)
    loop = builder.add("while", (initial,), type=state, called=(condition, body))
    first = 1 + inputs
    found = [
        builder.add("get_tuple_element", (loop,), attributes=Attributes(index=first + index))
        for index in range(len(outputs) + carries)
    ]
    return builder.add("tuple", found) if isinstance(builder.result, TupleType) else found[0]


def _tensor(kind: Type) -> TensorType:
    assert isinstance(kind, TensorType)
    return kind


def _count_inputs(
    attributes: Attributes, types: Sequence[TensorType], parameters: Sequence[Type], dimension: int
) -> int:
    given = attributes.get("input_count")
    if given is not None:
        return int(given)
    count = 0
    for operand, parameter in zip(types, parameters, strict=True):
        if operand.rank != _tensor(parameter).rank + 1 or operand.rank <= dimension:
            break
        count += 1
    return count


def _condition(builder: Builder, state: TupleType, size: int) -> str:
    body = _Body(builder, state)
    attributes = Attributes(comparison_direction="LT", compare_type="SIGNED")
    root = body.add("compare", tensor(I1), (body.state(0), body.number(size)), attributes)
    return body.finish("scan_condition", root)


def _body(builder: Builder, state: TupleType, inputs: int, outputs: int, made: Type, size: int) -> str:
    body = _Body(builder, state)
    dimension = builder.attributes["dimension"]
    counter = body.state(0)
    place = counter
    if builder.attributes.get("is_reverse"):
        place = body.add("subtract", _COUNTER, (body.number(size - 1), counter))
    zero = body.number(0)
    scanned = [body.state(1 + index) for index in range(inputs)]
    slices = [
        _slice(body, name, _tensor(state.elements[1 + i]), dimension, place, zero)
        for i, name in enumerate(scanned)
    ]
    first_carry = 1 + inputs + outputs
    carries = [body.state(index) for index in range(first_carry, len(state.elements))]
    values = _call(body, builder, (*slices, *carries), made)
    written = [
        _update(
            body,
            body.state(1 + inputs + i),
            _tensor(state.elements[1 + inputs + i]),
            value,
            dimension,
            place,
            zero,
        )
        for i, value in enumerate(values[:outputs])
    ]
    following = body.add("add", _COUNTER, (counter, body.number(1)))
    root = body.add("tuple", state, (following, *scanned, *written, *values[outputs:]))
    return body.finish("scan_body", root)


def _call(body: _Body, builder: Builder, operands: Sequence[str], made: Type) -> list[str]:
    called = body.add("call", made, operands, called=builder.called)
    if not isinstance(made, TupleType):
        return [called]
    return [
        body.add("get_tuple_element", kind, (called,), Attributes(index=index))
        for index, kind in enumerate(made.elements)
    ]


def _starts(kind: TensorType, dimension: int, place: str, zero: str) -> list[str]:
    return [place if d == dimension else zero for d in range(kind.rank)]


def _slice(body: _Body, name: str, kind: TensorType, dimension: int, place: str, zero: str) -> str:
    sizes = tuple(1 if d == dimension else size for d, size in enumerate(kind.shape))
    operands = (name, *_starts(kind, dimension, place, zero))
    cut = body.add("dynamic_slice", kind.with_shape(sizes), operands, Attributes(slice_sizes=sizes))
    return body.add("reshape", kind.with_shape((*sizes[:dimension], *sizes[dimension + 1 :])), (cut,))


def _update(
    body: _Body, name: str, kind: TensorType, value: str, dimension: int, place: str, zero: str
) -> str:
    sizes = tuple(1 if d == dimension else size for d, size in enumerate(kind.shape))
    row = body.add("reshape", kind.with_shape(sizes), (value,))
    return body.add("dynamic_update_slice", kind, (name, row, *_starts(kind, dimension, place, zero)))
