"""Attribute values, types and locations: the part of the reader below operations.

Values become plain Python: integers, floats, booleans, strings, tuples, `Attributes`, `Literal`, types; enumerations become
their member's name; what belongs to a dialect that is not understood stays text.
"""

from __future__ import annotations

import re
import struct
from typing import Any, NoReturn

from compiler.frontend.errors import SourceError, error_at
from compiler.frontend.mlir.constant_text import dense_literal, from_bytes
from compiler.frontend.mlir.lexer import tokenize, unquote
from compiler.frontend.mlir.tree import Raw, Symbol, Word
from compiler.frontend.mlir.type_text import buffer_type, element_type, tensor_type
from compiler.ir.attribute_values import TypedFloat, TypedInt
from compiler.ir.location import CallSite, FileLocation, FusedLocation, Location, NameLocation
from compiler.ir.program import Attributes
from compiler.ir.types import ELEMENTS, TOKEN, FutureType, QuantizedType, TensorType, TupleType, Type

_RESOURCES = re.compile(r"\{-#.*#-\}", re.DOTALL)
_BLOB = re.compile(r'([\w.$]+)\s*:\s*"0x([0-9A-Fa-f]*)"')
MAX_DEPTH = 400


class Cursor:
    """Tokens and a position in them, with everything that reads attributes."""

    def __init__(self, text: str, filename: str, line_offset: int = 0) -> None:
        self.text = text
        self.filename = filename
        self.line_offset = line_offset
        self.resources: dict[str, str] = {}
        body = text
        resources = _RESOURCES.search(text) if "{-#" in text else None
        if resources is not None:
            self.resources = dict(_BLOB.findall(resources.group(0)))
            body = text[: resources.start()]
        self.tokens, self.offsets = tokenize(body, filename)
        self.at = 0
        self.depth = 0
        self.aliases: dict[str, Any] = {}
        self.type_aliases: dict[str, Type] = {}
        self.location_aliases: dict[str, Any] = {}

    # ---- tokens --------------------------------------------------------------------------------------------------

    def fail(self, message: str, offset: int | None = None) -> NoReturn:
        """Raises the error at a place: the present token's by default."""
        place = self.offsets[self.at] if offset is None else offset
        found = error_at(self.filename, self.text, place, message)
        raise SourceError(found.file, found.line + self.line_offset, found.column, message, found.source_line)

    def take(self) -> str:
        """The present token; moves on."""
        token = self.tokens[self.at]
        if token:
            self.at += 1
        return token

    def accept(self, token: str) -> bool:
        """Moves past a token if it is the present one."""
        if self.tokens[self.at] == token:
            self.at += 1
            return True
        return False

    def expect(self, token: str) -> None:
        """Moves past a token that must be the present one."""
        if self.tokens[self.at] != token:
            found = self.tokens[self.at]
            self.fail(
                f"expected '{token}'"
                + (f", found '{found[:40]}'" if found else " before the end of the file")
            )
        self.at += 1

    def enter(self) -> None:
        """Counts nesting, so that a hostile file cannot exhaust the stack."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"nested more than {MAX_DEPTH} deep")

    # ---- types ---------------------------------------------------------------------------------------------------

    def type(self) -> Type:
        """A type."""
        token = self.take()
        if token.startswith(("tensor<", "memref<")):
            try:
                return tensor_type(token) if token[0] == "t" else buffer_type(token)
            except ValueError as error:
                self.fail(str(error), self.offsets[self.at - 1])
        if token == "tuple":
            self.expect("<")
            return TupleType(tuple(self._until(">", self.type)))
        if token == "!stablehlo.future":
            self.expect("<")
            return FutureType(tuple(self._until(">", self.type)))
        if token in ("!stablehlo.token", "!mhlo.token"):
            return TOKEN
        if token.startswith("!") and token in self.type_aliases:
            return self.type_aliases[token]
        if token in ELEMENTS or token in ("index", "none"):
            return TensorType(ELEMENTS.get(token, ELEMENTS["i64"]), ())
        if token == "complex" and self.tokens[self.at] == "<":
            self.take()
            inner = self.take()
            self.expect(">")
            return TensorType(element_type(f"complex<{inner}>"), ())
        self.fail(f"expected a type, found '{token[:40]}'", self.offsets[max(self.at - 1, 0)])

    def _until(self, end: str, read: Any) -> list[Any]:
        """Items separated by commas, up to a closing token."""
        items: list[Any] = []
        if self.accept(end):
            return items
        while True:
            items.append(read())
            if self.accept(end):
                return items
            self.expect(",")

    # ---- attributes ------------------------------------------------------------------------------------------------

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
            items = tuple(self._until("]", self.attribute))
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

    def integer(self) -> int:
        """An integer that no type follows."""
        token = self.take()
        try:
            return int(token, 0)
        except ValueError:
            self.fail(f"expected a number, found '{token[:40]}'", self.offsets[max(self.at - 1, 0)])

    def bare_number(self) -> int | float:
        """A number that no type follows."""
        token = self.take()
        return float(token) if token[:2] != "0x" and any(mark in token for mark in ".eE") else int(token, 0)

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
            inputs = tuple(self._until(")", self.type))
            self.expect("->")
            outputs = tuple(self._until(")", self.type)) if self.accept("(") else (self.type(),)
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
            self.take()
            return Attributes(self._record())
        if token.split(".")[-1] == "conv":
            return Raw(self.balanced()[1:-1])
        return Raw(token + self.balanced())

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

    def _record(self) -> dict[str, Any]:
        """`key = value, …>` of a record; fields that name a type hold its name."""
        return {
            key: str(value.element) if isinstance(value, TensorType) and not value.shape else value
            for key, value in self.dictionary(">").items()
        }

    def balanced(self) -> str:
        """The text from the present opening bracket to its closing one, as written."""
        start = self.at
        closing = {"(": ")", "[": "]", "{": "}", "<": ">"}
        stack: list[str] = []
        while True:
            token = self.tokens[self.at]
            if not token:
                self.fail("expected a closing bracket before the end of the file")
            self.at += 1
            if token in closing:
                stack.append(closing[token])
            elif stack and token == stack[-1]:
                stack.pop()
            if not stack and self.at > start and (token in closing.values() or self.at - start > 1):
                break
        return self.text[self.offsets[start] : self.offsets[self.at - 1] + len(self.tokens[self.at - 1])]

    # ---- locations -------------------------------------------------------------------------------------------------

    def trailing_location(self) -> Any:
        """An optional `loc(…)`: a location, or the name of an alias that is resolved at the end."""
        if self.tokens[self.at] != "loc" or self.tokens[self.at + 1] != "(":
            return None
        self.at += 2
        found = self.location()
        self.expect(")")
        return found

    def location(self) -> Any:
        """What stands inside `loc(…)`. Aliases are given as their name."""
        self.enter()
        token = self.take()
        found: Any = None
        if token.startswith("#"):
            found = token
        elif token.startswith('"'):
            found = self._string_location(unquote(token))
        elif token == "callsite":
            self.expect("(")
            callee = self.location()
            self.expect("at")
            found = ("call", callee, self.location())
            self.expect(")")
        elif token == "fused":
            metadata = self.balanced()[1:-1] if self.tokens[self.at] == "<" else ""
            self.expect("[")
            found = ("fused", tuple(self._until("]", self.location)), metadata)
        elif token != "unknown":
            self.fail(f"unknown kind of location '{token[:40]}'", self.offsets[self.at - 1])
        self.depth -= 1
        return found

    def _string_location(self, name: str) -> Any:
        if self.accept(":"):
            line = self.integer()
            self.expect(":")
            column = self.integer()
            if self.accept("to"):
                while self.tokens[self.at] not in (")", ",", "]", "at"):
                    self.take()
            return FileLocation(name, line, column)
        if self.accept("("):
            child = self.location()
            self.expect(")")
            return ("name", name, child)
        return ("name", name, None)

    def resolve(self, raw: Any, depth: int = 0) -> Location | None:
        """A location without aliases. Raises SourceError on a circle."""
        if raw is None or isinstance(raw, FileLocation):
            return raw
        if depth > MAX_DEPTH:
            self.fail("the locations refer to each other in a circle", 0)
        if isinstance(raw, str):
            if raw not in self.location_aliases:
                self.fail(f"{raw} is not defined", 0)
            found = self.location_aliases[raw]
            resolved = self.resolve(found, depth + 1)
            self.location_aliases[raw] = resolved
            return resolved
        if isinstance(raw, NameLocation | CallSite | FusedLocation):
            return raw
        if raw[0] == "name":
            return NameLocation(raw[1], self.resolve(raw[2], depth + 1))
        if raw[0] == "call":
            callee, caller = self.resolve(raw[1], depth + 1), self.resolve(raw[2], depth + 1)
            return CallSite(callee, caller) if callee and caller else callee or caller
        children = [self.resolve(child, depth + 1) for child in raw[1]]
        known = tuple(child for child in children if child is not None)
        return FusedLocation(known, raw[2]) if known else None


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
