"""The Shardy dialect's encoding of attributes, in artifacts of sharded programs; they become the text that Shardy writes.

Source: Shardy, `bytecode.td` (codes) and `printers.cc` (text).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from compiler.frontend.bytecode.tables import Decoder, EntryReader
from compiler.frontend.mlir.tree import Raw, Symbol

_REDUCTIONS = ("sum", "max", "min")


class _Part(str):
    """Text that stands inside of another attribute's."""

    __slots__ = ()


def _listed(items: Iterable[Any], brackets: str = "{}") -> str:
    return f"{brackets[0]}{', '.join(map(str, items))}{brackets[1]}"


def _manual_axes(reader: EntryReader) -> Raw:
    axes = (f'"{name}"' for name in reader.attributes())
    return Raw(f"#sdy<manual_axes{_listed(axes)}>")


def _mesh_axis(reader: EntryReader) -> _Part:
    name = reader.text()
    return _Part(f'"{name}"={reader.signed()}')


def _mesh(reader: EntryReader) -> Raw:
    axes, devices = reader.attributes(), reader.signed_list()
    ids = f", device_ids={_listed(devices, '[]')}" if devices else ""
    return Raw(f"#sdy.mesh<{_listed(axes, '[]')}{ids}>")


def _sub_axis(reader: EntryReader) -> _Part:
    before = reader.signed()
    return _Part(f":({before}){reader.signed()}")


def _axis(reader: EntryReader) -> _Part:
    name, part = reader.text(), reader.optional_attribute()
    return _Part(f'"{name}"{part or ""}')


def _dimension(reader: EntryReader) -> _Part:
    axes, is_closed = list(reader.attributes()), bool(reader.byte())
    priority, has_priority = reader.flagged()
    items = axes if is_closed else [*axes, "?"]
    return _Part(f"{_listed(items)}{f'p{priority}' if has_priority else ''}")


def _sharding(reader: EntryReader, has_unreduced: bool = False, has_reduction: bool = False) -> Raw:
    mesh = reader.attribute()
    name = f"@{mesh}" if isinstance(mesh, Symbol) else str(mesh).removeprefix("#sdy.")
    parts = [name, _listed(reader.attributes(), "[]")]
    replicated = reader.attributes()
    if replicated:
        parts.append(f"replicated={_listed(replicated)}")
    unreduced = reader.attributes() if has_unreduced else ()
    if unreduced:
        kind = reader.signed() if has_reduction else 0
        if not 0 <= kind < len(_REDUCTIONS):
            reader.fail(f"there is no reduction {kind}")
        reduction = f"{_REDUCTIONS[kind]}" if has_reduction else ""
        parts.append(f"unreduced={reduction}{_listed(unreduced)}")
    return Raw(f"#sdy.sharding<{', '.join(parts)}>")


def _per_value(reader: EntryReader) -> Raw:
    bare = (str(item).removeprefix("#sdy.sharding") for item in reader.attributes())
    return Raw(f"#sdy.sharding_per_value<{_listed(bare, '[]')}>")


_ATTRIBUTES: Mapping[int, Decoder] = MappingProxyType(
    {
        0: _manual_axes,
        1: _mesh_axis,
        2: _mesh,
        3: _sub_axis,
        4: _axis,
        5: _dimension,
        6: _sharding,
        7: _per_value,
        15: lambda reader: _sharding(reader, has_unreduced=True),
        16: _per_value,
        17: lambda reader: _sharding(reader, has_unreduced=True, has_reduction=True),
    }
)


def read_attribute(reader: EntryReader) -> Any:
    """One attribute, as text."""
    at = reader.at
    code = reader.varint()
    if code not in _ATTRIBUTES:
        reader.fail(f"the Shardy attribute with the code {code} is not supported", at)
    return _ATTRIBUTES[code](reader)


def read_type(reader: EntryReader) -> Any:
    """Shardy has no types of its own."""
    reader.fail("Shardy has no types")
