"""The app: starts compiles in the background and hands their recordings to the screens.

Opens at once. Reading and compiling happen on a thread; each new trace arrives as one message. The app alone holds what
the screens share: the trace, the selected instruction, and the user's choices.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from textual.app import App, SystemCommand
from textual.await_complete import AwaitComplete
from textual.message import Message
from textual.screen import Screen

from explorer.compare import compare_traces
from explorer.overruling import Overruling, overruling_of
from explorer.session import Recording, RecordingThread, Session, session_of, user_errors
from explorer.trace import Trace
from views.tui.code_view import CodeView
from views.tui.decision_dialogs import ComparisonScreen
from views.tui.decisions_screen import DecisionsScreen
from views.tui.dialogs import TextScreen
from views.tui.fusion_screen import FusionScreen
from views.tui.main_screen import MainScreen
from views.tui.memory_screen import MemoryScreen
from views.tui.messages import (
    CompileFinished,
    InstructionChosen,
    InstructionWanted,
    LoadFailed,
    OverrulingChanged,
    RecompileFinished,
    RecompileProgress,
    ScreenWanted,
    SessionOpened,
    TraceUpdated,
)
from views.tui.trace_screen import TraceScreen

Opener = Callable[[], Session | Trace]


class ExplorerApp(App[int]):
    """The interactive explorer. `opener` reads the model (or a saved trace); it runs on a thread."""

    CSS_PATH = Path(__file__).with_name("styles.tcss")
    TITLE = "xla-explore"
    ENABLE_COMMAND_PALETTE = True

    def __init__(self, opener: Opener, model: str = "", overrides_file: str = "") -> None:
        super().__init__()
        self._opener = opener
        self.model = model
        self.overruling = Overruling(f"{model}.overrides.toml")
        self.selected: tuple[str, str] = ("", "")
        self._overrides_file = overrides_file
        self._session: Session | None = None
        self._recompile: RecordingThread | None = None
        self.trace: Trace | None = None
        self.failure = ""
        self._compile: RecordingThread | None = None
        self._main = MainScreen()

    def get_default_screen(self) -> Screen[None]:
        """The main screen is the only base screen."""
        return self._main

    def pop_screen(self) -> AwaitComplete:
        """As ever, but the main screen stays: a command palette that hears enter twice would pop it too."""
        return super().pop_screen() if len(self.screen_stack) > 1 else AwaitComplete()

    def on_ready(self) -> None:
        """Begins to read the model, once the empty screen stands."""
        self._main.set_title(self.model, "reading the model …")
        threading.Thread(target=self._open, name="open", daemon=True).start()

    def _open(self) -> None:
        try:
            opened = self._opener()
            trace = opened if isinstance(opened, Trace) else opened.empty_trace()
            overruling = overruling_of(self.model, trace, self._overrides_file)
        except user_errors() as error:
            self.post_message(LoadFailed(str(error)))
            return
        except Exception as error:
            self.post_message(LoadFailed(f"internal error: {type(error).__name__}: {error}"))
            return
        session = session_of(opened) if isinstance(opened, Trace) else opened
        self.post_message(SessionOpened(session, overruling, trace))
        if isinstance(opened, Trace):
            return
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
        # A recording is never garbage while it is on the screen, and looking through it takes longer than drawing.
        gc.freeze()
        self._main.show_trace(self.trace)
        if self.trace.error and self.trace.error != "cancelled":
            self.push_screen(TextScreen("The compile ended early", self.trace.error))

    def on_load_failed(self, event: LoadFailed) -> None:
        """Leaves with the message, as any command would."""
        self.failure = event.text
        self.exit(2)

    def action_cancel_compile(self) -> None:
        """Asks the compile, or the recompile, to stop."""
        for compile in (self._compile, self._recompile):
            if compile is not None:
                compile.cancel()

    # ---- the other screens -------------------------------------------------------------------------------------------

    def on_session_opened(self, event: SessionOpened) -> None:
        """The model is read: what it can be compiled with again."""
        self._session = event.session
        self.overruling = event.overruling
        self.on_trace_updated(TraceUpdated(event.trace))

    def on_instruction_chosen(self, event: InstructionChosen) -> None:
        """One selected instruction for all screens."""
        if event.name:
            self.selected = (event.computation, event.name)

    def on_screen_wanted(self, event: ScreenWanted) -> None:
        """Opens a screen over the main one, in place of another such."""
        trace = self.trace
        if trace is None or not trace.finished:
            self.notify("ready when the compile is over", severity="warning", timeout=3)
            return
        if event.screen == "memory" and trace.plan is None:
            self.notify("the recording has no memory plan", severity="warning", timeout=3)
            return
        if isinstance(self.screen, TraceScreen):
            if event.screen == self.screen.HEADING:
                return
            self.screen.dismiss(None)
        self.push_screen(self._make_screen(event.screen, trace, event.at))

    def _make_screen(self, name: str, trace: Trace, at: str) -> TraceScreen:
        if name == "memory":
            return MemoryScreen(trace, self.selected)
        if name == "fusion":
            return FusionScreen(trace, self.selected)
        return DecisionsScreen(trace, self.overruling, self.selected, at)

    def on_instruction_wanted(self, event: InstructionWanted) -> None:
        """Back to the main screen, to an instruction."""
        if isinstance(self.screen, TraceScreen):
            self.screen.dismiss(None)
        self._main.go_to_instruction(event.name, event.stage)

    # ---- overrule, recompile, compare --------------------------------------------------------------------------------

    def on_overruling_changed(self, event: OverrulingChanged) -> None:
        """Keeps the user's choices."""
        self.overruling = event.overruling

    def on_recompile_wanted(self) -> None:
        """Starts a recompile, unless one is running or the recording is not ours to repeat."""
        if self._recompile is not None:
            self.notify("a recompile is running (x stops it)", severity="warning", timeout=3)
            return
        if self._session is None:
            self.notify("this recording was made elsewhere: it cannot be compiled here", severity="warning")
            return
        options = replace(self._session.options, overrides=self.overruling.choices)
        session = replace(self._session, options=options)
        self._recompile = RecordingThread(
            session,
            lambda trace: self._tell(RecompileProgress(trace)),
            lambda recording: self._tell(RecompileFinished(recording)),
        )
        self._show_progress("recompiling …")
        self._recompile.start()

    def _tell(self, message: Message) -> None:
        self.post_message(message)

    def _show_progress(self, text: str) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, DecisionsScreen):
                screen.show_progress(text)
        if self.trace is not None:
            self._main.show_progress(text)

    def on_recompile_progress(self, event: RecompileProgress) -> None:
        """How far it is, in the title."""
        trace = event.trace
        count = len(trace.stages)
        if self._recompile is not None and trace.pending:
            self._show_progress(f"recompiling {count}/{count + len(trace.pending)}")

    def on_recompile_finished(self, event: RecompileFinished) -> None:
        """Takes the new recording and shows what differs; after an error the old one stays."""
        self._recompile = None
        self._show_progress("")
        old, new = self.trace, event.recording.trace
        if new.error:
            if new.error == "cancelled":
                self.notify("recompile stopped; the old recording stays", timeout=4)
            else:
                self.push_screen(TextScreen("The recompile failed; the old recording stays", new.error))
            return
        self.trace = new
        self._main.show_trace(new)
        for screen in self.screen_stack:
            if isinstance(screen, TraceScreen):
                screen.show_trace(new)
        if old is not None:
            self.push_screen(ComparisonScreen(compare_traces(old, new)))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What the command palette offers."""
        yield from super().get_system_commands(screen)
        main = self._main
        yield SystemCommand("Rewrites", "Step through the stage's rewrites one by one", main.action_rewrites)
        yield SystemCommand("All lines", "Every line of the program, or only changes", main.action_everything)
        yield SystemCommand("Program", "The whole program after the stage", main.action_program)
        yield SystemCommand(
            "Stage's decisions", "The stage's decisions and their reasons", main.action_decisions
        )
        yield SystemCommand("Decision log", "All decisions: overrule, recompile, compare", main.action_log)
        yield SystemCommand("Memory", "Live bytes over the schedule and what is live", main.action_memory)
        yield SystemCommand("Fusion", "Kernels, and why edges were fused or not", main.action_fusion)
        yield SystemCommand("History", "Where the instruction came from", main.action_history)
        yield SystemCommand("Search", "Find a text in this view", main.action_search)
        yield SystemCommand("Stop compiling", "Keep what is recorded so far", main.action_stop)

    @property
    def code(self) -> CodeView:
        """The program panel (for tests)."""
        return self._main.query_one(CodeView)
