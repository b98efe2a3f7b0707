"""The override file: what is written reads back, whatever is in it, and what is wrong is told in one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.decisions.overrides import (
    Override,
    OverrideError,
    Overrides,
    format_overrides,
    load_overrides,
    nearest,
    save_overrides,
)

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(st.lists(st.tuples(TEXT, TEXT, st.text(max_size=20)), max_size=5, unique_by=lambda entry: entry[0]))
def test_any_text_reads_back(entries: list[tuple[str, str, str]]) -> None:
    import tomllib

    clean = [(d, c, b.encode("utf-8", "ignore").decode()) for d, c, b in entries]
    written = Overrides({"disable": ["cse", 'a"b']}, tuple(Override(*entry) for entry in clean))
    data = tomllib.loads(format_overrides(written))
    assert data["options"] == {"disable": ["cse", 'a"b']}
    read = [(row["decision"], row["choice"], row.get("because", "")) for row in data.get("override", [])]
    assert read == clean


def test_a_file_is_replaced_as_a_whole_and_a_device_is_not(tmp_path: Path) -> None:
    path = tmp_path / "choices.toml"
    save_overrides(str(path), Overrides({}, (Override("fusion:main/a->b", "fuse"),)))
    changed = load_overrides(str(path)).having(Override("fusion:main/a->b", "keep-apart", "measured"))
    save_overrides(str(path), changed)
    assert load_overrides(str(path)).choices == {"fusion:main/a->b": "keep-apart"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["choices.toml"]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OverrideError, match="not a regular file"):
        save_overrides(str(pipe), changed)
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "Invalid value"),
        ("[[override]]\ndecision = 3\nchoice = 'a'\n", "must hold strings"),
        ("[[override]]\ndecision = 'a'\n", "needs both decision and choice"),
        ("[[override]]\ndecision = 'a'\nchoice = 'b'\nwhy = 'c'\n", "unknown key 'why'"),
        ("[other]\n", "unknown table 'other'"),
    ],
)
def test_mistakes_name_the_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(OverrideError) as caught:
        load_overrides(str(path))
    assert str(caught.value).startswith(str(path)) and message in str(caught.value)


def test_nearest_ids_are_offered() -> None:
    known = ["fusion:main/a.1->b.2", "fusion:main/c.3->d.4", "layout:main/x"]
    assert nearest("fusion:main/a.1->b.3", known)[0] == "fusion:main/a.1->b.2"
