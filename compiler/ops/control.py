"""Control flow: while, if, case, call, composite, fusion.

A loop has one operand, its whole state; a branch has one operand, the tuple of what it captures. Called computations are
run by the evaluation as they stand.
"""

from __future__ import annotations

import re

from compiler.ir.program import Computation
from compiler.ir.types import I1, TensorType, TupleType, Type, element
from compiler.ops.applied import outputs
from compiler.ops.constraints import compatible, require
from compiler.ops.record import VARIADIC, Array, Attribute, Evaluation, Operation, Site, Trait, Value

_COMPOSITE_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*(\.[a-zA-Z0-9_$]+)+")
_CONTROL = frozenset((Trait.CONTROL,))


def _infer_while(site: Site) -> Type:
    state = site.operands[0]
    condition, body = site.called
    _takes(condition, (state,), "(C1) the condition")
    _takes(body, (state,), "(C2) the body")
    predicate = condition.result_type
    require(
        isinstance(predicate, TensorType) and predicate.element is I1 and predicate.rank == 0,
        f"(C1) the condition must return an i1 scalar, but returns {predicate}",
    )
    require(
        compatible(body.result_type, state),
        f"(C2) the body must return the state, {state}, but returns {body.result_type}",
    )
    return state


def _takes(called: Computation, operands: tuple[Type, ...], what: str) -> None:
    parameters = called.parameter_types
    require(
        len(parameters) == len(operands),
        f"{what} takes {len(parameters)} values, but is given {len(operands)}",
    )
    for index, (parameter, operand) in enumerate(zip(parameters, operands, strict=True)):
        require(
            compatible(parameter, operand), f"{what} takes {parameter} as #{index}, but is given {operand}"
        )


def _while(evaluation: Evaluation, state: Value) -> Value:
    while bool(evaluation.call(0, state)):
        state = evaluation.call(1, state)
    return state


def _infer_branches(site: Site) -> Type:
    require(len(site.called) > 0, "(C1) needs at least one branch")
    require(
        len(site.operands) == len(site.called) + 1,
        f"needs one operand for each of {len(site.called)} branches beside the index, but has {len(site.operands) - 1}",
    )
    first = site.called[0].result_type
    for index, called in enumerate(site.called):
        _takes(called, (site.operands[index + 1],), f"(C2) branch {index}")
        require(
            compatible(called.result_type, first),
            f"(C3) all branches must return one type, but branch {index} returns {called.result_type} and branch 0 "
            f"{first}",
        )
    return first if site.result is None else _agreed(first, site.result)


def _agreed(first: Type, declared: Type) -> Type:
    """The declared type, when dynamic sizes are all that tells it from the branches'."""
    return declared if compatible(first, declared) else first


def _infer_if(site: Site) -> Type:
    predicate = site.tensor(0)
    require(
        predicate.element is I1 and predicate.rank == 0,
        f"(C1) the predicate must be an i1 scalar, but is {predicate}",
    )
    return _infer_branches(site)


def _if(evaluation: Evaluation, predicate: Array, on_true: Value, on_false: Value) -> Value:
    return evaluation.call(0, on_true) if bool(predicate) else evaluation.call(1, on_false)


def _infer_case(site: Site) -> Type:
    index = site.tensor(0)
    require(
        index.element is element("i32") and index.rank == 0,
        f"the index must be an i32 scalar, but is {index}",
    )
    return _infer_branches(site)


def _case(evaluation: Evaluation, index: Array, *captured: Value) -> Value:
    chosen = int(index)
    if not 0 <= chosen < len(captured):
        chosen = len(captured) - 1
    return evaluation.call(chosen, captured[chosen])


def _infer_call(site: Site) -> Type:
    _takes(site.called[0], tuple(site.operands), "the called function")
    return site.called[0].result_type


def _call(evaluation: Evaluation, *operands: Value) -> Value:
    return evaluation.call(0, *operands)


def _infer_composite(site: Site) -> Type:
    _takes(site.called[0], tuple(site.operands), "(C3) the decomposition")
    name = str(site.attributes["name"])
    require(
        _COMPOSITE_NAME.fullmatch(name) is not None,
        f"(C1) the name must be two or more words with dots between, but is '{name}'",
    )
    return site.called[0].result_type


def _verify_results(site: Site) -> None:
    """Results of calls are the callee's, element by element; a dynamic size may stand for a static one."""
    assert site.result is not None
    made, declared = outputs(site.called[0].result_type), outputs(site.result)
    require(len(made) == len(declared), f"returns {len(made)} values, but {len(declared)} are declared")
    if isinstance(site.result, TupleType) and not isinstance(site.called[0].result_type, TupleType):
        require(False, f"returns {site.called[0].result_type}, but {site.result} is declared")


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "while",
        _infer_while,
        _while,
        arity=1,
        regions=("condition", "body"),
        traits=_CONTROL,
        spec="StableHLO, while",
    ),
    Operation(
        "if",
        _infer_if,
        _if,
        arity=3,
        regions=("true_computation", "false_computation"),
        traits=_CONTROL,
        hlo="conditional",
        spec="StableHLO, if",
    ),
    Operation(
        "case",
        _infer_case,
        _case,
        arity=VARIADIC,
        regions=("branch_computations*",),
        traits=_CONTROL,
        hlo="conditional",
        spec="StableHLO, case",
    ),
    Operation(
        "call",
        _infer_call,
        _call,
        arity=VARIADIC,
        regions=("to_apply",),
        verify=_verify_results,
        traits=_CONTROL,
        spec="HLO, call",
    ),
    Operation(
        "composite",
        _infer_composite,
        _call,
        arity=VARIADIC,
        attributes=(
            Attribute("name", "str", required=True),
            Attribute("composite_attributes", "record"),
            Attribute("version", "i64", 0),
        ),
        regions=("to_apply",),
        verify=_verify_results,
        traits=_CONTROL,
        spec="StableHLO, composite",
    ),
    Operation(
        "fusion",
        _infer_call,
        _call,
        arity=VARIADIC,
        attributes=(
            Attribute("kind", "enum", required=True, values=("kLoop", "kInput", "kOutput", "kCustom")),
        ),
        regions=("calls",),
        verify=_verify_results,
        traits=frozenset((Trait.CONTROL, Trait.HLO_ONLY)),
        spec="HLO, fusion",
    ),
)
