"""Common subexpression elimination: equal operations on equal operands are computed once.

Hash-consing in program order: since operands have been merged before their users are looked at, one walk finds all.
Operands of commutative operations are put in one order for the comparison only. Called computations are compared by
their fingerprints, so two loops or reductions with equal bodies under different names are one.
"""

from __future__ import annotations

from collections.abc import Hashable

from compiler.analysis.call_graph import is_pure
from compiler.ir.editor import Editor
from compiler.ir.fingerprint import Digest, fingerprint_values
from compiler.ir.program import Instruction
from compiler.ir.rewrite import Rule
from compiler.ir.types import TokenType
from compiler.ops import OPERATIONS
from compiler.ops.record import Trait
from compiler.passes.base import Option, PassContext

MERGE = Rule("common-subexpression", "equal operations on equal operands have equal values")

_COMMUTATIVE = frozenset(opcode for opcode, entry in OPERATIONS.items() if Trait.COMMUTATIVE in entry.traits)
_IMPURE = frozenset(
    opcode
    for opcode, entry in OPERATIONS.items()
    if entry.traits & {Trait.SIDE_EFFECT, Trait.NON_DETERMINISTIC} or opcode == "parameter"
)


class CommonSubexpressionElimination:
    """Merges equal instructions within each computation."""

    name = "cse"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Merges in every computation."""
        bodies = Bodies(editor)
        for computation in editor.computations():
            _merge(editor, computation, bodies)


class Bodies:
    """Digests of called computations, made when first asked for. Good as long as those do not change."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._known: dict[str, Digest] = {}

    def digest(self, name: str) -> Digest:
        """The digest of a computation and of all that it calls."""
        if name not in self._known:
            computation = self._editor.computation(name)
            callees = {callee: self.digest(callee) for inner in computation for callee in inner.called}
            self._known[name] = fingerprint_values(computation, callees)[1]
        return self._known[name]


def _merge(editor: Editor, computation: str, bodies: Bodies) -> None:
    state = editor.working(computation)
    first: dict[Hashable, str] = {}
    for name in state.names():
        instruction = state.instructions.get(name)
        if instruction is None or instruction.opcode in _IMPURE:
            continue
        key = _key(instruction, bodies)
        known = first.setdefault(key, name)
        if known is name or not _is_mergeable(editor, instruction):
            continue
        with editor.rewrite(MERGE, computation, name) as edit:
            edit.note = f"is {known}"
            edit.replace(name, known)


def _key(instruction: Instruction, bodies: Bodies) -> Hashable:
    operands = instruction.operands
    if instruction.opcode in _COMMUTATIVE and len(operands) == 2 and operands[0] > operands[1]:
        operands = (operands[1], operands[0])
    called = tuple(bodies.digest(name) for name in instruction.called)
    return (instruction.opcode, operands, instruction.attributes, called, instruction.type)


def _is_mergeable(editor: Editor, instruction: Instruction) -> bool:
    if isinstance(instruction.type, TokenType):
        return False
    if instruction.opcode == "custom_call" or instruction.called:
        return is_pure(editor, instruction)
    return True
