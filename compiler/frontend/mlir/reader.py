"""Text to tree: modules, functions, regions, and operations in generic form; pretty forms are in `assembly`.

Reads what it is given without asking what it means: unknown operations in generic form are read like any other.
"""

from __future__ import annotations

from typing import Any

from compiler.frontend.mlir.assembly import PRETTY
from compiler.frontend.mlir.attributes import AttributeReader
from compiler.frontend.mlir.lexer import unquote
from compiler.frontend.mlir.opset import OPERATIONS
from compiler.frontend.mlir.pretty_forms import default_pretty
from compiler.frontend.mlir.tree import Block, Operation, Symbol, Word
from compiler.ir.types import Type


class Reader(AttributeReader):
    """Reads one module. See `compiler.frontend.mlir.parse`."""

    def read(self) -> Operation:
        """The module. What is not inside a `module { }` is taken as one without a name."""
        top = Operation("builtin.module", 0)
        top.regions.append(Block())
        while self.tokens[self.at]:
            if self.alias_definition():
                continue
            top.regions[0].operations.append(self.operation())
        inner = top.regions[0].operations
        if not inner:
            self.fail("the file holds no module", 0)
        if len(inner) == 1 and inner[0].name in ("builtin.module", "module"):
            return inner[0]
        return top

    def alias_definition(self) -> bool:
        """Reads `#name = …` or `!name = …` if it stands here."""
        token = self.tokens[self.at]
        if token[:1] not in "#!" or self.tokens[self.at + 1] != "=":
            return False
        self.at += 2
        if token[0] == "!":
            self.type_aliases[token] = self.type()
        elif self.tokens[self.at] == "loc" and self.tokens[self.at + 1] == "(":
            self.location_aliases[token] = self.trailing_location()
        else:
            self.aliases[token] = self.attribute()
        return True

    # ---- operations ------------------------------------------------------------------------------------------------

    def operation(self) -> Operation:
        """One operation with its results and trailing location."""
        results: list[tuple[str, int]] = []
        token = self.tokens[self.at]
        if token[:1] == "%":
            results = self._result_names()
            token = self.tokens[self.at]
        made = Operation(token, self.offsets[self.at])
        if token[:1] == '"':
            self.at += 1
            made.name = unquote(token)
            self._generic(made)
        else:
            self._pretty(made, token)
        located = self.trailing_location()
        if located is not None:
            made.location = located
        if results:
            self._name_results(made, results)
        return made

    def _result_names(self) -> list[tuple[str, int]]:
        names = []
        while True:
            name = self.take()
            if name[:1] != "%":
                self.fail("expected the name of a result", self.offsets[self.at - 1])
            count = self.integer() if self.accept(":") else 1
            names.append((name, count))
            if self.accept("="):
                return names
            self.expect(",")

    def _name_results(self, made: Operation, results: list[tuple[str, int]]) -> None:
        named = sum(count for _, count in results)
        if named != len(made.result_types):
            self.fail(f"{made.name} has {len(made.result_types)} results, but {named} are named", made.offset)
        for name, count in results:
            made.results.extend([name] if count == 1 else [f"{name}#{index}" for index in range(count)])

    def _pretty(self, made: Operation, token: str) -> None:
        if not token or not (token[0].isalpha() or token[0] == "_"):
            self.fail(f"expected an operation, found '{token[:40]}'" if token else "expected an operation")
        self.at += 1
        reader = PRETTY.get(token)
        if reader is not None:
            reader(self, made)
        elif token in OPERATIONS:
            default_pretty(self, made)
        else:
            self.fail(f"unknown operation '{token}'", made.offset)

    def _generic(self, made: Operation) -> None:
        self.expect("(")
        made.operands = self.until(")", self.value)
        if self.tokens[self.at] == "<" and self.tokens[self.at + 1] == "{":
            self.at += 2
            made.attributes.update(self.dictionary())
            self.expect(">")
        if self.accept("("):
            made.regions = self.until(")", self.region)
        if self.accept("{"):
            made.attributes.update(self.dictionary())
        self.expect(":")
        self.function_type(made)
        if len(made.operand_types) != len(made.operands):
            self.fail(
                f"{made.name} has {len(made.operands)} operands, but its type lists {len(made.operand_types)}",
                made.offset,
            )

    def value(self) -> str:
        """The name of a value that is read."""
        token = self.take()
        if token[:1] != "%":
            self.fail(f"expected a value, found '{token[:40]}'", self.offsets[max(self.at - 1, 0)])
        return token

    def function_type(self, made: Operation) -> None:
        """`(types) -> types` into the operation."""
        self.expect("(")
        made.operand_types = self.until(")", self.type)
        self.expect("->")
        made.result_types = self.types_or_one()

    def types_or_one(self) -> list[Type]:
        """`(types)` or one type."""
        return self.until(")", self.type) if self.accept("(") else [self.type()]

    # ---- regions ---------------------------------------------------------------------------------------------------

    def region(self) -> Block:
        """`{ … }` with at most one block."""
        self.expect("{")
        block = Block()
        self.enter()
        if self.tokens[self.at][:1] == "^":
            self.take()
            if self.accept("("):
                block.arguments = self.until(")", self.argument)
            self.expect(":")
        while not self.accept("}"):
            if self.tokens[self.at][:1] == "^":
                self.fail("a region of several blocks is not supported: StableHLO regions have one")
            block.operations.append(self.operation())
        self.depth -= 1
        return block

    def argument(self) -> tuple[str, Type, Any]:
        """`%name: type loc(…)`."""
        name = self.value()
        self.expect(":")
        return name, self.type(), self.trailing_location()

    def attribute_dictionary(self, made: Operation) -> None:
        """An optional `{ … }`."""
        if self.accept("{"):
            made.attributes.update(self.dictionary())

    def symbol(self) -> Symbol:
        """`@name`."""
        found = self.attribute()
        if not isinstance(found, Symbol):
            self.fail("expected a name with @", self.offsets[max(self.at - 1, 0)])
        return found

    def word(self) -> Word:
        """A bare word."""
        return Word(self.take())
