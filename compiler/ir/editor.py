"""The one door through which programs change.

A pass opens a rewrite (`with editor.rewrite(rule, computation, root) as edit`), changes the program through it, and
the editor keeps the users of every value current, infers and checks types, names what is new, and reports what was
done. A rewrite is a transaction: when the gate refuses it (bisection) or an exception leaves it, everything it did is
undone. One editor serves the whole pipeline; `snapshot()` freezes the present program, sharing all unchanged parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType

from compiler.ir.effects import effectful
from compiler.ir.location import Location
from compiler.ir.names import NameSource
from compiler.ir.order import callees_first
from compiler.ir.program import NO_ATTRIBUTES, Attributes, Computation, Instruction, Module, make_computation
from compiler.ir.rewrite import Gate, Listener, Rewrite, Rule
from compiler.ir.semantics import Semantics
from compiler.ir.types import Type, same_value_type
from compiler.ir.working import Change, WorkingComputation


class Edit:
    """The open rewrite that a pass works through; `committed` tells after the block whether it took effect."""

    def __init__(self, editor: Editor, computation: str, root: str, location: Location | None) -> None:
        self._editor = editor
        self.computation = computation
        self.root = root
        self.location = location
        self.note = ""
        self.committed = False

    def add(
        self,
        opcode: str,
        operands: Iterable[str] = (),
        *,
        type: Type | None = None,
        attributes: Attributes = NO_ATTRIBUTES,
        called: tuple[str, ...] = (),
        location: Location | None = None,
        computation: str | None = None,
        before: str | None = None,
        hint: str | None = None,
    ) -> str:
        """Adds an instruction ahead of `before` (the rewrite's root by default) and returns its new name.

        The type is inferred when not given. `hint` replaces the opcode in the name.

        Raises:
            OperationError: when the operation does not accept such operands.
        """
        return self._editor._add(
            self, opcode, tuple(operands), type, attributes, called, location, computation, before, hint
        )

    def replace(self, old: str, new: str, computation: str | None = None) -> None:
        """Makes every user of `old` read `new`, then removes `old` and what only it kept alive.

        Raises:
            TypeError: when the two do not describe the same logical type.
        """
        self._editor._replace(computation or self.computation, old, new)

    def update(self, instruction: Instruction, computation: str | None = None) -> None:
        """Puts a new version of an instruction in the place of the one of the same name (same value, same name)."""
        self._editor._put(computation or self.computation, instruction)

    def remove(self, name: str, computation: str | None = None) -> None:
        """Removes an instruction that nobody uses. Raises ValueError when it is used or is the root."""
        self._editor._remove(computation or self.computation, name)

    def sweep(self, name: str, computation: str | None = None) -> None:
        """Removes an instruction if nobody uses it and it has no effects, and then what only it kept alive."""
        self._editor._sweep(computation or self.computation, name)

    def set_root(self, name: str, computation: str | None = None) -> None:
        """Makes another instruction the computation's result."""
        self._editor._set_root(computation or self.computation, name)

    def add_computation(self, base: str, instructions: Iterable[Instruction], root: str) -> str:
        """Adds a computation under a fresh name derived from `base`; its instructions' names must be fresh."""
        return self._editor._add_computation(base, list(instructions), root)

    def remove_computation(self, name: str) -> None:
        """Removes a computation that is no longer called."""
        self._editor._remove_computation(name)

    def fresh_name(self, opcode: str, lineage: str | None = None) -> str:
        """A name never used before, derived from the root's number (`multiply.17` -> `add.17.1`)."""
        return self._editor._fresh(opcode, lineage or self.root)

    def reorder(self, order: Iterable[str], computation: str | None = None) -> None:
        """Fixes the order of a computation's instructions (a schedule). Raises ValueError if not a permutation."""
        self._editor._reorder(computation or self.computation, list(order))


class Editor:
    """Holds the program while passes change it. See the module's docstring."""

    def __init__(
        self,
        module: Module,
        semantics: Semantics,
        *,
        gate: Gate | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.semantics = semantics
        self.stage = ""
        self.rewrites_committed = 0
        self.rewrites_refused = 0
        self._gate = gate
        self._listener = listener
        self._frozen = module
        self._working: dict[str, WorkingComputation] = {}
        self._removed: set[str] = set()
        self._added: dict[str, None] = {}
        self._names = NameSource(module.lineages, module.computations)
        self._module_changes: dict[str, object] = {}
        self._open: Edit | None = None
        self._log: list[Change] = []
        self._undo: list[Callable[[], None]] = []
        self._touched: set[str] = set()
        self._id_counts: dict[str, int] = {}

    # ---- reading -------------------------------------------------------------------------------------------------

    @property
    def entry(self) -> str:
        """Name of the entry computation."""
        return self._frozen.entry

    @property
    def base(self) -> Module:
        """The last snapshot: module-level facts (attributes, donation); may lag behind in instructions."""
        return self._frozen

    def computations(self) -> list[str]:
        """Names of the present computations, callees first as far as the last snapshot knew."""
        kept = [name for name in self._frozen.computations if name not in self._removed]
        return [*self._added, *kept]

    def working(self, computation: str) -> WorkingComputation:
        """The present state of a computation. Read only: change it through a rewrite.

        Raises KeyError when there is no such computation.
        """
        found = self._working.get(computation)
        if found is None:
            if computation in self._removed:
                raise KeyError(computation)
            found = WorkingComputation(self._frozen.computations[computation])
            self._working[computation] = found
        return found

    def get(self, computation: str, name: str) -> Instruction:
        """One instruction as it is now. Raises KeyError when it is gone."""
        return self.working(computation).instructions[name]

    def users(self, computation: str, name: str) -> tuple[str, ...]:
        """Names of the instructions that read a value, each once, in the order in which they came to use it."""
        return tuple(self.working(computation).users(name))

    def computation(self, name: str) -> Computation:
        """A frozen view of one computation as it is now."""
        return self.working(name).freeze()

    # ---- transactions --------------------------------------------------------------------------------------------

    def begin_stage(self, stage: str) -> None:
        """Names the stage that rewrites from now on belong to."""
        self.stage = stage
        self._id_counts = {}

    @contextmanager
    def rewrite(self, rule: Rule, computation: str, root: str) -> Iterator[Edit]:
        """Opens a rewrite of one computation around `root`. After the block, `edit.committed` tells what became of it.

        A block that changes nothing is not reported.
        """
        if self._open is not None:
            raise RuntimeError("rewrites do not nest")
        state = self.working(computation)
        instruction = state.instructions.get(root)
        edit = Edit(self, computation, root, instruction.location if instruction else None)
        self._open, self._log, self._undo, self._touched = edit, [], [], set()
        try:
            yield edit
        except BaseException:
            self._roll_back()
            raise
        finally:
            self._open = None
        if self._log:
            self._finish(edit, rule)
        else:
            self._roll_back()

    def _finish(self, edit: Edit, rule: Rule) -> None:
        key = f"{self.stage}/{rule.id}@{edit.computation}/{edit.root}"
        count = self._id_counts.get(key, 0) + 1
        identity = key if count == 1 else f"{key}#{count}"
        if self._gate is not None and not self._gate(identity):
            self.rewrites_refused += 1
            self._roll_back()
            return
        self._id_counts[key] = count
        edit.committed = True
        self.rewrites_committed += 1
        if self._listener is not None:
            where = (edit.computation, edit.root, edit.location, edit.note)
            self._listener(Rewrite(identity, self.stage, rule, *where, tuple(self._log)))

    def _roll_back(self) -> None:
        for action in reversed(self._undo):
            action()
        self._log, self._undo = [], []

    # ---- primitives (each records its own undo) --------------------------------------------------------------------

    def _require_open(self) -> None:
        if self._open is None:
            raise RuntimeError("the program changes only inside editor.rewrite(...)")

    def _store(self, computation: str, name: str, new: Instruction | None, anchor: str | None = None) -> None:
        state = self._touch(computation)
        old = state.put(name, new, anchor)
        self._log.append(Change(computation, name, old, new, anchor=anchor))
        self._undo.append(lambda: state.restore(name, old, anchor))

    def _touch(self, computation: str) -> WorkingComputation:
        """The state of a computation that is about to change, its order remembered for a roll-back."""
        self._require_open()
        state = self.working(computation)
        if computation not in self._touched:
            self._touched.add(computation)
            self._undo.append(state.checkpoint())
        return state

    def _fresh(self, opcode: str, lineage: str) -> str:
        self._require_open()
        name, undo = self._names.instruction(opcode, lineage)
        self._undo.append(undo)
        return name

    def _add(
        self,
        edit: Edit,
        opcode: str,
        operands: tuple[str, ...],
        result: Type | None,
        attributes: Attributes,
        called: tuple[str, ...],
        location: Location | None,
        computation: str | None,
        before: str | None,
        hint: str | None,
    ) -> str:
        target = computation or edit.computation
        if result is None:
            instructions = self.working(target).instructions
            types = [instructions[operand].type for operand in operands]
            result = self.semantics.infer(opcode, types, attributes, [self.computation(c) for c in called])
        name = self._fresh(hint or opcode, edit.root)
        made = Instruction(name, opcode, result, operands, attributes, called, location or edit.location)
        anchor = before if before is not None else edit.root if target == edit.computation else None
        self._store(target, name, made, anchor)
        return name

    def _put(self, computation: str, instruction: Instruction) -> None:
        if instruction.name not in self.working(computation).instructions:
            raise ValueError(f"{instruction.name} is not in {computation}; use add")
        self._store(computation, instruction.name, instruction)

    def _replace(self, computation: str, old: str, new: str) -> None:
        if old == new:
            return
        state = self.working(computation)
        old_type, new_type = state.instructions[old].type, state.instructions[new].type
        if not same_value_type(old_type, new_type):
            raise TypeError(f"{old} of {old_type} cannot be replaced by {new} of {new_type}")
        for user in tuple(state.users(old)):
            if user == new:
                continue
            instruction = state.instructions[user]
            operands = tuple(new if operand == old else operand for operand in instruction.operands)
            self._store(computation, user, instruction.with_operands(operands))
        if state.root == old:
            self._set_root(computation, new)
        self._sweep(computation, old)

    def _is_removable(self, state: WorkingComputation, instruction: Instruction) -> bool:
        name = instruction.name
        if state.root == name or instruction.opcode == "parameter" or state.has_users(name):
            return False
        return not self.effectful(instruction)

    def effectful(self, instruction: Instruction) -> bool:
        """True when an instruction has side effects of its own or through a computation that it calls."""
        return effectful(instruction, self.semantics, lambda name: self.working(name).instructions.values())

    def _sweep(self, computation: str, start: str) -> None:
        state = self.working(computation)
        stack = [start]
        while stack:
            instruction = state.instructions.get(stack.pop())
            if instruction is None or not self._is_removable(state, instruction):
                continue
            self._store(computation, instruction.name, None)
            stack.extend(dict.fromkeys(instruction.operands))

    def _remove(self, computation: str, name: str) -> None:
        state = self.working(computation)
        if state.root == name or state.has_users(name):
            raise ValueError(f"{name} is still used in {computation}")
        self._store(computation, name, None)

    def _set_root(self, computation: str, name: str) -> None:
        state = self._touch(computation)
        if name not in state.instructions:
            raise KeyError(name)
        old = state.root
        state.set_root(name)
        self._log.append(Change(computation, "", None, None, root=(old, name)))
        self._undo.append(lambda: state.set_root(old))

    def _add_computation(self, base: str, instructions: list[Instruction], root: str) -> str:
        self._require_open()
        name, forget = self._names.computation(base)
        self._undo.append(forget)
        made = make_computation(name, {i.name: i for i in instructions}, root)
        self._working[name] = WorkingComputation(made)
        self._working[name].dirty = True
        self._added[name] = None
        self._log.append(Change(name, "", None, None, computation_after=made))

        def undo() -> None:
            del self._working[name]
            del self._added[name]

        self._undo.append(undo)
        return name

    def _remove_computation(self, name: str) -> None:
        self._require_open()
        old = self.computation(name)
        state = self._working.pop(name)
        was_added = self._added.pop(name, 0) is None
        if name in self._frozen.computations:
            self._removed.add(name)
        self._log.append(Change(name, "", None, None, computation_before=old))

        def undo() -> None:
            self._working[name] = state
            self._removed.discard(name)
            if was_added:
                self._added[name] = None

        self._undo.append(undo)

    def _reorder(self, computation: str, order: list[str]) -> None:
        state = self._touch(computation)
        before = tuple(state.freeze().instructions)
        state.reorder(order)
        self._log.append(Change(computation, "", None, None, order=(before, tuple(order))))

    # ---- freezing ------------------------------------------------------------------------------------------------

    def set_module(self, **changes: object) -> None:
        """Changes module-level facts (attributes, `is_scheduled`, parameter attributes) as of the next snapshot."""
        self._module_changes.update(changes)

    def snapshot(self) -> Module:
        """Freezes the present program. Computations that did not change are the same objects as before."""
        if self._open is not None:
            raise RuntimeError("no snapshot inside a rewrite")
        changed = {n: s.freeze() for n, s in self._working.items() if s.dirty}
        touched = any(changed[n] is not self._frozen.computations.get(n) for n in changed)
        if not (touched or self._removed or self._added or self._module_changes):
            return self._frozen
        merged = {
            n: changed.get(n, c) for n, c in self._frozen.computations.items() if n not in self._removed
        }
        merged.update({n: changed[n] for n in self._added})
        if self._added or touched:
            merged = callees_first(merged, self._frozen.entry)
        self._frozen = replace(
            self._frozen,
            computations=MappingProxyType(merged),
            lineages=MappingProxyType(dict(self._names.lineages)),
            **self._module_changes,  # type: ignore[arg-type]
        )
        self._added, self._module_changes, self._removed = {}, {}, set()
        return self._frozen
