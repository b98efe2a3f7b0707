"""Options of a compile: what the user may set, typed, with an error that names the nearest known one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from compiler.pass_manager import Restraint
from compiler.passes.base import Option


class OptionError(Exception):
    """An unknown option or a value of the wrong type; one line."""


@dataclass(frozen=True)
class CompileOptions:
    """Everything that shapes one compile besides the module."""

    backend: str = "cpu"
    values: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()
    fp_fast: bool = False
    threads: int = 0
    verify_each: bool = False
    restraint: Restraint = field(default_factory=Restraint)
    keep_rewrites: bool = True


_UNITS = {"kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

COMMON = (Option("disable", (), "ids of stages that are not to run, separated by commas"),)


def parse_value(option: Option, text: str) -> Any:
    """Reads a value of the option's type: bool, int (with KB, MB, GB), float, str, or a comma-separated tuple.

    Raises:
        OptionError: when the text is not of that type.
    """
    default = option.default
    try:
        if isinstance(default, bool):
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[
                text.lower()
            ]
        if isinstance(default, int):
            lowered = text.lower()
            unit = next((u for u in _UNITS if lowered.endswith(u)), "")
            return int(float(lowered.removesuffix(unit)) * _UNITS[unit]) if unit else int(text)
        if isinstance(default, float):
            return float(text)
        if isinstance(default, tuple):
            return tuple(part for part in text.split(",") if part)
    except (KeyError, ValueError, OverflowError):
        kind = type(default).__name__
        raise OptionError(f"option {option.name}: {text!r} is not a value of type {kind}") from None
    return text


def typed_options(given: Mapping[str, Any], known: Iterable[Option]) -> dict[str, Any]:
    """Fills defaults and reads texts.

    Raises:
        OptionError: for unknown names (with the nearest known one) and wrong values.
    """
    table = {option.name: option for option in (*COMMON, *known)}
    values: dict[str, Any] = {name: option.default for name, option in table.items()}
    for name, raw in given.items():
        if name not in table:
            close = difflib.get_close_matches(name, table, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(sorted(table))}"
            raise OptionError(f"unknown option {name!r}{hint}")
        value = parse_value(table[name], raw) if isinstance(raw, str) else raw
        values[name] = tuple(value) if isinstance(value, list) else value
    return values
