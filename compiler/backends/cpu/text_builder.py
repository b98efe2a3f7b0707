"""Writes one LLVM function as text.

Every emitter of the CPU backend (loops, contractions, runtime, vector mathematics) writes through this
builder. Values are plain strings: an SSA name (``%sum.12``) or a constant (``5``); types are strings too
(``<16 x float>``). Nothing is parsed or checked here, which is what makes emission cheap; LLVM's own
parser reports a mistake together with the line (see ``jit``).

Integer helpers (`add`, `mul`, …) work on ``i64`` and fold constants, so callers may pass sizes and strides
that are known and ones that are not in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

Value: TypeAlias = str | int

_TYPE_NAMES = {
    "f16": "half",
    "bf16": "bfloat",
    "f32": "float",
    "f64": "double",
    "i1": "i1",
}


def llvm_type(element: str, lanes: int = 1) -> str:
    """The LLVM type of an element type (``f32``, ``ui16``…); a vector when `lanes` is more than one."""
    scalar = _TYPE_NAMES.get(element) or element.removeprefix("u")
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def _constant(value: Value) -> int | None:
    if isinstance(value, int):
        return value
    text = value[1:] if value[:1] == "-" else value
    return int(value) if text.isdigit() else None


def _suffix(scalar: str, lanes: int) -> str:
    """How an overloaded intrinsic spells a vector type: ``v16f32``."""
    short = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}.get(scalar, scalar)
    return f"v{lanes}{short}" if lanes > 1 else short


@dataclass(slots=True)
class CarriedLoop:
    """A counted loop with values carried from one iteration to the next.

    Inside the loop, `index` is the counter and `values` the carried values at the start of the iteration;
    the body sets `next` to their successors. After the loop, `results` holds the values it ended with.
    """

    index: str
    values: list[str]
    next: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)


class TextBuilder:
    """The text of one function under construction.

    Args:
        name: the function's name without ``@``.
        parameters: pairs of type (with attributes, such as ``ptr noalias``) and name (without ``%``).
        result: the LLVM type it returns.
        linkage: ``internal``, ``linkonce_odr``… or empty for an external definition.
        attributes: what follows the parameter list (``nounwind``, ``alwaysinline``…).
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[tuple[str, str]] = (),
        result: str = "void",
        *,
        linkage: str = "",
        attributes: str = "nounwind",
    ) -> None:
        self.name = name
        self.declarations: set[str] = set()
        self._head = " ".join(
            part
            for part in (
                "define",
                linkage,
                result,
                f"@{name}({', '.join(f'{kind} %{label}' for kind, label in parameters)})",
                attributes,
                "{",
            )
            if part
        )
        self._allocas: list[str] = []
        self._lines: list[str] = []
        self._counter = 0
        self._block = "entry"

    # Names, lines and blocks

    def fresh(self, hint: str = "v") -> str:
        """An SSA name nobody has used in this function."""
        self._counter += 1
        return f"%{hint}.{self._counter}"

    def emit(self, line: str) -> None:
        """Appends one instruction, as it stands."""
        self._lines.append("  " + line)

    def op(self, expression: str, hint: str = "v") -> str:
        """Appends ``%fresh = expression`` and returns the name."""
        self._counter += 1
        name = f"%{hint}.{self._counter}"
        self._lines.append(f"  {name} = {expression}")
        return name

    def comment(self, text: str) -> None:
        """Appends a comment, for those who read the text in the explorer."""
        self._lines.append(f"  ; {text}")

    def label(self, hint: str = "block") -> str:
        """A fresh block label (without ``%``); `place` starts the block."""
        self._counter += 1
        return f"{hint}.{self._counter}"

    def place(self, label: str) -> None:
        """Starts the block `label`; the block before must have ended with a terminator."""
        self._lines.append(f"{label}:")
        self._block = label

    @property
    def block(self) -> str:
        """The label of the block that lines are being added to: what a phi names as its predecessor."""
        return self._block

    def branch(self, label: str) -> None:
        """Ends the block with a jump."""
        self._lines.append(f"  br label %{label}")

    def branch_if(self, condition: str, then: str, otherwise: str) -> None:
        """Ends the block with a conditional jump."""
        self._lines.append(f"  br i1 {condition}, label %{then}, label %{otherwise}")

    def ret(self, typed_value: str = "void") -> None:
        """Ends the function (``ret`` and the typed value)."""
        self._lines.append(f"  ret {typed_value}")

    def declare(self, declaration: str) -> None:
        """Notes that the module must carry this ``declare …`` line."""
        self.declarations.add(declaration)

    def call(
        self, result: str, function: str, *typed_arguments: str, hint: str = "v", attributes: str = ""
    ) -> str:
        """Calls ``@function``; returns the result's name, or the empty string for ``void``."""
        tail = f" {attributes}" if attributes else ""
        expression = f"call {result} @{function}({', '.join(typed_arguments)}){tail}"
        if result == "void":
            self.emit(expression)
            return ""
        return self.op(expression, hint)

    def intrinsic(self, result: str, function: str, *arguments: tuple[str, Value], hint: str = "v") -> str:
        """Calls an LLVM intrinsic given pairs of type and value, declaring it."""
        self.declare(f"declare {result} @{function}({', '.join(kind for kind, _ in arguments)})")
        return self.call(result, function, *(f"{kind} {value}" for kind, value in arguments), hint=hint)

    # Index arithmetic: i64, folded where both sides are known

    def add(self, left: Value, right: Value, hint: str = "i") -> str:
        """``left + right``."""
        a, b = _constant(left), _constant(right)
        if a is not None and b is not None:
            return str(a + b)
        if a == 0:
            return str(right)
        if b == 0:
            return str(left)
        return self.op(f"add nsw i64 {left}, {right}", hint)

    def sub(self, left: Value, right: Value, hint: str = "i") -> str:
        """``left - right``."""
        a, b = _constant(left), _constant(right)
        if a is not None and b is not None:
            return str(a - b)
        if b == 0:
            return str(left)
        return self.op(f"sub nsw i64 {left}, {right}", hint)

    def mul(self, left: Value, right: Value, hint: str = "i") -> str:
        """``left * right``."""
        a, b = _constant(left), _constant(right)
        if a is not None and b is not None:
            return str(a * b)
        if a == 0 or b == 0:
            return "0"
        if a == 1:
            return str(right)
        if b == 1:
            return str(left)
        return self.op(f"mul nsw i64 {left}, {right}", hint)

    def div(self, left: Value, right: Value, hint: str = "i") -> str:
        """``left / right`` of values that are not negative."""
        a, b = _constant(left), _constant(right)
        if a is not None and b is not None:
            return str(a // b)
        if b == 1:
            return str(left)
        return self.op(f"udiv i64 {left}, {right}", hint)

    def rem(self, left: Value, right: Value, hint: str = "i") -> str:
        """``left % right`` of values that are not negative."""
        a, b = _constant(left), _constant(right)
        if a is not None and b is not None:
            return str(a % b)
        if b == 1:
            return "0"
        return self.op(f"urem i64 {left}, {right}", hint)

    def minimum(self, left: Value, right: Value, hint: str = "min") -> str:
        """The smaller of two signed values."""
        a, b = _constant(left), _constant(right)
        if a is not None and b is not None:
            return str(min(a, b))
        return self.select(self.compare("slt", left, right), left, right, hint=hint)

    def compare(self, predicate: str, left: Value, right: Value, kind: str = "i64") -> str:
        """``icmp predicate``."""
        return self.op(f"icmp {predicate} {kind} {left}, {right}", "c")

    def select(
        self, condition: str, then: Value, otherwise: Value, kind: str = "i64", hint: str = "s"
    ) -> str:
        """``select`` between two values of one type."""
        return self.op(f"select i1 {condition}, {kind} {then}, {kind} {otherwise}", hint)

    # Memory

    def alloca(self, kind: str, count: int = 1, align: int = 64) -> str:
        """Reserves `count` values on the stack, in the entry block."""
        name = self.fresh("slot")
        self._allocas.append(f"  {name} = alloca {kind}, i64 {count}, align {align}")
        return name

    def gep(self, pointer: str, index: Value, kind: str = "i8", hint: str = "p") -> str:
        """The address `index` elements of type `kind` after `pointer`."""
        if _constant(index) == 0:
            return pointer
        return self.op(f"getelementptr inbounds {kind}, ptr {pointer}, i64 {index}", hint)

    def load(
        self, kind: str, pointer: str, align: int | None = None, hint: str = "x", suffix: str = ""
    ) -> str:
        """Loads a value; `suffix` is for metadata."""
        tail = f", align {align}" if align is not None else ""
        return self.op(f"load {kind}, ptr {pointer}{tail}{suffix}", hint)

    def store(
        self, kind: str, value: Value, pointer: str, align: int | None = None, suffix: str = ""
    ) -> None:
        """Stores a value."""
        tail = f", align {align}" if align is not None else ""
        self.emit(f"store {kind} {value}, ptr {pointer}{tail}{suffix}")

    # Vectors

    def splat(self, kind: str, value: Value, lanes: int) -> str:
        """`value` of scalar type `kind` in each of `lanes` lanes."""
        if lanes == 1:
            return str(value)
        vector = f"<{lanes} x {kind}>"
        first = self.op(f"insertelement {vector} poison, {kind} {value}, i64 0")
        return self.op(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")

    def lane_mask(self, count: Value, lanes: int) -> str:
        """``<lanes x i1>`` that is true in the first `count` lanes."""
        numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
        limit = self.splat("i64", count, lanes)
        return self.op(f"icmp slt <{lanes} x i64> <{numbers}>, {limit}", "mask")

    def masked_load(
        self, element: str, lanes: int, pointer: str, mask: str, align: int, hint: str = "x"
    ) -> str:
        """Loads the lanes of scalar type `element` where `mask` is true; the others are 0, and not read."""
        vector, name = f"<{lanes} x {element}>", f"llvm.masked.load.{_suffix(element, lanes)}.p0"
        self.declare(f"declare {vector} @{name}(ptr, <{lanes} x i1>, {vector})")
        masked = f"<{lanes} x i1> {mask}, {vector} zeroinitializer"
        return self.op(f"call {vector} @{name}(ptr align {align} {pointer}, {masked})", hint)

    def masked_store(self, element: str, lanes: int, value: str, pointer: str, mask: str, align: int) -> None:
        """Stores the lanes of scalar type `element` that `mask` holds true."""
        vector, name = f"<{lanes} x {element}>", f"llvm.masked.store.{_suffix(element, lanes)}.p0"
        self.declare(f"declare void @{name}({vector}, ptr, <{lanes} x i1>)")
        self.emit(f"call void @{name}({vector} {value}, ptr align {align} {pointer}, <{lanes} x i1> {mask})")

    # Control flow

    @contextmanager
    def loop(self, start: Value, stop: Value, step: Value = 1, hint: str = "i") -> Iterator[str]:
        """A counted loop ``for i in range(start, stop, step)`` with a positive step; yields the counter."""
        with self.carried_loop(start, stop, (), step, hint) as loop:
            yield loop.index

    @contextmanager
    def carried_loop(
        self,
        start: Value,
        stop: Value,
        initial: Iterable[tuple[str, str]],
        step: Value = 1,
        hint: str = "i",
    ) -> Iterator[CarriedLoop]:
        """A counted loop with carried values, given as pairs of type and initial value."""
        carried = list(initial)
        header, body, done = (
            self.label(f"{hint}.head"),
            self.label(f"{hint}.body"),
            self.label(f"{hint}.done"),
        )
        before = self._block
        self.branch(header)
        self.place(header)
        index = self.fresh(hint)
        values = [self.fresh(f"{hint}.carried") for _ in carried]
        at = len(self._lines)
        self._lines.extend([""] * (1 + len(carried)))
        self.branch_if(self.compare("slt", index, stop), body, done)
        self.place(body)
        loop = CarriedLoop(index, values)
        yield loop
        if len(loop.next) != len(carried):
            raise AssertionError(f"loop {hint} carries {len(carried)} values and sets {len(loop.next)}")
        following = self.op(f"add nsw i64 {index}, {step}", f"{hint}.next")
        latch = self._block
        self.branch(header)
        self._lines[at] = f"  {index} = phi i64 [ {start}, %{before} ], [ {following}, %{latch} ]"
        for offset, ((kind, first), name, last) in enumerate(
            zip(carried, values, loop.next, strict=True), at + 1
        ):
            self._lines[offset] = f"  {name} = phi {kind} [ {first}, %{before} ], [ {last}, %{latch} ]"
        self.place(done)
        loop.results = values

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Runs the body if `condition` (an ``i1``) holds."""
        then, done = self.label("then"), self.label("done")
        self.branch_if(condition, then, done)
        self.place(then)
        yield
        self.branch(done)
        self.place(done)

    @contextmanager
    def otherwise(self, condition: str) -> Iterator[None]:
        """Runs the body unless `condition` holds."""
        then, done = self.label("else"), self.label("done")
        self.branch_if(condition, done, then)
        self.place(then)
        yield
        self.branch(done)
        self.place(done)

    def text(self) -> str:
        """The finished definition; the last block must have ended with a terminator."""
        return "\n".join([self._head, "entry:", *self._allocas, *self._lines, "}", ""])


def assemble_module(functions: Iterable[str], declarations: Iterable[str] = (), header: str = "") -> str:
    """The text of a module: header (triple, globals), declarations once each, then the definitions."""
    return "\n".join([header, *sorted(set(declarations)), "", *functions])
