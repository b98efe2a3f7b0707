"""The container that `jax.export` serialises: a flatbuffer whose field `mlir_module_serialized` is a portable artifact.

Only that one field of the root table is read. Source: FlatBuffers' "Internals" (tables, vtables, vectors) and JAX's schema
`serialization.fbs`, where the module is the fourteenth field of `Exported`.
"""

from __future__ import annotations

import struct
from typing import NoReturn

from compiler.frontend.bytecode.stream import MAGIC, byte_error

_MODULE_FIELD = 13
_VTABLE_HEADER = 4
_ENTRY = _VTABLE_HEADER + 2 * _MODULE_FIELD
_FEWEST_FIELDS = _MODULE_FIELD + 1


def looks_exported(head: bytes) -> bool:
    """True when the first bytes of a file may be such a container's."""
    try:
        place = _module_vector(head)
    except (ValueError, struct.error):
        return False
    return place is not None and not head.startswith(MAGIC)


def find_artifact(data: bytes, filename: str) -> tuple[int, int]:
    """Where the artifact starts and ends.

    Raises:
        SourceError: when the container is damaged or holds none.
    """

    def fail(at: int, message: str) -> NoReturn:
        raise byte_error(filename, at, message)

    try:
        at = _module_vector(data)
        if at is None:
            fail(0, "this is not a serialised jax.export.Exported")
        (length,) = struct.unpack_from("<I", data, at)
    except (ValueError, struct.error) as error:
        fail(0, f"the container is damaged: {error}")
    start = at + 4
    if length > len(data) - start:
        fail(at, f"a module of {length} bytes is announced, but only {len(data) - start} are left")
    if not data.startswith(MAGIC, start):
        fail(start, "the container's module is not MLIR bytecode")
    return start, start + length


def _module_vector(data: bytes) -> int | None:
    """Where the module's vector starts, or None when the bytes are no such container."""
    (root,) = struct.unpack_from("<I", data, 0)
    if root < 4 or root % 4:
        return None
    (distance,) = struct.unpack_from("<i", data, root)
    vtable = root - distance
    if vtable < 4 or vtable % 2:
        return None
    size, table_size = struct.unpack_from("<HH", data, vtable)
    if size < _VTABLE_HEADER + 2 * _FEWEST_FIELDS or size % 2 or table_size < 4:
        return None
    (field,) = struct.unpack_from("<H", data, vtable + _ENTRY)
    if field < 4 or field + 4 > table_size:
        return None
    (offset,) = struct.unpack_from("<I", data, root + field)
    return root + field + int(offset) if offset >= 4 else None
