"""Structural differences, and the way from any instruction back to the model's lines and forth to what became of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.frontend.load import load
from compiler.ir.program import Instruction, make_computation
from compiler.ir.types import F32
from explorer.diff import ADDED, CHANGED, REMOVED, SAME, diff_computation, diff_modules, with_context
from explorer.provenance import Provenance
from explorer.session import Session, record
from explorer.trace import Trace
from tests.builder import ModuleBuilder

SAMPLES = Path(__file__).resolve().parents[2] / "sample_models"


@pytest.fixture(scope="module", params=["mlp", "train_step", "while_newton"])
def trace(request: pytest.FixtureRequest) -> Trace:
    path = str(SAMPLES / request.param / "model.mlir")
    return record(Session(path, load(path)), code=False).trace


def chain(*opcodes: str):
    builder = ModuleBuilder().computation("main")
    value = builder.parameter(F32, 2)
    for opcode in opcodes:
        value = builder.op(opcode, value)
    return builder.root(value)


def changed(computation, **instructions: Instruction | None):
    body = {n: i for n, i in computation.instructions.items() if instructions.get(n.replace(".", "_"), i)}
    body.update({i.name: i for i in instructions.values() if i is not None})
    return body


def test_equal_computations_differ_in_nothing() -> None:
    one, other = chain("negate", "abs"), chain("negate", "abs")
    found = diff_computation(one, other)
    assert found.kind == SAME and found.counts == (0, 0, 0)
    assert [line.kind for line in found.lines] == [SAME] * 3


def test_added_removed_and_changed_lines() -> None:
    before = chain("negate", "abs", "tanh")
    body = dict(before.instructions)
    tanh = body.pop("tanh.4")
    gone = body.pop("abs.3")
    made = Instruction("sine.3.1", "sine", gone.type, ("negate.2",))
    body["sine.3.1"] = made
    body["tanh.4"] = tanh.with_operands(("sine.3.1",))
    after = make_computation("main", body, "tanh.4")
    found = diff_computation(before, after)
    assert found.counts == (1, 1, 1) and not found.root_changed and not found.reordered
    assert [(line.kind, line.name) for line in found.lines] == [
        (SAME, "arg0.1"),
        (SAME, "negate.2"),
        (REMOVED, "abs.3"),
        (ADDED, "sine.3.1"),
        (CHANGED, "tanh.4"),
    ]


def test_a_new_root_and_a_new_order_are_differences() -> None:
    builder = ModuleBuilder().computation("main")
    x = builder.parameter(F32, 2)
    a, b = builder.op("negate", x), builder.op("abs", x)
    before = builder.root(a, b)
    names = [x, b, a, before.root]
    reordered = make_computation("main", {n: before[n] for n in names}, before.root)
    found = diff_computation(before, reordered)
    assert found.kind == CHANGED and found.reordered and found.counts == (0, 0, 0)
    rooted = make_computation("main", dict(before.instructions), a)
    found = diff_computation(before, rooted)
    assert found.kind == CHANGED and found.root_changed


def test_whole_computations_come_and_go() -> None:
    here, there = ModuleBuilder(), ModuleBuilder()
    for builder, names in ((here, ("old", "main")), (there, ("new", "main"))):
        for name in names:
            body = builder.computation(name)
            body.root(body.op("negate", body.parameter(F32, 2)))
    diff = diff_modules(here.build(), there.build())
    assert {c.name: c.kind for c in diff.changed} == {"old": REMOVED, "new": ADDED}
    assert diff.unchanged == ("main",) and diff.counts == (2, 2, 0)
    assert diff_modules(here.build(), there.build(), "main").is_empty


def test_context_hides_only_unchanged_lines() -> None:
    before = chain(*["negate"] * 12)
    body = dict(before.instructions)
    body["negate.7"] = Instruction("negate.7", "abs", body["negate.7"].type, ("negate.6",))
    found = diff_computation(before, make_computation("main", body, before.root))
    shown = with_context(found.lines, 2)
    assert shown[0] == 4 and shown[-1] == 4
    assert [line.name for line in shown[1:-1]] == [f"negate.{n}" for n in range(5, 10)]
    assert len(with_context(found.lines, 100)) == 13
    assert with_context(found.lines[:3], 1) == [3]


def test_a_stage_differs_exactly_when_it_says_so(trace: Trace) -> None:
    for stage in trace.stages:
        diff = diff_modules(stage.before, stage.after)
        assert stage.changed or diff.is_empty
        added, removed, _ = diff.counts
        assert stage.instructions_before + added - removed == stage.instructions_after


def test_what_rewrites_say_they_made_is_what_the_difference_shows(trace: Trace) -> None:
    for stage in trace.stages:
        diff = diff_modules(stage.before, stage.after)
        if not stage.rewrites:
            continue
        lines = [line for computation in diff.changed for line in computation.lines]
        before = {i.name for c in stage.before.computations.values() for i in c}
        after = {i.name for c in stage.after.computations.values() for i in c}
        added = {line.name for line in lines if line.kind == ADDED} - before
        removed = {line.name for line in lines if line.kind == REMOVED} - after
        provenance = Provenance(trace.having(stages=(stage,)))
        assert all(provenance.origin(name) for name in added), stage.id
        assert all(any(e.kind == "removed" for e in provenance.events(name)) for name in removed), stage.id


def test_every_instruction_goes_back_to_one_that_was_read(trace: Trace) -> None:
    provenance = Provenance(trace)
    read = {i.name for c in trace.input.computations.values() for i in c}
    for computation in trace.final.computations.values():
        for instruction in computation:
            ancestors = provenance.ancestors(instruction.name)
            assert ancestors[0].name == instruction.name
            assert read & {ancestor.name for ancestor in ancestors}, instruction.name
            assert all(ancestor.name in read for ancestor in ancestors if ancestor.event is None)


def test_what_was_read_and_is_gone_was_removed_by_a_rewrite(trace: Trace) -> None:
    provenance = Provenance(trace)
    final = {i.name for c in trace.final.computations.values() for i in c}
    for computation in trace.input.computations.values():
        for instruction in computation:
            assert provenance.knows(instruction.name)
            if instruction.name not in final and computation.name in trace.final.computations:
                kinds = [event.kind for event in provenance.descendants(instruction.name)]
                assert "removed" in kinds, instruction.name
    assert not provenance.knows("nothing.0")
    assert list(provenance.descendants("nothing.0")) == []
