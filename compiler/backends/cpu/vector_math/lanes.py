"""Values of many lanes, written as LLVM IR text: the language the functions of this package are written in.

A `Lanes` value is an SSA name with an element kind; Python's operators on it append instructions to the
`Code` it belongs to, so that a function's body reads as the formula it implements. Nothing here knows how
many lanes there are: one lane gives scalar IR, more give vectors. Constants are exact (hexadecimal), no
fast-math flag is ever set, and no operation used can yield poison for any input bits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

_SCALARS = {"f32": "float", "f64": "double", "f16": "half"}
_FLOATS = frozenset(_SCALARS)
_BITS = {"f16": 16, "f32": 32, "f64": 64}

Key: TypeAlias = tuple[str, str, int]
"""What identifies a function: operation, element type (or ``source.target`` of a conversion), lanes."""


@dataclass(frozen=True, slots=True)
class MathFunction:
    """One function as IR text.

    Attributes:
        name: its name without ``@``.
        text: the complete definition (``define internal …``).
        requires: the functions of this package that it calls.
        declarations: the ``declare`` lines of the C library functions it calls, which the module must carry
            once each. LLVM declares its own intrinsics by itself.
    """

    name: str
    text: str
    requires: tuple[Key, ...]
    declarations: tuple[str, ...] = ()


def scalar_type(kind: str) -> str:
    """LLVM's scalar type of an element kind (``f32``, ``i8``…)."""
    return _SCALARS.get(kind, kind)


def vector_type(kind: str, lanes: int) -> str:
    """LLVM's type of `lanes` values of a kind; the scalar type for one lane."""
    scalar = scalar_type(kind)
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def bits_kind(kind: str) -> str:
    """The integer kind as wide as a float kind."""
    return f"i{_BITS[kind]}"


def function_name(op: str, element: str, lanes: int) -> str:
    """The name of a function: ``xe.exponential.v16f32``, ``xe.exponential.f32``, ``xe.convert.f32.f16.v8``."""
    if op == "convert":
        return f"xe.convert.{element}.v{lanes}"
    return f"xe.{op}.{element}" if lanes == 1 else f"xe.{op}.v{lanes}{element}"


def float_bits(kind: str, value: float) -> int:
    """The bits of a float constant of a kind."""
    formats = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}[kind]
    bits: int = struct.unpack(formats[1], struct.pack(formats[0], value))[0]
    return bits


def _literal(kind: str, value: float) -> str:
    if kind == "i1":
        return "true" if value else "false"
    if kind not in _FLOATS:
        return str(int(value))
    if kind == "f32":
        # LLVM writes a float constant with the bits of the double of the same value.
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    if kind == "f16":
        return f"0xH{float_bits(kind, value):04X}"
    return f"0x{float_bits('f64', value):016X}"


