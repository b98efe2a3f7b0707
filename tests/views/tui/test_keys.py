"""Each key does what the help says, on real recordings."""

from __future__ import annotations

import pytest

from compiler.frontend.errors import SourceError
from explorer.session import Session
from explorer.trace import Trace
from tests.views.tui.driving import press, recorded, running, screen_text, session
from views.tui.dialogs import HelpScreen, HistoryScreen
from views.tui.main_screen import EVERYTHING, PROGRAM, REWRITES, MainScreen
from views.tui.rows import row_text
from views.tui.stage_list import StageList


async def test_a_live_compile_fills_the_list() -> None:
    async with running(lambda: session("mlp")) as (app, _):
        assert app.trace is not None and app.trace.finished and not app.trace.error
        stages = app._main.query_one(StageList)
        assert stages.option_count == len(app.trace.stages)
        assert "kernels (interpreter)" in screen_text(app)


async def test_unchanged_stages_can_be_hidden() -> None:
    async with running(lambda: recorded("mlp")) as (app, pilot):
        stages = app._main.query_one(StageList)
        everything = stages.option_count
        await press(pilot, "u")
        assert app.trace is not None
        kept = [s for s in app.trace.stages if s.changed or s.decisions]
        assert stages.option_count == len(kept) < everything
        await press(pilot, "u")
        assert stages.option_count == everything


async def test_rewrites_are_stepped_one_by_one() -> None:
    async with running(lambda: recorded("lstm_scan")) as (app, pilot):
        main = app._main
        assert main.query_one(StageList).select("cse")
        await press(pilot, "w")
        assert main.mode == REWRITES and main.stage is not None
        count = len(main.stage.rewrites)
        assert f"rewrite 1 of {count}" in screen_text(app)
        await press(pilot, "full_stop", "full_stop", "comma")
        assert f"rewrite 2 of {count}" in screen_text(app)
        assert main.stage.rewrites[1].rule.law[:30] in screen_text(app)
        await press(pilot, *["full_stop"] * (count + 3))
        assert f"rewrite {count} of {count}" in screen_text(app)


async def test_search_moves_to_the_next_match_and_says_when_there_is_none() -> None:
    async with running(lambda: recorded("mlp")) as (app, pilot):
        await press(pilot, "p", "slash", *"maximum", "enter")
        row = app.code.row
        assert row is not None and "maximum" in row_text(row)
        first = app.code.cursor
        await press(pilot, "n")
        assert app.code.cursor != first
        await press(pilot, "slash", *"zzz", "enter")
        assert any("is not in this view" in note.message for note in app._notifications)


async def test_history_of_an_instruction_leads_to_its_stage() -> None:
    async with running(lambda: recorded("mlp")) as (app, pilot):
        assert app._main.query_one(StageList).select("buffer-assignment")
        await press(pilot, "p", "tab")
        place = next(i for i, row in enumerate(app.code.rows) if row.name.startswith("fusion."))
        app.code.move_to(place)
        await press(pilot, "h")
        assert isinstance(app.screen, HistoryScreen)
        assert "fusion / fuse" in screen_text(app)
        await press(pilot, "escape")
        assert isinstance(app.screen, MainScreen)
        await press(pilot, "o")
        await pilot.pause()
        assert app._main.stage is not None and app._main.stage.id == "fusion"


async def test_the_inspector_follows_the_cursor() -> None:
    async with running(lambda: recorded("mlp")) as (app, pilot):
        await press(pilot, "p", "tab")
        place = next(i for i, row in enumerate(app.code.rows) if row.name.startswith("dot_general"))
        app.code.move_to(place)
        await pilot.pause()
        shown = screen_text(app)
        name = app.code.rows[place].name
        assert any(line.startswith(f" {name}  dot_general") for line in shown.splitlines())
        assert "read from the file" in shown


@pytest.mark.parametrize(("key", "mode"), [("a", EVERYTHING), ("p", PROGRAM), ("w", REWRITES)])
async def test_view_keys_toggle(key: str, mode: str) -> None:
    async with running(lambda: recorded("mlp")) as (app, pilot):
        before = app._main.mode
        await press(pilot, key)
        assert app._main.mode == mode
        await press(pilot, key)
        assert app._main.mode == before


async def test_help_opens_and_closes() -> None:
    async with running(lambda: recorded("mlp")) as (app, pilot):
        await press(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        await press(pilot, "escape")
        assert isinstance(app.screen, MainScreen)


async def test_a_model_that_cannot_be_read_ends_the_program_with_its_message() -> None:
    def broken() -> Session:
        raise SourceError("bad.mlir", 3, 7, "expected ':'", "  %0 = stablehlo.add")

    async with running(broken) as (app, _):
        assert app.failure.startswith("bad.mlir:3:7: error: expected ':'")


async def test_a_stage_that_fails_is_told_over_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    from compiler.passes.fusion import Fusion

    def fail(*_: object) -> None:
        raise ValueError("planted")

    monkeypatch.setattr(Fusion, "run", fail)
    async with running(lambda: session("mlp")) as (app, _):
        assert app.trace is not None and "stage fusion: ValueError: planted" in app.trace.error
        assert "The compile ended early" in screen_text(app)
        assert len(app.trace.stages) > 3


async def test_control_characters_of_a_file_do_not_reach_the_terminal() -> None:
    trace: Trace = recorded("mlp").having(model="evil\x1b[31m\x07.mlir")
    async with running(lambda: trace) as (app, _):
        shown = screen_text(app)
        assert "\x1b" not in shown and "\x07" not in shown
        assert "evil\N{SYMBOL FOR ESCAPE}[31m\N{SYMBOL FOR BELL}.mlir" in shown
