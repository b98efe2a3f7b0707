"""The project keeps its own rules: names, file lengths, one version, and a README whose commands exist."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest

from views import main

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("compiler", "explorer", "views")
FORBIDDEN_NAMES = {"common", "helper", "helpers", "manager", "misc", "util", "utils"}
SAMPLE_MODELS = sorted(path.parent for path in (ROOT / "sample_models").glob("*/model.mlir"))


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_no_module_has_a_name_that_says_nothing() -> None:
    modules = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert len(modules) > 50
    assert not [str(path) for path in modules if FORBIDDEN_NAMES & {path.stem, path.parent.name}]


def test_every_module_says_what_it_is() -> None:
    modules = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert not [str(path) for path in modules if not path.read_text().lstrip().startswith(('"""', 'r"""'))]


def test_no_file_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tests"))
    import file_lengths

    assert file_lengths.complaints() == []


def test_file_lengths_tell_a_long_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tests"))
    import file_lengths

    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "long.py").write_text("x = 1\n" * 401)
    assert "views/long.py: 401 lines, 400 at most" in file_lengths.complaints(tmp_path)


def test_the_version_is_the_same_everywhere() -> None:
    assert project()["version"] == main.VERSION
    assert f"## {main.VERSION}" in (ROOT / "CHANGELOG.md").read_text()


def test_entry_points_name_the_console_command_and_the_backends() -> None:
    assert project()["scripts"] == {"xla-explore": "views.main:main"}
    assert set(project()["entry-points"]["xla_explore.backends"]) == {"cpu", "interpreter"}


def readme_commands() -> set[str]:
    """First words after `xla-explore` in the README's shell blocks."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return {found for block in blocks for found in re.findall(r"xla-explore ([\w./-]+)", block)}


def test_readme_commands_exist() -> None:
    words = readme_commands()
    assert {"run", "diff", "graph"} <= words
    for word in words:
        assert word in main.COMMANDS or (ROOT / word).is_file(), word


def test_readme_files_exist() -> None:
    text = (ROOT / "README.md").read_text()
    named = set(re.findall(r"\]\(([\w./]+)\)", text)) | set(re.findall(r"sample_models/[\w./]+", text))
    assert not [name for name in named if not (ROOT / name).exists()]


def test_readme_test_command_is_what_ci_runs() -> None:
    assert "-m pytest -q" in (ROOT / "README.md").read_text()
    assert "-m pytest -q" in (ROOT / ".ci" / "run").read_text()


def test_makefile_has_the_targets_that_are_promised() -> None:
    promised = set(re.findall(r"`?make (\w+)", (ROOT / "CONTRIBUTING.md").read_text()))
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"setup", "check", "test", "run", "golden", "fuzz", "bench"} <= promised <= targets


def test_a_shell_can_run_ci() -> None:
    assert shutil.which("bash")
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_the_index_lists_the_sample_models() -> None:
    index = json.loads((ROOT / "sample_models" / "index.json").read_text())
    assert [entry["name"] for entry in index] == [folder.name for folder in SAMPLE_MODELS]
    assert all(entry["tolerance"]["absolute"] > 0 for entry in index)


@pytest.mark.parametrize("folder", SAMPLE_MODELS, ids=lambda folder: folder.name)
def test_a_sample_model_is_complete_small_and_says_nothing_of_the_machine_it_was_made_on(
    folder: Path,
) -> None:
    source = (folder / f"{folder.name}.py").read_text().splitlines()
    text = (folder / "model.mlir").read_text()
    places = re.findall(r'loc\("([^"]+\.py)":(\d+):\d+', text)
    assert places
    assert {file for file, _ in places} == {f"{folder.name}.py"}
    assert all(source[int(line) - 1].strip() for _, line in places)
    assert '"/' not in text
    assert sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) < 150_000
    entry = next(
        e for e in json.loads((ROOT / "sample_models" / "index.json").read_text()) if e["name"] == folder.name
    )
    for file, prefix, count in (("inputs", "arg", entry["arguments"]), ("expected", "out", entry["outputs"])):
        with np.load(folder / f"{file}.npz", allow_pickle=False) as arrays:
            assert list(arrays) == [f"{prefix}{index}" for index in range(count)]
            assert all(np.all(np.isfinite(array)) for array in arrays.values())
