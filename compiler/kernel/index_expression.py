"""Index arithmetic: sums of integer multiples of loop axes, and what does not fit that form as opaque atoms.

The elemental expansion describes every access of a kernel by such expressions; loops are collapsed, vectorised and
printed from them. Expressions are values: equal ones compare and hash equal, so accesses can be shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compiler.kernel.elemental import Node


@dataclass(frozen=True, slots=True)
class Axis:
    """One loop of a nest, running from 0 to `extent` - 1. `number` orders and names it."""

    number: int
    extent: int

    def __str__(self) -> str:
        return f"i{self.number}"


@dataclass(frozen=True, slots=True)
class Quotient:
    """`floor(expression / divisor)`, where that is no sum of axes."""

    expression: Index
    divisor: int

    def __str__(self) -> str:
        return f"({self.expression} / {self.divisor})"


@dataclass(frozen=True, slots=True)
class Remainder:
    """`expression mod divisor`, where that is no sum of axes."""

    expression: Index
    divisor: int

    def __str__(self) -> str:
        return f"({self.expression} % {self.divisor})"


@dataclass(frozen=True, slots=True)
class Dynamic:
    """An index read at run time, clamped into `[0, limit]`; nodes are compared by identity."""

    node: Node
    limit: int

    def __str__(self) -> str:
        return f"clamp({self.node.label}, 0, {self.limit})"


Atom = Axis | Quotient | Remainder | Dynamic


class NeedsSplit(Exception):
    """A division would be exact if `axis` were two loops, the inner one of `inner` iterations."""

    def __init__(self, axis: Axis, inner: int) -> None:
        super().__init__(f"{axis} by {inner}")
        self.axis = axis
        self.inner = inner


@dataclass(frozen=True, slots=True)
class Index:
    """`constant + sum of coefficient * atom`; atoms are unique and no coefficient is 0."""

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.terms, self.constant + other) if other else self
        if not other.terms:
            return self + other.constant
        return _sum(((self, 1), (other, 1)))

    def __sub__(self, other: Index | int) -> Index:
        return self + (-other if isinstance(other, int) else other * -1)

    def __mul__(self, factor: int) -> Index:
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        return Index(tuple((atom, count * factor) for atom, count in self.terms), self.constant * factor)

    def __str__(self) -> str:
        parts = [str(atom) if count == 1 else f"{count}*{atom}" for atom, count in self.terms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")

    def coefficient(self, axis: Axis) -> int:
        """The factor of an axis where it stands alone."""
        for atom, count in self.terms:
            if atom == axis:
                return count
        return 0

    @property
    def is_affine(self) -> bool:
        """Whether it is a sum of axes alone."""
        return all(isinstance(atom, Axis) for atom, _ in self.terms)

    def axes(self) -> frozenset[Axis]:
        """All axes it depends on, also inside atoms."""
        found: set[Axis] = set()
        for atom, _ in self.terms:
            found |= atom_axes(atom)
        return frozenset(found)

    def range(self) -> tuple[int, int]:
        """The smallest and the largest value it can take (bounds, exact for independent axes)."""
        low = high = self.constant
        for atom, count in self.terms:
            first, last = _atom_range(atom)
            low += min(count * first, count * last)
            high += max(count * first, count * last)
        return low, high

    def divided(self, divisor: int, *, split: bool = False) -> tuple[Index, Index]:
        """Quotient and remainder by a positive divisor.

        Raises:
            NeedsSplit: with `split`, when splitting an axis would make both sums of axes.
        """
        if divisor == 1:
            return self, ZERO
        whole = Index(
            tuple((atom, count // divisor) for atom, count in self.terms if count % divisor == 0),
            self.constant // divisor,
        )
        rest = Index(
            tuple((atom, count) for atom, count in self.terms if count % divisor), self.constant % divisor
        )
        low, high = rest.range()
        if low >= 0 and high < divisor:
            return whole, rest
        if split:
            _look_for_split(rest, divisor)
        if low < 0:
            # Division rounds down; a dividend that is never negative needs no care about that.
            turns = -(low // divisor)
            whole, rest = whole - turns, rest + turns * divisor
        return whole + Index(((Quotient(rest, divisor), 1),)), Index(((Remainder(rest, divisor), 1),))


ZERO = Index()


def axis_index(axis: Axis) -> Index:
    """The axis itself as an expression."""
    return Index(((axis, 1),))


def constant_index(value: int) -> Index:
    """A known index."""
    return Index((), value)


def dot(indices: Iterable[Index], strides: Iterable[int]) -> Index:
    """`sum of index * stride`."""
    return _sum(tuple(zip(indices, strides, strict=True)))


def atom_axes(atom: Atom) -> frozenset[Axis]:
    """The axes an atom depends on."""
    if isinstance(atom, Axis):
        return frozenset((atom,))
    if isinstance(atom, Dynamic):
        return atom.node.axes
    return atom.expression.axes()


def _atom_range(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Axis):
        return 0, atom.extent - 1
    if isinstance(atom, Dynamic):
        return 0, atom.limit
    if isinstance(atom, Remainder):
        return 0, atom.divisor - 1
    low, high = atom.expression.range()
    return low // atom.divisor, high // atom.divisor


def _look_for_split(rest: Index, divisor: int) -> None:
    for atom, count in rest.terms:
        if isinstance(atom, Axis) and divisor % count == 0:
            inner = divisor // abs(count)
            if 1 < inner < atom.extent and atom.extent % inner == 0:
                raise NeedsSplit(atom, inner)


def _sum(parts: Iterable[tuple[Index, int]]) -> Index:
    totals: dict[Atom, int] = {}
    constant = 0
    for index, factor in parts:
        if not factor:
            continue
        constant += index.constant * factor
        for atom, count in index.terms:
            totals[atom] = totals.get(atom, 0) + count * factor
    if any(isinstance(atom, Remainder) for atom in totals):
        constant += _rejoin(totals)
    terms = [(atom, count) for atom, count in totals.items() if count]
    terms.sort(key=_axes_first)
    return Index(tuple(terms), constant)


def _axes_first(term: tuple[Atom, int]) -> tuple[int, int]:
    return (0, term[0].number) if isinstance(term[0], Axis) else (1, 0)


def _rejoin(totals: dict[Atom, int]) -> int:
    """Undoes divisions: `k*n*(e / n) + k*(e % n)` is `k*e`. Returns what that adds to the constant."""
    constant = 0
    changed = True
    while changed:
        changed = False
        for atom, count in list(totals.items()):
            if not isinstance(atom, Remainder) or not count:
                continue
            twin = Quotient(atom.expression, atom.divisor)
            if totals.get(twin, 0) == count * atom.divisor:
                del totals[atom], totals[twin]
                constant += atom.expression.constant * count
                for inner, times in atom.expression.terms:
                    totals[inner] = totals.get(inner, 0) + times * count
                changed = True
                break
    return constant


def linearise(indices: Iterable[Index], sizes: tuple[int, ...]) -> Index:
    """The row-major number of an element."""
    return dot(indices, row_major_strides(sizes))


def delinearise(number: Index, sizes: tuple[int, ...], *, split: bool = False) -> tuple[Index, ...]:
    """The indices of the element with a row-major number."""
    found: list[Index] = []
    for size in reversed(sizes[1:]):
        number, rest = number.divided(size, split=split)
        found.append(rest)
    if sizes:
        found.append(number)
    return tuple(reversed(found))


def row_major_strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Elements from one index to the next, for each dimension."""
    strides = [1] * len(sizes)
    for dimension in range(len(sizes) - 2, -1, -1):
        strides[dimension] = strides[dimension + 1] * sizes[dimension + 1]
    return tuple(strides)


def physical_strides(sizes: tuple[int, ...], minor_to_major: tuple[int, ...]) -> tuple[int, ...]:
    """Elements from one index to the next, for each dimension of a dense array in some layout."""
    strides = [0] * len(sizes)
    step = 1
    for dimension in minor_to_major:
        strides[dimension] = step
        step *= sizes[dimension]
    return tuple(strides)


def substitute(
    index: Index, replacement: Mapping[Axis, Index], dynamic: Callable[[Dynamic], Dynamic] | None = None
) -> Index:
    """The expression with axes replaced; `dynamic` replaces the indices read at run time."""
    parts: list[tuple[Index, int]] = [(constant_index(index.constant), 1)]
    for atom, count in index.terms:
        if isinstance(atom, Axis):
            parts.append((replacement.get(atom, axis_index(atom)), count))
        elif isinstance(atom, Quotient):
            inner = substitute(atom.expression, replacement, dynamic)
            parts.append((inner.divided(atom.divisor)[0], count))
        elif isinstance(atom, Remainder):
            inner = substitute(atom.expression, replacement, dynamic)
            parts.append((inner.divided(atom.divisor)[1], count))
        else:
            parts.append((Index(((dynamic(atom) if dynamic else atom, 1),)), count))
    return _sum(parts)
