"""Colours for HLO text: the one place that says which part of a line is what.

Used by the terminal program and by the coloured output of commands.
"""

from __future__ import annotations

import re

from rich.style import Style
from rich.text import Text

_TOKEN = re.compile(
    r"(?P<name>%[\w.\-]+)"
    r"|(?P<shape>\b(?:pred|[suf]\d+(?:e\w+)?|bf16|c64|c128|token)\[[^\]]*\](?:\{[^}]*\})?)"
    r"|(?P<string>\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<key>\b[a-z_]+(?==))"
    r"|(?P<opcode>\b[a-z][a-z0-9\-]*(?=\())"
    r"|(?P<number>-?\b\d[\w.+\-]*)"
)

STYLES: dict[str, Style] = {
    "name": Style(color="cyan"),
    "shape": Style(color="yellow"),
    "string": Style(color="green"),
    "key": Style(color="magenta"),
    "opcode": Style(bold=True),
    "number": Style(color="bright_blue"),
}

MARKS: dict[str, Style] = {
    "+": Style(bgcolor="#0f2f1a"),
    "-": Style(bgcolor="#3a1418"),
    "~": Style(bgcolor="#33290f"),
}


def visible(text: str) -> str:
    """The text with control characters shown as pictures, so that no file can drive the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _picture(char) for char in text)


def _picture(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\N{SYMBOL FOR DELETE}" if code == 0x7F else "\N{REPLACEMENT CHARACTER}"


def highlight(line: str, base: Style | None = None) -> Text:
    """A line of HLO text in colours."""
    text = Text(visible(line), style=base or "", no_wrap=True, end="")
    for match in _TOKEN.finditer(text.plain):
        assert match.lastgroup is not None
        text.stylize(STYLES[match.lastgroup], match.start(), match.end())
    return text
