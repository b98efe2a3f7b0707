"""One opened model: what was read, how it is to be compiled, and the recording of the compile.

The entry point for every command and screen. `record` compiles and returns the trace; `RecordingThread` does it in the
background and hands each new trace to a callback. Only this module and `explorer.bisect` start compiles.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.options import CompileOptions
from explorer.recorder import Progress, Recorder
from explorer.trace import Trace

if TYPE_CHECKING:
    from compiler.driver import Compilation, Optimised
    from compiler.frontend.parsed import Parsed

MAX_SOURCE_BYTES = 8 << 20
"""Texts of models larger than this are not kept in the trace."""


class Cancelled(Exception):
    """The user gave up waiting."""


class UserError(Exception):
    """Something about the user's input is wrong; the message is one line (perhaps with a source excerpt below)."""


@dataclass
class Session:
    """A model that was read, with the options of its compiles.

    Of a model with dynamic sizes `parsed` is the program made static and `source` what was read; `sizes` holds the values of
    the arguments that give sizes, and `by_shape` the programs made so far (see `explorer.shapes`).
    """

    path: str
    parsed: Parsed
    options: CompileOptions = field(default_factory=CompileOptions)
    source: Parsed | None = None
    sizes: Mapping[int, Any] = field(default_factory=dict)
    by_shape: dict[object, Parsed] = field(default_factory=dict, repr=False)

    def empty_trace(self) -> Trace:
        """The trace before anything has run."""
        return Trace(
            self.path,
            self.parsed.module,
            options=dict(self.options.values),
            overrides=dict(self.options.overrides),
            sources=read_sources(self.path),
            positions=self.parsed.positions,
        )


def session_of(trace: Trace) -> Session | None:
    """A session that compiles a saved recording's model again; None where another compiler made the recording."""
    from compiler.frontend.parsed import Parsed

    if trace.producer != Trace.producer:
        return None
    backend = trace.code.backend if trace.code is not None else CompileOptions.backend
    options = CompileOptions(backend, dict(trace.options), dict(trace.overrides))
    return Session(trace.model, Parsed(trace.input, trace.positions, trace.model), options)


@dataclass
class Recording:
    """A finished recording and, where code was made, the loaded program."""

    trace: Trace
    optimised: Optimised | None = None
    compilation: Compilation | None = None


def read_sources(path: str) -> Mapping[str, str]:
    """The model's own text, if it is text of a sensible size."""
    try:
        file = Path(path)
        if file.stat().st_size > MAX_SOURCE_BYTES:
            return {}
        raw = file.read_bytes()
        return {path: raw.decode("utf-8")} if b"\0" not in raw[:4096] else {}
    except (OSError, UnicodeDecodeError):
        return {}


def user_errors() -> tuple[type[BaseException], ...]:
    """Exceptions that the user's input causes; their text is the message to print."""
    from compiler.backends.base import BackendError
    from compiler.decisions.log import IllegalOverride
    from compiler.decisions.overrides import OverrideError
    from compiler.frontend.errors import SourceError
    from compiler.options import OptionError
    from compiler.pass_manager import StageFailure
    from compiler.plugins import PluginError

    return (
        BackendError,
        IllegalOverride,
        OptionError,
        OverrideError,
        PluginError,
        SourceError,
        StageFailure,
        UserError,
    )


def record(
    session: Session,
    *,
    code: bool = True,
    on_progress: Progress | None = None,
    check_cancelled: Callable[[], None] = lambda: None,
) -> Recording:
    """Compiles and records. With `code` false only the HLO stages run.

    Raises:
        UserError and the others of `user_errors()`: what was recorded so far is lost; use `RecordingThread` to keep it.
    """
    recorder = Recorder(session.empty_trace(), on_progress)
    return _record_into(recorder, session, code, check_cancelled)


def _record_into(
    recorder: Recorder, session: Session, code: bool, check_cancelled: Callable[[], None]
) -> Recording:
    from compiler.driver import generate, optimise

    optimised = optimise(session.parsed.module, session.options, recorder, check_cancelled=check_cancelled)
    changes: dict[str, Any] = {
        "plan": optimised.plan,
        "unmatched_overrides": tuple(optimised.unmatched_overrides()),
    }
    compilation = None
    if code and optimised.plan is not None:
        check_cancelled()
        compilation = generate(optimised)
        recorder.code_made(session.options.backend, compilation.executable.kernels, compilation.seconds)
    return Recording(recorder.finish(**changes), optimised, compilation)


class RecordingThread:
    """Compiles in the background. `on_trace` hears each new trace, `on_done` the end; both on that thread."""

    def __init__(
        self,
        session: Session,
        on_trace: Progress,
        on_done: Callable[[Recording], None] | None = None,
        *,
        code: bool = True,
    ) -> None:
        self._session = session
        self._recorder = Recorder(session.empty_trace(), on_trace)
        self._on_done = on_done
        self._code = code
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="compile", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def cancel(self) -> None:
        """Asks the compile to stop at the next opportunity; the trace so far stays."""
        self._stop.set()

    def join(self, timeout: float | None = None) -> None:
        """Waits for the end."""
        self._thread.join(timeout)

    def _check(self) -> None:
        if self._stop.is_set():
            raise Cancelled

    def _run(self) -> None:
        try:
            recording = _record_into(self._recorder, self._session, self._code, self._check)
        except Cancelled:
            recording = Recording(self._recorder.finish(error="cancelled"))
        except user_errors() as error:
            recording = Recording(self._recorder.finish(error=str(error)))
        except Exception as error:
            message = f"internal error: {type(error).__name__}: {error}"
            recording = Recording(self._recorder.finish(error=message))
        if self._on_done is not None:
            self._on_done(recording)
