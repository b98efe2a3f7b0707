"""Programs with layouts of another compiler's choice mean the same without them."""

from __future__ import annotations

import pytest

from compiler.frontend.hlo import parse_hlo
from compiler.ir.types import TensorType, TupleType, Type
from compiler.passes.layout_normalization import LayoutNormalization, without_layouts
from compiler.reference import evaluate
from tests.passes.harness import inputs, opcodes, run, same_bits

PROGRAMS = {
    "into_rows": "p = f32[2,3]{0,1} parameter(0)\n ROOT r = f32[3,2]{1,0} bitcast(p)",
    "into_columns": "p = f32[2,3]{1,0} parameter(0)\n ROOT r = f32[3,2]{0,1} bitcast(p)",
    "of_a_bitcast": (
        "p = f32[2,3]{0,1} parameter(0)\n b = f32[3,2]{0,1} bitcast(p)\n c = f32[6] bitcast(b)\n ROOT r = f32[6] negate(c)"
    ),
    "of_a_copy": "p = f32[2,3] parameter(0)\n c = f32[2,3]{0,1} copy(p)\n ROOT r = f32[6] bitcast(c)",
    "three_dimensions": "p = f32[2,3,4]{0,2,1} parameter(0)\n ROOT r = f32[4,6]{0,1} bitcast(p)",
    "in_a_tuple": (
        "p = f32[2,3]{0,1:S(1)} parameter(0)\n t = (f32[2,3]{0,1}, f32[2,3]) tuple(p, p)\n"
        " ROOT r = f32[2,3]{0,1} get-tuple-element(t), index=0"
    ),
    "of_one_memory": "p = f32[2,3] parameter(0)\n ROOT r = f32[6] bitcast(p)",
}


def is_row_major(kind: Type) -> bool:
    if isinstance(kind, TupleType):
        return all(map(is_row_major, kind.elements))
    return not isinstance(kind, TensorType) or kind.layout is None


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_stay_and_layouts_go(name: str) -> None:
    module = parse_hlo(f"HloModule m, is_scheduled=true\n\nENTRY e {{\n {PROGRAMS[name]}\n}}\n").module
    after, _ = run(module, LayoutNormalization())
    assert all(is_row_major(i.type) for c in after.computations.values() for i in c)
    assert not {"bitcast", "copy"} & set(opcodes(after))
    assert not after.is_scheduled
    given = inputs(module, 1)
    for got, want in zip(evaluate(after, given), evaluate(module, given), strict=True):
        assert same_bits(got, want)


def test_a_bitcast_becomes_as_little_as_it_is() -> None:
    def after(name: str) -> list[str]:
        module = parse_hlo(f"HloModule m\n\nENTRY e {{\n {PROGRAMS[name]}\n}}\n").module
        return opcodes(run(module, LayoutNormalization())[0])

    assert after("of_one_memory") == ["reshape"]
    assert after("into_rows") == ["transpose"]
    assert after("three_dimensions") == ["transpose", "reshape", "transpose"]


def test_fusions_are_calls_and_lose_theirs_too() -> None:
    text = (
        "HloModule m\n\nf {\n x = f32[2,3]{0,1} parameter(0)\n ROOT n = f32[3,2]{1,0} bitcast(x)\n}\n"
        "ENTRY e {\n p = f32[2,3]{0,1} parameter(0)\n ROOT r = f32[3,2] fusion(p), kind=kLoop, calls=f\n}\n"
    )
    module = parse_hlo(text).module
    after, rewrites = run(module, LayoutNormalization())
    assert [rewrite.rule.id for rewrite in rewrites] == ["row-major", "fusion-is-call"]
    assert opcodes(after, "f") == ["transpose"]
    assert opcodes(after, "e") == ["call"]
    given = inputs(module, 2)
    assert same_bits(evaluate(after, given)[0], evaluate(module, given)[0])


def test_programs_without_layouts_are_left_alone() -> None:
    module = parse_hlo(
        "HloModule m\n\nENTRY e {\n p = f32[2,3] parameter(0)\n ROOT r = f32[2,3] negate(p)\n}\n"
    ).module
    after, rewrites = run(module, LayoutNormalization())
    assert after is module
    assert not rewrites
    kind = module.entry_computation.result_type
    assert without_layouts(kind) == kind