@dataclass(frozen=True, slots=True)
class Lanes:
    """A value: an SSA name or constant of an element kind, in each of the code's lanes."""

    code: Code
    kind: str
    name: str

    @property
    def type(self) -> str:
        """Its LLVM type."""
        return vector_type(self.kind, self.code.lanes)

    def _binary(self, float_op: str, int_op: str, other: Lanes | float, reverse: bool = False) -> Lanes:
        right = self.code.lift(self.kind, other)
        first, second = (right, self) if reverse else (self, right)
        op = float_op if self.kind in _FLOATS else int_op
        return self.code.emit(f"{op} {self.type} {first.name}, {second.name}", self.kind)

    def __add__(self, other: Lanes | float) -> Lanes:
        return self._binary("fadd", "add", other)

    def __radd__(self, other: float) -> Lanes:
        return self._binary("fadd", "add", other, reverse=True)

    def __sub__(self, other: Lanes | float) -> Lanes:
        return self._binary("fsub", "sub", other)

    def __rsub__(self, other: float) -> Lanes:
        return self._binary("fsub", "sub", other, reverse=True)

    def __mul__(self, other: Lanes | float) -> Lanes:
        return self._binary("fmul", "mul", other)

    def __rmul__(self, other: float) -> Lanes:
        return self._binary("fmul", "mul", other, reverse=True)

    def __truediv__(self, other: Lanes | float) -> Lanes:
        return self._binary("fdiv", "", other)

    def __rtruediv__(self, other: float) -> Lanes:
        return self._binary("fdiv", "", other, reverse=True)

    def __and__(self, other: Lanes | int) -> Lanes:
        return self._binary("", "and", other)

    def __or__(self, other: Lanes | int) -> Lanes:
        return self._binary("", "or", other)

    def __xor__(self, other: Lanes | int) -> Lanes:
        return self._binary("", "xor", other)

    def __lshift__(self, other: Lanes | int) -> Lanes:
        return self._binary("", "shl", other)

    def __rshift__(self, other: Lanes | int) -> Lanes:
        """The logical shift; `arithmetic_shift` keeps the sign."""
        return self._binary("", "lshr", other)

    def arithmetic_shift(self, amount: int) -> Lanes:
        """Shifts right, keeping the sign."""
        return self._binary("", "ashr", amount)

    def __neg__(self) -> Lanes:
        if self.kind in _FLOATS:
            return self.code.emit(f"fneg {self.type} {self.name}", self.kind)
        return self._binary("", "sub", 0, reverse=True)

    def __invert__(self) -> Lanes:
        return self._binary("", "xor", -1 if self.kind != "i1" else 1)

    def is_(self, predicate: str, other: Lanes | float) -> Lanes:
        """Compares: ``oeq olt ole ogt oge une uno`` for floats, ``eq ne slt sgt ult ugt``… for integers."""
        right = self.code.lift(self.kind, other)
        op = "fcmp" if self.kind in _FLOATS else "icmp"
        return self.code.emit(f"{op} {predicate} {self.type} {self.name}, {right.name}", "i1")

    def is_nan(self) -> Lanes:
        """Where it is not a number."""
        return self.is_("uno", self)

    def bits(self) -> Lanes:
        """The integer of the same bits."""
        return self.code.cast("bitcast", self, bits_kind(self.kind))

    def as_float(self, kind: str) -> Lanes:
        """The float of the same bits."""
        return self.code.cast("bitcast", self, kind)

    def to_float(self, kind: str) -> Lanes:
        """Widens or rounds to another float kind."""
        if kind == self.kind:
            return self
        return self.code.cast("fpext" if _BITS[kind] > _BITS[self.kind] else "fptrunc", self, kind)

    def to_int(self, kind: str, signed: bool = False) -> Lanes:
        """Truncates or extends to another integer kind."""
        here, there = int(self.kind[1:]), int(kind[1:])
        if here == there:
            return self
        return self.code.cast(("sext" if signed else "zext") if there > here else "trunc", self, kind)

    def from_signed(self, kind: str) -> Lanes:
        """The float nearest to a signed integer."""
        return self.code.cast("sitofp", self, kind)

    def unary(self, intrinsic: str) -> Lanes:
        """One of LLVM's exact unary intrinsics: ``fabs sqrt trunc floor roundeven``."""
        suffix = self.code.suffix(self.kind)
        return self.code.emit(
            f"call {self.type} @llvm.{intrinsic}.{suffix}({self.type} {self.name})", self.kind
        )

    def abs(self) -> Lanes:
        """The magnitude."""
        return self.unary("fabs")

    def sqrt(self) -> Lanes:
        """The correctly rounded square root."""
        return self.unary("sqrt")

    def copy_sign(self, sign: Lanes) -> Lanes:
        """The magnitude of this with the sign of `sign`."""
        arguments = f"{self.type} {self.name}, {self.type} {sign.name}"
        return self.code.emit(
            f"call {self.type} @llvm.copysign.{self.code.suffix(self.kind)}({arguments})", self.kind
        )

    def at_most(self, limit: float) -> Lanes:
        """The smaller of this and a constant; NaN stays NaN."""
        return self.code.select(self.is_("ogt", limit), limit, self)

    def at_least(self, limit: float) -> Lanes:
        """The larger of this and a constant; NaN stays NaN."""
        return self.code.select(self.is_("olt", limit), limit, self)


