"""A kernel as loops: axes, what is stored where, and the schedule; what backends emit and people are shown.

Built from a fusion's computation: one loop a result dimension, split where a reshape asks for it, then neighbours are
collapsed wherever every index allows, and ordered as the result lies in memory. A reduction at the root keeps its folded
axes apart, so that the backend may choose how to run them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from compiler.ir.literal import Literal
from compiler.ir.program import Computation
from compiler.ir.types import ElementType, TensorType, TupleType
from compiler.kernel.elemental import Fold, Load, Node, dynamic_nodes, indices_of, walk
from compiler.kernel.expansion import CannotExpand, Expansion, fold_of_reduce, plain
from compiler.kernel.index_expression import (
    ZERO,
    Axis,
    Dynamic,
    Index,
    NeedsSplit,
    Quotient,
    Remainder,
    axis_index,
    dot,
    linearise,
    physical_strides,
)
from compiler.kernel.index_map import Indices
from compiler.kernel.substitution import Substitution

_MOST_SPLITS = 24


@dataclass(frozen=True, slots=True)
class Store:
    """Element `offset` of result `result` becomes `value`."""

    result: int
    element: ElementType
    offset: Index
    value: Node


@dataclass(frozen=True, slots=True)
class LoopNest:
    """`for every point of axes: do the stores`. `axes` are outermost first.

    Attributes:
        axes: the loops.
        stores: what each point stores.
        tables: constants the kernel carries; operand -1 - n of a Load is table n.
        folded: the axes of a reduction at the root, outermost first; empty without one.
        update_of: the operand that result 0 starts as a copy of; the loops overwrite a part of it.
        updated_bytes: the size of that operand.
        window: whether folds over a window are meant to run inside the loops.
    """

    axes: tuple[Axis, ...]
    stores: tuple[Store, ...]
    tables: tuple[Literal, ...] = ()
    folded: tuple[Axis, ...] = ()
    update_of: int | None = None
    updated_bytes: int = 0
    window: bool = False

    @property
    def roots(self) -> tuple[Node, ...]:
        """The stored values."""
        return tuple(store.value for store in self.stores)

    @property
    def points(self) -> int:
        """Iterations of all loops together."""
        return prod(axis.extent for axis in (*self.axes, *self.folded))

    @property
    def nodes(self) -> list[Node]:
        """All nodes, operands first."""
        starts = [node for store in self.stores for node in dynamic_nodes(store.offset)]
        return list(walk((*starts, *self.roots)))


@dataclass
class _Dimensions:
    """The loops of each dimension: one, or several after splits. Dimensions of one element have none."""

    factors: list[list[int]]
    axes: list[list[Axis]]

    @classmethod
    def of(cls, shape: Sequence[int], factors: Mapping[int, list[int]], first: int) -> _Dimensions:
        """One loop a dimension, or as `factors` says."""
        chosen = [list(factors.get(d, [size])) for d, size in enumerate(shape)]
        axes: list[list[Axis]] = []
        for sizes in chosen:
            axes.append([])
            for size in sizes:
                if size != 1:
                    axes[-1].append(Axis(first, size))
                    first += 1
        return cls(chosen, axes)

    @property
    def flat(self) -> list[Axis]:
        """All loops."""
        return [axis for axes in self.axes for axis in axes]

    def indices(self) -> Indices:
        """One index expression a dimension."""
        found: list[Index] = []
        for axes in self.axes:
            sizes = tuple(axis.extent for axis in axes)
            found.append(linearise([axis_index(axis) for axis in axes], sizes) if axes else ZERO)
        return tuple(found)

    def split(self, axis: Axis, inner: int) -> dict[int, list[int]] | None:
        """The factors after splitting a loop; None when it is not one of these."""
        for dimension, axes in enumerate(self.axes):
            if axis in axes:
                sizes = [entry.extent for entry in axes]
                place = axes.index(axis)
                sizes[place : place + 1] = [axis.extent // inner, inner]
                return {
                    d: sizes if d == dimension else [entry.extent for entry in own] or [1]
                    for d, own in enumerate(self.axes)
                }
        return None


def nest_of(computation: Computation, computations: Mapping[str, Computation]) -> LoopNest:
    """The loop nest of a fusion's computation whose root is no variadic or nested reduction.

    Raises:
        CannotExpand: something in it has no elemental form.
    """
    root = computation.root_instruction
    names = root.operands if root.opcode == "tuple" else (root.name,)
    if root.opcode != "tuple" and isinstance(root.type, TupleType):
        if root.opcode != "reduce":
            raise CannotExpand(f"{root.opcode} has several results")
        types = [kind for kind in root.type.elements if isinstance(kind, TensorType)]
    else:
        types = [computation[name].tensor for name in names]
    if any(kind.shape != types[0].shape for kind in types):
        raise CannotExpand("the results have different shapes")
    in_place = root.opcode == "dynamic_update_slice" and computation[root.operands[0]].opcode == "parameter"
    if in_place:
        return _tidied(_update_nest(computation, computations))
    outer: dict[int, list[int]] = {}
    inner: dict[int, list[int]] = {}
    reduced = root.opcode == "reduce"
    folded_shape = _folded_shape(computation) if reduced else ()
    for attempt in range(_MOST_SPLITS):
        kept = _Dimensions.of(types[0].shape, outer, 0)
        folded = _Dimensions.of(folded_shape, inner, 500)
        expansion = Expansion(computation, computations, split=attempt < _MOST_SPLITS - 1)
        try:
            return _tidied(_expanded(expansion, names, types, kept, folded if reduced else None))
        except NeedsSplit as request:
            changed = kept.split(request.axis, request.inner)
            if changed is not None:
                outer = changed
                continue
            inner = folded.split(request.axis, request.inner) or inner
    raise CannotExpand("its loops cannot be split finely enough")


def _folded_shape(computation: Computation) -> tuple[int, ...]:
    root = computation.root_instruction
    operand = computation[root.operands[0]].tensor
    return tuple(operand.shape[d] for d in sorted(root.attributes["dimensions"]))


def _expanded(
    expansion: Expansion,
    names: Sequence[str],
    types: Sequence[TensorType],
    kept: _Dimensions,
    folded: _Dimensions | None,
) -> LoopNest:
    at = kept.indices()
    if folded is None:
        values = [expansion.value(name, at) for name in names]
    else:
        root = expansion.computation.root_instruction
        values = list(fold_of_reduce(expansion, root, at, folded.indices(), folded.flat))
    stores = []
    for number, (kind, value) in enumerate(zip(types, values, strict=True)):
        offset = dot(at, physical_strides(kind.shape, kind.minor_to_major))
        stores.append(Store(number, plain(kind), offset, value))
    axes = sorted(kept.flat, key=lambda axis: -stores[0].offset.coefficient(axis))
    return LoopNest(tuple(axes), tuple(stores), tuple(expansion.tables), tuple(folded.flat if folded else ()))


def _update_nest(computation: Computation, computations: Mapping[str, Computation]) -> LoopNest:
    """A dynamic_update_slice at the root: loops over the update alone."""
    from compiler.kernel.expansion import starts_of

    root = computation.root_instruction
    operand, update = (computation[name].tensor for name in root.operands[:2])
    factors: dict[int, list[int]] = {}
    for attempt in range(_MOST_SPLITS):
        own = _Dimensions.of(update.shape, factors, 0)
        expansion = Expansion(computation, computations, split=attempt < _MOST_SPLITS - 1)
        at = own.indices()
        try:
            value = expansion.value(root.operands[1], at)
            starts = starts_of(expansion, root.operands[2:], operand, update.shape)
        except NeedsSplit as request:
            factors = own.split(request.axis, request.inner) or factors
            continue
        strides = physical_strides(root.tensor.shape, root.tensor.minor_to_major)
        offset = dot([start + index for start, index in zip(starts, at, strict=True)], strides)
        store = Store(0, plain(root.tensor), offset, value)
        axes = sorted(own.flat, key=lambda axis: -offset.coefficient(axis))
        index = computation[root.operands[0]].attributes["index"]
        return LoopNest(tuple(axes), (store,), tuple(expansion.tables), (), index, root.tensor.bytes)
    raise CannotExpand("its loops cannot be split finely enough")


def concatenation_nests(computation: Computation) -> list[tuple[int, LoopNest]]:
    """A concatenation of parameters as one nest an operand: its number, and a copy into its part of the result.

    The copied operand is operand 0 of its nest.

    Raises:
        CannotExpand: the elements have no elemental form.
    """
    root = computation.root_instruction
    strides = physical_strides(root.tensor.shape, root.tensor.minor_to_major)
    start, nests = 0, []
    for number, name in enumerate(root.operands):
        kind = computation[name].tensor
        own = _Dimensions.of(kind.shape, {}, 0)
        at = own.indices()
        offset = dot(at, strides) + start * strides[root.attributes["dimension"]]
        start += kind.shape[root.attributes["dimension"]]
        place = dot(at, physical_strides(kind.shape, kind.minor_to_major))
        value = Load(plain(kind), place.axes(), name, 0, place)
        axes = sorted(own.flat, key=lambda axis, offset=offset: -offset.coefficient(axis))  # type: ignore[misc]
        if kind.size:
            nests.append((number, _tidied(LoopNest(tuple(axes), (Store(0, plain(kind), offset, value),)))))
    return nests


def _all_indices(nest: LoopNest) -> list[Index]:
    found = [store.offset for store in nest.stores]
    for node in nest.nodes:
        found += indices_of(node)
    return list(dict.fromkeys(found))


def _joinable(indices: Sequence[Index], outer: Axis, inner: Axis) -> bool:
    """Whether two loops may become one: every index steps over the outer as over whole rows of the inner."""
    for index in indices:
        if index.coefficient(outer) != index.coefficient(inner) * inner.extent:
            return False
        for atom, _ in index.terms:
            if isinstance(atom, (Quotient, Remainder)) and not _joinable((atom.expression,), outer, inner):
                return False
    return True


def _tidied(nest: LoopNest) -> LoopNest:
    """Collapses neighbouring loops, and orders the folded ones as the largest input lies in memory."""
    if nest.folded:
        nest = replace(nest, folded=_by_stride(nest))
    changed = True
    while changed:
        changed = False
        indices = _all_indices(nest)
        for group in (nest.axes, nest.folded):
            for outer, inner in pairwise(group):
                if _joinable(indices, outer, inner):
                    nest = _joined(nest, outer, inner)
                    changed = True
                    break
            if changed:
                break
    return nest


def _by_stride(nest: LoopNest) -> tuple[Axis, ...]:
    loads = [node for node in nest.nodes if isinstance(node, Load)]
    if not loads:
        return nest.folded
    largest = max(loads, key=lambda load: load.offset.range()[1])
    return tuple(sorted(nest.folded, key=lambda axis: -abs(largest.offset.coefficient(axis))))


def _joined(nest: LoopNest, outer: Axis, inner: Axis) -> LoopNest:
    made = Axis(inner.number, outer.extent * inner.extent)
    change = Substitution({outer: ZERO, inner: axis_index(made)}, {outer: None, inner: made})
    stores = tuple(
        Store(store.result, store.element, change.index(store.offset), change.node(store.value))
        for store in nest.stores
    )

    def axes(group: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(made if axis == inner else axis for axis in group if axis != outer)

    return replace(nest, axes=axes(nest.axes), stores=stores, folded=axes(nest.folded))


__all__ = ["Dynamic", "Fold", "LoopNest", "Store", "nest_of"]
