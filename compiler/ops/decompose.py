"""How CHLO operations become StableHLO: the builder that decompositions write with, and the elementwise ones for free.

`Operation.decompose` is called as `decompose(builder, *operand names)` and returns the name of the value that replaces
the instruction. An elementwise operation's decomposition is its own scalar rule, read as operations on whole tensors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from compiler.ir.editor import Edit, Editor
from compiler.ir.literal import Literal
from compiler.ir.program import NO_ATTRIBUTES, Attributes, Instruction
from compiler.ir.types import I1, ElementType, TensorType, Type, element
from compiler.ops.elementwise import elements_of
from compiler.ops.scalar import ScalarRule, ScalarSite

_BINARY = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide"}
_UNARY = {
    "neg": "negate",
    "abs": "abs",
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "roundeven": "round_nearest_even",
    "round": "round_nearest_afz",
}
_INTEGER = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "shl": "shift_left",
    "lshr": "shift_right_logical",
    "ashr": "shift_right_arithmetic",
    "smin": "minimum",
    "umin": "minimum",
    "smax": "maximum",
    "umax": "maximum",
    "sdiv": "divide",
    "udiv": "divide",
    "srem": "remainder",
    "urem": "remainder",
    "ctpop": "popcnt",
    "ctlz": "count_leading_zeros",
}
_STABLEHLO_MATH = frozenset(
    [
        "exponential",
        "exponential_minus_one",
        "log",
        "log_plus_one",
        "logistic",
        "sine",
        "cosine",
        "tan",
        "tanh",
        "cbrt",
        "rsqrt",
        "sqrt",
        "power",
        "atan2",
        "remainder",
    ]
)


class Builder(Protocol):
    """What a decomposition is given: the instruction's attributes and type, and a way to add operations."""

    @property
    def attributes(self) -> Attributes:
        """The decomposed instruction's attributes."""
        ...

    @property
    def result(self) -> Type:
        """The decomposed instruction's type."""
        ...

    @property
    def called(self) -> tuple[str, ...]:
        """The computations that it calls."""
        ...

    def type_of(self, name: str) -> Type:
        """The type of an operand or of what was added."""
        ...

    def called_types(self, index: int) -> tuple[tuple[Type, ...], Type]:
        """Parameter types and result type of a called computation."""
        ...

    def add(
        self,
        opcode: str,
        operands: Iterable[str] = (),
        *,
        type: Type | None = None,
        attributes: Attributes = NO_ATTRIBUTES,
        called: tuple[str, ...] = (),
    ) -> str:
        """Adds an instruction and returns its name."""
        ...

    def fresh_name(self, opcode: str) -> str:
        """A name for an instruction of a new computation."""
        ...

    def add_computation(self, base: str, instructions: Iterable[Instruction], root: str) -> str:
        """Adds a computation and returns its name."""
        ...


class EditBuilder:
    """Writes a decomposition through an open rewrite of the instruction."""

    def __init__(self, editor: Editor, edit: Edit, instruction: Instruction) -> None:
        self._editor = editor
        self._edit = edit
        self.attributes = instruction.attributes
        self.result = instruction.type
        self.called = instruction.called

    def type_of(self, name: str) -> Type:
        """The type of a value of the rewritten computation."""
        return self._editor.get(self._edit.computation, name).type

    def called_types(self, index: int) -> tuple[tuple[Type, ...], Type]:
        """Parameter types and result type of a called computation."""
        found = self._editor.computation(self.called[index])
        return found.parameter_types, found.result_type

    def add(
        self,
        opcode: str,
        operands: Iterable[str] = (),
        *,
        type: Type | None = None,
        attributes: Attributes = NO_ATTRIBUTES,
        called: tuple[str, ...] = (),
    ) -> str:
        """Adds an instruction ahead of the decomposed one."""
        return self._edit.add(opcode, operands, type=type, attributes=attributes, called=called)

    def fresh_name(self, opcode: str) -> str:
        """A name never used before."""
        return self._edit.fresh_name(opcode)

    def add_computation(self, base: str, instructions: Iterable[Instruction], root: str) -> str:
        """Adds a computation under a fresh name."""
        return self._edit.add_computation(base, instructions, root)


def splat(builder: Builder, kind: TensorType, value: Any) -> str:
    """Adds a constant of a type, all its elements one value."""
    plain = kind.element
    assert isinstance(plain, ElementType)
    number = value if plain.is_complex else complex(value).real
    held = np.array(number if not plain.is_integer else int(number)).astype(plain.dtype)
    shape = TensorType(plain, kind.shape)
    return builder.add("constant", type=shape, attributes=Attributes(value=Literal(shape, held)))


