"""What all tests share: the golden files' switch, and the folders of cases that lie outside the repository."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that measure speed run only when asked for by their mark."""
    if "bench" in (config.getoption("-m") or ""):
        return
    skip = pytest.mark.skip(reason="measures speed; `make bench` runs it")
    for item in items:
        if item.get_closest_marker("bench"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout's top folder."""
    return ROOT


@pytest.fixture(scope="session")
def conformance() -> Path:
    """The folder of conformance cases that `XLA_EXPLORE_CONFORMANCE` names; tests of it are skipped without one."""
    named = os.environ.get("XLA_EXPLORE_CONFORMANCE")
    if not named:
        pytest.skip("XLA_EXPLORE_CONFORMANCE names no folder of conformance cases")
    folder = Path(named)
    if not folder.is_dir():
        pytest.fail(f"XLA_EXPLORE_CONFORMANCE: {folder} is not a folder")
    return folder


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` holds text against `golden/NAME` beside the test, or writes it with --update-golden."""
    update = bool(request.config.getoption("--update-golden"))
    folder = request.path.parent / "golden"

    def compare(name: str, text: str) -> None:
        path = folder / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"{path} is missing; `make golden` writes it")
        assert text == path.read_text(encoding="utf-8")

    return compare
