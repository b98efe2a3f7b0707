"""Locations as MLIR writes them inside `loc(…)`."""

from __future__ import annotations

from compiler.frontend.mlir.attribute_text import quote
from compiler.ir.location import CallSite, FileLocation, Location, NameLocation


def location_text(location: Location) -> str:
    """`"file":1:2`, `"name"(…)`, `callsite(… at …)`, `fused[…]`."""
    if isinstance(location, FileLocation):
        return f"{quote(location.file)}:{location.line}:{location.column}"
    if isinstance(location, NameLocation):
        child = f"({location_text(location.child)})" if location.child is not None else ""
        return f"{quote(location.name)}{child}"
    if isinstance(location, CallSite):
        return f"callsite({location_text(location.callee)} at {location_text(location.caller)})"
    tag = f"<{location.metadata}>" if location.metadata else ""
    return f"fused{tag}[{', '.join(map(location_text, location.children))}]"
