"""Says which source files are too long. `make lengths` runs it, and a test asks it too."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("compiler", "explorer", "views", "sample_models", "tests")
LIMIT = 400

EXCEPTIONS: dict[str, int] = {}
"""Files that may be longer, each with its own limit. An entry that is no longer needed is itself an error."""


def python_files(root: Path = ROOT) -> list[Path]:
    """All source files of the packages and the tests."""
    return sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py"))


def complaints(root: Path = ROOT) -> list[str]:
    """A line for each file that is too long, and for each exception that no file needs."""
    found = []
    unneeded = set(EXCEPTIONS)
    for path in python_files(root):
        name = path.relative_to(root).as_posix()
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > LIMIT:
            unneeded.discard(name)
        if lines > EXCEPTIONS.get(name, LIMIT):
            found.append(f"{name}: {lines} lines, {EXCEPTIONS.get(name, LIMIT)} at most")
    return found + [f"{name}: an exception that is no longer needed" for name in sorted(unneeded)]


if __name__ == "__main__":
    lines = complaints()
    print("\n".join(lines) or "file lengths: ok")
    sys.exit(1 if lines else 0)
