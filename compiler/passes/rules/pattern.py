"""What a rewriting rule is: a law, the opcodes it starts from, how it is recognised, and what it builds.

Rules are values. A rule never changes anything while it matches; it gives back a function that builds the replacement
through a `Builder`. The worklist (`compiler.passes.worklist`) applies them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.ir.editor import Edit, Editor
from compiler.ir.literal import Literal
from compiler.ir.program import NO_ATTRIBUTES, Attributes, Instruction
from compiler.ir.rewrite import Rule
from compiler.ir.types import AnyElement, ElementType, TensorType, Type
from compiler.ir.working import WorkingComputation


class Site:
    """A computation as rules look at it."""

    __slots__ = ("computation", "editor", "instructions", "state")

    def __init__(self, editor: Editor, computation: str) -> None:
        self.editor = editor
        self.computation = computation
        self.state: WorkingComputation = editor.working(computation)
        self.instructions = self.state.instructions

    def operand(self, instruction: Instruction, index: int = 0) -> Instruction:
        """The instruction that makes an operand."""
        return self.instructions[instruction.operands[index]]

    def type(self, name: str) -> TensorType:
        """The type of a tensor value."""
        return self.instructions[name].tensor

    def splat(self, name: str) -> Any:
        """The one element of a constant whose elements are all the same, as a NumPy scalar; else None."""
        instruction = self.instructions[name]
        if instruction.opcode == "constant":
            return instruction.literal.splat_value
        if instruction.opcode == "broadcast_in_dim":
            source = self.instructions[instruction.operands[0]]
            return source.literal.splat_value if source.opcode == "constant" else None
        return None

    def integers(self, name: str) -> Any:
        """The array of a small integer constant, else None."""
        instruction = self.instructions[name]
        if instruction.opcode != "constant" or instruction.literal.array.size > 4096:
            return None
        literal = instruction.literal
        return literal.array if literal.type.element.is_integer else None

    def has_one_user(self, name: str) -> bool:
        """True when exactly one instruction reads a value and it is not the root."""
        users = list(self.state.users(name))
        return len(users) == 1 and self.state.root != name


class Builder:
    """Builds a replacement ahead of the instruction being rewritten. Operations that would do nothing are left out."""

    __slots__ = ("_edit", "_site", "made")

    def __init__(self, site: Site, edit: Edit) -> None:
        self._site = site
        self._edit = edit
        self.made: list[str] = []

    @property
    def edit(self) -> Edit:
        """The open rewrite."""
        return self._edit

    def type(self, name: str) -> TensorType:
        """The type of a tensor value."""
        return self._site.type(name)

    def add(
        self,
        opcode: str,
        operands: Sequence[str],
        type: Type | None = None,
        attributes: Attributes = NO_ATTRIBUTES,
        called: tuple[str, ...] = (),
    ) -> str:
        """Any instruction; the type is inferred when not given."""
        name = self._edit.add(opcode, operands, type=type, attributes=attributes, called=called)
        self.made.append(name)
        return name

    def op(self, opcode: str, *operands: str, **attributes: Any) -> str:
        """An operation whose type follows from its operands."""
        return self.add(opcode, operands, attributes=Attributes(attributes) if attributes else NO_ATTRIBUTES)

    def constant(self, literal: Literal) -> str:
        """A constant."""
        return self.add("constant", (), literal.type, Attributes(value=literal))

    def splat(self, kind: TensorType, value: Any) -> str:
        """A constant whose elements are all one value."""
        plain = TensorType(kind.element, kind.shape)
        return self.constant(Literal(plain, np.asarray(value).astype(kind.element.dtype)))

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """The same elements in another shape."""
        kind, wanted = self.type(name), tuple(shape)
        return (
            name if kind.shape == wanted else self.add("reshape", (name,), TensorType(kind.element, wanted))
        )

    def transpose(self, name: str, permutation: Sequence[int]) -> str:
        """Dimensions in another order."""
        order = tuple(permutation)
        return name if order == tuple(range(len(order))) else self.op("transpose", name, permutation=order)

    def broadcast(self, name: str, shape: Sequence[int], dimensions: Sequence[int]) -> str:
        """Repeated along the dimensions that `dimensions` does not name."""
        kind, wanted, dims = self.type(name), tuple(shape), tuple(dimensions)
        if kind.shape == wanted and dims == tuple(range(len(wanted))):
            return name
        result = TensorType(kind.element, wanted)
        return self.add("broadcast_in_dim", (name,), result, Attributes(broadcast_dimensions=dims))

    def convert(self, name: str, element: AnyElement) -> str:
        """Other elements."""
        kind = self.type(name)
        return (
            name if kind.element == element else self.add("convert", (name,), TensorType(element, kind.shape))
        )

    def slice(
        self, name: str, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None
    ) -> str:
        """Part of a value."""
        shape = self.type(name).shape
        steps = tuple(strides) if strides is not None else (1,) * len(shape)
        if not any(starts) and tuple(limits) == shape and all(step == 1 for step in steps):
            return name
        return self.op("slice", name, start_indices=tuple(starts), limit_indices=tuple(limits), strides=steps)


Build = Callable[[Builder], str]
Match = Callable[[Site, Instruction], "Build | None"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A rule as the worklist applies it. `match` gives what builds the replacement, or None where the law says nothing."""

    rule: Rule
    opcodes: tuple[str, ...]
    match: Match


def pattern(identity: str, law: str, *opcodes: str, fast_math: bool = False) -> Callable[[Match], Pattern]:
    """Makes a pattern of a match function: `@pattern("slice-of-slice", "slice(slice(x)) = slice(x)", "slice")`."""

    def wrap(match: Match) -> Pattern:
        code = getattr(match, "__code__", None)
        line = f":{code.co_firstlineno}" if code else ""
        return Pattern(Rule(identity, law, f"{match.__module__}{line}", fast_math), opcodes, match)

    return wrap


def element_kind(instruction: Instruction) -> str:
    """The kind of an instruction's elements (`int`, `float`, …), or empty for what is no plain tensor."""
    kind = instruction.type
    if isinstance(kind, TensorType) and isinstance(kind.element, ElementType):
        return kind.element.kind
    return ""
