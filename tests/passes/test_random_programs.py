"""Random programs through all simplifying passes: no bit of any result may change, whatever fires in whatever order."""

from __future__ import annotations

import random

import numpy as np
import pytest

from compiler.ir.editor import Editor
from compiler.ir.program import Module
from compiler.ir.types import BF16, ELEMENTS, F32, F64, I1, I32, ElementType
from compiler.ir.verifier import verify
from compiler.ops import SEMANTICS
from compiler.passes.algebraic_simplifier import AlgebraicSimplifier
from compiler.passes.base import Pass
from compiler.passes.constant_folding import ConstantFolding
from compiler.passes.cse import CommonSubexpressionElimination
from compiler.passes.dce import DeadCodeElimination
from compiler.passes.shape_canonicalizer import ShapeCanonicalizer
from compiler.passes.zero_sized_elimination import ZeroSizedElimination
from tests.builder import ComputationBuilder, ModuleBuilder
from tests.passes.harness import assert_same_results, context, run

PASSES: tuple[Pass, ...] = (
    CommonSubexpressionElimination(),
    ConstantFolding(),
    AlgebraicSimplifier(),
    ZeroSizedElimination(),
    ShapeCanonicalizer(),
    ConstantFolding(),
    AlgebraicSimplifier(),
    CommonSubexpressionElimination(),
    DeadCodeElimination(),
)
ELEMENT_CHOICES = (F32, F64, BF16, I32, ELEMENTS["ui8"], I1)
BINARY = {
    "float": ["add", "subtract", "multiply", "divide", "maximum", "minimum"],
    "int": [
        "add",
        "subtract",
        "multiply",
        "divide",
        "remainder",
        "maximum",
        "minimum",
        "and",
        "or",
        "xor",
        "shift_left",
    ],
    "uint": ["add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor"],
    "bool": ["and", "or", "xor", "maximum", "minimum"],
}
UNARY = {
    "float": ["negate", "abs", "floor", "ceil", "sign", "sqrt"],
    "int": ["negate", "abs", "not"],
    "uint": ["not"],
    "bool": ["not"],
}
NUMBERS = {
    "float": (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, 3.0),
    "int": (0, 1, -1, 2, 8),
    "uint": (0, 1, 2, 8, 255),
    "bool": (0, 1),
}


