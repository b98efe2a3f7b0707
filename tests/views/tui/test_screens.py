"""What the first screen shows, at the three sizes people have, as golden text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from explorer.compare import compare_traces
from explorer.session import record
from tests.views.tui.driving import press, recorded, running, screen_text, session, timeless
from views.tui.decision_dialogs import ComparisonScreen

Golden = Callable[[str, str], None]
OVERRULED = "fusion:main/add.16->maximum.17.3"
SIZES = [(80, 24), (120, 40), (200, 60)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("model", ["mlp", "lstm_scan", "transformer_block"])
async def test_first_screen(model: str, size: tuple[int, int], golden: Golden) -> None:
    async with running(lambda: recorded(model), size) as (app, _):
        golden(f"{model}-{size[0]}x{size[1]}.txt", screen_text(app))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_fusion_stage(size: tuple[int, int], golden: Golden) -> None:
    async with running(lambda: recorded("mlp"), size) as (app, pilot):
        assert app._main.query_one("#stages").select("fusion")
        await press(pilot, "tab", "right_square_bracket")
        golden(f"mlp-fusion-{size[0]}x{size[1]}.txt", screen_text(app))


@pytest.mark.parametrize("key", ["w", "p", "a", "d", "question_mark"])
async def test_other_views_of_a_stage(key: str, golden: Golden) -> None:
    async with running(lambda: recorded("mlp")) as (app, pilot):
        assert app._main.query_one("#stages").select("fusion")
        await press(pilot, key)
        golden(f"mlp-fusion-{key}.txt", screen_text(app))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(("key", "name"), [("D", "decisions"), ("M", "memory"), ("F", "fusion")])
async def test_other_screens(key: str, name: str, size: tuple[int, int], golden: Golden) -> None:
    async with running(lambda: recorded("transformer_block"), size) as (app, pilot):
        await press(pilot, key, "down")
        golden(f"transformer_block-{name}-{size[0]}x{size[1]}.txt", screen_text(app))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_choices_of_a_decision(size: tuple[int, int], golden: Golden) -> None:
    async with running(lambda: recorded("mlp"), size) as (app, pilot):
        await press(pilot, "D", "down", "enter")
        golden(f"mlp-choices-{size[0]}x{size[1]}.txt", screen_text(app))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_comparison_of_two_recordings(size: tuple[int, int], golden: Golden) -> None:
    before = recorded("mlp")
    after = timeless(record(session("mlp", overrides={OVERRULED: "keep-apart"})).trace)
    async with running(lambda: before, size) as (app, pilot):
        app.push_screen(ComparisonScreen(compare_traces(before, after)))
        await pilot.pause()
        golden(f"mlp-comparison-{size[0]}x{size[1]}.txt", screen_text(app))
