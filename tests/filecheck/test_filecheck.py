"""Runs the test files of this folder: the passes that each names, over its program, against its CHECK lines."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import compiler.passes
from compiler.frontend.mlir import parse_module
from compiler.ir.hlo_text import print_module
from compiler.passes.base import Pass
from tests.filecheck_matcher import checks_of, match, passes_of
from tests.passes.harness import assert_same_results, run

FILES = sorted(Path(__file__).parent.glob("*.mlir"))


def all_passes() -> dict[str, Pass]:
    """Every pass by name."""
    found: dict[str, Pass] = {}
    for info in pkgutil.iter_modules(compiler.passes.__path__, "compiler.passes."):
        for _, member in inspect.getmembers(import_module(info.name), inspect.isclass):
            if (
                member.__module__ == info.name
                and hasattr(member, "run")
                and isinstance(getattr(member, "name", None), str)
            ):
                found[member.name] = member()
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    known = all_passes()
    module = parse_module(source, path.name)
    after, _ = run(module, *(known[name] for name in passes_of(source)))
    match(print_module(after, metadata=False), checks_of(source))
    assert_same_results(module, after)


TEXT = "a = add(x, y)\nb = mul(a, a)\nROOT c = neg(b)"


@pytest.mark.parametrize(
    ("lines", "holds"),
    [
        ("// CHECK: [[A:\\w]] = add\n// CHECK-NEXT: mul([[A]], [[A]])", True),
        ("// CHECK: add\n// CHECK-NEXT: neg", False),
        ("// CHECK: neg\n// CHECK: add", False),
        ("// CHECK: add\n// CHECK-NOT: mul\n// CHECK: neg", False),
        ("// CHECK: mul\n// CHECK-NOT: add\n// CHECK: neg({{[a-z]}})", True),
        ("// CHECK: mul\n// CHECK-NOT: neg", False),
        ("// CHECK-NEXT: add", True),
        ("// CHECK: sub([[Z]])", False),
    ],
)
def test_the_matcher(lines: str, holds: bool) -> None:
    if holds:
        match(TEXT, checks_of(lines))
    else:
        with pytest.raises(AssertionError):
            match(TEXT, checks_of(lines))


def test_files_need_directives() -> None:
    with pytest.raises(ValueError, match="RUN"):
        passes_of("// CHECK: x")
    with pytest.raises(ValueError, match="CHECK"):
        checks_of("// RUN: dce")
