"""Laws written as text, and their compilation into patterns.

    ("subtract-itself", "subtract(x, x) -> 0", "int uint")

Left of the arrow stands what is recognised, right of it what takes its place; then the kinds of elements the law holds
for. Terms are

* operations by opcode, `compare` with its direction (`compare.LT(x, y)`);
* variables `x y z p q`: any value, the same one at each mention;
* variables that begin with `c`: a constant (`c1 c2`); operations on constants alone are computed at once;
* numbers, which stand for splats: `0` (of floats the positive zero), `-0`, `1`, `-1`, `ones` (all bits set, true),
  `lowest` and `highest` (of the type; infinities for floats).

Commutative operations are recognised either way round. A law applies only where its result has the type of what it
replaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.ir.literal import Literal
from compiler.ir.program import NO_ATTRIBUTES, Attributes, Instruction
from compiler.ir.rewrite import Rule
from compiler.ir.types import ElementType, TensorType
from compiler.ops import OPERATIONS, SEMANTICS
from compiler.ops.record import Trait
from compiler.passes.constant_folding import fold
from compiler.passes.rules.pattern import Build, Builder, Pattern, Site, element_kind

Bindings = dict[str, str]
"""What each variable stands for: names of instructions."""
NUMBERS = frozenset({"0", "-0", "1", "-1", "2", "ones", "lowest", "highest"})
_MAX_CONSTANT = 65_536


@dataclass(frozen=True, slots=True)
class Term:
    """A variable, a number (no arguments) or an operation. `detail` is a comparison's direction."""

    head: str
    arguments: tuple[Term, ...] = ()
    detail: str = ""

    @property
    def is_operation(self) -> bool:
        """True for operations, which have arguments."""
        return bool(self.arguments)

    @property
    def is_number(self) -> bool:
        """True for splats of a fixed value."""
        return self.head in NUMBERS

    @property
    def is_constant(self) -> bool:
        """True for constant variables, and operations on constants alone."""
        if self.is_operation:
            return all(argument.is_constant or argument.is_number for argument in self.arguments)
        return self.head.startswith("c")


_TOKENS = re.compile(r"\s*([(),]|-?\w+(?:\.\w+)*)")


def parse(text: str) -> Term:
    """Reads a term. Raises ValueError when the text is not one."""
    tokens = _TOKENS.findall(text)
    term, rest = _term(tokens)
    if rest:
        raise ValueError(f"{text!r}: unexpected {rest[0]!r}")
    return term


def _term(tokens: Sequence[str]) -> tuple[Term, Sequence[str]]:
    head, rest = tokens[0], tokens[1:]
    if not rest or rest[0] != "(":
        return Term(head), rest
    arguments: list[Term] = []
    while rest[0] != ")":
        argument, rest = _term(rest[1:])
        arguments.append(argument)
    opcode, _, detail = head.partition(".") if head.startswith("compare.") else (head, "", "")
    if opcode not in OPERATIONS:
        raise ValueError(f"{opcode} is not an operation")
    return Term(opcode, tuple(arguments), detail), rest[1:]


# ---- recognising -------------------------------------------------------------------------------------------------

_Matcher = Callable[[Site, str, Bindings], bool]


def number_matches(symbol: str, value: Any, kind: ElementType) -> bool:
    """True when an element of a type is the number that a symbol stands for there."""
    if kind.kind == "complex":
        return (
            symbol in ("0", "1", "-1")
            and complex(value) == complex(float(symbol))
            and not np.signbit(value.imag)
        )
    if symbol == "-0":
        return kind.is_float and float(value) == 0 and bool(np.signbit(value))
    if symbol == "0":
        return float(value) == 0 and not (kind.is_float and bool(np.signbit(value)))
    if symbol in ("ones", "lowest", "highest"):
        return bool(value == number(symbol, kind))
    return float(value) == float(symbol) and not (symbol == "-1" and kind.kind == "uint")


def number(symbol: str, kind: ElementType) -> Any:
    """The NumPy scalar that a symbol stands for in a type."""
    if symbol == "ones" or (symbol == "highest" and not kind.is_float):
        integer = (1 << (kind.bits - (kind.kind == "int" and symbol == "highest"))) - 1
        raw = np.array(integer - (1 << kind.bits) if kind.kind == "int" and symbol == "ones" else integer)
        return raw.astype(kind.dtype)[()]
    if symbol in ("lowest", "highest"):
        low = -np.inf if kind.is_float else -(1 << (kind.bits - 1)) if kind.kind == "int" else 0
        return np.array(np.inf if symbol == "highest" else low).astype(kind.dtype)[()]
    return np.array(-0.0 if symbol == "-0" else int(symbol)).astype(kind.dtype)[()]


def _matcher(term: Term) -> _Matcher:
    if term.is_operation:
        return _operation_matcher(term)
    head = term.head
    if term.is_number:

        def match_number(site: Site, name: str, bound: Bindings) -> bool:
            value = site.splat(name)
            if value is None:
                return False
            kind = site.type(name).element
            return isinstance(kind, ElementType) and number_matches(head, value, kind)

        return match_number
    wants_constant = term.is_constant

    def match_variable(site: Site, name: str, bound: Bindings) -> bool:
        known = bound.get(head)
        if known is not None:
            return known == name
        if wants_constant:
            found = site.instructions[name]
            if found.opcode != "constant" or not (
                found.literal.is_splat or found.tensor.size <= _MAX_CONSTANT
            ):
                return False
        bound[head] = name
        return True

    return match_variable


