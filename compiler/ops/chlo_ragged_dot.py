"""CHLO's `ragged_dot`: a matrix product whose rows (or terms) are parted into groups of run-time sizes.

Three modes, by the kind of the left operand's ragged dimension: a free one (each group of rows meets its own right
matrix), a contracting one (each group of terms gives its own product), or a batching one (the groups change nothing).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.ir.literal import Literal
from compiler.ir.program import Attributes
from compiler.ir.types import I1, I64, ElementType, TensorType, Type, tensor
from compiler.ops.constraints import plain, require, require_in_range, require_unique, same_dimension
from compiler.ops.decompose import Builder, splat
from compiler.ops.element_arrays import narrow, widen_twice
from compiler.ops.record import Array, Attribute, Evaluation, Operation, Site, Trait

FREE, CONTRACTING, BATCHING = "free", "contracting", "batching"


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The operation's dimension numbers, and what follows from them."""

    lhs_batching: tuple[int, ...]
    rhs_batching: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]
    ragged: int
    group: tuple[int, ...]

    @property
    def mode(self) -> str:
        """The kind of the ragged dimension."""
        if self.ragged in self.lhs_batching:
            return BATCHING
        return CONTRACTING if self.ragged in self.lhs_contracting else FREE

    def lhs_free(self, rank: int) -> tuple[int, ...]:
        """Left dimensions that are neither batching nor contracting."""
        return tuple(d for d in range(rank) if d not in (*self.lhs_batching, *self.lhs_contracting))

    def rhs_free(self, rank: int) -> tuple[int, ...]:
        """Right dimensions that are neither batching, contracting nor of groups."""
        taken = (*self.rhs_batching, *self.rhs_contracting, *self.group)
        return tuple(d for d in range(rank) if d not in taken)

    def outer(self, rank: int) -> tuple[int, ...]:
        """Left dimensions that group sizes may vary along, in the order in which they have them."""
        if self.mode == BATCHING:
            return self.lhs_batching[: self.lhs_batching.index(self.ragged)]
        peers = self.lhs_free(rank) if self.mode == FREE else self.lhs_contracting
        return (*self.lhs_batching, *peers[: peers.index(self.ragged)])


def dimensions_of(attributes: Mapping[str, Any]) -> Dimensions:
    """The dimension numbers, held as one record. Raises OperationError unless one dimension is ragged."""
    record = attributes["ragged_dot_dimension_numbers"]
    ragged = record.get("lhs_ragged_dimensions", ())
    require(len(ragged) == 1, f"there must be one lhs_ragged_dimensions entry, not {list(ragged)}")

    def listed(name: str) -> tuple[int, ...]:
        return tuple(record.get(f"{name}_dimensions", ()))

    return Dimensions(
        listed("lhs_batching"),
        listed("rhs_batching"),
        listed("lhs_contracting"),
        listed("rhs_contracting"),
        ragged[0],
        listed("rhs_group"),
    )


def _check(lhs: TensorType, rhs: TensorType, numbers: Dimensions) -> None:
    pairs = (
        ("batching", numbers.lhs_batching, numbers.rhs_batching),
        ("contracting", numbers.lhs_contracting, numbers.rhs_contracting),
    )
    require_unique((*numbers.lhs_batching, *numbers.lhs_contracting), "lhs dimensions must not repeat")
    require_unique(
        (*numbers.rhs_batching, *numbers.rhs_contracting, *numbers.group), "rhs dimensions must not repeat"
    )
    for name, left, right in pairs:
        require(len(left) == len(right), f"lhs and rhs must have as many {name} dimensions")
        require_in_range(left, lhs.rank, f"{name} dimensions must be dimensions of lhs")
        require_in_range(right, rhs.rank, f"{name} dimensions must be dimensions of rhs")
        for a, b in zip(left, right, strict=True):
            require(
                same_dimension(lhs.shape[a], rhs.shape[b]),
                f"{name} dimensions {a} of {lhs} and {b} of {rhs} must have one size",
            )
    require_in_range((numbers.ragged,), lhs.rank, "the ragged dimension must be a dimension of lhs")
    require_in_range(numbers.group, rhs.rank, "group dimensions must be dimensions of rhs")
    wanted = 1 if numbers.mode == FREE else 0
    require(
        len(numbers.group) == wanted,
        f"a ragged {numbers.mode} dimension takes {wanted} rhs_group_dimensions, not {len(numbers.group)}",
    )


