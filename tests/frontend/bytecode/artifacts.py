"""Small portable artifacts of several versions of StableHLO, each with the text it was made from."""

from __future__ import annotations

import struct
from pathlib import Path

DATA = Path(__file__).parent / "data"
ARTIFACTS = sorted(DATA.glob("*.mlirbc"))


def text_of(artifact: Path) -> str:
    """The text that an artifact was made from."""
    return str(DATA / f"{artifact.name.split('.')[0]}.mlir")


def exported(module: bytes) -> bytes:
    """A flatbuffer of the form that `jax.export` writes, with the module in the fourteenth field of the root table."""
    fields = 14
    vtable_size, table_size = 4 + 2 * fields, 12
    vtable, table = 8, 8 + vtable_size
    entries = [0] * (fields - 1) + [4]
    parts = struct.pack("<II", table, 0)
    parts += struct.pack(f"<HH{fields}H", vtable_size, table_size, *entries)
    parts += struct.pack("<iII", table - vtable, 8, 0)
    return parts + struct.pack("<I", len(module)) + module
