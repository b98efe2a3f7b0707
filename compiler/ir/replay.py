"""Carries recorded rewrites out again: from the program before a stage to the program after any of its rewrites.

This is how the explorer steps through a stage without having kept a snapshot for each rewrite. A rewrite holds every
instruction it touched as it was and as it became, and the place of new ones, so no pass is needed, and no operation
has to be known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType

from compiler.ir.names import lineage_of
from compiler.ir.order import callees_first
from compiler.ir.program import Computation, Module
from compiler.ir.rewrite import Rewrite
from compiler.ir.working import Change, WorkingComputation


class ReplayError(Exception):
    """The rewrites do not belong to the module: one of them changes something that is not as it found it."""


def apply(module: Module, rewrites: Iterable[Rewrite]) -> Module:
    """The module after some rewrites, in the order in which they were committed; parts they leave alone are shared.

    Module-level facts (attributes, whether it is scheduled) are no part of rewrites and stay those of `module`. Where
    instructions are not scheduled, their order may differ from the recorded snapshot's, as valid orders may.

    Raises:
        ReplayError: when a rewrite does not fit.
    """
    replay = _Replay(module)
    for rewrite in rewrites:
        for change in rewrite.changes:
            replay.step(rewrite.id, change)
    return replay.result()


class _Replay:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.working: dict[str, WorkingComputation] = {}
        self.added: dict[str, None] = {}
        self.removed: set[str] = set()
        self.lineages = dict(module.lineages)

    def step(self, rewrite: str, change: Change) -> None:
        try:
            if change.computation_after is not None:
                self._add(change.computation_after)
            elif change.computation_before is not None:
                self._remove(change.computation)
            else:
                self._change(self._state(change.computation), change)
        except (KeyError, ValueError) as error:
            raise ReplayError(f"{rewrite} does not fit this module: {error}") from error

    def _state(self, name: str) -> WorkingComputation:
        if name not in self.working:
            if name in self.removed:
                raise KeyError(name)
            self.working[name] = WorkingComputation(self.module.computations[name])
        return self.working[name]

    def _add(self, computation: Computation) -> None:
        self.working[computation.name] = WorkingComputation(computation)
        self.added[computation.name] = None
        for name in computation.instructions:
            self._note_name(name)

    def _remove(self, name: str) -> None:
        self._state(name)
        del self.working[name]
        self.added.pop(name, None)
        self.removed.add(name)

    def _change(self, state: WorkingComputation, change: Change) -> None:
        if change.root is not None:
            state.set_root(change.root[1])
        elif change.order is not None:
            state.reorder(list(change.order[1]))
        else:
            if state.instructions.get(change.name) != change.before:
                raise ValueError(f"{change.name} is not as it was")
            state.put(change.name, change.after, change.anchor)
            self._note_name(change.name)

    def _note_name(self, name: str) -> None:
        *_, number, serial = ("", *name.split("."))
        if serial.isdigit() and number.isdigit() and number == lineage_of(name):
            self.lineages[number] = max(self.lineages.get(number, 0), int(serial))

    def result(self) -> Module:
        changed = {name: state.freeze() for name, state in self.working.items()}
        merged = {n: changed.get(n, c) for n, c in self.module.computations.items() if n not in self.removed}
        merged.update({name: changed[name] for name in self.added})
        touched = any(found is not self.module.computations.get(name) for name, found in merged.items())
        if not (touched or self.removed):
            return self.module
        ordered = callees_first(merged, self.module.entry) if touched else merged
        return replace(
            self.module, computations=MappingProxyType(ordered), lineages=MappingProxyType(self.lineages)
        )
