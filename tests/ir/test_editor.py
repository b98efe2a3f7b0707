"""The editor: users, order, naming, sweeping, roll-back, sharing of snapshots, and replay of what it reports."""

from __future__ import annotations

import random

import pytest

from compiler.ir.editor import Editor
from compiler.ir.program import Attributes, Instruction, Module
from compiler.ir.replay import ReplayError, apply
from compiler.ir.rewrite import Rewrite, Rule
from compiler.ir.types import F32, I32
from compiler.ops import SEMANTICS
from tests.builder import ModuleBuilder

LAW = Rule("law", "a = a")


def chain() -> Module:
    """main(x, y) = exp(x + y) * (x + y), with an unused negate."""
    m = ModuleBuilder()
    f = m.computation("main")
    x, y = f.parameter(F32, 4), f.parameter(F32, 4)
    total = f.op("add", x, y)
    f.op("negate", total)
    f.root(f.op("multiply", f.op("exponential", total), total))
    return m.build()


def order(module: Module) -> list[str]:
    return list(module.entry_computation.instructions)


def content(module: Module) -> dict[str, object]:
    """What two equal modules agree on; modules themselves compare by identity."""
    return {name: (dict(c.instructions), c.root, c.parameters) for name, c in module.computations.items()}


def assert_users_current(editor: Editor, name: str) -> None:
    state = editor.working(name)
    expected: dict[str, set[str]] = {entry: set() for entry in state.instructions}
    for instruction in state.instructions.values():
        for operand in instruction.operands:
            expected[operand].add(instruction.name)
    assert {entry: set(state.users(entry)) for entry in state.instructions} == expected


def test_users_of_a_value_each_once() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    x = f.parameter(F32, 2)
    square = f.op("multiply", x, x)
    f.root(f.op("add", square, x))
    editor = Editor(m.build(), SEMANTICS)
    assert editor.users("main", x) == (square, "add.3")


def test_replace_redirects_users_and_sweeps_what_only_it_kept() -> None:
    editor = Editor(chain(), SEMANTICS)
    with editor.rewrite(LAW, "main", "exponential.5") as edit:
        made = edit.add("tanh", ["add.3"])
        edit.replace("exponential.5", made)
    assert edit.committed
    assert editor.get("main", "multiply.6").operands == ("tanh.5.1", "add.3")
    assert "exponential.5" not in editor.working("main").instructions
    assert_users_current(editor, "main")


def test_replace_by_a_value_that_reads_the_old_one_keeps_it() -> None:
    editor = Editor(chain(), SEMANTICS)
    with editor.rewrite(LAW, "main", "multiply.6") as edit:
        edit.replace("multiply.6", edit.add("negate", ["multiply.6"]))
    module = editor.snapshot()
    assert module.entry_computation.root == "negate.6.1"
    assert module.entry_computation["negate.6.1"].operands == ("multiply.6",)


def test_replace_refuses_another_type() -> None:
    editor = Editor(chain(), SEMANTICS)
    before = editor.snapshot()
    with pytest.raises(TypeError), editor.rewrite(LAW, "main", "exponential.5") as edit:
        edit.replace("exponential.5", edit.add("is_finite", ["add.3"]))
    assert editor.snapshot() is before


def test_sweeping_keeps_effects_and_parameters() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    x, y = f.parameter(F32, 2), f.parameter(F32, 2)
    dead = f.op("negate", f.op("exponential", y))
    f.root(f.op("abs", x))
    editor = Editor(m.build(), SEMANTICS)
    with editor.rewrite(LAW, "main", dead) as edit:
        edit.sweep(dead)
    assert order(editor.snapshot()) == [x, y, "abs.5"]


def test_new_instructions_stand_before_the_root_of_the_rewrite_in_order() -> None:
    editor = Editor(chain(), SEMANTICS)
    with editor.rewrite(LAW, "main", "exponential.5") as edit:
        first = edit.add("tanh", ["add.3"])
        second = edit.add("tanh", [first])
        edit.replace("exponential.5", second)
    assert order(editor.snapshot()) == ["arg0.1", "arg1.2", "add.3", "negate.4", first, second, "multiply.6"]


def test_order_is_repaired_when_an_operand_comes_later() -> None:
    editor = Editor(chain(), SEMANTICS)
    with editor.rewrite(LAW, "main", "negate.4") as edit:
        edit.update(editor.get("main", "negate.4").with_operands(("exponential.5",)))
    found = order(editor.snapshot())
    assert found.index("exponential.5") < found.index("negate.4")


