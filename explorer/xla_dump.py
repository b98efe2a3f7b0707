"""A folder of XLA's own pass dumps (`--xla_dump_to`, `--xla_dump_hlo_pass_re`) as a trace.

Each file is the program after one pass; its name tells the module, the pipeline, that pass and the next one. What stays equal from
file to file is one object in the trace, so that a long dump takes little memory and unchanged stages are known as such.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from compiler.frontend.errors import SourceError
from compiler.frontend.hlo import parse_hlo
from compiler.frontend.load import read_text
from compiler.frontend.parsed import Parsed
from compiler.ir.program import Computation, Module
from explorer.trace import StageRecord, Trace

PRODUCER = "XLA"
START = "pipeline-start"
"""The pass that XLA names for the program as a pipeline finds it."""

_SNAPSHOT = re.compile(
    r"(?P<module>module_\d+\..+?)\.(?P<number>\d{4,})\.(?P<pipeline>[^.]+)\.after_(?P<pass>.+?)(?:\.before_(?P<next>.+))?\.txt\Z"
)
_BEFORE = re.compile(r"(?P<module>module_\d+\..+?)\.before_optimizations\.txt\Z")
_AFTER = re.compile(r"(?P<module>module_\d+\..+?)\.(?:[\w.]*_)?after_optimizations\.txt\Z")


@dataclass(frozen=True, order=True)
class Snapshot:
    """One file of a dump; `number` orders them."""

    number: int
    path: Path = field(compare=False)
    pipeline: str = field(compare=False)
    pass_name: str = field(compare=False)
    next_pass: str = field(compare=False, default="")


@dataclass
class _Files:
    """The files of one module."""

    before: Path | None = None
    after: Path | None = None
    snapshots: list[Snapshot] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """What all files hold together."""
        paths = [self.before, self.after, *(snapshot.path for snapshot in self.snapshots)]
        return sum(path.stat().st_size for path in paths if path is not None)


def modules_of(folder: str) -> list[str]:
    """The modules that a dump holds (`module_0000.jit_f`), the one with the most text first.

    Raises:
        SourceError: when the folder cannot be read or holds no dump.
    """
    files = _files(folder)
    return sorted(files, key=lambda name: (-files[name].bytes, name))


def read_dump(folder: str, module: str = "") -> Trace:
    """The recording of one module's passes: of the largest module, unless another is named.

    A stage stands for each file whose program a pass has made; pipelines that find the program as it was left are no stages.

    Raises:
        SourceError: when the folder holds no dump, no module of that name, or a file with a mistake.
    """
    files = _files(folder)
    chosen = module or modules_of(folder)[0]
    if chosen not in files:
        raise SourceError(folder, 0, 0, f"the dump has no module {chosen}, only {', '.join(sorted(files))}")
    return _trace(folder, files[chosen])


def _files(folder: str) -> dict[str, _Files]:
    found: dict[str, _Files] = {}
    try:
        paths = sorted(Path(folder).iterdir())
    except OSError as error:
        raise SourceError(folder, 0, 0, error.strerror or str(error)) from None
    for path in paths:
        if (match := _SNAPSHOT.match(path.name)) is not None:
            entry = found.setdefault(match["module"], _Files())
            entry.snapshots.append(
                Snapshot(int(match["number"]), path, match["pipeline"], match["pass"], match["next"] or "")
            )
        elif (match := _BEFORE.match(path.name)) is not None:
            found.setdefault(match["module"], _Files()).before = path
        elif (match := _AFTER.match(path.name)) is not None:
            found.setdefault(match["module"], _Files()).after = path
    if not found:
        raise SourceError(
            folder, 0, 0, "holds no XLA dump (files like module_0000.NAME.before_optimizations.txt)"
        )
    for entry in found.values():
        entry.snapshots.sort()
    return found


def _trace(folder: str, files: _Files) -> Trace:
    reader = _Reader()
    steps = list(files.snapshots)
    if files.after is not None:
        steps.append(Snapshot(10**9, files.after, "", "after-optimizations"))
    first = files.before or steps.pop(0).path
    start = reader.read(first)
    present = start.module
    stages: list[StageRecord] = []
    ids: dict[str, int] = {}
    for step in steps:
        made = reader.read(step.path, present).module
        if made is present and (step.pass_name == START or not step.pipeline):
            continue
        identity = f"{step.pipeline}/{step.pass_name}" if step.pipeline else step.pass_name
        count = ids[identity] = ids.get(identity, 0) + 1
        name = identity if count == 1 else f"{identity}.{count}"
        stages.append(StageRecord(len(stages), name, step.pass_name, _why(step), present, made))
        present = made
    return Trace(
        model=folder,
        input=start.module,
        stages=tuple(stages),
        finished=True,
        producer=PRODUCER,
        sources={folder: reader.text},
        positions=start.positions,
    )


def _why(step: Snapshot) -> str:
    if not step.pipeline:
        return "the program that code is made of"
    if step.pass_name == START:
        return f"changed between pipelines, as {step.pipeline} finds it"
    following = "" if step.next_pass in ("", "pipeline-end") else f", ahead of {step.next_pass}"
    return f"in the pipeline {step.pipeline}{following}"


class _Reader:
    """Reads files one after the other, each against the program before it."""

    def __init__(self) -> None:
        self.text = ""
        """The first file's."""
        self._last = ""

    def read(self, path: Path, before: Module | None = None) -> Parsed:
        """A file's program; `before` itself when it says the same."""
        text = read_text(str(path))
        if before is None:
            self.text = text
        elif text == self._last:
            return Parsed(before)
        self._last = text
        parsed = parse_hlo(text, str(path))
        return parsed if before is None else Parsed(sharing(before, parsed.module), parsed.positions)


def sharing(before: Module, after: Module) -> Module:
    """The later program with every computation that did not change taken from the earlier one; that one itself if none did."""
    shared = {
        name: known if (known := before.computations.get(name)) is not None and _same(known, made) else made
        for name, made in after.computations.items()
    }
    if (
        all(before.computations.get(name) is made for name, made in shared.items())
        and len(shared) == len(before.computations)
        and _header(before) == _header(after)
    ):
        return before
    return Module(
        after.name,
        MappingProxyType(shared),
        after.entry,
        after.attributes,
        after.parameter_attributes,
        after.result_attributes,
        after.lineages,
        after.is_scheduled,
    )


def _same(left: Computation, right: Computation) -> bool:
    return left.root == right.root and list(left) == list(right)


def _header(module: Module) -> tuple[object, ...]:
    attributes: Mapping[str, object] = module.attributes
    return module.name, module.entry, attributes, module.parameter_attributes, module.is_scheduled
