"""Attributes that any HLO instruction may have: shardings, frameworks' attributes, backend configurations, and the rest as text."""

from __future__ import annotations

import json
import re
from typing import Any

from compiler.frontend.errors import SourceError
from compiler.frontend.hlo.given import Given
from compiler.frontend.hlo.lexer import unquote
from compiler.frontend.mlir.attributes import AttributeReader
from compiler.frontend.mlir.normalise import plain
from compiler.ir.hlo_attributes import HLO_TEXT
from compiler.ir.program import Attributes

Found = dict[str, Any]

ORDER = frozenset({"control-predecessors"})
"""Attributes that say nothing but what the order of instructions says already."""
_KEY = re.compile(r"[\s,]*([\w.\-:]+)\s*=\s*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
_TYPED_FFI = 4
_API = {
    "API_VERSION_ORIGINAL": 1,
    "API_VERSION_STATUS_RETURNING": 2,
    "API_VERSION_STATUS_RETURNING_UNIFIED": 3,
    "API_VERSION_TYPED_FFI": _TYPED_FFI,
}


def common(given: Given) -> Found:
    """What is read of every instruction, after its own rule; whatever is left is kept as text."""
    found: Found = {}
    if "sharding" in given:
        found["mhlo.sharding"] = given.raw("sharding")
    if "frontend_attributes" in given:
        found["mhlo.frontend_attributes"] = frontend_attributes(given, "frontend_attributes")
    given.optional("metadata")
    for key in given.left():
        if key not in ORDER:
            found[f"{HLO_TEXT}{key}"] = given.raw(key)
    return found


def frontend_attributes(given: Given, key: str) -> Attributes:
    """`{name="text",other={…}}`: strings without their quotes, anything else as it stands."""
    text = given.raw(key)
    found: dict[str, str] = {}
    inner = text[1:-1]
    at = 0
    while at < len(inner) and inner[at:].strip():
        match = _KEY.match(inner, at)
        if match is None:
            given.refuse(f"{key} must hold name=value", key)
        end = _value_end(inner, match.end())
        value = inner[match.end() : end].strip()
        found[match[1]] = unquote(value) if value[:1] == '"' and len(value) > 1 else value
        at = end
    return Attributes(found)


def _value_end(text: str, at: int) -> int:
    """Where a value ends: at the next comma that is in no bracket and no string."""
    depth = 0
    while at < len(text):
        char = text[at]
        if char == '"':
            match = _STRING.match(text, at)
            at = match.end() if match is not None else len(text)
            continue
        if char in "{[(":
            depth += 1
        elif char in "}])":
            depth -= 1
        elif char == "," and depth == 0:
            return at
        at += 1
    return at


def trip_count(given: Given) -> Found:
    """`backend_config={"known_trip_count":{"n":"24"}}` of a loop; any configuration that says more also stays as text."""
    text = given.raw("backend_config", "")
    found: Found = {f"{HLO_TEXT}backend_config": text} if text else {}
    try:
        config = json.loads(unquote(text) if text[:1] == '"' else text)
        found["known_trip_count"] = int(config["known_trip_count"]["n"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return found
    if len(config) == 1 and len(config["known_trip_count"]) == 1:
        del found[f"{HLO_TEXT}backend_config"]
    return found


def custom_call(given: Given) -> Found:
    """Target, interface version, and the configuration: text, or a dictionary where the interface is typed."""
    version_name = given.raw("api_version", "API_VERSION_ORIGINAL")
    version = _API.get(version_name)
    if version is None:
        given.refuse(f"unknown api_version {version_name[:40]}", "api_version")
    config: Any = given.text("backend_config", "")
    if version == _TYPED_FFI:
        config = _dictionary(given, config)
    return {
        "call_target_name": given.text("custom_call_target"),
        "has_side_effect": given.flag("custom_call_has_side_effect"),
        "api_version": version,
        "backend_config": config,
    }


def _dictionary(given: Given, text: str) -> Attributes | str:
    """`{uplo = 76 : ui8}`, MLIR's own syntax."""
    if not text.strip():
        return ""
    reader = AttributeReader(text, "")
    try:
        reader.expect("{")
        found = Attributes({key: plain(value) for key, value in reader.dictionary().items()})
    except (SourceError, ValueError, TypeError, LookupError, ArithmeticError):
        given.refuse("backend_config must be a dictionary of MLIR attributes", "backend_config")
    return found
