"""The loop of the decisions screen by keyboard: overrule, recompile, compare, undo, save, reopen."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from compiler.decisions.log import Choice, Decision
from compiler.decisions.overrides import load_overrides
from explorer.diff import diff_modules
from explorer.session import Session
from explorer.trace import StageRecord, Trace
from tests.views.tui.driving import press, recorded, running, screen_text, session
from views.tui.app import ExplorerApp
from views.tui.decision_dialogs import ChoiceScreen, ComparisonScreen, ConfirmScreen
from views.tui.decisions_screen import DecisionsScreen
from views.tui.dialogs import TextScreen
from views.tui.line_list import LineList
from views.tui.main_screen import MainScreen

EDGE = "fusion:main/exponential.30->reduce.35"
"""Forbidden to fuse: its users are in two kernels."""
FUSED = "fusion:main/add.16->maximum.17.3"


def decisions(app: ExplorerApp) -> DecisionsScreen:
    """The decisions screen, which must be on top."""
    assert isinstance(app.screen, DecisionsScreen)
    return app.screen


async def stand_on(app: ExplorerApp, pilot: Pilot[int], identity: str) -> None:
    """Puts the cursor on a decision."""
    screen = decisions(app)
    number = screen.log_.number_of(identity)
    assert number is not None
    screen.query_one(LineList).move_to(len(screen.unmatched) + screen.shown.index(number))
    await pilot.pause()
    assert screen.decision is not None and screen.decision.id == identity


async def recompiled(app: ExplorerApp, pilot: Pilot[int]) -> None:
    """Waits until no recompile is running."""
    for _ in range(400):
        await pilot.pause(0.02)
        if app._recompile is None:
            break
    await pilot.pause()


async def test_overrule_recompile_compare_save_and_reopen(tmp_path: Path) -> None:
    model = str(tmp_path / "model")
    async with running(lambda: session("mlp")) as (app, pilot):
        app.overruling = replace(app.overruling, path=f"{model}.overrides.toml")
        assert app.trace is not None and app.trace.code is not None
        kernels = len(app.trace.code.kernels)
        await press(pilot, "D")
        await stand_on(app, pilot, FUSED)
        await press(pilot, "enter")
        assert isinstance(app.screen, ChoiceScreen)
        await press(pilot, "tab", *"why", "enter")
        assert decisions(app).pending == {FUSED: "keep-apart"}
        assert "1 pending: r recompiles" in screen_text(app) and "not saved" in screen_text(app)
        await press(pilot, "r")
        await recompiled(app, pilot)
        assert isinstance(app.screen, ComparisonScreen)
        shown = screen_text(app)
        assert f"fuse → keep-apart (you)   {FUSED}" in shown
        assert f"kernels{kernels:>23}{kernels + 1:>12}{'+1':>14}" in shown
        await press(pilot, "escape")
        assert decisions(app).pending == {} and "overruled by you" in screen_text(app)
        final = app.trace.final
        await press(pilot, "S")
        assert "not saved" not in screen_text(app)
    (entry,) = load_overrides(f"{model}.overrides.toml").entries
    assert (entry.decision, entry.choice, entry.because) == (FUSED, "keep-apart", "why")

    def reopen() -> Session:
        return session("mlp", overrides=load_overrides(f"{model}.overrides.toml").choices)

    async with running(reopen, overrides_file=f"{model}.overrides.toml") as (again, pilot):
        assert again.trace is not None and diff_modules(again.trace.final, final).is_empty
        await press(pilot, "D")
        await stand_on(again, pilot, FUSED)
        shown = screen_text(again)
        assert "overruled by you (the policy says fuse), because why\n" in shown
        assert "the policy's reason: saves a round trip" in shown
        assert "1 overruled" in shown and "pending" not in shown and "not saved" not in shown


async def test_undo_takes_back_one_change_at_a_time() -> None:
    async with running(lambda: recorded("mlp")) as (app, pilot):
        await press(pilot, "D")
        await stand_on(app, pilot, FUSED)
        await press(pilot, "enter", "enter", "down", "enter", "enter")
        assert len(decisions(app).pending) == 2
        await press(pilot, "z")
        assert decisions(app).pending == {FUSED: "keep-apart"}
        await press(pilot, "z")
        assert decisions(app).pending == {}
        await press(pilot, "z")
        assert any("nothing to undo" in note.message for note in app._notifications)


async def test_choosing_what_the_policy_says_takes_the_override_back() -> None:
    async with running(lambda: recorded("mlp")) as (app, pilot):
        await press(pilot, "D")
        await stand_on(app, pilot, FUSED)
        await press(pilot, "enter", "enter")
        assert decisions(app).pending == {FUSED: "keep-apart"}
        await press(pilot, "space", "enter")
        assert decisions(app).pending == {}


async def test_a_forbidden_choice_is_shown_with_its_rule_and_cannot_be_taken() -> None:
    async with running(lambda: recorded("mlp")) as (app, pilot):
        await press(pilot, "D")
        await stand_on(app, pilot, EDGE)
        await press(pilot, "enter")
        assert isinstance(app.screen, ChoiceScreen)
        assert "not possible: its users are in 2 kernels" in screen_text(app)
        await press(pilot, "enter")
        assert not app.overruling.choices


async def test_an_illegal_override_ends_as_a_message_and_the_old_recording_stays() -> None:
    async with running(lambda: recorded("mlp")) as (app, pilot):
        old = app.trace
        await press(pilot, "D")
        decisions(app)._change(app.overruling.overrule(EDGE, "fuse"))
        await press(pilot, "r")
        await recompiled(app, pilot)
        assert isinstance(app.screen, TextScreen)
        shown = screen_text(app)
        assert "the old recording stays" in shown and "its users are in 2 kernels" in shown
        await press(pilot, "escape")
        assert app.trace is old and decisions(app).pending == {EDGE: "fuse"}


async def test_an_override_that_matched_nothing_is_listed_with_the_nearest_and_can_be_taken_back() -> None:
    wrong = FUSED.replace("add.16", "add.61")
    async with running(lambda: session("mlp", overrides={wrong: "fuse"})) as (app, pilot):
        await press(pilot, "D", "home")
        shown = screen_text(app)
        assert "1 matched nothing" in shown and f"nearest: {FUSED}" in shown.replace("\n", "")
        await press(pilot, "enter", "r")
        await recompiled(app, pilot)
        assert isinstance(app.screen, ComparisonScreen)
        assert app.trace is not None and not app.trace.unmatched_overrides


async def test_an_illegal_override_of_the_file_can_be_taken_back() -> None:
    async with running(lambda: session("mlp", overrides={EDGE: "fuse"})) as (app, pilot):
        assert isinstance(app.screen, TextScreen) and "not possible" in screen_text(app)
        await press(pilot, "escape", "D", "home")
        assert "ended before this was decided" in screen_text(app)
        await press(pilot, "enter", "r")
        await recompiled(app, pilot)
        assert isinstance(app.screen, ComparisonScreen)
        assert app.trace is not None and not app.trace.error and app.trace.code is not None


async def test_the_screen_stays_usable_while_it_recompiles_and_x_stops_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from threading import Event

    from compiler.passes.fusion import Fusion

    gate, run = Event(), Fusion.run

    def wait(*arguments: object) -> None:
        gate.wait(20)
        run(*arguments)  # type: ignore[arg-type]

    async with running(lambda: recorded("mlp")) as (app, pilot):
        monkeypatch.setattr(Fusion, "run", wait)
        await press(pilot, "D")
        await stand_on(app, pilot, FUSED)
        await press(pilot, "enter", "enter", "r", "down")
        await pilot.pause(0.3)
        assert "recompiling" in screen_text(app)
        screen = decisions(app)
        assert screen.decision is not None and screen.decision.id != FUSED
        await press(pilot, "r")
        assert any("a recompile is running" in note.message for note in app._notifications)
        await press(pilot, "x")
        gate.set()
        await recompiled(app, pilot)
        assert app.trace is recorded("mlp") and decisions(app).pending == {FUSED: "keep-apart"}
        assert "recompiling" not in screen_text(app)


async def test_saving_asks_before_it_overwrites_a_file_that_was_not_read(tmp_path: Path) -> None:
    file = tmp_path / "model.overrides.toml"
    file.write_text("# someone's\n", encoding="utf-8")
    async with running(lambda: recorded("mlp")) as (app, pilot):
        app.overruling = replace(app.overruling, path=str(file))
        await press(pilot, "D")
        await stand_on(app, pilot, FUSED)
        await press(pilot, "enter", "enter", "S")
        assert isinstance(app.screen, ConfirmScreen) and "was not read" in screen_text(app)
        await press(pilot, "n")
        assert file.read_text(encoding="utf-8") == "# someone's\n"
        await press(pilot, "S", "y")
        assert tomllib.loads(file.read_text(encoding="utf-8"))["override"][0]["decision"] == FUSED
        await press(pilot, "z", "z", "S")
        assert isinstance(app.screen, DecisionsScreen)


async def test_a_recording_made_elsewhere_cannot_be_recompiled() -> None:
    async with running(lambda: recorded("mlp").having(producer="xla")) as (app, pilot):
        await press(pilot, "D")
        await stand_on(app, pilot, FUSED)
        await press(pilot, "enter", "enter", "r")
        assert any("made elsewhere" in note.message for note in app._notifications)
        assert isinstance(app.screen, DecisionsScreen)


async def test_the_filter_takes_kinds_subjects_and_text() -> None:
    async with running(lambda: recorded("transformer_block")) as (app, pilot):
        await press(pilot, "D", "slash", *"kind:fusion keep-apart kernels", "enter")
        found = decisions(app)
        assert 0 < len(found.shown) < len(found.log_.decisions)
        for number in found.shown:
            decision = found.log_.decisions[number]
            assert (
                decision.kind == "fusion" and decision.chosen == "keep-apart" and "kernels" in decision.reason
            )
        await press(pilot, "escape")
        assert len(decisions(app).shown) == len(found.log_.decisions)
        await press(pilot, "slash", *"subject:main/add.133", "enter")
        assert not decisions(app).shown and "no decision matches" in screen_text(app)
        await press(pilot, "escape", "escape")
        assert isinstance(app.screen, MainScreen)


async def test_the_instruction_of_a_decision_is_shown_in_the_main_screen() -> None:
    async with running(lambda: recorded("mlp")) as (app, pilot):
        await press(pilot, "D")
        await stand_on(app, pilot, FUSED)
        await press(pilot, "i")
        assert isinstance(app.screen, MainScreen)
        assert app._main.stage is not None and app._main.stage.id == "fusion"
        assert app.code.row is not None and app.code.row.name == "add.16"
        await press(pilot, "D")
        here = decisions(app).decision
        assert here is not None and "add.16" in here.id


async def test_ten_thousand_decisions_are_drawn_and_filtered_at_once() -> None:
    from time import perf_counter

    choices = (Choice("fuse", 0.0, "ns"), Choice("keep-apart", 300.0, "ns"))
    many = tuple(
        Decision(
            f"fusion:main/a.{n}->b.{n}",
            "fusion",
            f"main/a.{n}->b.{n}",
            "fusion",
            choices,
            "fuse",
            "fuse",
            "policy",
            "cheap",
        )
        for n in range(10_000)
    )
    trace = recorded("mlp")
    stage = replace(trace.stage("fusion"), decisions=many)
    stages: tuple[StageRecord, ...] = tuple(stage if s.id == "fusion" else s for s in trace.stages)
    large: Trace = trace.having(stages=stages)
    async with running(lambda: large) as (app, pilot):
        start = perf_counter()
        await press(pilot, "D", "end", "home", "pagedown", "slash", *"a.9999")
        assert perf_counter() - start < 8
        assert len(decisions(app).shown) == 1


async def test_the_command_palette_opens_the_screens() -> None:
    async with running(lambda: recorded("mlp")) as (app, pilot):
        await press(pilot, "ctrl+p", *"Decision log")
        await pilot.pause(0.5)
        await press(pilot, "enter")
        await pilot.pause(0.5)
        assert isinstance(app.screen, DecisionsScreen)


async def test_enter_pressed_twice_in_the_palette_leaves_the_main_screen() -> None:
    async with running(lambda: recorded("mlp")) as (app, pilot):
        await press(pilot, "ctrl+p", *"Rewrites")
        await pilot.pause(0.5)
        await pilot.press("enter", "enter")
        await pilot.pause(0.5)
        assert isinstance(app.screen, MainScreen)
