"""The user's choices as a value: pending, undo, and what saving would destroy; and two recordings compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.decisions.overrides import OverrideError, load_overrides
from explorer.compare import compare_traces
from explorer.overruling import Overruling, overruling_of
from tests.views.tui.driving import recorded

A, B = "fusion:main/a->b", "fusion:main/b->c"


def test_pending_is_what_the_compile_has_not_been_told() -> None:
    chosen = Overruling("f").overrule(A, "fuse").overrule(B, "keep-apart")
    assert chosen.pending({}) == {A: "fuse", B: "keep-apart"}
    assert chosen.pending({A: "fuse", B: "fuse"}) == {B: "keep-apart"}
    assert chosen.leave(A).pending({A: "fuse", B: "keep-apart"}) == {A: ""}


def test_undo_goes_back_one_change_and_no_change_is_none() -> None:
    chosen = Overruling("f").overrule(A, "fuse").overrule(A, "fuse").overrule(A, "keep-apart")
    assert chosen.choices == {A: "keep-apart"}
    assert chosen.undo().choices == {A: "fuse"}
    assert chosen.undo().undo().choices == {} == chosen.undo().undo().undo().choices


def test_saving_and_reading_give_the_same_choices(tmp_path: Path) -> None:
    path = str(tmp_path / "m.toml")
    chosen = Overruling(path).overrule(A, "fuse", 'since "it" is\nfaster').overrule(B, "keep-apart")
    assert not chosen.saved and not chosen.danger()
    saved = chosen.save()
    assert saved.saved and not saved.danger() and load_overrides(path) == chosen.overrides
    again = overruling_of("m", recorded("mlp"), path)
    assert again.overrides == chosen.overrides and again.saved


def test_saving_tells_what_it_would_destroy(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    text = f'# by hand\n[[override]]\ndecision = "{A}"\nchoice = "fuse"\n'
    path.write_text(text, encoding="utf-8")
    assert "was not read" in Overruling(str(path)).overrule(A, "fuse").danger()
    read = overruling_of("m", recorded("mlp"), str(path))
    assert "comments" in read.overrule(B, "fuse").danger()
    path.write_text(text + "\n", encoding="utf-8")
    assert "changed since" in read.danger()


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(OverrideError, match="No such file"):
        Overruling(str(tmp_path / "none" / "m.toml")).overrule(A, "fuse").save()


def test_a_recording_compared_with_itself_differs_in_nothing() -> None:
    trace = recorded("mlp")
    found = compare_traces(trace, trace)
    assert found.diff.is_empty and not found.decisions and not found.unmatched
    assert all(figure.before == figure.after for figure in found.figures)
    assert {figure.name for figure in found.figures} >= {"instructions", "kernels", "arena"}
