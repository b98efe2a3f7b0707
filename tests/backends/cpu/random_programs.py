"""Random programs of elementwise operations, data movement and reductions, over small whole numbers.

Whole numbers make every sum exact, so that compiled code and interpreter must agree to the last bit.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

from compiler.ir.program import Module
from compiler.ir.types import F32, I1, I32, TensorType
from tests.builder import ComputationBuilder, ModuleBuilder

_BINARY = ("add", "subtract", "maximum", "minimum")
_MOST_ELEMENTS = 40_000


class _Program:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.module = ModuleBuilder()
        self.sum = self.module.reducer("add", F32)
        self.f: ComputationBuilder = self.module.computation("main")
        self.values: dict[str, TensorType] = {}

    def add(self, opcode: str, kind: TensorType, *operands: str, **attributes: object) -> str:
        called = (self.sum,) if opcode == "reduce" else ()
        name = self.f.add(opcode, kind, *operands, called=called, **attributes)
        if kind.element is F32:
            self.values[name] = kind
        return name

    def pick(self) -> tuple[str, TensorType]:
        name = self.random.choice(list(self.values)[-6:])
        return name, self.values[name]

    def like(self, shape: tuple[int, ...]) -> str:
        """A value of a shape: one there is, or a broadcast scalar."""
        found = [name for name, kind in self.values.items() if kind.shape == shape]
        if found:
            return self.random.choice(found)
        name = self.f.constant(np.float32(self.random.randint(-3, 3)))
        return self.add("broadcast_in_dim", TensorType(F32, shape), name, broadcast_dimensions=())

    def step(self) -> None:
        name, kind = self.pick()
        shape, rank, choose = kind.shape, kind.rank, self.random
        moves = ["binary", "binary", "negate", "select", "iota", "broadcast", "reshape", "copy"]
        if rank:
            moves += ["transpose", "slice", "reverse", "pad", "concatenate", "reduce", "dynamic", "update"]
        what = choose.choice(moves)
        if what == "binary":
            self.add(choose.choice(_BINARY), kind, name, self.like(shape))
        elif what in ("negate", "copy"):
            self.add(what, kind, name)
        elif what == "select":
            flags = self.f.add(
                "compare",
                TensorType(I1, shape),
                name,
                self.like(shape),
                comparison_direction="LT",
                compare_type="FLOAT",
            )
            self.add("select", kind, flags, self.like(shape), name)
        elif what == "iota" and rank:
            number = self.f.add("iota", TensorType(I32, shape), iota_dimension=choose.randrange(rank))
            self.add("add", kind, name, self.add("convert", kind, number))
        elif what == "broadcast":
            self._broadcast(name, kind)
        elif what == "reshape":
            self._reshape(name, kind)
        elif what == "transpose":
            order = tuple(choose.sample(range(rank), rank))
            self.add("transpose", TensorType(F32, tuple(shape[d] for d in order)), name, permutation=order)
        elif what == "reverse":
            turned = tuple(d for d in range(rank) if choose.random() < 0.6)
            self.add("reverse", kind, name, dimensions=turned)
        elif what == "slice":
            self._slice(name, kind)
        elif what == "pad":
            self._pad(name, kind)
        elif what == "concatenate":
            dimension = choose.randrange(rank)
            wide = list(shape)
            wide[dimension] *= 2
            if math.prod(wide) <= _MOST_ELEMENTS:
                self.add(
                    "concatenate", TensorType(F32, tuple(wide)), name, self.like(shape), dimension=dimension
                )
        elif what == "reduce":
            gone = tuple(d for d in range(rank) if choose.random() < 0.5)
            kept = tuple(size for d, size in enumerate(shape) if d not in gone)
            zero = self.f.constant(np.float32(choose.randint(0, 2)))
            self.add("reduce", TensorType(F32, kept), name, zero, dimensions=gone)
        elif what in ("dynamic", "update"):
            self._dynamic(name, kind, what)

    def _broadcast(self, name: str, kind: TensorType) -> None:
        place, size = self.random.randint(0, kind.rank), self.random.choice((1, 2, 3, 17))
        shape = (*kind.shape[:place], size, *kind.shape[place:])
        dimensions = tuple(d + (d >= place) for d in range(kind.rank))
        if math.prod(shape) <= _MOST_ELEMENTS and len(shape) <= 5:
            self.add("broadcast_in_dim", TensorType(F32, shape), name, broadcast_dimensions=dimensions)

    def _reshape(self, name: str, kind: TensorType) -> None:
        factors = [f for size in kind.shape for f in _factors(size)]
        if self.random.random() < 0.5:
            self.random.shuffle(factors)
        shape: list[int] = []
        for factor in factors:
            if shape and self.random.random() < 0.5:
                shape[-1] *= factor
            else:
                shape.append(factor)
        if 0 not in kind.shape and len(shape) <= 5:
            self.add("reshape", TensorType(F32, tuple(shape)), name)

    def _slice(self, name: str, kind: TensorType) -> None:
        starts, limits, strides = [], [], []
        for size in kind.shape:
            start = self.random.randint(0, max(size - 1, 0))
            starts.append(start)
            limits.append(self.random.randint(min(start + 1, size), size))
            strides.append(self.random.choice((1, 1, 1, 2, 3)))
        shape = tuple(-(-(hi - lo) // step) for lo, hi, step in zip(starts, limits, strides, strict=True))
        self.add(
            "slice",
            TensorType(F32, shape),
            name,
            start_indices=tuple(starts),
            limit_indices=tuple(limits),
            strides=tuple(strides),
        )

    def _pad(self, name: str, kind: TensorType) -> None:
        low = tuple(self.random.choice((0, 0, 1, 2, -1)) for _ in kind.shape)
        high = tuple(self.random.choice((0, 1, 3, -1)) for _ in kind.shape)
        inner = tuple(self.random.choice((0, 0, 0, 1)) for _ in kind.shape)
        shape = tuple(
            max(size - 1, 0) * (gap + 1) + (size > 0) + a + b
            for size, a, b, gap in zip(kind.shape, low, high, inner, strict=True)
        )
        if min(shape) < 0 or math.prod(shape) > _MOST_ELEMENTS:
            return
        value = self.f.constant(np.float32(5))
        self.add(
            "pad",
            TensorType(F32, shape),
            name,
            value,
            edge_padding_low=low,
            edge_padding_high=high,
            interior_padding=inner,
        )

    def _dynamic(self, name: str, kind: TensorType, what: str) -> None:
        sizes = tuple(self.random.randint(min(1, size), size) for size in kind.shape)
        starts = [self.f.constant(np.int32(self.random.randint(-2, size + 1))) for size in kind.shape]
        if what == "dynamic":
            self.add("dynamic_slice", TensorType(F32, sizes), name, *starts, slice_sizes=sizes)
        else:
            self.add("dynamic_update_slice", kind, name, self.like(sizes), *starts)


def _factors(size: int) -> list[int]:
    found, rest, divisor = [], size, 2
    while rest > 1:
        while rest % divisor == 0:
            found.append(divisor)
            rest //= divisor
        divisor += 1
    return found or [size]


def random_program(seed: int, steps: int) -> tuple[Module, list[np.ndarray[Any, Any]]]:
    """A program with some results, and arguments for it."""
    p = _Program(seed)
    shapes = [(), (7,), (3, 5), (2, 3, 16), (33, 18), (4, 1, 8, 3), (64,), (2, 2, 2, 2)]
    arguments = []
    numbers = np.random.default_rng(seed)
    for shape in p.random.sample(shapes, p.random.randint(1, 3)):
        name = p.f.parameter(F32, *shape)
        p.values[name] = TensorType(F32, shape)
        arguments.append(numbers.integers(-4, 5, shape).astype(np.float32))
    for _ in range(steps):
        p.step()
    results = list(p.values)[-3:]
    p.f.root(*results)
    return p.module.build("main"), arguments
