"""Driving the terminal program in tests: open a model, wait for the compile, press keys, read the screen as text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path

from textual.pilot import Pilot

from compiler.frontend.load import load
from compiler.options import CompileOptions
from explorer.session import Session, record
from explorer.trace import StageRecord, Trace
from views.tui.app import ExplorerApp

SAMPLES = Path(__file__).resolve().parents[3] / "sample_models"


def session(name: str, **options: object) -> Session:
    """A session on a sample model, named by its path from the repository's top so that screens are the same anywhere."""
    path = SAMPLES / name / "model.mlir"
    chosen = CompileOptions(backend="interpreter", **options)  # type: ignore[arg-type]
    return Session(f"sample_models/{name}/model.mlir", load(str(path)), chosen)


def timeless(trace: Trace) -> Trace:
    """The same recording with every time zero: screens of it do not change from run to run."""
    stages = tuple(
        StageRecord(
            s.index,
            s.id,
            s.pass_name,
            s.why,
            s.before,
            s.after,
            s.rewrites,
            s.decisions,
            0.0,
            s.refused,
            s.skipped,
        )
        for s in trace.stages
    )
    return trace.having(stages=stages)


@lru_cache(maxsize=16)
def recorded(name: str) -> Trace:
    """A finished, timeless recording of a sample model."""
    return timeless(record(session(name)).trace)


def screen_text(app: ExplorerApp) -> str:
    """What is on the screen, a line a row, trailing blanks removed."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips) + "\n"


@asynccontextmanager
async def running(
    opener: Callable[[], Session | Trace], size: tuple[int, int] = (120, 40), *, overrides_file: str = ""
) -> AsyncIterator[tuple[ExplorerApp, Pilot[int]]]:
    """The app with a finished recording on its screen."""
    app = ExplorerApp(opener, "model", overrides_file)
    async with app.run_test(size=size) as pilot:
        for _ in range(400):
            await pilot.pause(0.02)
            if app.failure or (app.trace is not None and app.trace.finished):
                break
        await pilot.pause()
        yield app, pilot


async def press(pilot: Pilot[int], *keys: str) -> None:
    """Presses keys one by one and lets the screen settle."""
    for key in keys:
        await pilot.press(key)
        await pilot.pause()
