"""Rows of every stage's change, made ahead on a thread of their own, so that moving between stages shows them at once.

One thread for the life of the screen; it takes stages as the recording grows. Rows are values, so handing them over needs
no lock: the dictionary's own assignment is enough.
"""

from __future__ import annotations

import queue
import threading

from explorer.diff import diff_modules
from explorer.trace import StageRecord, Trace
from views.tui.rows import Row, rows_of_diff


class PreparedRows:
    """The changes of stages as rows, by the stage's identity."""

    def __init__(self) -> None:
        self._ready: dict[int, tuple[StageRecord, list[Row]]] = {}
        self._asked: set[int] = set()
        self._waiting: queue.SimpleQueue[StageRecord | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def prepare(self, trace: Trace) -> None:
        """Takes the stages that are new in a recording; a finished one lets go of all other recordings' rows."""
        if trace.finished:
            present = {id(stage) for stage in trace.stages}
            for gone in [key for key in self._ready if key not in present]:
                self._ready.pop(gone, None)
            self._asked &= present
        for stage in trace.stages:
            if stage.changed and id(stage) not in self._asked:
                self._asked.add(id(stage))
                self._waiting.put(stage)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rows", daemon=True)
            self._thread.start()

    def rows(self, stage: StageRecord) -> list[Row]:
        """The rows of a stage's change; made now when the thread has not come to them yet."""
        found = self._ready.get(id(stage))
        if found is None:
            found = (stage, rows_of_diff(diff_modules(stage.before, stage.after)))
            self._ready[id(stage)] = found
        return found[1]

    def close(self) -> None:
        """Ends the thread once it is done with the stage at hand."""
        self._waiting.put(None)

    def _run(self) -> None:
        while (stage := self._waiting.get()) is not None:
            self.rows(stage)
