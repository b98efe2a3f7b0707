"""A small FileCheck: matches text against the `CHECK` lines of a test file.

    // RUN: cse,dce
    // CHECK: [[SUM:%add.[0-9]+]] = f32[4]{0} add
    // CHECK-NEXT: ROOT {{.*}} multiply([[SUM]], [[SUM]])
    // CHECK-NOT: subtract

`CHECK` is found after the previous match, `CHECK-NEXT` on the very next line, `CHECK-NOT` nowhere between the matches
around it. `{{…}}` holds a regular expression; `[[NAME:…]]` one whose match `[[NAME]]` stands for later on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_DIRECTIVE = re.compile(r"//\s*(CHECK(?:-NEXT|-NOT)?):\s?(.*)$")
_RUN = re.compile(r"//\s*RUN:\s*(\S+)\s*$")
_PIECE = re.compile(r"\{\{(.*?)\}\}|\[\[(\w+):(.*?)\]\](?!\])|\[\[(\w+)\]\]")


@dataclass(frozen=True)
class Check:
    """One directive: its kind, its pattern, and its line in the test file."""

    kind: str
    pattern: str
    line: int


def passes_of(source: str) -> list[str]:
    """The passes that the `RUN` line names, in order. Raises ValueError when there is none."""
    for line in source.splitlines():
        found = _RUN.search(line)
        if found:
            return found[1].split(",")
    raise ValueError("there is no RUN line")


def checks_of(source: str) -> list[Check]:
    """The directives of a test file. Raises ValueError when there are none."""
    lines = enumerate(source.splitlines(), start=1)
    found = [Check(m[1], m[2].rstrip(), n) for n, line in lines if (m := _DIRECTIVE.search(line))]
    if not found:
        raise ValueError("there are no CHECK lines")
    return found


def _compiled(check: Check, bound: dict[str, str]) -> re.Pattern[str]:
    parts: list[str] = []
    end = 0
    for piece in _PIECE.finditer(check.pattern):
        parts.append(re.escape(check.pattern[end : piece.start()]))
        end = piece.end()
        free, name, inner, use = piece.groups()
        if free is not None:
            parts.append(f"(?:{free})")
        elif name is not None:
            parts.append(f"(?P<{name}>{inner})")
        else:
            if use not in bound:
                raise AssertionError(f"line {check.line}: nothing is bound to {use}")
            parts.append(re.escape(bound[use]))
    return re.compile("".join(parts) + re.escape(check.pattern[end:]))


def match(text: str, checks: list[Check]) -> None:
    """Raises AssertionError naming the first directive that does not hold, with the text."""
    lines = text.splitlines()
    bound: dict[str, str] = {}
    at = 0
    forbidden: list[Check] = []
    for check in checks:
        if check.kind == "CHECK-NOT":
            forbidden.append(check)
            continue
        pattern = _compiled(check, bound)
        window = range(at, min(at + 1, len(lines))) if check.kind == "CHECK-NEXT" else range(at, len(lines))
        place = next((n for n in window if pattern.search(lines[n])), None)
        if place is None:
            raise AssertionError(
                f"line {check.line}: {check.kind}: {check.pattern}\nnot found from line {at + 1} of\n{text}"
            )
        _refuse(forbidden, lines[at:place], bound, text)
        forbidden = []
        found = pattern.search(lines[place])
        assert found is not None
        bound.update(found.groupdict())
        at = place + 1
    _refuse(forbidden, lines[at:], bound, text)


def _refuse(forbidden: list[Check], lines: list[str], bound: dict[str, str], text: str) -> None:
    for check in forbidden:
        pattern = _compiled(check, bound)
        if any(pattern.search(line) for line in lines):
            raise AssertionError(f"line {check.line}: CHECK-NOT: {check.pattern}\nfound in\n{text}")