def test_a_cycle_is_an_error() -> None:
    editor = Editor(chain(), SEMANTICS)
    with editor.rewrite(LAW, "main", "add.3") as edit:
        edit.update(editor.get("main", "add.3").with_operands(("exponential.5", "arg0.1")))
    with pytest.raises(ValueError, match="cycle"):
        editor.snapshot()


def test_names_descend_and_are_never_recycled() -> None:
    editor = Editor(chain(), SEMANTICS)
    for expected in ("tanh.5.1", "tanh.5.2"):
        with editor.rewrite(LAW, "main", "exponential.5") as edit:
            made = edit.add("tanh", ["add.3"])
            edit.sweep(made)
        assert made == expected
    with editor.rewrite(LAW, "main", "multiply.6") as edit:
        assert edit.add("cosine", ["add.3"], hint="angle") == "angle.6.1"


def test_computation_names_are_never_recycled() -> None:
    editor = Editor(chain(), SEMANTICS)
    body = [Instruction("arg0.99", "parameter", editor.get("main", "add.3").type, (), Attributes(index=0))]
    names = []
    for _ in range(3):
        with editor.rewrite(LAW, "main", "add.3") as edit:
            names.append(edit.add_computation("body", body, "arg0.99"))
        editor.snapshot()
        with editor.rewrite(LAW, "main", "add.3") as edit:
            edit.remove_computation(names[-1])
        editor.snapshot()
    assert names == ["body", "body.1", "body.2"]


def test_a_refused_rewrite_leaves_no_trace() -> None:
    asked: list[str] = []

    def gate(identity: str) -> bool:
        asked.append(identity)
        return False

    told: list[Rewrite] = []
    editor = Editor(chain(), SEMANTICS, gate=gate, listener=told.append)
    editor.begin_stage("stage")
    before = editor.snapshot()
    for _ in range(2):
        with editor.rewrite(LAW, "main", "exponential.5") as edit:
            made = edit.add("tanh", ["add.3"])
            assert editor.working("main").names()[-3] == made
            edit.replace("exponential.5", made)
            edit.set_root(made)
            edit.remove("multiply.6")
            edit.sweep("negate.4")
        assert not edit.committed
        assert made == "tanh.5.1"
    assert editor.snapshot() is before
    assert order(editor.snapshot()) == order(before)
    assert asked == ["stage/law@main/exponential.5"] * 2
    assert editor.rewrites_refused == 2 and not told
    assert_users_current(editor, "main")


def test_ids_count_from_the_second_time_on() -> None:
    told: list[Rewrite] = []
    editor = Editor(chain(), SEMANTICS, listener=told.append)
    editor.begin_stage("s")
    for _ in range(2):
        with editor.rewrite(LAW, "main", "multiply.6") as edit:
            edit.add("abs", ["add.3"])
    with editor.rewrite(LAW, "main", "multiply.6"):
        pass
    assert [entry.id for entry in told] == ["s/law@main/multiply.6", "s/law@main/multiply.6#2"]
    assert told[0].made == ("abs.6.1",) and told[0].removed == ()


def test_rewrites_do_not_nest_and_nothing_changes_outside() -> None:
    editor = Editor(chain(), SEMANTICS)
    inner = editor.rewrite(LAW, "main", "add.3")
    with editor.rewrite(LAW, "main", "add.3") as edit, pytest.raises(RuntimeError), inner:
        pass
    with pytest.raises(RuntimeError):
        edit.remove("negate.4")


def test_removal_of_what_is_used_is_an_error() -> None:
    editor = Editor(chain(), SEMANTICS)
    with pytest.raises(ValueError, match="still used"), editor.rewrite(LAW, "main", "add.3") as edit:
        edit.remove("add.3")


def test_unknown_operands_are_an_error() -> None:
    editor = Editor(chain(), SEMANTICS)
    with pytest.raises(KeyError), editor.rewrite(LAW, "main", "add.3") as edit:
        edit.add("negate", ["nothing.1"])
    with pytest.raises(KeyError, match="nothing"), editor.rewrite(LAW, "main", "add.3") as edit:
        edit.update(editor.get("main", "add.3").with_operands(("nothing.1", "arg0.1")))
    assert_users_current(editor, "main")


def test_snapshots_share_what_did_not_change() -> None:
    m = ModuleBuilder()
    add = m.reducer("add", F32)
    f = m.computation("main")
    x = f.parameter(F32, 2, 3)
    f.root(f.op("abs", f.op("reduce", x, f.constant(0, F32), called=(add,), dimensions=(1,))))
    editor = Editor(m.build(), SEMANTICS)
    before = editor.snapshot()
    assert editor.snapshot() is before
    with editor.rewrite(LAW, "main", "abs.7") as edit:
        edit.replace("abs.7", edit.add("negate", ["reduce.6"]))
    after = editor.snapshot()
    assert after.computations[add] is before.computations[add]
    assert after.entry_computation["reduce.6"] is before.entry_computation["reduce.6"]
    assert before.entry_computation.root == "abs.7"


