"""A position in the tokens of HLO text, and what stands there: shapes, names, numbers, balanced braces."""

from __future__ import annotations

from typing import NoReturn

from compiler.frontend.errors import error_at
from compiler.frontend.hlo.lexer import tokenize
from compiler.frontend.hlo.shape_text import array_shape
from compiler.ir.types import BufferType, TensorType, TupleType, Type

MAX_DEPTH = 200
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Cursor:
    """Tokens and a position in them."""

    def __init__(self, text: str, filename: str) -> None:
        self.text = text
        self.filename = filename
        self.tokens, self.offsets = tokenize(text, filename)
        self.at = 0
        self.depth = 0

    def fail(self, message: str, offset: int | None = None) -> NoReturn:
        """Raises the error at a place: the present token's by default."""
        place = self.offsets[self.at] if offset is None else offset
        raise error_at(self.filename, self.text, place, message)

    def fail_before(self, message: str) -> NoReturn:
        """Raises the error at the token that was taken last."""
        self.fail(message, self.offsets[max(self.at - 1, 0)])

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
            self.fail(f"expected '{token}'{self.found()}")
        self.at += 1

    def found(self) -> str:
        """What stands here instead, for messages."""
        token = self.tokens[self.at]
        return f", found '{token[:40]}'" if token else " before the end of the file"

    def name(self, what: str) -> str:
        """A name, without the `%` that may stand before it."""
        token = self.tokens[self.at]
        first = token[:1]
        plain = token[1:] if first == "%" else token
        if not (plain[:1].isalpha() or plain[:1] == "_") or plain[-1] in ")}]":
            self.fail(f"expected {what}{self.found()}")
        self.at += 1
        return plain

    def integer(self) -> int:
        """A whole number."""
        token = self.tokens[self.at]
        digits = token.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 20:
            self.fail(f"expected a number{self.found()}")
        self.at += 1
        return int(token)

    def shape(self) -> Type:
        """An array's shape, a tuple's in parentheses, or `token[]`."""
        token = self.tokens[self.at]
        if token == "(":
            self.depth += 1
            if self.depth > MAX_DEPTH:
                self.fail(f"nested more than {MAX_DEPTH} deep")
            self.at += 1
            elements: list[Type] = []
            while not self.accept(")"):
                if elements:
                    self.expect(",")
                elements.append(self.shape())
            self.depth -= 1
            return TupleType(tuple(elements))
        if token == "b" and self.tokens[self.at + 1] == "(":
            self.at += 2
            inner = self.shape()
            self.expect(")")
            if not isinstance(inner, TensorType):
                self.fail_before("a buffer holds an array")
            return BufferType(inner.element, inner.shape, inner.layout, inner.bounds)
        try:
            found = array_shape(token)
        except ValueError as error:
            message = str(error) if "[" in token else f"expected a shape{self.found()}"
            self.fail(message)
        self.at += 1
        return found

    def balanced(self) -> str:
        """The text from the present opening bracket to its closing one, as written."""
        start = self.at
        stack: list[str] = []
        while True:
            token = self.tokens[self.at]
            if not token:
                self.fail("expected a closing bracket before the end of the file", self.offsets[start])
            self.at += 1
            if token in _CLOSING:
                stack.append(_CLOSING[token])
            elif stack and token == stack[-1]:
                stack.pop()
            elif token in (")", "]", "}"):
                self.fail_before(f"expected '{stack[-1] if stack else '{'}', found '{token}'")
            if not stack:
                return self.text[self.offsets[start] : self.offsets[self.at - 1] + len(token)]