class TensorBuilder:
    """A `ScalarBuilder` whose values are tensors of one shape: each method adds the StableHLO operation."""

    def __init__(self, builder: Builder, shape: tuple[int, ...]) -> None:
        self._builder = builder
        self._shape = shape

    def _add(self, opcode: str, operands: Iterable[str], e: ElementType, **attributes: object) -> str:
        kind = TensorType(e, self._shape)
        return self._builder.add(opcode, operands, type=kind, attributes=Attributes(attributes))

    def constant(self, e: ElementType, value: Any) -> str:
        """A splat; integers of any size and sign wrap."""
        kind = TensorType(e, self._shape)
        if e.is_integer:
            held = np.array(int(value) % (1 << 64), np.uint64)
            literal = Literal(kind, held.astype(np.uint8 if e.bits < 8 else e.dtype).astype(e.dtype))
            return self._builder.add("constant", type=kind, attributes=Attributes(value=literal))
        return splat(self._builder, kind, value)

    def float_op(self, e: ElementType, op: str, *x: str) -> str:
        """See `ScalarBuilder`."""
        if op == "trunc":
            negative = self.compare(e, "olt", x[0], self.constant(e, 0.0))
            return self.select(e, negative, self._add("ceil", x, e), self._add("floor", x, e))
        if op == "copysign":
            return self._copysign(e, *x)
        return self._add(_BINARY.get(op) or _UNARY[op], x, e)

    def _copysign(self, e: ElementType, size: str, sign: str) -> str:
        bits = element(f"ui{e.bits}")
        top = self.constant(bits, 1 << (e.bits - 1))
        rest = self.constant(bits, (1 << (e.bits - 1)) - 1)
        magnitude = self.int_op(bits, "and", self.bitcast(e, bits, size), rest)
        taken = self.int_op(bits, "and", self.bitcast(e, bits, sign), top)
        return self.bitcast(bits, e, self.int_op(bits, "or", magnitude, taken))

    def math(self, e: ElementType, op: str, *x: str) -> str:
        """See `ScalarBuilder`; CHLO's functions stay CHLO operations."""
        return self._add(op if op in _STABLEHLO_MATH else f"chlo.{op}", x, e)

    def int_op(self, e: ElementType, op: str, *x: str) -> str:
        """See `ScalarBuilder`."""
        is_signed = e.kind == "int"
        if (op in ("umin", "umax", "udiv", "urem") and is_signed) or (
            op in ("smin", "smax", "sdiv", "srem", "ashr") and (e.kind == "uint")
        ):
            other = element(f"{'ui' if is_signed else 'i'}{e.bits}")
            turned = [self.bitcast(e, other, value) for value in x]
            return self.bitcast(other, e, self._add(_INTEGER[op], turned, other))
        return self._add(_INTEGER[op], x, e)

    def compare(self, e: ElementType, predicate: str, x: str, y: str) -> str:
        """See `ScalarBuilder`."""
        if predicate in ("ord", "uno"):
            direction, join = ("EQ", "and") if predicate == "ord" else ("NE", "or")
            own = [self._compare(e, direction, value, value) for value in (x, y)]
            return self.int_op(I1, join, *own)
        if e.is_float:
            return self._compare(e, predicate[1:].upper(), x, y)
        if predicate in ("eq", "ne") or e.kind == "bool":
            return self._compare(e, predicate[-2:].upper(), x, y)
        wanted = "int" if predicate[0] == "s" else "uint"
        if e.kind != wanted:
            other = element(f"{'i' if wanted == 'int' else 'ui'}{e.bits}")
            x, y, e = self.bitcast(e, other, x), self.bitcast(e, other, y), other
        return self._compare(e, predicate[1:].upper(), x, y)

    def _compare(self, e: ElementType, direction: str, x: str, y: str) -> str:
        kinds = {"float": "FLOAT", "complex": "FLOAT", "int": "SIGNED"}
        return self._add(
            "compare", (x, y), I1, comparison_direction=direction, compare_type=kinds.get(e.kind, "UNSIGNED")
        )

    def select(self, e: ElementType, condition: str, x: str, y: str) -> str:
        """See `ScalarBuilder`."""
        return self._add("select", (condition, x, y), e)

    def convert(self, source: ElementType, target: ElementType, x: str) -> str:
        """See `ScalarBuilder`."""
        return self._add("convert", (x,), target)

    def bitcast(self, source: ElementType, target: ElementType, x: str) -> str:
        """See `ScalarBuilder`."""
        return x if source is target else self._add("bitcast_convert", (x,), target)

    def real(self, e: ElementType, x: str) -> str:
        """See `ScalarBuilder`."""
        return self._add("real", (x,), e.real)

    def imag(self, e: ElementType, x: str) -> str:
        """See `ScalarBuilder`."""
        return self._add("imag", (x,), e.real)

    def complex(self, e: ElementType, re: str, im: str) -> str:
        """See `ScalarBuilder`."""
        return self._add("complex", (re, im), e)

    def round_to(self, e: ElementType, x: str, exponent_bits: int, mantissa_bits: int) -> str:
        """See `ScalarBuilder`."""
        return self._add(
            "reduce_precision", (x,), e, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits
        )


def by_scalar_rule(builder: Builder, rule: ScalarRule, *operands: str) -> str:
    """Decomposes an elementwise instruction by its scalar rule."""
    result = builder.result
    assert isinstance(result, TensorType) and isinstance(result.element, ElementType)
    site = ScalarSite(
        elements_of([builder.type_of(name) for name in operands]), result.element, builder.attributes
    )
    found: str = rule(TensorBuilder(builder, result.shape), site, list(operands))
    return found