def _operation_matcher(term: Term) -> _Matcher:
    inner = [_matcher(argument) for argument in term.arguments]
    opcode, detail, count = term.head, term.detail, len(term.arguments)
    first, second = (inner[0], inner[1]) if count == 2 else (inner[0], inner[0])
    swaps = count == 2 and Trait.COMMUTATIVE in OPERATIONS[opcode].traits
    swaps = swaps or (opcode == "compare" and detail in ("EQ", "NE"))

    def match(site: Site, name: str, bound: Bindings) -> bool:
        found = site.instructions[name]
        if found.opcode != opcode or (detail and found.attributes["comparison_direction"] != detail):
            return False
        operands = found.operands
        if len(operands) != count:
            return False
        if not swaps:
            return all(
                matcher(site, operand, bound) for matcher, operand in zip(inner, operands, strict=True)
            )
        before = dict(bound)
        if first(site, operands[0], bound) and second(site, operands[1], bound):
            return True
        bound.clear()
        bound.update(before)
        return first(site, operands[1], bound) and second(site, operands[0], bound)

    return match


# ---- building ----------------------------------------------------------------------------------------------------


def _build(site: Site, b: Builder, term: Term, bound: Bindings, kind: TensorType, root: Instruction) -> str:
    """Adds a term's instructions; `kind` is the type of numbers."""
    if term.is_number:
        assert isinstance(kind.element, ElementType)
        return b.splat(kind, number(term.head, kind.element))
    if not term.is_operation:
        return bound[term.head]
    known = [_typed(site, argument, bound) for argument in term.arguments]
    sibling = next((found for found in known if found is not None), kind)
    operands = [_build(site, b, argument, bound, sibling, root) for argument in term.arguments]
    attributes = NO_ATTRIBUTES
    if term.head == "compare":
        attributes = _comparison(term.detail, b.type(operands[0]), root)
    if term.is_constant:
        literal = _folded(site, term.head, operands, attributes)
        if literal is not None:
            return b.constant(literal)
    return b.add(term.head, operands, None, attributes)


def _typed(site: Site, term: Term, bound: Bindings) -> TensorType | None:
    """The type of a term as far as its variables tell."""
    if term.is_operation:
        return next(
            (t for argument in term.arguments if (t := _typed(site, argument, bound)) is not None), None
        )
    return None if term.is_number else site.type(bound[term.head])


def _comparison(direction: str, kind: TensorType, root: Instruction) -> Attributes:
    if root.opcode == "compare":
        return root.attributes.having(comparison_direction=direction)
    kinds = {"float": "FLOAT", "complex": "FLOAT", "int": "SIGNED"}
    assert isinstance(kind.element, ElementType)
    return Attributes(comparison_direction=direction, compare_type=kinds.get(kind.element.kind, "UNSIGNED"))


def _folded(site: Site, opcode: str, operands: list[str], attributes: Attributes) -> Literal | None:
    types = [site.instructions[operand].type for operand in operands]
    kind = SEMANTICS.infer(opcode, types, attributes, ())
    made = Instruction("folded", opcode, kind, tuple(operands), attributes)
    return fold(site.editor, site.computation, made)


# ---- laws as patterns --------------------------------------------------------------------------------------------

Condition = Callable[[Site, Bindings], bool]


@dataclass(frozen=True, slots=True)
class Law:
    """A law as it is written down; `where` may ask more of what was bound."""

    id: str
    text: str
    kinds: str
    where: Condition | None = None
    fast_math: bool = False

    @property
    def sides(self) -> tuple[Term, Term]:
        """What is recognised, and what takes its place."""
        left, _, right = self.text.partition("->")
        return parse(left), parse(right)


def compile_law(law: Law, source: str) -> Pattern:
    """A law as a pattern for the worklist."""
    left, right = law.sides
    kinds = frozenset(law.kinds.split())
    recognise, where = _matcher(left), law.where

    def match(site: Site, root: Instruction) -> Build | None:
        if element_kind(site.instructions[root.operands[-1]]) not in kinds:
            return None
        bound: Bindings = {}
        if not recognise(site, root.name, bound):
            return None
        if not right.is_operation and not right.is_number and not _same_shape(site, bound[right.head], root):
            return None
        if right.is_operation and not _fits(site, right, bound, root):
            return None
        if where is not None and not where(site, bound):
            return None
        return lambda b: _build(site, b, right, bound, root.tensor, root)

    text = law.text.replace("->", "=")
    return Pattern(Rule(law.id, text, f"{source}:{law.id}", law.fast_math), (left.head,), match)


def _same_shape(site: Site, name: str, root: Instruction) -> bool:
    found = site.instructions[name].type
    kind = root.type
    return (
        isinstance(found, TensorType)
        and isinstance(kind, TensorType)
        and (found.shape == kind.shape and found.element == kind.element)
    )


def _fits(site: Site, right: Term, bound: Bindings, root: Instruction) -> bool:
    """False when a scalar predicate or limit of the old expression would have to be spread in the new one."""
    shapes = {site.type(bound[head]).shape for head in _variables(right)}
    if right.head in ("select", "clamp"):
        return True
    return shapes <= {root.tensor.shape}


def _variables(term: Term) -> list[str]:
    if term.is_operation:
        return [head for argument in term.arguments for head in _variables(argument)]
    return [] if term.is_number else [term.head]


def compile_laws(source: str, laws: Sequence[Law]) -> tuple[Pattern, ...]:
    """Patterns of many laws."""
    return tuple(compile_law(law, source) for law in laws)
