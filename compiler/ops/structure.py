"""Operations that hold a program together: parameters, constants, tuples, tokens, barriers."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.ir.literal import Literal
from compiler.ir.semantics import OperationError
from compiler.ir.types import I64, TOKEN, TensorType, TokenType, TupleType, Type, element
from compiler.ops.constraints import compatible, given_result, plain, require, tensor_result
from compiler.ops.element_arrays import convert_elements
from compiler.ops.record import VARIADIC, Array, Attribute, Evaluation, Operation, Site, Token, Trait, Value


def _infer_parameter(site: Site) -> Type:
    if site.result is None:
        raise OperationError("the type of a parameter must be given")
    return site.result


def _parameter(evaluation: Evaluation) -> Value:
    raise OperationError("a parameter has no value of its own: the caller gives it")


def _infer_constant(site: Site) -> Type:
    value = site.attributes["value"]
    if not isinstance(value, Literal):
        raise OperationError(f"value must be a literal, but is {value!r}")
    return value.type


def _verify_constant(site: Site) -> None:
    result, value = tensor_result(site), site.attributes["value"]
    require(result.is_static, f"(C1) a constant's type must be static, but is {result}")
    require(
        value.type.shape == result.shape and value.type.element == result.element,
        f"(C1) a value of {value.type} cannot have type {result}",
    )


def _constant(evaluation: Evaluation) -> Array:
    value: Literal = evaluation.attributes["value"]
    return value.array


def _verify_iota(site: Site) -> None:
    result, dimension = tensor_result(site), site.attributes["iota_dimension"]
    require(
        0 <= dimension < result.rank,
        f"(C1) iota_dimension must be one of the result's {result.rank} dimensions, but is {dimension}",
    )
    require(result.element.kind != "bool", f"iota yields numbers, not {result}")


def iota(result: TensorType, shape: tuple[int, ...], dimension: int) -> Array:
    """0, 1, 2, … along one dimension."""
    counts = convert_elements(np.arange(shape[dimension], dtype=np.int64), I64, plain(result.element))
    spread = [1] * len(shape)
    spread[dimension] = -1
    return np.broadcast_to(counts.reshape(spread), shape)


def _iota(evaluation: Evaluation) -> Array:
    result = evaluation.result
    assert isinstance(result, TensorType)
    with np.errstate(all="ignore"):
        return iota(result, result.shape, evaluation.attributes["iota_dimension"])


def _infer_tuple(site: Site) -> Type:
    return TupleType(tuple(site.operands))


def _tuple(evaluation: Evaluation, *values: Value) -> Value:
    return values


def _infer_element(site: Site) -> Type:
    operand, index = site.operands[0], site.attributes["index"]
    if not isinstance(operand, TupleType):
        raise OperationError(f"operand must be a tuple, but has type {operand}")
    require(
        0 <= index < len(operand.elements),
        f"(C1) index must be below the tuple's {len(operand.elements)} elements, but is {index}",
    )
    found: Type = operand.elements[index]
    return found


def _element(evaluation: Evaluation, operand: tuple[Value, ...]) -> Value:
    found: Value = operand[evaluation.attributes["index"]]
    return found


def _infer_barrier(site: Site) -> Type:
    return site.operands[0] if len(site.operands) == 1 else TupleType(tuple(site.operands))


def _barrier(evaluation: Evaluation, *values: Value) -> Value:
    return values[0] if len(values) == 1 else values


def _verify_barrier(site: Site) -> None:
    assert site.result is not None
    require(
        compatible(site.result, _infer_barrier(site)),
        f"(C1) result must have the operands' types, but is {site.result}",
    )


def _infer_after_all(site: Site) -> Type:
    for index, operand in enumerate(site.operands):
        require(isinstance(operand, TokenType), f"operand #{index} must be a token, but has type {operand}")
    return TOKEN


def _after_all(evaluation: Evaluation, *tokens: Value) -> Value:
    return Token()


def _infer_dimension_size(site: Site) -> Type:
    operand, dimension = site.tensor(0), site.attributes["dimension"]
    require(
        0 <= dimension < operand.rank,
        f"(C1) dimension must be one of the operand's {operand.rank} dimensions, but is {dimension}",
    )
    return TensorType(element("i32"), ())


def _dimension_size(evaluation: Evaluation, x: Array) -> Array:
    return np.asarray(x.shape[evaluation.attributes["dimension"]], np.int32)


def _infer_set_dimension_size(site: Site) -> Type:
    operand, size = site.tensor(0), site.tensor(1)
    dimension = site.attributes["dimension"]
    require(size.rank == 0 and size.element is element("i32"), f"size must be an i32 scalar, but is {size}")
    require(
        0 <= dimension < operand.rank,
        f"dimension must be one of the operand's {operand.rank} dimensions, but is {dimension}",
    )
    return site.result if site.result is not None else operand


def _set_dimension_size(evaluation: Evaluation, x: Array, size: Array) -> Array:
    dimension, limit = evaluation.attributes["dimension"], int(size)
    if not 0 <= limit <= x.shape[dimension]:
        raise OperationError(
            f"set_dimension_size to {limit}, but dimension {dimension} holds {x.shape[dimension]}"
        )
    found: Array = x[(slice(None),) * dimension + (slice(limit),)]
    return found


_DIMENSION = (Attribute("dimension", "i64", required=True),)


def _no_work(site: Site) -> float:
    return 0.0


def _structural(opcode: str, infer: Any, evaluate: Any, arity: int, **extra: Any) -> Operation:
    spec = extra.pop("spec", f"StableHLO, {opcode}")
    return Operation(opcode, infer, evaluate, arity=arity, spec=spec, flops=_no_work, **extra)


OPERATIONS: tuple[Operation, ...] = (
    _structural(
        "parameter",
        _infer_parameter,
        _parameter,
        0,
        attributes=(Attribute("index", "i64", required=True),),
        traits=frozenset((Trait.HLO_ONLY,)),
        spec="HLO, parameter",
    ),
    _structural(
        "constant",
        _infer_constant,
        _constant,
        0,
        attributes=(Attribute("value", "literal", required=True),),
        verify=_verify_constant,
    ),
    _structural(
        "iota",
        given_result,
        _iota,
        0,
        attributes=(Attribute("iota_dimension", "i64", required=True),),
        verify=_verify_iota,
    ),
    _structural("tuple", _infer_tuple, _tuple, VARIADIC),
    _structural(
        "get_tuple_element",
        _infer_element,
        _element,
        1,
        attributes=(Attribute("index", "i64", required=True),),
    ),
    _structural("optimization_barrier", _infer_barrier, _barrier, VARIADIC, verify=_verify_barrier),
    _structural("after_all", _infer_after_all, _after_all, VARIADIC),
    _structural("create_token", _infer_after_all, _after_all, 0),
    _structural("get_dimension_size", _infer_dimension_size, _dimension_size, 1, attributes=_DIMENSION),
    _structural(
        "set_dimension_size",
        _infer_set_dimension_size,
        _set_dimension_size,
        2,
        attributes=_DIMENSION,
        traits=frozenset((Trait.DYNAMIC_SHAPE,)),
    ),
)
