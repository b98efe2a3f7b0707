"""What panels and the compiling thread tell the app. One message carries one frozen value."""

from __future__ import annotations

from textual.message import Message

from explorer.session import Recording
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
