"""What a pass is, and what it is given.

A pass owns the transformation and nothing else: timing, snapshots, verification, refusal and skipping belong to the
pass manager. It reads and changes the program through the editor, and asks `context.decide` wherever there is a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from compiler.decisions.log import Decider
from compiler.ir.editor import Editor


class Capabilities(Protocol):
    """What the passes may ask about the target; every backend provides one."""

    @property
    def name(self) -> str:
        """The backend's name."""
        ...

    def supports(self, opcode: str) -> bool:
        """True when the backend compiles the operation itself (so no expansion is needed)."""
        ...

    def accepts_fusion(self, kind: str, opcodes: frozenset[str]) -> str:
        """Empty when a fusion of that kind over these operations can be compiled, else the reason why not."""
        ...

    @property
    def vector_bytes(self) -> int:
        """Width of a vector register."""
        ...

    @property
    def cache_bytes(self) -> tuple[int, ...]:
        """Sizes of the data caches, nearest first."""
        ...

    @property
    def threads(self) -> int:
        """How many tasks run at once."""
        ...


@dataclass
class PassContext:
    """One compile as a pass sees it."""

    decider: Decider
    capabilities: Capabilities
    options: Mapping[str, Any] = field(default_factory=dict)
    """Values of `--option KEY=VALUE`, typed by the declaring pass's `options`."""
    fp_fast: bool = False
    results: dict[str, Any] = field(default_factory=dict)
    """What analyses hand on: `buffer_plan`, …"""
    check_cancelled: Callable[[], None] = lambda: None
    """Call it now and then in long loops; raises when the user has given up."""


@dataclass(frozen=True, slots=True)
class Option:
    """A knob of a pass: its name on the command line, default, and meaning."""

    name: str
    default: Any
    meaning: str


class Pass(Protocol):
    """A transformation of programs. Instances hold no state between runs."""

    @property
    def name(self) -> str:
        """XLA's name where it has one, in kebab case: `algebraic-simplifier`."""
        ...

    @property
    def options(self) -> tuple[Option, ...]:
        """Its knobs."""
        ...

    def run(self, editor: Editor, context: PassContext) -> None:
        """Transforms the program."""
        ...