def test_a_rewrite_that_is_taken_back_by_hand_is_no_change() -> None:
    editor = Editor(chain(), SEMANTICS)
    before = editor.snapshot()
    with editor.rewrite(LAW, "main", "multiply.6") as edit:
        edit.sweep(edit.add("abs", ["add.3"]))
    with editor.rewrite(LAW, "main", "multiply.6") as edit:
        body = [
            Instruction("arg0.99", "parameter", editor.get("main", "add.3").type, (), Attributes(index=0))
        ]
        edit.remove_computation(edit.add_computation("body", body, "arg0.99"))
    assert editor.snapshot() is before


def test_reorder_takes_only_valid_orders() -> None:
    editor = Editor(chain(), SEMANTICS)
    new = ["arg1.2", "arg0.1", "add.3", "exponential.5", "negate.4", "multiply.6"]
    with editor.rewrite(LAW, "main", "add.3") as edit:
        edit.reorder(new)
    assert order(editor.snapshot()) == new
    for wrong in (new[:-1], [new[-1], *new[:-1]]):
        with pytest.raises(ValueError), editor.rewrite(LAW, "main", "add.3") as edit:
            edit.reorder(wrong)
    assert order(editor.snapshot()) == new


def mutate(editor: Editor, chance: random.Random) -> None:
    """One random rewrite of the entry computation."""
    state = editor.working("main")
    names = list(state.names())
    inner = [n for n in names if state.instructions[n].opcode != "parameter"]
    target = chance.choice(inner)
    with editor.rewrite(LAW, "main", target) as edit:
        kind = chance.random()
        earlier = names[: names.index(target)]
        if kind < 0.5:
            made = edit.add("maximum", [chance.choice(earlier), chance.choice(earlier)])
            if chance.random() < 0.5:
                made = edit.add("negate", [made], before=target)
            edit.replace(target, made)
        elif kind < 0.7:
            edit.add("abs", [chance.choice(names)])
        elif kind < 0.8:
            edit.set_root(chance.choice(inner))
        elif kind < 0.9:
            edit.sweep(chance.choice(inner))
        else:
            editor.working("main").names()
            edit.add("tanh", [target])
            edit.reorder(editor.working("main").names())


@pytest.mark.parametrize("seed", range(30))
def test_random_rewrites_replay_and_roll_back(seed: int) -> None:
    chance, refusal = random.Random(seed), random.Random(seed + 1)
    told: list[Rewrite] = []
    states: list[Module] = []
    editor = Editor(chain(), SEMANTICS, gate=lambda identity: refusal.random() < 0.7, listener=told.append)
    start = editor.snapshot()
    for _ in range(40):
        before, committed = editor.snapshot(), len(told)
        mutate(editor, chance)
        assert_users_current(editor, "main")
        after = editor.snapshot()
        if len(told) == committed:
            assert after is before
        else:
            states.append(after)
    for count, state in enumerate(states, start=1):
        found = apply(start, told[:count])
        assert content(found) == content(state)
        assert found.lineages == state.lineages or found is start
    assert apply(start, []) is start


def test_replay_covers_computations_and_refuses_strangers() -> None:
    told: list[Rewrite] = []
    editor = Editor(chain(), SEMANTICS, listener=told.append)
    start = editor.snapshot()
    kind = editor.get("main", "add.3").type
    with editor.rewrite(LAW, "main", "exponential.5") as edit:
        inner = edit.fresh_name("parameter")
        body = [Instruction(inner, "parameter", kind, (), Attributes(index=0))]
        name = edit.add_computation("identity", body, inner)
        edit.replace("exponential.5", edit.add("call", ["add.3"], called=(name,)))
    middle = editor.snapshot()
    with editor.rewrite(LAW, "main", "call.5.2") as edit:
        edit.replace("call.5.2", "add.3")
        edit.remove_computation(name)
    assert content(apply(start, told[:1])) == content(middle)
    assert content(apply(start, told)) == content(editor.snapshot())
    assert content(apply(middle, told[1:])) == content(editor.snapshot())
    with pytest.raises(ReplayError, match=r"call\.5\.2"):
        apply(start, told[1:])


def test_integers_and_floats_differ_in_type() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    x = f.parameter(F32, 2)
    f.root(f.op("abs", x))
    g = m.computation("other")
    g.root(g.parameter(I32, 2))
    editor = Editor(m.build(), SEMANTICS)
    assert editor.computations() == ["main", "other"]
    with pytest.raises(KeyError):
        editor.working("none")
