"""Each rule about shapes has an example: the rule fires on it, and the whole simplifier keeps every bit of the result."""

from __future__ import annotations

import pytest

from compiler.ir.program import Module
from compiler.passes.algebraic_simplifier import FAMILIES, AlgebraicSimplifier
from compiler.passes.rules import arithmetic, fast_math, logic
from tests.builder import ModuleBuilder
from tests.passes.harness import assert_same_results, run
from tests.passes.rule_examples import EXAMPLES, KEPT, Example


def module_of(build: Example) -> Module:
    m = ModuleBuilder()
    f = m.computation("main")
    f.root(build(f))
    return m.build()


CASES = [(rule, build) for rule, builds in EXAMPLES.items() for build in builds]


@pytest.mark.parametrize(("rule", "build"), CASES, ids=[f"{rule}-{n}" for n, (rule, _) in enumerate(CASES)])
def test_rule_fires_and_keeps_every_bit(rule: str, build: Example) -> None:
    module = module_of(build)
    after, rewrites = run(module, AlgebraicSimplifier())
    assert rule in {entry.rule.id for entry in rewrites}, [entry.rule.id for entry in rewrites]
    assert_same_results(module, after)
    again, more = run(after, AlgebraicSimplifier())
    assert again is after and not more


def test_every_rule_has_an_example() -> None:
    textual = (arithmetic, logic, fast_math)
    rules = {entry.rule.id for family in FAMILIES if family not in textual for entry in family.PATTERNS}
    assert rules == set(EXAMPLES)


@pytest.mark.parametrize("what", KEPT)
def test_what_must_stay_stays(what: str) -> None:
    module = module_of(KEPT[what])
    after, rewrites = run(module, AlgebraicSimplifier())
    assert after is module, [entry.rule.id for entry in rewrites]
