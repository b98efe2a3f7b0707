"""The app: starts the compile in the background and hands its recordings to the screen.

Opens at once. Reading and compiling happen on a thread; each new trace arrives as one message.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from textual.app import App, SystemCommand
from textual.screen import Screen

from explorer.session import Recording, RecordingThread, Session, user_errors
from explorer.trace import Trace
from views.tui.code_view import CodeView
from views.tui.dialogs import TextScreen
from views.tui.main_screen import MainScreen
from views.tui.messages import CompileFinished, LoadFailed, TraceUpdated

Opener = Callable[[], Session | Trace]


class ExplorerApp(App[int]):
    """The interactive explorer. `opener` reads the model (or a saved trace); it runs on a thread."""

    CSS_PATH = Path(__file__).with_name("styles.tcss")
    TITLE = "xla-explore"
    ENABLE_COMMAND_PALETTE = True

    def __init__(self, opener: Opener, model: str = "") -> None:
        super().__init__()
        self._opener = opener
        self.model = model
        self.trace: Trace | None = None
        self.failure = ""
        self._compile: RecordingThread | None = None
        self._main = MainScreen()

    def get_default_screen(self) -> Screen[None]:
        """The main screen is the only base screen."""
        return self._main

    def on_ready(self) -> None:
        """Begins to read the model, once the empty screen stands."""
        self._main.set_title(self.model, "reading the model …")
        threading.Thread(target=self._open, name="open", daemon=True).start()

    def _open(self) -> None:
        try:
            opened = self._opener()
        except user_errors() as error:
            self.post_message(LoadFailed(str(error)))
            return
        except Exception as error:
            self.post_message(LoadFailed(f"internal error: {type(error).__name__}: {error}"))
            return
        if isinstance(opened, Trace):
            self.post_message(TraceUpdated(opened))
            return
        self.post_message(TraceUpdated(opened.empty_trace()))
        self._compile = RecordingThread(opened, self._on_trace, self._on_done)
        self._compile.start()

    def _on_trace(self, trace: Trace) -> None:
        self.post_message(TraceUpdated(trace))

    def _on_done(self, recording: Recording) -> None:
        self.post_message(CompileFinished(recording))

    def on_trace_updated(self, event: TraceUpdated) -> None:
        """Draws the recording so far, unless a later one has been drawn."""
        if self.trace is not None and self.trace.finished:
            return
        self.trace = event.trace
        self._main.show_trace(event.trace)

    def on_compile_finished(self, event: CompileFinished) -> None:
        """Draws the whole recording; an error is shown over it."""
        self.trace = event.recording.trace
        self._main.show_trace(self.trace)
        if self.trace.error and self.trace.error != "cancelled":
            self.push_screen(TextScreen("The compile ended early", self.trace.error))

    def on_load_failed(self, event: LoadFailed) -> None:
        """Leaves with the message, as any command would."""
        self.failure = event.text
        self.exit(2)

    def cancel_compile(self) -> None:
        """Asks the compile to stop."""
        if self._compile is not None:
            self._compile.cancel()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What the command palette offers."""
        yield from super().get_system_commands(screen)
        main = self._main
        yield SystemCommand("Rewrites", "Step through the stage's rewrites one by one", main.action_rewrites)
        yield SystemCommand("All lines", "Every line of the program, or only changes", main.action_everything)
        yield SystemCommand("Program", "The whole program after the stage", main.action_program)
        yield SystemCommand("Decisions", "The stage's decisions and their reasons", main.action_decisions)
        yield SystemCommand("History", "Where the instruction came from", main.action_history)
        yield SystemCommand("Search", "Find a text in this view", main.action_search)
        yield SystemCommand("Stop compiling", "Keep what is recorded so far", main.action_stop)

    @property
    def code(self) -> CodeView:
        """The program panel (for tests)."""
        return self._main.query_one(CodeView)
