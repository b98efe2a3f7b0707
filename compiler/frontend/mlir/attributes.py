"""Attribute values: the part of the reader below operations.

Values become plain Python: integers, floats, booleans, strings, tuples, `Attributes`, `Literal`, types; enumerations become
their member's name; what belongs to a dialect that is not understood stays text.
"""

from __future__ import annotations

import re
import struct
from typing import Any

from compiler.frontend.mlir.constant_text import dense_literal, from_bytes
from compiler.frontend.mlir.lexer import unquote
from compiler.frontend.mlir.location_reader import LocationReader
from compiler.frontend.mlir.tree import Raw, Symbol, Word
from compiler.ir.attribute_values import TypedFloat, TypedInt
from compiler.ir.program import Attributes
from compiler.ir.semantics import OperationError
from compiler.ir.types import ELEMENTS, QuantizedType, TensorType


class AttributeReader(LocationReader):
    """Reads attributes of every kind."""

    def dictionary(self, end: str = "}") -> dict[str, Any]:
        """`name = value, …` up to the closing token; a name alone is a unit attribute."""
        found: dict[str, Any] = {}
        self.enter()
        while not self.accept(end):
            name = self.take()
            if name.startswith('"'):
                name = unquote(name)
            if not name or name in ("=", ","):
                self.fail("expected an attribute's name")
            found[name] = self.attribute() if self.accept("=") else True
            if self.tokens[self.at] != end:
                self.expect(",")
        self.depth -= 1
        return found

    def attribute(self) -> Any:
        """Any attribute value."""
        token = self.tokens[self.at]
        first = token[:1]
        if first == '"':
            self.at += 1
            self._typed()
            return unquote(token)
        if first == "[":
            self.at += 1
            self.enter()
            items = tuple(self.until("]", self.attribute))
            self.depth -= 1
            return items
        if first == "{":
            self.at += 1
            return Attributes(self.dictionary())
        if first == "@":
            self.at += 1
            while self.accept(":"):
                self.expect(":")
                token = self.take()
            return Symbol(unquote(token[1:]) if token[1:2] == '"' else token[1:])
        if first == "#":
            return self._hash()
        if first.isdigit() or (first == "-" and token != "->" and token != "-"):
            return self._number()
        return self._word(token)

    def _typed(self) -> str:
        """An optional `: type` after a value; gives its text."""
        if self.tokens[self.at] == ":" and not self.tokens[self.at + 1].startswith(":"):
            self.at += 1
            start = self.at
            self.type()
            return self.tokens[start]
        return ""

    def _number(self) -> Any:
        token = self.take()
        kind = self._typed()
        is_hex = "0x" in token
        if kind.startswith(("f", "bf")) and is_hex:
            return TypedFloat(_float_of_bits(int(token, 16), kind), kind)
        if not is_hex and ("." in token or "e" in token or "E" in token or kind.startswith(("f", "bf"))):
            return TypedFloat(float(token), kind) if kind not in ("", "f64") else float(token)
        value = int(token, 0)
        if kind == "i1":
            return bool(value)
        return TypedInt(value, kind) if kind not in ("", "i64") else value

    def _word(self, token: str) -> Any:
        if token in ("true", "false"):
            self.at += 1
            self._typed()
            return token == "true"
        if token.startswith("dense<"):
            self.at += 1
            return self._dense(token)
        if token.startswith("array<"):
            self.at += 1
            return self._array(token)
        if token.startswith("dense_resource<"):
            self.at += 1
            return self._resource(token)
        if token in ("unit",):
            self.at += 1
            return True
        if (
            token.startswith(("tensor<", "memref<", "!"))
            or token in ("tuple", "complex")
            or token in ELEMENTS
        ):
            return self.type()
        if token == "(":
            self.at += 1
            inputs = tuple(self.until(")", self.type))
            self.expect("->")
            outputs = tuple(self.until(")", self.type)) if self.accept("(") else (self.type(),)
            return inputs, outputs
        if token == "loc":
            return Raw(self.balanced())
        if re.match(r"[A-Za-z_]", token):
            self.at += 1
            if self.tokens[self.at] == "<":
                return Raw(token + self.balanced())
            return Word(token)
        self.fail(
            f"expected a value, found '{token[:40]}'"
            if token
            else "expected a value before the end of the file"
        )

    def _dense(self, token: str) -> Any:
        offset = self.offsets[self.at - 1]
        self.expect(":")
        kind = self.type()
        if not isinstance(kind, TensorType):
            self.fail("a dense constant must be of a tensor type", offset)
        try:
            return dense_literal(token, kind)
        except (ValueError, OverflowError, MemoryError) as error:
            self.fail(str(error), offset)

    def _resource(self, token: str) -> Any:
        offset = self.offsets[self.at - 1]
        name = token[len("dense_resource<") : -1].strip().strip('"')
        self.expect(":")
        kind = self.type()
        if name not in self.resources:
            self.fail(f"the resource '{name}' is not in the file", offset)
        raw = bytes.fromhex(self.resources[name])[4:]
        if not isinstance(kind, TensorType):
            self.fail("a dense constant must be of a tensor type", offset)
        element = kind.element.storage if isinstance(kind.element, QuantizedType) else kind.element
        try:
            return from_bytes(raw, kind, element)
        except ValueError as error:
            self.fail(str(error), offset)

    def _array(self, token: str) -> tuple[Any, ...]:
        kind, _, rest = token[len("array<") : -1].partition(":")
        words = [word.strip() for word in rest.split(",") if word.strip()]
        try:
            if kind.strip() == "i1":
                return tuple({"true": True, "false": False}[word] for word in words)
            return tuple(float(w) for w in words) if kind.strip().startswith("f") else tuple(map(int, words))
        except (KeyError, ValueError):
            self.fail(f"not an array of {kind.strip()}", self.offsets[self.at - 1])

    def _hash(self) -> Any:
        """`#alias`, `#dialect<member>`, or `#dialect.record<…>`."""
        token = self.take()
        if token in self.aliases:
            return self.aliases[token]
        if self.tokens[self.at] != "<":
            if token in self.location_aliases or token.startswith("#loc"):
                return Raw(token)
            self.fail(f"{token} is not defined", self.offsets[self.at - 1])
        if token in ("#stablehlo", "#chlo", "#mhlo", "#vhlo"):
            return self._dialect_member()
        if token.split(".")[-1] in RECORDS and token.startswith(("#stablehlo.", "#mhlo.", "#chlo.")):
            offset = self.offsets[self.at - 1]
            self.take()
            found = Attributes(self.record())
            if token == "#stablehlo.dot_algorithm":
                self._check_algorithm(found, offset)
            return found
        if token.split(".")[-1] == "conv":
            return Raw(self.balanced()[1:-1])
        return Raw(token + self.balanced())

    def _check_algorithm(self, found: Attributes, offset: int) -> None:
        """An attribute that is wrong by itself is wrong where it stands, which need not be the operation's line."""
        from compiler.ops.contraction import check_algorithm

        try:
            check_algorithm(found)
        except OperationError as error:
            self.fail(str(error), offset)

    def _dialect_member(self) -> Any:
        """`#stablehlo<comparison_direction LT>` gives the member's name."""
        start = self.at
        self.take()
        self.take()
        member = self.take()
        if self.accept(">"):
            return Word(member)
        self.at = start
        inner = self.balanced()[1:-1].strip()
        return Raw(inner)

    def record(self) -> dict[str, Any]:
        """`key = value, …>` of a record; fields that name a type hold its name."""
        return {
            key: str(value.element) if isinstance(value, TensorType) and not value.shape else value
            for key, value in self.dictionary(">").items()
        }


RECORDS = frozenset(
    {"dot", "gather", "scatter", "channel_handle", "output_operand_alias", "dot_algorithm", "ragged_dot"}
)
"""Attributes of the form `#stablehlo.name<key = value, …>`."""


def _float_of_bits(bits: int, kind: str) -> float:
    if kind == "f64":
        return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])
    if kind == "f32":
        return float(struct.unpack("<f", bits.to_bytes(4, "little"))[0])
    if kind == "bf16":
        return float(struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0])
    return float(struct.unpack("<e", bits.to_bytes(2, "little"))[0])
