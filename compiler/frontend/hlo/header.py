"""The attributes of `HloModule`: scheduling, donations, numbers of devices; the rest is kept as text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from compiler.frontend.hlo.any_instruction import frontend_attributes
from compiler.frontend.hlo.given import Given
from compiler.ir.hlo_attributes import HLO_TEXT
from compiler.ir.program import Attributes

_ALIAS = re.compile(
    r"\{\s*(?P<output>[\d,\s]*)\}\s*:\s*\(\s*(?P<parameter>\d+)\s*,\s*\{(?P<inner>[\d,\s]*)\}\s*(?:,\s*(?P<kind>[\w-]+)\s*)?\)"
)
_DONOR = re.compile(r"\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}\s*\)")
_MESH = re.compile(r"@?([\w.$-]+)\s*=\s*#sdy\.mesh(<[^<>]*>)")
_COUNTS = {"replica_count": "mhlo.num_replicas", "num_partitions": "mhlo.num_partitions"}
_REDUNDANT = ("entry_computation_layout",)
"""What the entry computation says itself."""


@dataclass
class Header:
    """What the module and its entry's parameters are told."""

    is_scheduled: bool = False
    attributes: dict[str, Any] = field(default_factory=dict)
    parameters: dict[int, dict[str, Any]] = field(default_factory=dict)

    def parameter_attributes(self, count: int) -> tuple[Attributes, ...]:
        """Attributes of each of the entry's parameters."""
        return tuple(Attributes(self.parameters.get(index, {})) for index in range(count))


def read_header(given: Given) -> Header:
    """Reads all attributes of the header."""
    found = Header(is_scheduled=given.flag("is_scheduled"))
    for key, name in _COUNTS.items():
        if key in given:
            found.attributes[name] = given.integer(key)
    if "frontend_attributes" in given:
        framework = frontend_attributes(given, "frontend_attributes")
        found.attributes["mhlo.frontend_attributes"] = framework
        for name, mesh in _MESH.findall(framework.get("xla.sdy.meshes", "")):
            found.attributes[f"sdy.mesh.{name}"] = mesh
    _donations(given, found)
    for key in _REDUNDANT:
        given.optional(key)
    for key in given.left():
        found.attributes[f"{HLO_TEXT}{key}"] = given.raw(key)
    return found


def _donations(given: Given, found: Header) -> None:
    """Whole parameters tied to whole results, and donated ones; ties of another kind stay text."""
    text = given.raw("input_output_alias", "{}")
    if _ALIAS.sub("", text[1:-1]).replace(",", "").strip():
        given.refuse(
            "input_output_alias must hold {output}: (parameter, {index}, kind)", "input_output_alias"
        )
    others = []
    for match in _ALIAS.finditer(text):
        output = [word for word in match["output"].split(",") if word.strip()]
        parameter = int(match["parameter"])
        plain = len(output) < 2 and not match["inner"].strip() and match["kind"] in (None, "may-alias")
        entry = found.parameters.setdefault(parameter, {}) if plain else {}
        if plain and "tf.aliasing_output" not in entry:
            entry["tf.aliasing_output"] = int(output[0]) if output else 0
        else:
            others.append(match[0])
    if others:
        found.attributes[f"{HLO_TEXT}input_output_alias"] = f"{{ {', '.join(others)} }}"
    text = given.raw("buffer_donor", "{}")
    if _DONOR.sub("", text[1:-1]).replace(",", "").strip():
        given.refuse("buffer_donor must hold (parameter, {index})", "buffer_donor")
    for number, _ in _DONOR.findall(text):
        found.parameters.setdefault(int(number), {})["jax.buffer_donor"] = True
