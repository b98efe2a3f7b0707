"""custom_call: the record, and how its targets are found.

The evaluation's own registry comes first, then the targets built in here: placement and sharding annotations, which are
identities on one device, the specification's dynamic operations, and the factorisations that frameworks call LAPACK for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from compiler.ir.semantics import OperationError
from compiler.ir.types import BufferType, TensorType, TupleType, Type
from compiler.ops.applied import outputs
from compiler.ops.constraints import require, same_shape
from compiler.ops.record import VARIADIC, Attribute, Evaluation, Operation, Site, Value

_TYPED_FFI = 4
_BUFFER_TARGETS = ("CreateBuffer", "Pin", "Unpin")


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
    aliases = [alias for alias in a.get("output_operand_aliases") or () if isinstance(alias, Mapping)]
    for alias in aliases:
        _verify_alias(site, alias)
    if any(True for kind in (*site.operands, site.result) for _ in _buffers(kind)):
        _verify_buffers(site, aliases)
    elif a["call_target_name"] in _BUFFER_TARGETS:
        require(False, f"{a['call_target_name']} must take or yield a memref")


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
        and isinstance(operand, BufferType) == isinstance(output, BufferType)
        and operand.element == output.element
        and same_shape(operand.shape, output.shape)
    )
    require(agrees, f"an aliased operand and output must have one type, but are {operand} and {output}")


def _buffers(kind: Type | None, place: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Places of the buffers in a type, as indices into its tuples."""
    if isinstance(kind, BufferType):
        yield place
    elif isinstance(kind, TupleType):
        for index, entry in enumerate(kind.elements):
            yield from _buffers(entry, (*place, index))


def _verify_buffers(site: Site, aliases: Sequence[Mapping[str, Any]]) -> None:
    """A buffer that a call yields is one that it was given, but for the calls that make and end buffers."""
    target = site.attributes["call_target_name"]
    if target in _BUFFER_TARGETS:
        _verify_buffer_target(site, target)
        return
    sources = [(alias.get("operand_index", 0), *alias.get("operand_tuple_indices", ())) for alias in aliases]
    targets = [tuple(alias.get("output_tuple_indices", ())) for alias in aliases]
    for index, operand in enumerate(site.operands):
        for place in _buffers(operand, (index,)):
            require(
                sources.count(place) <= 1,
                f"the buffer in operand {list(place)} must not be aliased more than once",
            )
    for place in _buffers(site.result):
        require(
            targets.count(place) == 1,
            f"the buffer in output {list(place)} must be aliased once, but is {targets.count(place)} times",
        )


def _verify_buffer_target(site: Site, target: str) -> None:
    inputs, made = len(site.operands), isinstance(site.result, BufferType)
    if target == "CreateBuffer":
        require(inputs == 0, f"CreateBuffer takes no operand, but has {inputs}")
        require(made, f"CreateBuffer must yield a memref, not {site.result}")
        return
    require(inputs == 1, f"{target} takes one operand, but has {inputs}")
    operand, result = site.operands[0], site.result
    is_pin = target == "Pin"
    require(made == is_pin, f"{target} must yield a {'memref' if is_pin else 'tensor'}, not {result}")
    require(
        isinstance(operand, BufferType) != is_pin,
        f"{target} must take the other kind of value, not {operand}",
    )
    assert isinstance(result, TensorType)
    same = isinstance(operand, TensorType) and operand.element == result.element
    require(
        same and isinstance(operand, TensorType) and same_shape(operand.shape, result.shape),
        f"{target} must keep elements and shape, but takes {operand} and yields {result}",
    )


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
