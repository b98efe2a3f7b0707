"""CHLO's operations with structure of their own: constant, dynamic_reshape, top_k and scan."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.ir.program import Attributes, Instruction
from compiler.ir.semantics import OperationError
from compiler.ir.types import I1, I32, TensorType, TupleType, Type, tensor
from compiler.ops import dynamic_shape, structure
from compiler.ops.constraints import compatible, plain, require
from compiler.ops.decompose import Builder
from compiler.ops.element_arrays import widen
from compiler.ops.elementwise_other import total_order_key
from compiler.ops.record import VARIADIC, Array, Attribute, Evaluation, Operation, Site, Trait, Value

_CHLO = frozenset((Trait.CHLO,))


def _infer_top_k(site: Site) -> Type:
    operand, k = site.tensor(0), site.attributes["k"]
    require(operand.rank > 0, "operand must have at least one dimension")
    last = operand.shape[-1]
    require(
        k >= 0 and (last < 0 or k <= last), f"k must be within the last dimension of {operand}, but is {k}"
    )
    require(
        operand.element.kind in ("int", "uint", "float"), f"operand must hold real numbers, but is {operand}"
    )
    shape = (*operand.shape[:-1], k)
    return TupleType((operand.with_shape(shape), tensor(I32, *shape)))


def _top_k(evaluation: Evaluation, x: Array) -> Value:
    """The k largest of each row in falling order with their places; equal ones by place, NaN largest (totalOrder)."""
    kind = evaluation.operand_types[0]
    assert isinstance(kind, TensorType)
    element = plain(kind.element)
    key = total_order_key(x) if element.is_float else widen(x, element)
    falling = np.invert(key)
    order = np.argsort(falling, axis=-1, kind="stable")[..., : evaluation.attributes["k"]]
    return np.take_along_axis(x, order, axis=-1), order.astype(np.int32)


def _decompose_top_k(builder: Builder, operand: str) -> str:
    """A stable descending sort of values beside an iota, then slices of its front."""
    kind = builder.type_of(operand)
    assert isinstance(kind, TensorType)
    axis = kind.rank - 1
    places = builder.add("iota", type=tensor(I32, *kind.shape), attributes=Attributes(iota_dimension=axis))
    comparator = _descending(builder, kind)
    sorted_type = TupleType((kind.with_layout(None), tensor(I32, *kind.shape)))
    both = builder.add(
        "sort",
        (operand, places),
        type=sorted_type,
        attributes=Attributes(dimension=axis, is_stable=True),
        called=(comparator,),
    )
    limits = (*kind.shape[:-1], builder.attributes["k"])
    ones = (1,) * kind.rank
    cut = Attributes(start_indices=(0,) * kind.rank, limit_indices=limits, strides=ones)
    parts = []
    for index in range(2):
        whole = builder.add("get_tuple_element", (both,), attributes=Attributes(index=index))
        parts.append(builder.add("slice", (whole,), attributes=cut))
    return builder.add("tuple", parts)


def _descending(builder: Builder, kind: TensorType) -> str:
    element = plain(kind.element)
    compare_type = {"float": "TOTALORDER", "int": "SIGNED"}.get(element.kind, "UNSIGNED")
    types = [tensor(element), tensor(element), tensor(I32), tensor(I32)]
    names = [builder.fresh_name("parameter") for _ in types]
    body = [
        Instruction(name, "parameter", kind, (), Attributes(index=index))
        for index, (name, kind) in enumerate(zip(names, types, strict=True))
    ]
    root = builder.fresh_name("compare")
    attributes = Attributes(comparison_direction="GT", compare_type=compare_type)
    body.append(Instruction(root, "compare", tensor(I1), (names[0], names[1]), attributes))
    return builder.add_computation("top_k_comparator", body, root)


def _scan_counts(site: Site) -> tuple[int, int, int]:
    """Numbers of inputs, carries and outputs."""
    parameters = len(site.called[0].parameters)
    require(
        parameters == len(site.operands),
        f"the computation must take {len(site.operands)} values, but takes {parameters}",
    )
    result = site.called[0].result_type
    results = len(result.elements) if isinstance(result, TupleType) else 1
    inputs = site.attributes.get("input_count")
    if inputs is None:
        dimension = site.attributes["dimension"]
        inputs = 0
        for operand, parameter in zip(site.operands, site.called[0].parameter_types, strict=True):
            if not isinstance(operand, TensorType) or not isinstance(parameter, TensorType):
                break
            if operand.rank != parameter.rank + 1 or operand.rank <= dimension:
                break
            inputs += 1
    carries = len(site.operands) - inputs
    require(
        results >= carries, f"the computation must return its {carries} carries, but returns {results} values"
    )
    return inputs, carries, results - carries


def _erase(kind: TensorType, dimension: int) -> TensorType:
    return TensorType(kind.element, (*kind.shape[:dimension], *kind.shape[dimension + 1 :]))


def _infer_scan(site: Site) -> Type:
    inputs, _, outputs = _scan_counts(site)
    dimension = site.attributes["dimension"]
    size = site.attributes.get("scan_dim_size")
    for index in range(inputs):
        operand = site.tensor(index)
        require(0 <= dimension < operand.rank, f"dimension must be one of {operand}'s, but is {dimension}")
        found = operand.shape[dimension]
        require(size in (None, found), f"scanned dimensions must have one size, but {operand} has {found}")
        size = found
    if size is None:
        raise OperationError("scan without inputs needs scan_dim_size")
    for index, parameter in enumerate(site.called[0].parameter_types):
        wanted = _erase(site.tensor(index), dimension) if index < inputs else site.operands[index]
        require(compatible(parameter, wanted), f"parameter #{index} must be {wanted}, but is {parameter}")
    made = site.called[0].result_type
    returned = made.elements if isinstance(made, TupleType) else (made,)
    results: list[Type] = []
    for entry in returned[:outputs]:
        if not isinstance(entry, TensorType):
            raise OperationError(f"the computation must return tensors, but returns {entry}")
        results.append(TensorType(entry.element, (*entry.shape[:dimension], size, *entry.shape[dimension:])))
    for index, entry in enumerate(returned[outputs:]):
        wanted = site.operands[inputs + index]
        require(compatible(entry, wanted), f"carry #{index} must stay {wanted}, but becomes {entry}")
        results.append(wanted)
    return results[0] if len(results) == 1 else TupleType(tuple(results))


def _scan(evaluation: Evaluation, *operands: Array) -> Value:
    """Applies the computation to each slice and the carries, in order (backwards for `is_reverse`)."""
    attributes, called = evaluation.attributes, evaluation.called[0]
    site = Site("chlo.scan", evaluation.operand_types, attributes, evaluation.called)
    inputs, _, outputs = _scan_counts(site)
    dimension = attributes["dimension"]
    size = operands[0].shape[dimension] if inputs else attributes["scan_dim_size"]
    carries: list[Any] = list(operands[inputs:])
    rows: list[list[Any]] = [[None] * size for _ in range(outputs)]
    order = range(size - 1, -1, -1) if attributes.get("is_reverse") else range(size)
    for index in order:
        slices = [np.asarray(np.take(x, index, axis=dimension)) for x in operands[:inputs]]
        made = evaluation.call(0, *slices, *carries)
        values = made if isinstance(made, tuple) else (made,)
        carries = list(values[outputs:])
        for row, value in zip(rows, values[:outputs], strict=True):
            row[index] = value
    whole = [_stack(called.result_type, index, row, dimension) for index, row in enumerate(rows)]
    found = (*whole, *carries)
    return found[0] if len(found) == 1 else found


def _stack(made: Type, index: int, row: list[Any], dimension: int) -> Array:
    if row:
        return np.stack(row, axis=dimension)
    kind = made.elements[index] if isinstance(made, TupleType) else made
    assert isinstance(kind, TensorType)
    return np.zeros((*kind.shape[:dimension], 0, *kind.shape[dimension:]), kind.element.dtype)


def _decompose_constant(builder: Builder) -> str:
    return builder.add("constant", type=builder.result, attributes=builder.attributes)


def _decompose_reshape(builder: Builder, operand: str, sizes: str) -> str:
    return builder.add("dynamic_reshape", (operand, sizes), type=builder.result)


def _decompose_scan(builder: Builder, *operands: str) -> str:
    from compiler.ops.chlo_scan import scan_as_while

    return scan_as_while(builder, operands)


_STRUCTURE = {entry.opcode: entry for entry in (*structure.OPERATIONS, *dynamic_shape.OPERATIONS)}


def _renamed(opcode: str, decompose: Any) -> Operation:
    plain_record = _STRUCTURE[opcode.removeprefix("chlo.")]
    return Operation(
        opcode,
        plain_record.infer,
        plain_record.evaluate,
        arity=plain_record.arity,
        attributes=plain_record.attributes,
        verify=plain_record.verify,
        traits=plain_record.traits | _CHLO,
        spec=f"CHLO, {opcode.removeprefix('chlo.')}",
        decompose=decompose,
    )


OPERATIONS: tuple[Operation, ...] = (
    _renamed("chlo.constant", _decompose_constant),
    _renamed("chlo.dynamic_reshape", _decompose_reshape),
    Operation(
        "chlo.top_k",
        _infer_top_k,
        _top_k,
        arity=1,
        attributes=(Attribute("k", "i64", required=True),),
        traits=_CHLO,
        spec="CHLO, top_k",
        decompose=_decompose_top_k,
    ),
    Operation(
        "chlo.scan",
        _infer_scan,
        _scan,
        arity=VARIADIC,
        attributes=(
            Attribute("dimension", "i64", required=True),
            Attribute("is_reverse", "bool", default=False),
            Attribute("scan_dim_size", "i64"),
            Attribute("is_associative", "bool"),
            Attribute("input_count", "i64"),
        ),
        regions=("to_apply",),
        traits=_CHLO,
        spec="CHLO, scan",
        decompose=_decompose_scan,
    ),
)