def _infer(site: Site) -> Type:
    lhs, rhs, sizes = site.tensors
    numbers = dimensions_of(site.attributes)
    _check(lhs, rhs, numbers)
    require(sizes.element.is_integer and sizes.rank >= 1, f"group_sizes must hold integers, but is {sizes}")
    outer = tuple(lhs.shape[d] for d in numbers.outer(lhs.rank))
    require(
        sizes.rank == 1
        or (all(map(same_dimension, sizes.shape[:-1], outer)) and sizes.rank == len(outer) + 1),
        f"group_sizes must be a vector or have the leading dimensions {list(outer)}, but is {sizes}",
    )
    if numbers.group:
        found = rhs.shape[numbers.group[0]]
        require(
            same_dimension(found, sizes.shape[-1]), f"rhs holds {found} groups, but group_sizes is {sizes}"
        )
    shape = (
        *(lhs.shape[d] for d in numbers.lhs_batching),
        *(lhs.shape[d] for d in numbers.lhs_free(lhs.rank)),
        *(rhs.shape[d] for d in numbers.rhs_free(rhs.rank)),
    )
    if numbers.mode == CONTRACTING:
        shape = (sizes.shape[-1], *shape)
    element = site.result.element if isinstance(site.result, TensorType) else lhs.element
    return TensorType(element, shape)


def group_mask(sizes: Array, shape: tuple[int, ...], numbers: Dimensions) -> Array:
    """For each group, which elements of the left operand belong to it: booleans of shape (groups, *lhs)."""
    ends = np.cumsum(sizes.astype(np.int64), axis=-1)
    starts = ends - sizes
    place = np.arange(shape[numbers.ragged]).reshape(
        [-1 if d == numbers.ragged else 1 for d in range(len(shape))]
    )
    outer = numbers.outer(len(shape))

    def along(bounds: Array) -> Array:
        moved = np.moveaxis(bounds, -1, 0)
        if bounds.ndim == 1:
            return moved.reshape(-1, *(1,) * len(shape))
        order = np.argsort(outer)
        moved = moved.transpose(0, *(1 + order))
        return moved.reshape(moved.shape[0], *(shape[d] if d in outer else 1 for d in range(len(shape))))

    return np.broadcast_to((along(starts) <= place) & (place < along(ends)), (sizes.shape[-1], *shape))


def _evaluate(evaluation: Evaluation, lhs: Array, rhs: Array, sizes: Array) -> Array:
    numbers = dimensions_of(evaluation.attributes)
    kinds = [plain(entry.element) for entry in evaluation.operand_types if isinstance(entry, TensorType)]
    result = evaluation.result
    assert isinstance(result, TensorType)
    left, right = (widen_twice(x, kind) for x, kind in zip((lhs, rhs), kinds, strict=False))
    letters = _letters(numbers, lhs.ndim, rhs.ndim)
    with np.errstate(all="ignore"):
        if numbers.mode == BATCHING:
            found = np.einsum(f"{letters.lhs},{letters.rhs}->{letters.result}", left, right)
        else:
            masked = np.where(group_mask(sizes, lhs.shape, numbers), left, left.dtype.type(0))
            target = f"Z{letters.result}" if numbers.mode == CONTRACTING else letters.result
            found = np.einsum(f"Z{letters.lhs},{letters.rhs}->{target}", masked, right, optimize=True)
        return narrow(found, plain(result.element))


@dataclass(frozen=True, slots=True)
class _Letters:
    lhs: str
    rhs: str
    result: str


def _letters(numbers: Dimensions, lhs_rank: int, rhs_rank: int) -> _Letters:
    left = [chr(ord("a") + d) for d in range(lhs_rank)]
    right = [chr(ord("A") + d) for d in range(rhs_rank)]
    pairs = (
        *zip(numbers.lhs_batching, numbers.rhs_batching, strict=True),
        *zip(numbers.lhs_contracting, numbers.rhs_contracting, strict=True),
    )
    for a, b in pairs:
        right[b] = left[a]
    for d in numbers.group:
        right[d] = "Z"
    result = [left[d] for d in (*numbers.lhs_batching, *numbers.lhs_free(lhs_rank))]
    result += [right[d] for d in numbers.rhs_free(rhs_rank)]
    return _Letters("".join(left), "".join(right), "".join(result))


