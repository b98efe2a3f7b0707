"""Tokens of MLIR text, by one regular expression.

Whole tensor types, dense constants and integer arrays are single tokens: they are the bulk of a model's text, are read
by code of their own, and repeat (types are cached by their text). No alternative looks further than the next bracket that it
cannot take, and none gives back what it took, so that the time is linear in the text, whatever it holds.
"""

from __future__ import annotations

import re

from compiler.frontend.errors import error_at

_NESTED = r"(?:[^<>]++|<(?:[^<>]++|<[^<>]*+>)*+>)*+"
TOKEN = re.compile(
    r"%[\w$.\-]+(?:\#\d+)?"
    rf"|(?:tensor|memref)<{_NESTED}>"
    r'|dense<(?:"[^"]*+"|[^"<>]++)*+>'
    r"|dense_resource<[^<>]*+>"
    r"|array<[^<>]*+>"
    r"|[A-Za-z_][\w$.]*"
    r'|"(?:[^"\\]|\\.)*"'
    r'|@(?:[\w$.\-]+|"(?:[^"\\]|\\.)*")'
    r"|->"
    r"|-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"
    r"|\#[\w$.\-]+"
    r"|\^[\w$.\-]+"
    r"|![\w$.\-]+"
    r"|[()\[\]{}<>,:=*?+\-/|&]"
)
_SCAN = re.compile(rf"(?:\s++|//[^\n]*+)*+(?:({TOKEN.pattern})|\Z|(?s:(.)))")


def tokenize(text: str, filename: str) -> tuple[list[str], list[int]]:
    """All tokens and their offsets, each list ended by two empty tokens, so that one may look ahead.

    Raises:
        SourceError: at a character that begins no token.
    """
    tokens: list[str] = []
    offsets: list[int] = []
    add_token, add_offset = tokens.append, offsets.append
    for match in _SCAN.finditer(text):
        index = match.lastindex
        if index == 1:
            add_token(match[1])
            add_offset(match.start(1))
        elif index is not None:
            raise error_at(filename, text, match.start(index), _unknown(match[index]))
    tokens += ["", ""]
    offsets += [len(text)] * 2
    return tokens, offsets


def _unknown(char: str) -> str:
    if char == '"':
        return "this string never ends"
    shown = char if char.isprintable() else f"\\x{ord(char):02x}"
    return f"unexpected character '{shown}'"


def unquote(token: str) -> str:
    r"""The text of a string token: `\n`, `\t`, `\\`, `\"` and two-digit hexadecimal escapes (UTF-8 bytes)."""
    body = token[1:-1]
    if "\\" not in body:
        return body
    raw = bytearray()
    index = 0
    while index < len(body):
        char = body[index]
        if char != "\\":
            raw += char.encode("utf-8", "surrogatepass")
            index += 1
            continue
        pair = body[index + 1 : index + 3]
        simple = {"n": 10, "t": 9, "\\": 92, '"': 34, "r": 13}
        if pair[:1] in simple and not (len(pair) == 2 and _is_hex(pair)):
            raw.append(simple[pair[0]])
            index += 2
        elif _is_hex(pair):
            raw.append(int(pair, 16))
            index += 3
        else:
            raw += pair[:1].encode()
            index += 2
    return raw.decode("utf-8", "replace")


def _is_hex(pair: str) -> bool:
    return len(pair) == 2 and all(char in "0123456789abcdefABCDEF" for char in pair)