class Code:
    """The body of one function under construction."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.requires: dict[Key, None] = {}
        self.declarations: dict[str, None] = {}
        self._lines: list[str] = []
        self._count = 0
        self._block = "entry"

    @property
    def instructions(self) -> int:
        """How many instructions there are so far."""
        return len(self._lines)

    @property
    def straight(self) -> bool:
        """Whether there is but one block."""
        return self._block == "entry"

    def suffix(self, kind: str) -> str:
        """How overloaded intrinsics spell the vector type (``v16f32``)."""
        return kind if self.lanes == 1 else f"v{self.lanes}{kind}"

    def emit(self, expression: str, kind: str) -> Lanes:
        """Appends an instruction and returns its value."""
        self._count += 1
        name = f"%v{self._count}"
        self._lines.append(f"  {name} = {expression}")
        return Lanes(self, kind, name)

    def line(self, text: str) -> None:
        """Appends an instruction without a result."""
        self._lines.append(f"  {text}")

    def fresh(self, hint: str) -> str:
        """A label or name nobody has used in this function."""
        self._count += 1
        return f"{hint}.{self._count}"

    def place(self, label: str) -> None:
        """Starts a block."""
        self._lines.append(f"{label}:")
        self._block = label

    def constant(self, kind: str, value: float) -> Lanes:
        """A constant in every lane."""
        text = _literal(kind, value)
        return Lanes(self, kind, text if self.lanes == 1 else f"splat ({scalar_type(kind)} {text})")

    def lift(self, kind: str, value: Lanes | float) -> Lanes:
        """A constant where `value` is a number."""
        return value if isinstance(value, Lanes) else self.constant(kind, value)

    def cast(self, op: str, value: Lanes, kind: str) -> Lanes:
        """Appends a conversion instruction."""
        return self.emit(f"{op} {value.type} {value.name} to {vector_type(kind, self.lanes)}", kind)

    def fma(self, x: Lanes, y: Lanes | float, z: Lanes | float) -> Lanes:
        """``x * y + z``, rounded once."""
        arguments = ", ".join(f"{x.type} {self.lift(x.kind, value).name}" for value in (x, y, z))
        return self.emit(f"call {x.type} @llvm.fma.{self.suffix(x.kind)}({arguments})", x.kind)

    def select(self, mask: Lanes, yes: Lanes | float, no: Lanes | float) -> Lanes:
        """`yes` in the lanes where `mask` holds, else `no` (at least one of which is a value)."""
        kind = yes.kind if isinstance(yes, Lanes) else no.kind if isinstance(no, Lanes) else ""
        first, second = self.lift(kind, yes), self.lift(kind, no)
        text = f"select {mask.type} {mask.name}, {first.type} {first.name}, {first.type} {second.name}"
        return self.emit(text, kind)

    def polynomial(self, x: Lanes, coefficients: Sequence[float]) -> Lanes:
        """Horner's rule; the constant term comes first."""
        result = self.constant(x.kind, coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.fma(x, result, coefficient)
        return result

    def call(self, op: str, element: str, *arguments: Lanes, result: str = "") -> Lanes:
        """Calls another function of this package; `result` is its kind if it is not the first argument's."""
        self.requires[(op, element, self.lanes)] = None
        kind = result or arguments[0].kind
        typed = ", ".join(f"{value.type} {value.name}" for value in arguments)
        name = function_name(op, element, self.lanes)
        return self.emit(f"call {vector_type(kind, self.lanes)} @{name}({typed})", kind)

    def rarely(self, mask: Lanes, usual: Lanes, other: Callable[[], Lanes]) -> Lanes:
        """`usual`, but `other()` in the lanes of `mask`, computed only when there is such a lane."""
        some = mask
        if self.lanes > 1:
            reduced = f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({mask.type} {mask.name})"
            some = self.emit(reduced, "i1")
        rare, done, before = self.fresh("rare"), self.fresh("done"), self._block
        self.line(f"br i1 {some.name}, label %{rare}, label %{done}")
        self.place(rare)
        replaced = self.select(mask, other(), usual)
        after = self._block
        self.line(f"br label %{done}")
        self.place(done)
        sources = f"[ {usual.name}, %{before} ], [ {replaced.name}, %{after} ]"
        return self.emit(f"phi {usual.type} {sources}", usual.kind)

    def function(self, key: Key, parameters: Sequence[Lanes], result: Lanes, attributes: str) -> MathFunction:
        """The finished function."""
        name = function_name(*key)
        typed = ", ".join(f"{value.type} {value.name}" for value in parameters)
        head = f"define internal {result.type} @{name}({typed}) {attributes} {{"
        lines = [head, "entry:", *self._lines, f"  ret {result.type} {result.name}", "}"]
        return MathFunction(name, "\n".join(lines) + "\n", tuple(self.requires), tuple(self.declarations))

    def parameter(self, kind: str, name: str) -> Lanes:
        """A parameter of the function."""
        return Lanes(self, kind, f"%{name}")
