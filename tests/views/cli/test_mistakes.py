"""Whatever a user gets wrong is told in one line, with exit status 2."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.views.cli.conftest import MLP, REPORTS, ROOT

MISTAKES = [
    ["passes"],
    ["passes", "no-such.mlir"],
    ["passes", str(ROOT)],
    ["passes", str(ROOT / "README.md")],
    ["passes", MLP, "--backend", "tpu"],
    ["passes", MLP, "--option", "disable"],
    ["passes", MLP, "--option", "disabel=cse"],
    ["passes", MLP, "--overrides", "no-such.toml"],
    ["passes", MLP, "--plugin", "no-such.py"],
    ["passes", MLP, "--unheard-of"],
    ["diff", MLP, "--stage", "fusoin"],
    ["diff", MLP, "--function", "mian"],
    ["diff", MLP, "no-such.mlir"],
    ["history", MLP, "dot_general.88"],
    ["decisions", MLP, "--kind", "fusio"],
    ["kernels", MLP, "fusion.0.0"],
    ["graph", MLP, "--around", "dot_general.88"],
    ["graph", MLP, "--stage", "999"],
    ["graph", MLP, "-o", "no-such-folder/x.svg"],
    ["trace", MLP],
    ["trace", MLP, "-o", str(ROOT)],
    ["verify", "no-such.mlir"],
    ["check", "no-such.mlir"],
    ["bisect", MLP, "--expect", "no-such.npz"],
    ["bisect", MLP, "--oracle", "tpu"],
    ["run", MLP, "--seed", "x"],
    ["run", MLP, "--outputs", "no-such-folder/o.npz"],
    ["frobnicate"],
    ["--frobnicate"],
]


@pytest.mark.parametrize(
    "words",
    [
        ["run", MLP, "--repeat", "-1"],
        ["run", MLP, "--seed", "-1"],
        ["run", MLP, "--seed", "x"],
        ["run", MLP, "--rtol", "nan"],
        ["run", MLP, "--atol", "-0.1"],
        ["bisect", MLP, "--rtol", "tight"],
        ["bisect", MLP, "--repeats", "0"],
        ["compare", MLP, MLP, "--repeat", "0"],
        ["profile", MLP, "--repeat", "0"],
        ["profile", MLP, "--top", "-1"],
        ["memory", MLP, "--top", "0"],
        ["graph", MLP, "--around", "dot_general.8", "--radius", "-1"],
        ["check", MLP, "--jobs", "0"],
        ["passes", MLP, "--threads", "-3"],
    ],
    ids=lambda words: " ".join(words[:1] + words[-2:]),
)
def test_numbers_that_make_no_sense_are_refused(words: list[str], run) -> None:
    found = run(*words)
    assert found.status == 2 and found.out == ""
    assert words[-2] in found.err and f"{words[-1]}" in found.err and found.err.count("\n") == 1


@pytest.mark.parametrize("fault", ["1 / 0", "[][1]", "nowhere", "raise NotImplementedError", "{}['x']"])
def test_a_pass_of_a_plugin_that_raises_is_named(fault: str, run, tmp_path: Path) -> None:
    plugin = tmp_path / "broken.py"
    plugin.write_text(
        "class Pass:\n    name = 'broken'\n    options = ()\n"
        f"    def run(self, editor, context):\n        {fault}\n"
        "def register(registry):\n    registry.add_pass(Pass(), id='broken', after='cse')\n"
    )
    found = run("passes", MLP, "--plugin", plugin)
    assert found.status == 2 and found.out == ""
    assert "broken" in found.err and "Traceback" not in found.err


def test_a_pipe_is_not_replaced_by_a_file_and_a_link_is_followed(run, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for words in (["trace", MLP, "-o", pipe], ["run", MLP, "--outputs", pipe]):
        found = run(*words)
        assert found.status == 2 and "is no ordinary file" in found.err
    assert pipe.is_fifo()
    link, target = tmp_path / "link.xtrace", tmp_path / "target.xtrace"
    link.symlink_to(target)
    assert run("trace", MLP, "-o", link).status == 0
    assert link.is_symlink() and target.stat().st_size > 0


@pytest.mark.parametrize("words", MISTAKES, ids=lambda words: " ".join(w.rsplit("/", 1)[-1] for w in words))
def test_mistakes_are_told_in_one_line(words: list[str], run) -> None:
    found = run(*words)
    assert found.status == 2 and found.out == ""
    assert found.err.count("\n") == 1 and "Traceback" not in found.err, found.err


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["diff", MLP, "--stage", "fusoin"], "fusion"),
        (["history", MLP, "dot_general.88"], "dot_general.8"),
        (["kernels", MLP, "fusion.0.0"], "fusion."),
        (["decisions", MLP, "--kind", "fusio"], "fusion"),
        (["graph", MLP, "--function", "mian"], "main"),
    ],
)
def test_unknown_names_give_the_nearest(words: list[str], near: str, run) -> None:
    assert f"did you mean {near}" in run(*words).err


def test_control_characters_never_reach_the_terminal(run, tmp_path: Path) -> None:
    path = tmp_path / "evil\x1b[31m.mlir"
    path.write_text(Path(MLP).read_text().replace('"mlp.py"', '"\\1B]0;owned\\07.py"'))
    for command, words in REPORTS.items():
        found = run(command, str(path), *words)
        assert "\x1b" not in found.out + found.err and "\x07" not in found.out, command
    path.write_text("func.func \x1b[31m")
    found = run("verify", str(path))
    assert found.status == 1 and "\x1b" not in found.out + found.err
