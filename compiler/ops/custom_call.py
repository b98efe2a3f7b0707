"""custom_call: the record, and how its targets are found.

The evaluation's own registry comes first, then the targets built in here: placement and sharding annotations, which are
identities on one device, the specification's dynamic operations, and the factorisations that frameworks call LAPACK for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from compiler.ir.semantics import OperationError
from compiler.ir.types import TensorType, TupleType, Type
from compiler.ops.applied import outputs
from compiler.ops.constraints import require, same_shape
from compiler.ops.record import VARIADIC, Attribute, Evaluation, Operation, Site, Value

_TYPED_FFI = 4


def _infer(site: Site) -> Type:
    if site.result is None:
        raise OperationError("the result type of a custom_call must be given")
    return site.result


def _verify(site: Site) -> None:
    a = site.attributes
    require(bool(a["call_target_name"]), "call_target_name must not be empty")
    config = a.get("backend_config")
    if a.get("api_version") == _TYPED_FFI:
        require(
            not config or isinstance(config, Mapping),
            "backend_config must be a dictionary when api_version is API_VERSION_TYPED_FFI",
        )
    _verify_layouts(site)
    for alias in a.get("output_operand_aliases") or ():
        if isinstance(alias, Mapping):
            _verify_alias(site, alias)


def _verify_layouts(site: Site) -> None:
    assert site.result is not None
    operands, results = site.attributes.get("operand_layouts"), site.attributes.get("result_layouts")
    require(
        (operands is None) == (results is None),
        "operand_layouts and result_layouts must be given together or not at all",
    )
    if operands is None or results is None:
        return
    for what, kinds, layouts in (
        ("operand", tuple(site.operands), operands),
        ("result", outputs(site.result), results),
    ):
        require(
            len(kinds) == len(layouts),
            f"there must be as many {what} layouts as {what}s, but there are {len(layouts)} for {len(kinds)}",
        )
        for index, (kind, layout) in enumerate(zip(kinds, layouts, strict=True)):
            _verify_layout(f"{what} #{index}", kind, layout)


def _verify_layout(what: str, kind: Type, layout: Any) -> None:
    require(not isinstance(kind, TupleType), f"{what} is a tuple, which cannot have a layout")
    if not isinstance(kind, TensorType):
        require(not layout, f"{what} is no tensor, so it cannot have the layout {list(layout)}")
        return
    require(
        sorted(layout) == list(range(kind.rank)),
        f"the layout of {what}, {list(layout)}, must order the {kind.rank} dimensions of {kind}",
    )


def _verify_alias(site: Site, alias: Mapping[str, Any]) -> None:
    assert site.result is not None
    number = alias.get("operand_index", 0)
    require(
        0 <= number < len(site.operands),
        f"operand_index of output_operand_aliases must be in [0, {len(site.operands)}), but is {number}",
    )
    operand = _part(site.operands[number], alias.get("operand_tuple_indices", ()), "operand_tuple_indices")
    output = _part(site.result, alias.get("output_tuple_indices", ()), "output_tuple_indices")
    agrees = operand == output or (
        isinstance(operand, TensorType)
        and isinstance(output, TensorType)
        and operand.element == output.element
        and same_shape(operand.shape, output.shape)
    )
    require(agrees, f"an aliased operand and output must have one type, but are {operand} and {output}")


def _part(kind: Type, indices: Sequence[int], what: str) -> Type:
    for index in indices:
        if not isinstance(kind, TupleType) or not 0 <= index < len(kind.elements):
            raise OperationError(
                f"{what} of output_operand_aliases are out of bounds: {list(indices)} in {kind}"
            )
        kind = kind.elements[index]
    return kind


def _evaluate(evaluation: Evaluation, *operands: Value) -> Value:
    target = str(evaluation.attributes["call_target_name"])
    given = evaluation.custom_call(target)
    if given is not None:
        return given(evaluation, *operands)
    if target.startswith("lapack_"):
        # SciPy takes a while to import, and few programs factorise matrices.
        found = import_module("compiler.ops.lapack_calls").lapack_call(target)
    else:
        found = import_module("compiler.ops.custom_targets").TARGETS.get(target)
    if found is None:
        raise OperationError(f"no implementation of the custom call '{target}' is registered")
    value: Value = found(evaluation, *operands)
    return value


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "custom_call",
        _infer,
        _evaluate,
        arity=VARIADIC,
        attributes=(
            Attribute("call_target_name", "str", required=True),
            Attribute("has_side_effect", "bool", False),
            Attribute("backend_config", "any", ""),
            Attribute("api_version", "i64", 1),
            Attribute("operand_layouts", "any"),
            Attribute("result_layouts", "any"),
            Attribute("output_operand_aliases", "any"),
        ),
        regions=("called_computations*",),
        verify=_verify,
        spec="StableHLO, custom_call",
    ),
)