def _decompose(builder: Builder, lhs: str, rhs: str, sizes: str) -> str:
    """The left operand once for each group, the others' elements zeroed, then one `dot_general`."""
    numbers = dimensions_of(builder.attributes)
    precision = {k: v for k, v in builder.attributes.items() if k == "precision_config"}
    product = {
        "lhs_batching_dimensions": numbers.lhs_batching,
        "rhs_batching_dimensions": numbers.rhs_batching,
        "lhs_contracting_dimensions": numbers.lhs_contracting,
        "rhs_contracting_dimensions": numbers.rhs_contracting,
    }
    if numbers.mode == BATCHING:
        return builder.add(
            "dot_general", (lhs, rhs), type=builder.result, attributes=Attributes(**product, **precision)
        )
    masked = _masked(builder, lhs, sizes, numbers)
    shifted = {name: tuple(d + 1 for d in product[name]) for name in product if name.startswith("lhs")}
    product |= shifted
    if numbers.mode == FREE:
        product["lhs_contracting_dimensions"] = (0, *product["lhs_contracting_dimensions"])
        product["rhs_contracting_dimensions"] = (*numbers.group, *numbers.rhs_contracting)
        return builder.add(
            "dot_general", (masked, rhs), type=builder.result, attributes=Attributes(**product, **precision)
        )
    return _grouped_product(
        builder, masked, rhs, Attributes(**product, **precision), len(numbers.lhs_batching)
    )


def _grouped_product(builder: Builder, lhs: str, rhs: str, attributes: Attributes, batches: int) -> str:
    """A product with the groups as a free dimension, brought to the front."""
    result = builder.result
    assert isinstance(result, TensorType)
    order = (*range(1, batches + 1), 0, *range(batches + 1, result.rank))
    inner = result.with_shape(tuple(result.shape[d] for d in order))
    product = builder.add("dot_general", (lhs, rhs), type=inner, attributes=attributes)
    permutation = tuple(int(d) for d in np.argsort(order))
    return builder.add("transpose", (product,), attributes=Attributes(permutation=permutation))


def _masked(builder: Builder, lhs: str, sizes: str, numbers: Dimensions) -> str:
    kind, held = builder.type_of(lhs), builder.type_of(sizes)
    assert isinstance(kind, TensorType) and isinstance(held, TensorType)
    groups = held.shape[-1]
    whole = kind.with_shape((groups, *kind.shape))
    counts = builder.add("convert", (sizes,), type=tensor(I64, *held.shape))
    ends = _running_sum(builder, counts, held.shape)
    starts = builder.add("subtract", (ends, counts))
    # The groups' dimension is a bound's last, and the first of the masked operand.
    outer = numbers.outer(kind.rank) if held.rank > 1 else ()
    place = Attributes(broadcast_dimensions=(*(d + 1 for d in outer), 0))
    shape = tensor(I64, *whole.shape)
    low, high = (builder.add("broadcast_in_dim", (b,), type=shape, attributes=place) for b in (starts, ends))
    index = builder.add("iota", type=shape, attributes=Attributes(iota_dimension=numbers.ragged + 1))
    above = _compare(builder, low, "LE", index)
    inside = builder.add("and", (above, _compare(builder, index, "LT", high)), type=tensor(I1, *whole.shape))
    copies = Attributes(broadcast_dimensions=tuple(range(1, kind.rank + 1)))
    repeated = builder.add("broadcast_in_dim", (lhs,), type=whole, attributes=copies)
    return builder.add("select", (inside, repeated, splat(builder, whole, 0)), type=whole)


def _compare(builder: Builder, left: str, direction: str, right: str) -> str:
    return builder.add(
        "compare", (left, right), attributes=Attributes(comparison_direction=direction, compare_type="SIGNED")
    )


def _running_sum(builder: Builder, counts: str, shape: Sequence[int]) -> str:
    """Inclusive sums along the last dimension, as a product with a triangle of ones."""
    groups = shape[-1]
    triangle = Literal(tensor(I64, groups, groups), np.triu(np.ones((groups, groups), np.int64)))
    ones = builder.add("constant", type=triangle.type, attributes=Attributes(value=triangle))
    attributes = Attributes(
        lhs_batching_dimensions=(),
        rhs_batching_dimensions=(),
        lhs_contracting_dimensions=(len(shape) - 1,),
        rhs_contracting_dimensions=(0,),
    )
    return builder.add("dot_general", (counts, ones), type=tensor(I64, *shape), attributes=attributes)


def _flops(site: Site) -> float:
    numbers, lhs = dimensions_of(site.attributes), site.tensor(0)
    terms = float(np.prod([lhs.shape[d] for d in numbers.lhs_contracting], dtype=np.float64))
    assert isinstance(site.result, TensorType) and isinstance(site.result.element, ElementType)
    return 2.0 * terms * site.result.size


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "chlo.ragged_dot",
        _infer,
        _evaluate,
        arity=3,
        attributes=(
            Attribute("ragged_dot_dimension_numbers", "record", required=True),
            Attribute("precision_config", "any"),
        ),
        traits=frozenset((Trait.CHLO,)),
        flops=_flops,
        spec="CHLO, ragged_dot",
        decompose=_decompose,
    ),
)
