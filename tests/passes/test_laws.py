"""Every law of the simplifier, as it is written down: it fires on its own left side and changes no bit of the result."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.ir.editor import Editor
from compiler.ir.program import Module
from compiler.ir.types import BF16, C64, ELEMENTS, F16, F32, F64, I1, ElementType
from compiler.ops import SEMANTICS
from compiler.passes.algebraic_simplifier import AlgebraicSimplifier, all_patterns
from compiler.passes.rules import arithmetic, fast_math, logic
from compiler.passes.rules.law import Law, Term, compile_law, number, parse
from compiler.passes.worklist import apply_patterns, index_by_opcode
from tests.builder import ComputationBuilder, ModuleBuilder
from tests.passes.harness import assert_same_results, context, run

SHAPE = (37,)
TYPES = {
    "int": [ELEMENTS["i8"], ELEMENTS["i32"], ELEMENTS["i64"]],
    "uint": [ELEMENTS["ui8"], ELEMENTS["ui32"]],
    "bool": [I1],
    "float": [F32, F64, F16, BF16],
    "complex": [C64],
}
EXACT = (*arithmetic.LAWS, *logic.LAWS)
CONSTANTS = {"divide-by-power-of-two": (2.0, -8.0, 0.25)}


class Instance:
    """A module that computes a term of random values."""

    def __init__(self, law: Law, element: ElementType, chance: np.random.Generator) -> None:
        self.m = ModuleBuilder()
        self.f = self.m.computation("main")
        self.law, self.element, self.chance = law, element, chance
        self.bound: dict[str, str] = {}
        left, _ = law.sides
        # Arguments first: parameters must not come in the middle of nothing.
        self.f.root(self.term(left, self.element_of_root(left), self.f))

    def element_of_root(self, left: Term) -> ElementType:
        if left.head in ("real", "imag"):
            return self.element.real
        if left.head == "complex":
            return {F32: C64, F64: ELEMENTS["complex<f64>"]}[self.element]
        return I1 if left.head == "compare" else self.element

    def argument_element(self, term: Term, index: int, own: ElementType) -> ElementType:
        if term.head == "select":
            return I1 if index == 0 else own
        if term.head == "compare":
            return self.element
        if term.head in ("real", "imag"):
            return {F32: C64, F64: ELEMENTS["complex<f64>"], C64: C64}[own]
        return own.real if term.head == "complex" else own

    def term(self, term: Term, own: ElementType, f: ComputationBuilder) -> str:
        if term.is_number:
            return f.splat(number(term.head, own), own, *SHAPE)
        if term.is_operation:
            operands = [
                self.term(a, self.argument_element(term, i, own), f) for i, a in enumerate(term.arguments)
            ]
            attributes = {}
            if term.head == "compare":
                kinds = {"int": "SIGNED", "float": "FLOAT"}
                attributes = {
                    "comparison_direction": term.detail,
                    "compare_type": kinds.get(own_kind(f, operands), "UNSIGNED"),
                }
            return f.op(term.head, *operands, **attributes)
        if term.head not in self.bound:
            self.bound[term.head] = self.constant(own) if term.is_constant else f.parameter(own, *SHAPE)
        return self.bound[term.head]

    def constant(self, own: ElementType) -> str:
        choices = CONSTANTS.get(self.law.id)
        if choices is None:
            choices = (0, 1, 3, 5) if own.kind in ("uint", "bool") else (0, 1, -2, 5)
        return self.f.splat(self.chance.choice(choices), own, *SHAPE)

    def module(self) -> Module:
        return self.m.build()


def own_kind(f: ComputationBuilder, operands: list[str]) -> str:
    return f.instructions[operands[0]].tensor.element.kind


def cases(laws: tuple[Law, ...]) -> list[tuple[Law, ElementType]]:
    found = []
    for law in laws:
        for kind in law.kinds.split():
            for element in TYPES[kind]:
                if law.sides[0].head == "complex" and element not in (F32, F64):
                    continue
                if (
                    "negate" in law.text
                    and kind == "uint"
                    and "int" in law.kinds.split()
                    and element.bits == 8
                ):
                    continue
                if not number_exists(law, element):
                    continue
                found.append((law, element))
    return found


def number_exists(law: Law, element: ElementType) -> bool:
    return not ("-1" in law.text and element.kind == "uint")


@pytest.mark.parametrize(
    ("law", "element"), cases(EXACT), ids=lambda value: getattr(value, "id", repr(value))
)
def test_law_fires_and_keeps_every_bit(law: Law, element: ElementType) -> None:
    for seed in range(2):
        module = Instance(law, element, np.random.default_rng(seed)).module()
        editor = Editor(module, SEMANTICS)
        index = index_by_opcode([compile_law(law, "test")])
        apply_patterns(editor, context(), index, editor.computations())
        after = editor.snapshot()
        assert editor.rewrites_committed >= 1, law.text
        assert_same_results(module, after)


@pytest.mark.parametrize(
    ("law", "element"), cases(EXACT), ids=lambda value: getattr(value, "id", repr(value))
)
def test_all_rules_together_keep_every_bit(law: Law, element: ElementType) -> None:
    module = Instance(law, element, np.random.default_rng(7)).module()
    after, rewrites = run(module, AlgebraicSimplifier())
    assert rewrites
    assert_same_results(module, after)


@pytest.mark.parametrize("law", fast_math.LAWS, ids=lambda law: law.id)
def test_fast_laws_need_their_licence(law: Law) -> None:
    element = TYPES[law.kinds.split()[0]][0]
    module = Instance(law, element, np.random.default_rng(0)).module()
    index = index_by_opcode([compile_law(law, "test")])
    for fast in (False, True):
        editor = Editor(module, SEMANTICS)
        apply_patterns(editor, context(fp_fast=fast), index, editor.computations())
        assert bool(editor.rewrites_committed) == fast


def test_rules_have_ids_of_their_own() -> None:
    ids = [entry.rule.id for entry in all_patterns()]
    assert len(ids) == len(set(ids))
    assert len(ids) >= 80


@pytest.mark.parametrize(
    "text",
    [
        "log(exponential(x))",
        "sqrt(multiply(x, x))",
        "multiply(x, 0)",
        "add(x, 0)",
        "divide(multiply(x, y), y)",
        "subtract(x, x)",
        "subtract(x, -0)",
        "power(x, 3)",
        "compare.NE(x, x)",
    ],
)
def test_what_floats_do_not_obey_stays(text: str) -> None:
    law = Law("none", f"{text.replace('3', 'c')} -> x", "float")
    module = Instance(law, F32, np.random.default_rng(3)).module()
    after, _ = run(module, AlgebraicSimplifier())
    assert after is module


def test_dense_constants_are_joined_too() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    i32 = ELEMENTS["i32"]
    x = f.parameter(i32, 4)
    f.root(f.op("add", f.op("add", x, f.constant([1, 2, 3, 4], i32)), f.constant([9, 8, 7, 6], i32)))
    module = m.build()
    after, rewrites = run(module, AlgebraicSimplifier())
    assert [entry.rule.id for entry in rewrites] == ["add-constants"]
    assert_same_results(module, after)


def test_scalar_predicates_are_not_mistaken_for_tensors() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    p = f.parameter(I1)
    yes, no = f.splat(True, I1, 3), f.splat(False, I1, 3)
    f.root(
        f.op("select", p, yes, no), f.op("select", f.op("not", p), f.parameter(F32, 3), f.parameter(F32, 3))
    )
    module = m.build()
    after, rewrites = run(module, AlgebraicSimplifier())
    assert [entry.rule.id for entry in rewrites] == ["select-not"]
    assert_same_results(module, after)


def test_refused_rewrites_are_not_tried_again() -> None:
    law = next(law for law in arithmetic.LAWS if law.id == "negate-twice")
    module = Instance(law, F32, np.random.default_rng(0)).module()
    editor = Editor(module, SEMANTICS, gate=lambda identity: False)
    AlgebraicSimplifier().run(editor, context())
    assert editor.rewrites_refused == 1
    assert editor.snapshot() is module


def test_terms_are_read_strictly() -> None:
    assert parse("compare.LT(x, -1)") == Term("compare", (Term("x"), Term("-1")), "LT")
    with pytest.raises(ValueError, match="not an operation"):
        parse("plus(x, y)")
    with pytest.raises(ValueError, match="unexpected"):
        parse("x y")


WRONG = (
    Law("wrong", "add(x, 0) -> x", "float"),
    Law("wrong", "subtract(x, -0) -> x", "float"),
    Law("wrong", "subtract(0, x) -> negate(x)", "float"),
    Law("wrong", "multiply(x, 0) -> 0", "float"),
    Law("wrong", "subtract(x, x) -> 0", "float"),
    Law("wrong", "maximum(x, minimum(x, y)) -> x", "float"),
    Law("wrong", "select(compare.EQ(x, y), x, y) -> y", "float"),
    Law("wrong", "divide(x, x) -> 1", "int"),
    Law("wrong", "compare.LT(abs(x), 0) -> 0", "int"),
)


@pytest.mark.parametrize("law", WRONG, ids=lambda law: f"{law.text} {law.kinds}")
def test_the_check_catches_wrong_laws(law: Law) -> None:
    module = Instance(law, TYPES[law.kinds][0], np.random.default_rng(0)).module()
    editor = Editor(module, SEMANTICS)
    apply_patterns(editor, context(), index_by_opcode([compile_law(law, "test")]), editor.computations())
    assert editor.rewrites_committed == 1
    with pytest.raises(AssertionError):
        assert_same_results(module, editor.snapshot(), seeds=20)
