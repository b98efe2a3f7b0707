"""Batch normalisation: inference, training, and its gradient, computed in double precision and rounded once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.ir.types import TensorType, TupleType, Type
from compiler.ops.applied import outputs
from compiler.ops.constraints import require, same_baseline, same_dimension
from compiler.ops.element_arrays import widen
from compiler.ops.real_values import expressed, real_values, stored
from compiler.ops.record import Array, Attribute, Evaluation, Operation, Site, Value


def _check(site: Site, vectors: Sequence[int], tensors: Sequence[int] = ()) -> TensorType:
    """One element type; vectors as long as the operand's feature dimension. Gives the operand's type."""
    operand, index = site.tensor(0), site.attributes["feature_index"]
    require(
        0 <= index < operand.rank,
        f"(C1) feature_index must be a dimension of the operand {operand}, but is {index}",
    )
    require(expressed(operand.element).is_float, f"operand must have float elements, but is {operand}")
    for position in (*vectors, *tensors):
        found = site.tensor(position)
        require(
            same_baseline(found.element, operand.element),
            f"(C2) operand #{position} must have elements of {operand.element.name}, but is {found}",
        )
    for position in vectors:
        found = site.tensor(position)
        require(
            found.rank == 1 and same_dimension(found.shape[0], operand.shape[index]),
            f"(C3) operand #{position} must have one element for each of {operand.shape[index]} features, "
            f"but is {found}",
        )
    for position in tensors:
        found = site.tensor(position)
        require(
            found.rank == operand.rank and all(map(same_dimension, found.shape, operand.shape)),
            f"(C4) operand #{position} must have the operand's shape, but is {found} beside {operand}",
        )
    return operand


def _features(site: Site, operand: TensorType) -> TensorType:
    return TensorType(operand.element, (operand.shape[site.attributes["feature_index"]],))


def _infer_inference(site: Site) -> Type:
    return _check(site, (1, 2, 3, 4))


def _infer_training(site: Site) -> Type:
    operand = _check(site, (1, 2))
    features = _features(site, operand)
    return TupleType((operand, features, features))


def _infer_grad(site: Site) -> Type:
    operand = _check(site, (1, 2, 3), (4,))
    features = _features(site, operand)
    return TupleType((operand, features, features))


def _wide(evaluation: Evaluation, arrays: Sequence[Array]) -> list[Array]:
    found = []
    for array, kind in zip(arrays, evaluation.operand_types, strict=True):
        assert isinstance(kind, TensorType)
        values, element = real_values(array, kind.element)
        found.append(widen(values, element).astype(np.float64))
    return found


def _narrow(evaluation: Evaluation, *arrays: Array) -> tuple[Array, ...]:
    found = []
    for array, kind in zip(arrays, outputs(evaluation.result), strict=True):
        assert isinstance(kind, TensorType)
        found.append(stored(array, kind.element))
    return tuple(found)


def _spread(vector: Array, index: int, rank: int) -> Array:
    return vector.reshape([-1 if d == index else 1 for d in range(rank)])


def _others(index: int, rank: int) -> tuple[int, ...]:
    return tuple(d for d in range(rank) if d != index)


def _inference(evaluation: Evaluation, *operands: Array) -> Array:
    index, epsilon = evaluation.attributes["feature_index"], float(evaluation.attributes["epsilon"])
    x, scale, offset, mean, variance = _wide(evaluation, operands)
    scale, offset, mean, variance = (_spread(v, index, x.ndim) for v in (scale, offset, mean, variance))
    with np.errstate(all="ignore"):
        return _narrow(evaluation, (x - mean) / np.sqrt(variance + epsilon) * scale + offset)[0]


def _training(evaluation: Evaluation, *operands: Array) -> Value:
    index, epsilon = evaluation.attributes["feature_index"], float(evaluation.attributes["epsilon"])
    x, scale, offset = _wide(evaluation, operands)
    axes = _others(index, x.ndim)
    with np.errstate(all="ignore"):
        count = np.float64(x.size // x.shape[index] if x.shape[index] else 0)
        mean = x.sum(axis=axes) / count
        centred = x - _spread(mean, index, x.ndim)
        variance = (centred * centred).sum(axis=axes) / count
        normal = centred / _spread(np.sqrt(variance + epsilon), index, x.ndim)
        y = normal * _spread(scale, index, x.ndim) + _spread(offset, index, x.ndim)
        return _narrow(evaluation, y, mean, variance)


def _grad(evaluation: Evaluation, *operands: Array) -> Value:
    index, epsilon = evaluation.attributes["feature_index"], float(evaluation.attributes["epsilon"])
    x, scale, mean, variance, grad = _wide(evaluation, operands)
    axes = _others(index, x.ndim)
    with np.errstate(all="ignore"):
        count = np.float64(x.size // x.shape[index] if x.shape[index] else 0)
        centred = x - _spread(mean, index, x.ndim)
        deviation = np.sqrt(variance + epsilon)
        grad_offset = grad.sum(axis=axes)
        projected = (grad * centred).sum(axis=axes)
        grad_scale = projected / deviation
        slope = _spread(projected / (variance + epsilon), index, x.ndim)
        inner = count * grad - _spread(grad_offset, index, x.ndim) - centred * slope
        grad_operand = _spread(scale / deviation, index, x.ndim) / count * inner
        return _narrow(evaluation, grad_operand, grad_scale, grad_offset)


_ATTRIBUTES = (
    Attribute("epsilon", "f64", required=True),
    Attribute("feature_index", "i64", required=True),
)

OPERATIONS: tuple[Operation, ...] = tuple(
    Operation(
        opcode,
        infer,
        evaluate,
        arity=arity,
        attributes=_ATTRIBUTES,
        flops=lambda site, work=work: float(work * site.tensor(0).size),  # type: ignore[misc]
        spec=f"StableHLO, {opcode}",
    )
    for opcode, infer, evaluate, arity, work in (
        ("batch_norm_inference", _infer_inference, _inference, 5, 4),
        ("batch_norm_training", _infer_training, _training, 3, 8),
        ("batch_norm_grad", _infer_grad, _grad, 5, 10),
    )
)
