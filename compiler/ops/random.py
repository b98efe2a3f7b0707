"""Random numbers: rng_bit_generator, bit for bit as XLA makes them, and the older rng."""

from __future__ import annotations

import numpy as np

from compiler.ir.semantics import OperationError
from compiler.ir.types import DYNAMIC, UI64, TensorType, TupleType, Type
from compiler.ops.constraints import given_result, plain, require, same_dimension, same_shape
from compiler.ops.element_arrays import narrow
from compiler.ops.random_bits import philox_bits, threefry_bits
from compiler.ops.record import Array, Attribute, Evaluation, Operation, Site, Trait, Value

ALGORITHMS = ("DEFAULT", "THREE_FRY", "PHILOX")
_DISTRIBUTIONS = ("UNIFORM", "NORMAL")
_SEED = 0x5EED


def _infer_generator(site: Site) -> Type:
    state = site.tensor(0)
    require(
        state.rank == 1 and plain(state.element).kind == "uint",
        f"initial_state must be a vector of unsigned integers, but is {state}",
    )
    if not isinstance(site.result, TupleType) or len(site.result.elements) != 2:
        raise OperationError(
            "the result types of rng_bit_generator must be given: the new state and the bits"
        )
    new, output = site.result.elements
    require(isinstance(output, TensorType), f"the second result must be a tensor, but is {output}")
    require(
        isinstance(new, TensorType) and new.rank == 1 and same_dimension(new.shape[0], state.shape[0]),
        f"(C1) the new state must have the type of initial_state, {state}, but is {new}",
    )
    return TupleType((state, output))


def _verify_generator(site: Site) -> None:
    state, algorithm = site.tensor(0), site.attributes["rng_algorithm"]
    assert isinstance(site.result, TupleType)
    output = site.result.elements[1]
    assert isinstance(output, TensorType)
    kind = output.element
    require(kind.is_integer or kind.is_float, f"the bits must be integers or floats, but are {output}")
    if state.element is UI64 and state.shape[0] != DYNAMIC:
        allowed = {"THREE_FRY": (2,), "PHILOX": (2, 3)}.get(algorithm)
        require(
            allowed is None or state.shape[0] in allowed,
            f"(C2) the state of {algorithm} must have {' or '.join(map(str, allowed or ()))} elements, "
            f"not {state.shape[0]}",
        )


def generate(state: Array, algorithm: str, output: TensorType) -> tuple[Array, Array]:
    """New state and random bits of a static type. DEFAULT is Philox, as on XLA's CPU."""
    words = np.ascontiguousarray(state).view(np.uint64) if state.dtype.itemsize < 8 else state
    element = plain(output.element)
    bits = 8 if element.bits < 8 else element.bits
    make = threefry_bits if algorithm == "THREE_FRY" else philox_bits
    with np.errstate(all="ignore"):
        new, values = make(words, output.shape, bits)
        if element.is_float:
            made = values.view(element.dtype) if element.bits >= 8 else values.astype(element.dtype)
        elif element.bits < 8:
            made = narrow(values.astype(np.int64), element)
        else:
            made = values.view(element.dtype)
    return new.view(state.dtype), made


def _generator(evaluation: Evaluation, state: Array) -> Value:
    assert isinstance(evaluation.result, TupleType)
    output = evaluation.result.elements[1]
    assert isinstance(output, TensorType)
    return generate(state, evaluation.attributes["rng_algorithm"], output)


def _infer_rng(site: Site) -> Type:
    low, high, shape = site.tensors
    distribution = site.attributes["rng_distribution"]
    for index, entry in enumerate((low, high)):
        kind = entry.element
        require(
            entry.rank == 0
            and (kind.is_float or (distribution == "UNIFORM" and kind.kind in ("int", "uint", "bool"))),
            f"operand #{index} must be a {'float' if distribution == 'NORMAL' else 'number'}, a scalar, but is {entry}",
        )
    require(low.element == high.element, f"(C1) a and b must have one element type, but are {low} and {high}")
    require(
        shape.rank == 1 and shape.is_static and shape.element.is_integer,
        f"operand #2 must be a static vector of integers, but is {shape}",
    )
    result = given_result(site)
    require(
        result.rank == shape.shape[0],
        f"(C3) the result must have the {shape.shape[0]} dimensions that shape gives, but is {result}",
    )
    return TensorType(low.element, result.shape)


def _verify_rng(site: Site) -> None:
    sizes, result = site.sizes(2), given_result(site)
    require(
        sizes is None or (all(size >= 0 for size in sizes) and same_shape(sizes, result.shape)),
        f"(C3) the result must have the shape {list(sizes or ())}, but is {result}",
    )


def _rng(evaluation: Evaluation, low: Array, high: Array, shape: Array) -> Array:
    result = evaluation.result
    assert isinstance(result, TensorType)
    element, sizes = plain(result.element), tuple(int(size) for size in shape)
    generator = np.random.Generator(np.random.Philox(_SEED))
    if evaluation.attributes["rng_distribution"] == "NORMAL":
        return narrow(
            low.astype(np.float64) + high.astype(np.float64) * generator.standard_normal(sizes), element
        )
    if element.is_float:
        a, b = low.astype(np.float64), high.astype(np.float64)
        drawn = narrow(a + (b - a) * generator.random(sizes), element)
        # Rounding may reach the open upper end.
        return np.asarray(np.where(drawn.astype(np.float64) < b, drawn, low))
    if element.kind == "bool":
        return np.asarray(generator.random(sizes) < 0.5)
    first, last = int(low), int(high)
    if last <= first:
        return np.full(sizes, low)
    drawn = generator.integers(first, last, size=sizes, dtype=np.uint64 if last > 1 << 62 else np.int64)
    return narrow(drawn, element)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "rng_bit_generator",
        _infer_generator,
        _generator,
        arity=1,
        attributes=(Attribute("rng_algorithm", "enum", required=True, values=ALGORITHMS),),
        verify=_verify_generator,
        spec="StableHLO, rng_bit_generator",
    ),
    Operation(
        "rng",
        _infer_rng,
        _rng,
        arity=3,
        attributes=(Attribute("rng_distribution", "enum", required=True, values=_DISTRIBUTIONS),),
        verify=_verify_rng,
        size_operands=(2,),
        traits=frozenset((Trait.NON_DETERMINISTIC,)),
        spec="StableHLO, rng",
    ),
)
