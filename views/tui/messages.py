"""What panels and the compiling thread tell the app. One message carries one frozen value."""

from __future__ import annotations

from textual.message import Message

from explorer.overruling import Overruling
from explorer.session import Recording, Session
from explorer.trace import StageRecord, Trace


class TraceUpdated(Message):
    """The recording has grown; `trace` is the whole of it so far."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace = trace


class CompileFinished(Message):
    """The compile is over, well or not."""

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self.recording = recording


class LoadFailed(Message):
    """The model could not be read; `text` says why, with the place."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class StageChosen(Message):
    """The cursor stands on another stage."""

    def __init__(self, stage: StageRecord) -> None:
        super().__init__()
        self.stage = stage


class InstructionChosen(Message):
    """The cursor stands on an instruction (or on none: empty names)."""

    def __init__(self, computation: str, name: str, removed: bool) -> None:
        super().__init__()
        self.computation = computation
        self.name = name
        self.removed = removed


class InstructionWanted(Message):
    """The main screen is to show an instruction in the program after `stage` (empty: the last)."""

    def __init__(self, computation: str, name: str, stage: str = "") -> None:
        super().__init__()
        self.computation = computation
        self.name = name
        self.stage = stage


class ScreenWanted(Message):
    """Another screen is to be opened: `decisions` (at the decision with the id `at`, if given), `memory` or `fusion`."""

    def __init__(self, screen: str, at: str = "") -> None:
        super().__init__()
        self.screen = screen
        self.at = at


class OverrulingChanged(Message):
    """The user has overruled something, taken it back, or saved."""

    def __init__(self, overruling: Overruling) -> None:
        super().__init__()
        self.overruling = overruling


class RecompileWanted(Message):
    """The model is to be compiled again with the overrides as they stand."""


class RecompileProgress(Message):
    """The recompile goes on; the trace shown stays the old one."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace = trace


class RecompileFinished(Message):
    """The recompile is over, well or not."""

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self.recording = recording


class SessionOpened(Message):
    """The model is read; `overruling` holds the choices it is compiled with."""

    def __init__(self, session: Session | None, overruling: Overruling, trace: Trace) -> None:
        super().__init__()
        self.session = session
        self.overruling = overruling
        self.trace = trace
