"""What the first screen shows, at the three sizes people have, as golden text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.views.tui.driving import press, recorded, running, screen_text

Golden = Callable[[str, str], None]
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
