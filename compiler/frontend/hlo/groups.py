"""Groups of devices: `{{0,1},{2,3}}`, the tiles of an iota `[2,4]<=[4,2]T(1,0)`, or the axes of a mesh `mesh['x'=2,'y'=4] {'x'}`."""

from __future__ import annotations

import math
import re

import numpy as np

Groups = tuple[tuple[int, ...], ...]

_IOTA = re.compile(r"\[([\d,\s]+)\]\s*<=\s*\[([\d,\s]+)\](?:\s*T\s*\(([\d,\s]+)\))?\Z")
_MESH = re.compile(r"mesh\[([^\]]*)\]\s*(?:,\s*device_ids=[^{]*)?\{([^{}]*)\}\Z")
_AXIS = re.compile(r"'([^']*)'\s*=\s*(\d+)\s*(?:,|\Z)")
_ROW = re.compile(r"\{([\d,\s\-]*)\}")
MAX_DEVICES = 1 << 20


def replica_groups(text: str) -> Groups:
    """The groups that a text stands for.

    Raises:
        ValueError: with a message for the user.
    """
    match = _IOTA.match(text)
    if match is not None:
        return _iota(_numbers(match[1]), _numbers(match[2]), _numbers(match[3]) if match[3] else None)
    match = _MESH.match(text)
    if match is not None:
        return _mesh(match[1], match[2])
    inner = text[1:-1].strip() if text[:1] == "{" and text[-1:] == "}" else None
    if inner is None or _ROW.sub("", inner).replace(",", "").strip():
        raise ValueError(f"'{text[:60]}' is not a list of groups")
    return tuple(_numbers(row) for row in _ROW.findall(inner))


def _numbers(text: str) -> tuple[int, ...]:
    found = tuple(int(word) for word in text.split(",") if word.strip())
    if any(abs(number) > MAX_DEVICES for number in found):
        raise ValueError("a number of a device is too large")
    return found


def _iota(shape: tuple[int, ...], dims: tuple[int, ...], order: tuple[int, ...] | None) -> Groups:
    count = math.prod(dims)
    if count != math.prod(shape) or count > MAX_DEVICES or len(shape) != 2:
        raise ValueError(f"{list(shape)} groups of {list(dims)} devices do not fit")
    if order is not None and sorted(order) != list(range(len(dims))):
        raise ValueError(f"{list(order)} must order {len(dims)} dimensions")
    devices = np.arange(count).reshape(dims)
    rows = (devices if order is None else devices.transpose(order)).reshape(shape)
    return tuple(tuple(row) for row in rows.tolist())


def _mesh(sizes: str, axes: str) -> Groups:
    """One group for each place along the other axes, its members along the named ones."""
    mesh = {name: int(size) for name, size in _AXIS.findall(sizes)}
    named = [word.strip().strip("'") for word in axes.split(",") if word.strip()]
    if any(name not in mesh for name in named) or len(set(named)) != len(named):
        raise ValueError(f"{{{axes[:60]}}} must name axes of the mesh")
    if math.prod(mesh.values()) > MAX_DEVICES:
        raise ValueError("the mesh is too large")
    names = list(mesh)
    devices = np.arange(math.prod(mesh.values())).reshape(tuple(mesh.values()))
    order = [names.index(name) for name in names if name not in named] + [names.index(name) for name in named]
    size = math.prod(mesh[name] for name in named)
    rows = devices.transpose(order).reshape(-1, size)
    return tuple(tuple(row) for row in rows.tolist())