class Generator:
    """Grows one program; every step takes values made before."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.m = ModuleBuilder()
        self.bodies: dict[tuple[str, ElementType], str] = {}
        self.f: ComputationBuilder = self.m.computation("main")
        self.values: list[str] = []

    def shape(self, name: str) -> tuple[int, ...]:
        return self.f.instructions[name].tensor.shape

    def element(self, name: str) -> ElementType:
        found = self.f.instructions[name].tensor.element
        assert isinstance(found, ElementType)
        return found

    def like(self, name: str) -> str:
        """A value of the same type: another one, or a constant."""
        same = [v for v in self.values if self.f.type(v) == self.f.type(name)]
        kind = self.element(name)
        if self.chance.random() < 0.4:
            return self.f.splat(self.chance.choice(NUMBERS[kind.kind]), kind, *self.shape(name))
        return self.chance.choice(same)

    def step(self) -> None:
        actions = (
            self.binary,
            self.binary,
            self.unary,
            self.select,
            self.convert,
            self.broadcast,
            self.reshape,
        )
        actions += (self.transpose, self.slice, self.concatenate, self.pad, self.reverse, self.reduce)
        self.values.append(self.chance.choice(actions)(self.chance.choice(self.values)))

    def binary(self, x: str) -> str:
        pair = [x, self.like(x)]
        self.chance.shuffle(pair)
        if self.chance.random() < 0.15:
            kinds = {"float": "FLOAT", "int": "SIGNED"}
            direction = self.chance.choice(("LT", "LE", "GT", "GE", "EQ", "NE"))
            kind = kinds.get(self.element(x).kind, "UNSIGNED")
            return self.f.op("compare", *pair, comparison_direction=direction, compare_type=kind)
        return self.f.op(self.chance.choice(BINARY[self.element(x).kind]), *pair)

    def unary(self, x: str) -> str:
        return self.f.op(self.chance.choice(UNARY[self.element(x).kind]), x)

    def select(self, x: str) -> str:
        found = [v for v in self.values if self.element(v) is I1 and self.shape(v) == self.shape(x)]
        mask = (
            self.chance.choice(found)
            if found
            else self.f.splat(self.chance.random() < 0.5, I1, *self.shape(x))
        )
        return self.f.op("select", mask, x, self.like(x))

    def convert(self, x: str) -> str:
        target = self.chance.choice(ELEMENT_CHOICES)
        return self.f.add("convert", self.f.instructions[x].tensor.with_element(target), x)

    def broadcast(self, x: str) -> str:
        shape = list(self.shape(x))
        if len(shape) > 3:
            return x
        place = self.chance.randint(0, len(shape))
        dims = tuple(d + (d >= place) for d in range(len(shape)))
        grown = [size * (3 if size == 1 and self.chance.random() < 0.5 else 1) for size in shape]
        grown.insert(place, self.chance.choice((1, 2)))
        return self.f.shaped("broadcast_in_dim", tuple(grown), x, broadcast_dimensions=dims)

    def reshape(self, x: str) -> str:
        shape = [size for size in self.shape(x) if size != 1 or self.chance.random() < 0.3]
        if len(shape) > 1 and self.chance.random() < 0.5:
            shape[:2] = [shape[0] * shape[1]]
        if len(shape) < 4 and self.chance.random() < 0.5:
            shape.insert(self.chance.randint(0, len(shape)), 1)
        return self.f.shaped("reshape", tuple(shape), x)

    def transpose(self, x: str) -> str:
        order = list(range(len(self.shape(x))))
        self.chance.shuffle(order)
        return self.f.op("transpose", x, permutation=tuple(order))

    def slice(self, x: str) -> str:
        starts, limits, strides = [], [], []
        for size in self.shape(x):
            start = self.chance.randint(0, max(0, size - 1)) if self.chance.random() < 0.4 else 0
            starts.append(start)
            limits.append(self.chance.randint(start, size) if self.chance.random() < 0.3 else size)
            strides.append(self.chance.choice((1, 1, 2)))
        return self.f.op(
            "slice", x, start_indices=tuple(starts), limit_indices=tuple(limits), strides=tuple(strides)
        )

    def concatenate(self, x: str) -> str:
        shape = self.shape(x)
        if not shape or np.prod(shape) > 200:
            return x
        return self.f.op("concatenate", x, self.like(x), dimension=self.chance.randrange(len(shape)))

    def pad(self, x: str) -> str:
        rank, kind = len(self.shape(x)), self.element(x)
        value = self.f.constant(self.chance.choice(NUMBERS[kind.kind]), kind)
        low, high = (tuple(self.chance.choice((0, 0, 1)) for _ in range(rank)) for _ in range(2))
        gaps = tuple(self.chance.choice((0, 0, 0, 1)) for _ in range(rank))
        return self.f.op("pad", x, value, edge_padding_low=low, edge_padding_high=high, interior_padding=gaps)

    def reverse(self, x: str) -> str:
        dims = tuple(d for d in range(len(self.shape(x))) if self.chance.random() < 0.5)
        return self.f.op("reverse", x, dimensions=dims)

    def reduce(self, x: str) -> str:
        kind = self.element(x)
        dims = tuple(d for d in range(len(self.shape(x))) if self.chance.random() < 0.5)
        # (The order of float sums is free, so they would differ in the last bit.)
        opcodes = ["maximum", "minimum"] + (["add"] if kind.is_integer else ["or"] if kind is I1 else [])
        key = (self.chance.choice(opcodes), kind)
        if key not in self.bodies:
            self.bodies[key] = self.m.reducer(*key)
        init = self.f.constant(self.chance.choice(NUMBERS[kind.kind]), kind)
        return self.f.op("reduce", x, init, called=(self.bodies[key],), dimensions=dims)


def random_program(seed: int, steps: int = 25) -> Module:
    """A program of so many operations on small arrays."""
    g = Generator(seed)
    for _ in range(3):
        shape = tuple(g.chance.choice((1, 2, 3)) for _ in range(g.chance.randint(0, 3)))
        g.values.append(g.f.parameter(g.chance.choice(ELEMENT_CHOICES), *shape))
    for _ in range(steps):
        g.step()
    g.f.root(*dict.fromkeys(g.values[-6:]))
    return g.m.build()


@pytest.mark.parametrize("block", range(20))
def test_no_bit_changes(block: int) -> None:
    for seed in range(block * 10, block * 10 + 10):
        module = random_program(seed)
        after, _ = run(module, *PASSES)
        try:
            assert_same_results(module, after, seeds=2)
        except AssertionError as error:
            raise AssertionError(f"program {seed}: {error}") from error


@pytest.mark.parametrize("block", range(6))
def test_any_rewrites_may_be_refused(block: int) -> None:
    for seed in range(block * 10, block * 10 + 10):
        module, refusal = random_program(seed), random.Random(seed)
        editor = Editor(module, SEMANTICS, gate=lambda identity, refusal=refusal: refusal.random() < 0.5)
        for entry in PASSES:
            editor.begin_stage(entry.name)
            entry.run(editor, context())
        after = editor.snapshot()
        verify(after, SEMANTICS)
        assert editor.rewrites_refused > 0
        assert_same_results(module, after, seeds=1)
