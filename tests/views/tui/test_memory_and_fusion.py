"""The memory and fusion screens: the chart, the buffers of a step, the kernels, and the way back to an instruction."""

from __future__ import annotations

import pytest

from explorer.fusion_report import fusion_report
from explorer.memory import memory_report
from explorer.reuse import Reuse
from tests.views.tui.driving import press, recorded, running, screen_text
from views.tui.app import ExplorerApp
from views.tui.decisions_screen import DecisionsScreen
from views.tui.fusion_screen import FusionScreen
from views.tui.line_list import LineList
from views.tui.main_screen import MainScreen
from views.tui.memory_chart import chart, columns_of, lifetime_bar
from views.tui.memory_screen import MemoryScreen


def memory(app: ExplorerApp) -> MemoryScreen:
    """The memory screen, which must be on top."""
    assert isinstance(app.screen, MemoryScreen)
    return app.screen


@pytest.mark.parametrize(("count", "width"), [(1, 70), (5, 70), (38, 70), (70, 70), (1000, 70), (100_001, 3)])
def test_columns_cover_every_step(count: int, width: int) -> None:
    columns = columns_of(count, width)
    assert len(columns) == width
    seen = {step for first, end in columns for step in range(first, end)}
    assert seen == set(range(count))


def test_the_chart_is_as_high_as_the_most_of_each_column() -> None:
    lines = [line.plain for line in chart((0, 8, 4, 0), 2, 1, 11 + 4, 2 + 4)]
    bars = [line[11:] for line in lines[:4]]
    assert bars == [" █  ", " █  ", " ██ ", " ██ "]
    assert lines[0].startswith("      8 B")
    assert lines[4].endswith("└──┴─")


def test_the_chart_of_nothing_has_its_lines() -> None:
    assert len(chart((), 0, -1, 60, 8)) == 8
    assert "█" not in "".join(line.plain for line in chart((0, 0), 0, -1, 60, 8))


def test_a_lifetime_bar_fills_the_steps_it_is_live_at() -> None:
    assert lifetime_bar(2, 4, 3, 8, 8).plain == "··███···"
    assert "█" in lifetime_bar(500, 500, 0, 1000, 10).plain


async def test_left_and_right_move_the_step_and_p_goes_to_the_peak() -> None:
    async with running(lambda: recorded("lstm_scan")) as (app, pilot):
        await press(pilot, "M")
        report = memory(app).report
        await press(pilot, "p")
        assert memory(app).step == report.peak_step and "the peak" in screen_text(app)
        assert memory(app).live == list(report.at_peak)
        await press(pilot, "left", "left")
        assert memory(app).step == report.peak_step - 2
        assert all(b.first <= memory(app).step <= b.last for b in memory(app).live)
        await press(pilot, *["right"] * (len(report.live_bytes) + 3))
        assert memory(app).step == len(report.live_bytes) - 1 and "the end" in screen_text(app)
        await press(pilot, *["shift+left"] * len(report.live_bytes))
        assert memory(app).step == 0


async def test_all_places_can_be_shown_and_enter_goes_to_the_instruction() -> None:
    async with running(lambda: recorded("lstm_scan")) as (app, pilot):
        await press(pilot, "M", "p", "a")
        kinds = {buffer.kind for buffer in memory(app).live}
        assert {"arena", "parameter"} <= kinds
        await press(pilot, "a", "down", "enter")
        await pilot.pause()
        assert isinstance(app.screen, MainScreen)
        report = memory_report(recorded("lstm_scan"))
        assert report is not None and app.code.row is not None
        assert app.code.row.name == report.at_peak[1].instruction
        assert app.selected[1] == app.code.row.name


def test_why_a_buffer_was_not_shared_is_told_for_each_operand() -> None:
    trace = recorded("transformer_block")
    report, reuse = memory_report(trace), Reuse(trace)
    assert report is not None
    found = {buffer.instruction: reuse.reasons(buffer) for buffer in report.buffers if buffer.kind == "arena"}
    told = [reason for reasons in found.values() for reason in reasons]
    assert any(reason.startswith("not over ") and "still reads it" in reason for reason in told)
    assert any("for the last time" in reason for reason in told)
    for name, reasons in found.items():
        for reason in reasons:
            if reason.startswith("not over "):
                operand = reason.removeprefix("not over ").partition(":")[0]
                place = trace.final.find(name)
                assert place is not None and operand in place[1].operands


def test_every_fusion_edge_stands_at_its_kernel() -> None:
    trace = recorded("transformer_block")
    groups = fusion_report(trace)
    assert trace.code is not None and len(groups) == len(trace.code.kernels)
    assert any(edge.fused for group in groups for edge in group.into) and any(
        group.onward for group in groups
    )
    for group in groups:
        members = {member.name for member in group.members}
        for edge in group.into:
            assert edge.producer in members or not edge.fused
        for edge in group.onward:
            assert edge.producer in members and not edge.fused


async def test_kernels_open_and_close_and_lead_to_instruction_and_decision() -> None:
    async with running(lambda: recorded("mlp")) as (app, pilot):
        await press(pilot, "F")
        screen = app.screen
        assert isinstance(screen, FusionScreen)
        everything = len(screen.lines)
        await press(pilot, "space")
        assert len(screen.lines) < everything
        await press(pilot, "space")
        assert len(screen.lines) == everything
        await press(pilot, "e")
        assert len(screen.lines) == len(screen.groups)
        await press(pilot, "e")
        place = next(
            n for n, line in enumerate(screen.lines) if line.edge is not None and not line.edge.fused
        )
        screen.query_one(LineList).move_to(place)
        await pilot.pause()
        assert "why not: its users are in 2 kernels" in screen_text(app)
        edge = screen.lines[place].edge
        await press(pilot, "y")
        assert isinstance(app.screen, DecisionsScreen) and edge is not None
        assert app.screen.decision is not None and app.screen.decision.id == edge.decision.id
        await press(pilot, "F", "enter")
        await pilot.pause()
        assert isinstance(app.screen, MainScreen)
        assert app.code.row is not None and app.code.row.name == app.selected[1]


async def test_screens_follow_each_other_without_piling_up() -> None:
    async with running(lambda: recorded("mlp")) as (app, pilot):
        await press(pilot, "D", "M", "F", "D")
        assert isinstance(app.screen, DecisionsScreen) and len(app.screen_stack) == 2
        await press(pilot, "escape")
        assert isinstance(app.screen, MainScreen)


async def test_a_recording_without_plan_or_decisions_says_so() -> None:
    bare = recorded("mlp").having(plan=None, stages=())
    async with running(lambda: bare) as (app, pilot):
        await press(pilot, "M")
        assert any("no memory plan" in note.message for note in app._notifications)
        await press(pilot, "D")
        assert "nothing was decided" in screen_text(app)
        await press(pilot, "F")
        assert "the recording has no fusion decisions" in screen_text(app)
