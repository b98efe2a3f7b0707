"""The hook protocol: what a backend provides, and how backends are found.

A backend says whether it can run here and why not, what it can do, which stages it adds to the pipeline and where,
compiles an optimised module into an artifact (bytes and text forms, no live resources), and loads an artifact into an
executable. Backends are found through the entry-point group `xla_explore.backends` and registered by plugins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from compiler.analysis.plan import BufferPlan
from compiler.decisions.log import Decider
from compiler.ir.program import Module
from compiler.passes.base import Capabilities, Pass

Array = np.ndarray[Any, np.dtype[Any]]


class BackendError(Exception):
    """A backend cannot do what was asked, for a reason the user can act on; one line."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a backend can run on this machine; `reason` says why not, or what was found."""

    ok: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Insertion:
    """A stage that a backend or plugin adds: the pass, its stage id, why, and the stage id it stands before or after."""

    id: str
    make: Pass
    why: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """One compiled kernel as people see it. `instructions` are (computation, name) of what it computes.

    `forms` maps `loops`, `llvm`, `asm`, … to functions' text; computed on demand forms may be absent here and given by
    `Executable.kernel_form`.
    """

    name: str
    kind: str
    """`loop`, `reduction`, `contraction`, `convolution`, `library`, `copy`, `control`, …"""
    instructions: tuple[tuple[str, str], ...]
    bytes_read: int
    bytes_written: int
    flops: float
    tasks: int = 1
    code: str = ""
    """Digest of the machine code's source: kernels with equal code are compiled once."""
    forms: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KernelTime:
    """Measured time of one kernel over a profiled run: nanoseconds in total, and how often it ran."""

    kernel: str
    nanoseconds: int
    calls: int


@dataclass
class CompileRequest:
    """What a backend is given: the optimised, scheduled module, its memory plan, choices, and knobs."""

    module: Module
    plan: BufferPlan
    decider: Decider
    options: Mapping[str, Any] = field(default_factory=dict)
    fp_fast: bool = False
    threads: int = 0
    """0: as many as the machine offers."""
    custom_calls: Mapping[str, Any] = field(default_factory=dict)
    """Python functions that the user gave for custom calls, by target."""
    devices: Any = None
    """The process that the program is to be, among virtual devices (`compiler.ops.record.Devices`); None: alone."""


class Executable(Protocol):
    """A loaded program. Thread-safe for one call at a time."""

    @property
    def kernels(self) -> tuple[KernelRecord, ...]:
        """The kernels in order of first execution."""
        ...

    def kernel_form(self, name: str, form: str) -> str:
        """A kernel's text in one form (`loops`, `llvm`, `asm`). Raises BackendError when there is none such."""
        ...

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """Runs the entry on flattened parameter leaves; returns the flattened result leaves as fresh arrays.

        Raises:
            BackendError: when shapes or dtypes do not fit.
        """
        ...

    def profile(self, arguments: Sequence[Array]) -> list[KernelTime]:
        """Runs once with a clock around each kernel."""
        ...

    def close(self) -> None:
        """Gives back threads and code."""
        ...


class Backend(Protocol):
    """One target. See the module's docstring; a contract test holds every backend to it."""

    name: str

    def availability(self) -> Availability:
        """Whether it can run here."""
        ...

    def capabilities(self) -> Capabilities:
        """What passes may ask about it."""
        ...

    def stages(self) -> tuple[Insertion, ...]:
        """Stages it adds to the common pipeline."""
        ...

    def skips(self) -> frozenset[str]:
        """Ids of common stages that make no sense for it."""
        ...

    def compile(self, request: CompileRequest) -> Executable:
        """Compiles and loads. Raises BackendError for an operation it does not support."""
        ...
