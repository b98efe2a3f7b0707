"""A position in the tokens of a text, and the types that stand there."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from compiler.frontend.errors import SourceError, error_at
from compiler.frontend.mlir.lexer import tokenize
from compiler.frontend.mlir.type_text import buffer_type, element_type, tensor_type
from compiler.ir.types import ELEMENTS, TOKEN, FutureType, TensorType, TupleType, Type

_BLOB = re.compile(r'(?<![\w.$])([\w.$]++)\s*+:\s*+"0x([0-9A-Fa-f]*+)"')
MAX_DEPTH = 400


class Cursor:
    """Tokens and a position in them, with everything that reads attributes."""

    def __init__(self, text: str, filename: str, line_offset: int = 0) -> None:
        self.text = text
        self.filename = filename
        self.line_offset = line_offset
        self.resources: dict[str, str] = {}
        body = text
        start, end = text.find("{-#"), text.rfind("#-}")
        if 0 <= start < end:
            self.resources = dict(_BLOB.findall(text, start, end))
            body = text[:start]
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
            return TupleType(tuple(self.until(">", self.type)))
        if token == "!stablehlo.future":
            self.expect("<")
            return FutureType(tuple(self.until(">", self.type)))
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

    def until(self, end: str, read: Any) -> list[Any]:
        """Items separated by commas, up to a closing token."""
        items: list[Any] = []
        if self.accept(end):
            return items
        while True:
            items.append(read())
            if self.accept(end):
                return items
            self.expect(",")

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
