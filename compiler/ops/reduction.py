"""Reductions over whole dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler.ir.program import Computation
from compiler.ir.semantics import OperationError
from compiler.ir.types import DYNAMIC, TensorType, Type
from compiler.ops.applied import check_reducer, grouped, promoted, scalar_results
from compiler.ops.constraints import (
    merged_shape,
    require,
    require_in_range,
    require_unique,
    same_shape,
)
from compiler.ops.folding import Folder, dimensions_first, reduce_leading
from compiler.ops.record import VARIADIC, Array, Attribute, Evaluation, Operation, Site, Value


def halves(site: Site) -> tuple[tuple[TensorType, ...], tuple[TensorType, ...]]:
    """Inputs and initial values, of which there must be as many."""
    tensors = site.tensors
    require(
        len(tensors) > 0 and len(tensors) % 2 == 0,
        f"(C3) needs one initial value for each input, but has {len(tensors)} operands",
    )
    middle = len(tensors) // 2
    return tensors[:middle], tensors[middle:]


def common_shape(inputs: Sequence[TensorType], constraint: str) -> tuple[int, ...]:
    """The shape that all inputs have. Raises OperationError when they differ."""
    shape = merged_shape(inputs)
    require(
        shape is not None, f"{constraint} inputs must have one shape, but are {', '.join(map(str, inputs))}"
    )
    assert shape is not None
    return shape


def check_inits(inits: Sequence[TensorType], results: Sequence[TensorType], constraint: str) -> None:
    """Initial values must have the shape that the computation works on, which is a scalar's but for old programs."""
    for index, (init, result) in enumerate(zip(inits, results, strict=True)):
        wanted = f"be like {result}" if result.rank else "be a scalar"
        require(
            same_shape(init.shape, result.shape),
            f"{constraint} initial value #{index} must {wanted}, but is {init}",
        )


def require_scalars(computation: Computation) -> None:
    """Evaluation takes computations on scalars alone. Raises OperationError for others."""
    for kind in computation.parameter_types:
        if isinstance(kind, TensorType) and kind.rank:
            raise OperationError(
                f"a reduction by a computation on {kind} has no meaning that could be evaluated"
            )


def _infer_reduce(site: Site) -> Type:
    inputs, inits = halves(site)
    shape = common_shape(inputs, "(C1)")
    dimensions = site.attributes["dimensions"]
    require_in_range(dimensions, len(shape), "(C4) dimensions must be the inputs'")
    require_unique(dimensions, "(C5) dimensions must not repeat")
    left = tuple(size for d, size in enumerate(shape) if d not in dimensions)
    found = scalar_results(site.called[0], len(inputs), "(C6)", left)
    check_inits(inits, found, "(C2)")
    return grouped([TensorType(entry.element, left) for entry in found])


def _verify_reduce(site: Site) -> None:
    inputs, inits = halves(site)
    dimensions = site.attributes["dimensions"]
    left = [size for d, size in enumerate(inputs[0].shape) if d not in dimensions]
    check_reducer(site, inputs, inits, "(C6)", "(C2)", left)


def _reduce(evaluation: Evaluation, *operands: Array) -> Value:
    require_scalars(evaluation.called[0])
    count = len(operands) // 2
    dimensions = sorted(evaluation.attributes["dimensions"])
    arrays = promoted(evaluation, operands, evaluation.operand_types)
    folder = Folder(evaluation)
    if folder.ufunc is not None:
        found = _reduce_fast(folder, arrays[0], arrays[1], tuple(dimensions))
    else:
        leading = [dimensions_first(array, dimensions) for array in arrays[:count]]
        found = reduce_leading(folder, leading, arrays[count:])
    return found[0] if count == 1 else found


def _reduce_fast(folder: Folder, array: Array, init: Array, dimensions: tuple[int, ...]) -> tuple[Array, ...]:
    """By NumPy's own reductions where the order of zeros and NaN does not matter, without moving dimensions."""
    assert folder.ufunc is not None
    if not dimensions or folder.opcode in ("maximum", "minimum") or array.size == 0:
        return reduce_leading(folder, [dimensions_first(array, dimensions)], [init])
    (start,) = folder.enter([np.broadcast_to(init, ())])
    with np.errstate(all="ignore"):
        if folder.opcode in ("add", "multiply"):
            wide = (
                np.float64
                if folder.element.is_float
                else np.complex128
                if folder.element.is_complex
                else None
            )
            values = array if wide is not None and array.dtype.kind in "fc" else folder.enter([array])[0]
            # NumPy's own neutral element, +0, would make +0 of a sum of nothing but -0.
            neutral: dict[str, Any] = {}
            if wide is not None and folder.opcode == "add":
                neutral["initial"] = complex(-0.0, -0.0) if folder.element.is_complex else -0.0
            folded = folder.ufunc.reduce(values, axis=dimensions, dtype=wide or values.dtype, **neutral)
        else:
            folded = folder.ufunc.reduce(folder.enter([array])[0], axis=dimensions)
        return folder.leave([np.asarray(folder.ufunc(start, folded))])


def _flops_of_reduce(site: Site) -> float:
    size = site.tensor(0).size if DYNAMIC not in site.tensor(0).shape else 0
    return float(size * max(1, len(site.called[0]) - len(site.called[0].parameters)))


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "reduce",
        _infer_reduce,
        _reduce,
        arity=VARIADIC,
        attributes=(Attribute("dimensions", "i64s", required=True),),
        regions=("to_apply",),
        verify=_verify_reduce,
        flops=_flops_of_reduce,
        spec="StableHLO, reduce",
    ),
)
