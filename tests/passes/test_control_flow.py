"""Tuples, barriers, empty values, branches, loops, and computations with a caller of their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compiler.analysis.loops import loop_at, trip_count
from compiler.ir.editor import Editor
from compiler.ir.program import Module
from compiler.ir.types import ELEMENTS, F32, I1, I32, TensorType, TupleType
from compiler.ir.verifier import verify
from compiler.ops import SEMANTICS
from compiler.passes.conditional_simplifier import ConditionalSimplifier
from compiler.passes.dce import DeadCodeElimination
from compiler.passes.flatten_call_graph import FlattenCallGraph
from compiler.passes.optimization_barrier_expander import OptimizationBarrierExpander
from compiler.passes.tuple_simplifier import TupleSimplifier
from compiler.passes.while_loop_invariant_code_motion import WhileLoopInvariantCodeMotion
from compiler.passes.while_loop_simplifier import WhileLoopSimplifier
from compiler.passes.while_loop_trip_count_annotator import WhileLoopTripCountAnnotator
from compiler.passes.zero_sized_elimination import ZeroSizedElimination
from tests.builder import ComputationBuilder, ModuleBuilder, pair
from tests.passes.harness import assert_same_results, context, opcodes, run, transformed

SCALAR = TensorType(I32, ())
VECTOR = TensorType(F32, (4,))


def test_tuples_made_to_be_taken_apart_go() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    x, y = f.parameter(F32, 2), f.parameter(F32, 3)
    both = f.op("tuple", x, y)
    again = f.op("tuple", f.element(both, 0), f.element(both, 1))
    f.root(f.op("negate", f.element(again, 1)))
    assert opcodes(transformed(m.build(), TupleSimplifier())) == ["negate"]


def test_a_tuple_of_some_elements_is_no_detour() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    t = f.parameter_of(pair(VECTOR, VECTOR, SCALAR))
    f.root(
        f.op("tuple", f.element(t, 0), f.element(t, 1)),
        f.op("tuple", f.element(t, 1), f.element(t, 0), f.element(t, 2)),
    )
    module = m.build()
    after, rewrites = run(module, TupleSimplifier())
    assert after is module and not rewrites


def test_barriers_go_when_told() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    x = f.op("optimization_barrier", f.parameter(F32, 2))
    both = f.op("optimization_barrier", x, f.parameter(F32, 3))
    f.root(f.element(both, 0), f.element(both, 1))
    after = transformed(m.build(), OptimizationBarrierExpander())
    assert "optimization_barrier" not in opcodes(after)


def test_empty_values_become_constants() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    x, empty = f.parameter(F32, 3), f.parameter(F32, 0)
    padded = f.op(
        "pad",
        f.op("negate", empty),
        f.constant(2, F32),
        edge_padding_low=(1,),
        edge_padding_high=(2,),
        interior_padding=(0,),
    )
    f.root(f.op("add", x, padded), f.op("exponential", empty))
    after = transformed(m.build(), ZeroSizedElimination(), DeadCodeElimination())
    assert opcodes(after) == ["broadcast_in_dim", "add", "tuple"]


def branches(known: object = None, work: int = 1) -> Module:
    """if(p, x + y, x · y) on a captured pair; `work` operations a branch."""
    m = ModuleBuilder()
    for name, opcode in (("then", "add"), ("else", "multiply")):
        f = m.computation(name)
        t = f.parameter_of(pair(VECTOR, VECTOR))
        x = f.element(t, 0)
        for _ in range(work):
            x = f.op(opcode, x, f.element(t, 1))
        f.root(x, f.element(t, 0))
    f = m.computation("main")
    p = f.parameter(I1) if known is None else f.constant(known, I1)
    captured = f.op("tuple", f.parameter(F32, 4), f.parameter(F32, 4))
    chosen = f.op("if", p, captured, captured, called=("then", "else"))
    f.root(f.op("subtract", f.element(chosen, 0), f.element(chosen, 1)))
    return m.build()


@pytest.mark.parametrize("known", [True, False])
def test_known_branches_are_inlined(known: bool) -> None:
    after = transformed(branches(known), ConditionalSimplifier(), TupleSimplifier(), DeadCodeElimination())
    assert opcodes(after) == ["add" if known else "multiply", "subtract"]
    assert list(after.computations) == ["main"]


def test_cheap_branches_become_selections_and_others_stay() -> None:
    after = transformed(branches(), ConditionalSimplifier(), TupleSimplifier(), DeadCodeElimination())
    assert sorted(opcodes(after)) == ["add", "multiply", "select", "select", "subtract"]
    module = branches(work=20)
    after, rewrites = run(module, ConditionalSimplifier())
    assert after is module and not rewrites


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 7])
def test_known_cases_take_the_last_branch_when_out_of_range(index: int) -> None:
    m = ModuleBuilder()
    for n in range(3):
        f = m.computation(f"b{n}")
        f.root(f.op("add", f.parameter(I32, 2), f.splat(n, I32, 2)))
    f = m.computation("main")
    x = f.parameter(I32, 2)
    f.root(f.op("case", f.constant(index, I32), x, x, x, called=("b0", "b1", "b2")))
    after = transformed(m.build(), ConditionalSimplifier(), DeadCodeElimination())
    assert opcodes(after) == ["add"]


Body = Callable[[ComputationBuilder, str], list[str]]


def looping(
    kinds: tuple[TensorType, ...],
    starts: Callable[[ComputationBuilder], list[str]],
    condition: Callable[[ComputationBuilder, str], str],
    body: Body,
    results: tuple[int, ...],
) -> Module:
    """A while over a tuple; `results` are the elements that main returns."""
    m = ModuleBuilder()
    state = TupleType(kinds)
    f = m.computation("condition")
    f.root(condition(f, f.parameter_of(state)))
    f = m.computation("body")
    t = f.parameter_of(state)
    made = body(f, t)
    f._root = f.op("tuple", *made)
    f.root(f._root)
    f = m.computation("main")
    done = f.op("while", f.op("tuple", *starts(f)), called=("condition", "body"))
    f.root(*[f.element(done, index) for index in results])
    return m.build()


def counted(
    start: int, limit: int, step: int, direction: str, element: str = "i32", carried_limit: bool = False
) -> Module:
    """Adds x to a sum while the counter compares so."""
    kind = TensorType(ELEMENTS[element], ())

    def test(f: ComputationBuilder, t: str) -> str:
        bound = f.element(t, 3) if carried_limit else f.constant(limit, kind.element)
        counter = f.element(t, 0)
        signed = "SIGNED" if kind.element.kind == "int" else "UNSIGNED"
        return f.op("compare", counter, bound, comparison_direction=direction, compare_type=signed)

    def body(f: ComputationBuilder, t: str) -> list[str]:
        moved = f.op("add", f.element(t, 0), f.constant(step, kind.element))
        return [moved, f.op("add", f.element(t, 1), f.element(t, 2)), f.element(t, 2), f.element(t, 3)]

    def starts(f: ComputationBuilder) -> list[str]:
        return [
            f.constant(start, kind.element),
            f.splat(0, F32, 4),
            f.parameter(F32, 4),
            f.constant(limit, kind.element),
        ]

    return looping((kind, VECTOR, VECTOR, kind), starts, test, body, (1,))


COUNTS = [
    (0, 10, 1, "LT", 10),
    (0, 10, 3, "LT", 4),
    (0, 10, 3, "LE", 4),
    (0, 9, 3, "LE", 4),
    (10, 0, -1, "GT", 10),
    (10, 0, -3, "GE", 4),
    (0, 12, 4, "NE", 3),
    (5, 5, 1, "LT", 0),
    (0, 1, 1, "LT", 1),
    (0, 11, 4, "NE", None),
    (0, 5, 0, "LT", None),
    (0, 5, -1, "LT", None),
]


@pytest.mark.parametrize(("start", "limit", "step", "direction", "count"), COUNTS)
@pytest.mark.parametrize("carried", [False, True])
def test_trip_counts(
    start: int, limit: int, step: int, direction: str, count: int | None, carried: bool
) -> None:
    module = counted(start, limit, step, direction, carried_limit=carried)
    editor = Editor(module, SEMANTICS)
    name = next(i.name for i in module.entry_computation if i.opcode == "while")
    loop = loop_at(editor, "main", name)
    assert loop is not None and trip_count(editor, loop) == count
    if count is None:
        return
    after, _ = run(module, WhileLoopTripCountAnnotator())
    assert after.entry_computation[name].attributes["known_trip_count"] == count
    assert_same_results(module, after)


def test_counters_that_wrap_are_not_counted() -> None:
    module = counted(100, 127, 2, "LE", "i8")
    editor = Editor(module, SEMANTICS)
    name = next(i.name for i in module.entry_computation if i.opcode == "while")
    loop = loop_at(editor, "main", name)
    assert loop is not None and trip_count(editor, loop) is None


@pytest.mark.parametrize(("trips", "expected"), [(0, []), (1, ["add"])])
def test_loops_of_no_or_one_round_go(trips: int, expected: list[str]) -> None:
    after = transformed(
        counted(0, trips, 1, "LT"), WhileLoopSimplifier(), TupleSimplifier(), DeadCodeElimination()
    )
    assert opcodes(after) == expected
    assert list(after.computations) == ["main"]


def test_carried_constants_sink_and_dead_elements_go() -> None:
    module = counted(0, 5, 1, "LT", carried_limit=True)
    after = transformed(module, WhileLoopSimplifier(), TupleSimplifier(), DeadCodeElimination())
    state = next(i for i in after.entry_computation if i.opcode == "while").type
    assert isinstance(state, TupleType) and len(state.elements) == 3
    assert "constant" in [i.opcode for i in after.computations["condition"]]


def test_dead_elements_that_feed_live_ones_stay() -> None:
    def body(f: ComputationBuilder, t: str) -> list[str]:
        grown = f.op("multiply", f.element(t, 2), f.element(t, 2))
        wasted = f.op("negate", f.element(t, 3))
        return [
            f.op("add", f.element(t, 0), f.constant(1, I32)),
            f.op("add", f.element(t, 1), f.element(t, 2)),
            grown,
            wasted,
        ]

    def test(f: ComputationBuilder, t: str) -> str:
        return f.op(
            "compare", f.element(t, 0), f.constant(3, I32), comparison_direction="LT", compare_type="SIGNED"
        )

    def starts(f: ComputationBuilder) -> list[str]:
        return [f.constant(0, I32), *(f.parameter(F32, 4) for _ in range(3))]

    module = looping((SCALAR, VECTOR, VECTOR, VECTOR), starts, test, body, (1,))
    after = transformed(module, WhileLoopSimplifier(), DeadCodeElimination())
    state = next(i for i in after.entry_computation if i.opcode == "while").type
    assert isinstance(state, TupleType) and state.elements == (SCALAR, VECTOR, VECTOR)
    assert "negate" not in opcodes(after, "body")


def invariants() -> Module:
    matrix = TensorType(F32, (4, 4))

    def body(f: ComputationBuilder, t: str) -> list[str]:
        w = f.element(t, 2)
        scaled = f.op("multiply", f.op("exponential", w), f.splat(0.5, F32, 4, 4))
        turned = f.op("transpose", scaled, permutation=(1, 0))
        summed = f.op("add", f.element(t, 1), turned)
        return [f.op("add", f.element(t, 0), f.constant(1, I32)), summed, w]

    def test(f: ComputationBuilder, t: str) -> str:
        return f.op(
            "compare", f.element(t, 0), f.constant(4, I32), comparison_direction="LT", compare_type="SIGNED"
        )

    def starts(f: ComputationBuilder) -> list[str]:
        return [f.constant(0, I32), f.splat(0, F32, 4, 4), f.parameter(F32, 4, 4)]

    return looping((SCALAR, matrix, matrix), starts, test, body, (1, 2))


def test_invariant_values_are_hoisted_once() -> None:
    module = invariants()
    after = transformed(module, WhileLoopInvariantCodeMotion())
    assert "exponential" not in opcodes(after, "body")
    assert "multiply" in opcodes(after) and "transpose" in opcodes(after, "body")


def test_loops_that_share_a_body_are_left_alone_until_flattened() -> None:
    m = ModuleBuilder()
    shared = counted(0, 5, 1, "LT", carried_limit=True)
    m.computations.update(shared.computations)
    m._count = 1000
    f = m.computation("twice")
    kinds = shared.computations["body"].parameter_types[0]
    assert isinstance(kinds, TupleType)
    x = f.parameter(F32, 4)
    for _ in range(2):
        start = f.op("tuple", f.constant(0, I32), f.splat(0, F32, 4), x, f.constant(5, I32))
        x = f.element(f.op("while", start, called=("condition", "body")), 1)
    f.root(x)
    del m.computations["main"]
    module = m.build("twice")
    after, rewrites = run(module, WhileLoopInvariantCodeMotion(), WhileLoopSimplifier())
    assert {entry.rule.id for entry in rewrites} <= {"loop-invariant-result"}
    flat = transformed(module, FlattenCallGraph())
    loops = [i.called for i in flat.entry_computation if i.opcode == "while"]
    assert len({name for called in loops for name in called}) == 4
    after = transformed(flat, WhileLoopSimplifier(), DeadCodeElimination())
    for i in after.entry_computation:
        if i.opcode == "while":
            assert isinstance(i.type, TupleType) and len(i.type.elements) == 3


def test_flattening_copies_what_copies_call() -> None:
    m = ModuleBuilder()
    f = m.computation("inner")
    f.root(f.op("negate", f.parameter(F32, 2)))
    f = m.computation("outer")
    f.root(f.op("call", f.parameter(F32, 2), called=("inner",)))
    f = m.computation("main")
    x = f.parameter(F32, 2)
    f.root(*[f.op("call", x, called=("outer",)) for _ in range(3)])
    after = transformed(m.build(), FlattenCallGraph())
    assert len(after.computations) == 7
    names = [i.name for c in after.computations.values() for i in c]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("trips", "expected"), [(0, []), (1, ["add"]), (4, ["while"])])
def test_loops_over_one_value_are_counted(trips: int, expected: list[str]) -> None:
    m = ModuleBuilder()
    f = m.computation("condition")
    f.root(
        f.op(
            "compare",
            f.parameter(I32),
            f.constant(trips, I32),
            comparison_direction="LT",
            compare_type="SIGNED",
        )
    )
    f = m.computation("body")
    f.root(f.op("add", f.parameter(I32), f.constant(1, I32)))
    f = m.computation("main")
    f.root(f.op("while", f.constant(0, I32), called=("condition", "body")))
    after = transformed(
        m.build(),
        WhileLoopSimplifier(),
        WhileLoopTripCountAnnotator(),
        WhileLoopInvariantCodeMotion(),
        DeadCodeElimination(),
    )
    assert opcodes(after) == expected
    assert after.entry_computation.root_instruction.attributes.get("known_trip_count") == (
        trips if trips > 1 else None
    )


def test_dead_code_that_reads_dropped_elements_goes_with_them() -> None:
    def body(f: ComputationBuilder, t: str) -> list[str]:
        f.op("exponential", f.op("negate", f.element(t, 2)))
        return [
            f.op("add", f.element(t, 0), f.constant(1, I32)),
            f.op("abs", f.element(t, 1)),
            f.element(t, 2),
        ]

    def test(f: ComputationBuilder, t: str) -> str:
        return f.op(
            "compare", f.element(t, 0), f.constant(3, I32), comparison_direction="LT", compare_type="SIGNED"
        )

    def starts(f: ComputationBuilder) -> list[str]:
        return [f.constant(0, I32), f.parameter(F32, 4), f.parameter(F32, 4)]

    module = looping((SCALAR, VECTOR, VECTOR), starts, test, body, (1,))
    editor = Editor(module, SEMANTICS, gate=lambda identity: "unused-value" not in identity)
    WhileLoopSimplifier().run(editor, context())
    after = editor.snapshot()
    verify(after, SEMANTICS)
    assert editor.rewrites_refused == 1
    assert opcodes(after, "body") == ["get_tuple_element", "add", "get_tuple_element", "abs", "tuple"]
    assert_same_results(module, after)
