"""Tokens to HLO's own instructions as written: header, tables of stack frames, computations."""

from __future__ import annotations

from compiler.frontend.hlo.cursor import Cursor
from compiler.frontend.hlo.lexer import unquote
from compiler.frontend.hlo.metadata import FrameTables, fields
from compiler.frontend.hlo.tree import WrittenComputation, WrittenInstruction, WrittenModule
from compiler.ir.types import Type

_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_CONSTANT = "constant("
_GROUPED = ("window=", "metadata=", "dim_labels=")


class Reader(Cursor):
    """Reads one module. Every mistake is a SourceError at its place."""

    def read(self) -> WrittenModule:
        """The whole file."""
        if not self.accept("HloModule"):
            self.fail(f"expected 'HloModule'{self.found()}")
        name = self.name("the module's name")
        attributes = self._attributes()
        tables = FrameTables()
        while self.tokens[self.at] in _TABLES and self.tokens[self.at + 1] not in ("{", "("):
            self._table(tables)
        computations = []
        while self.tokens[self.at]:
            computations.append(self._computation())
        if not computations:
            self.fail("the module has no computation")
        return WrittenModule(name, attributes, computations, tables)

    # ---- tables of stack frames ------------------------------------------------------------------------------------

    def _table(self, tables: FrameTables) -> None:
        which = self.take()
        texts = {"FileNames": tables.files, "FunctionNames": tables.functions}.get(which)
        records = tables.locations if which == "FileLocations" else tables.frames
        while self.tokens[self.at][:1].isdigit():
            number = self.integer()
            if texts is None:
                if self.tokens[self.at] != "{":
                    self.fail(f"expected '{{'{self.found()}")
                records[number] = fields(self.balanced())
            else:
                if self.tokens[self.at][:1] != '"':
                    self.fail(f"expected a string{self.found()}")
                texts[number] = unquote(self.take())

    # ---- computations ----------------------------------------------------------------------------------------------

    def _computation(self) -> WrittenComputation:
        is_entry = self.tokens[self.at] == "ENTRY" and self.tokens[self.at + 1] not in ("{", "(")
        if is_entry:
            self.at += 1
        offset = self.offsets[self.at]
        found = WrittenComputation(self.name("a computation"), offset, is_entry)
        if self.tokens[self.at] == "(":
            found.signature = self._signature()
        self.expect("{")
        while not self.accept("}"):
            self._instruction(found)
        if not found.instructions:
            self.fail_before(f"computation {found.name} has no instructions")
        if not found.root:
            found.root = found.instructions[-1].name
        self._attributes()
        return found

    def _signature(self) -> list[tuple[Type, int]]:
        self.expect("(")
        parameters: list[tuple[Type, int]] = []
        while not self.accept(")"):
            if parameters:
                self.expect(",")
            self.name("a parameter's name")
            self.expect(":")
            offset = self.offsets[self.at]
            parameters.append((self.shape(), offset))
        self.expect("->")
        self.shape()
        return parameters

    def _instruction(self, computation: WrittenComputation) -> None:
        tokens, offsets = self.tokens, self.offsets
        is_root = tokens[self.at] == "ROOT" and tokens[self.at + 1] != "="
        if is_root:
            self.at += 1
        if not tokens[self.at]:
            self.fail(f"expected '}}' to end computation {computation.name} before the end of the file")
        offset = offsets[self.at]
        name = self.name("an instruction")
        self.expect("=")
        kind = self.shape()
        opcode, at = tokens[self.at], offsets[self.at]
        if opcode.startswith(_CONSTANT):
            self.at += 1
            literal = (opcode[len(_CONSTANT) : -1], at + len(_CONSTANT))
            made = WrittenInstruction(name, offset, kind, "constant", at, [], {}, literal)
        else:
            self.name("an opcode")
            made = WrittenInstruction(name, offset, kind, opcode, at, [], {})
            self._operands(made)
        made.attributes = self._attributes()
        if is_root:
            if computation.root:
                self.fail(f"computation {computation.name} has two roots", offset)
            computation.root = name
        computation.instructions.append(made)

    def _operands(self, made: WrittenInstruction) -> None:
        self.expect("(")
        if self.tokens[self.at].isdigit():
            made.number = self.integer()
            self.expect(")")
            return
        tokens, operands = self.tokens, made.operands
        while True:
            token = tokens[self.at]
            if token == ")" and not operands:
                break
            if token == "(" or token[-1:] in "]}" or tokens[self.at + 1] == "(":
                self.shape()
                token = tokens[self.at]
            if token[:1] == "%" and len(token) > 1:
                operands.append((token[1:], self.offsets[self.at]))
                self.at += 1
            else:
                operands.append((self.name("an operand"), self.offsets[self.at - 1]))
            if tokens[self.at] != ",":
                break
            self.at += 1
        self.expect(")")

    # ---- attributes ------------------------------------------------------------------------------------------------

    def _attributes(self) -> dict[str, tuple[str, int]]:
        """`, key=value` as often as it stands here; values as text with their offsets."""
        found: dict[str, tuple[str, int]] = {}
        tokens = self.tokens
        while tokens[self.at] == ",":
            self.at += 1
            token, offset = tokens[self.at], self.offsets[self.at]
            if token.startswith(_GROUPED) and token[-1] != "=":
                key, _, value = token.partition("=")
                self.at += 1
                offset += len(key) + 1
            else:
                key = self.name("an attribute")
                self.expect("=")
                offset = self.offsets[self.at]
                value = self._value()
            if key in found:
                self.fail(f"attribute {key} is given twice", offset)
            found[key] = (value, offset)
        return found

    def _value(self) -> str:
        token = self.tokens[self.at]
        if token in ("{", "("):
            return self.balanced()
        if token == "[":
            start = self.offsets[self.at]
            self.balanced()
            if self.tokens[self.at : self.at + 2] == ["<", "="]:
                self.at += 2
                self.balanced()
                if self.tokens[self.at] == "T":
                    self.at += 1
                    self.balanced()
            end = self.at - 1
            return self.text[start : self.offsets[end] + len(self.tokens[end])]
        if not token or token in (",", "}", ")", "]", "="):
            self.fail(f"expected a value{self.found()}")
        start = self.offsets[self.at]
        self.at += 1
        if token.startswith("mesh[") and self.tokens[self.at] == "{":
            self.balanced()
            end = self.at - 1
            return self.text[start : self.offsets[end] + 1]
        return token
