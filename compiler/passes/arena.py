"""Strategies that place buffers in the arena, given when each is live.

Offset assignment for known lifetimes is NP-hard (it is dynamic storage allocation); the two greedy orders below are the
usual ones (cf. Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020), and the smaller
result is taken.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from compiler.analysis.lifetimes import Buffer

ALIGNMENT = 64
"""Bytes; a cache line and the widest vector."""

Offsets = dict[int, int]
"""By the identity of the buffer."""


def aligned(size: int) -> int:
    """The size rounded up to the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def live_bytes(arena: Sequence[Buffer], steps: int) -> list[int]:
    """Bytes live at each step, alignment included."""
    change = [0] * (steps + 2)
    for buffer in arena:
        change[buffer.first] += aligned(buffer.size)
        change[min(buffer.last, steps) + 1] -= aligned(buffer.size)
    live, now = [], 0
    for delta in change[: steps + 1]:
        now += delta
        live.append(now)
    return live


def best_fit(arena: Sequence[Buffer]) -> Offsets:
    """Goes through time; a buffer takes the tightest hole that is free at its birth, or extends the arena."""
    offsets: Offsets = {}
    holes: list[tuple[int, int]] = []
    dying: list[tuple[int, int, int]] = []
    top = 0
    for buffer in sorted(arena, key=lambda b: (b.first, -b.size)):
        while dying and dying[0][0] < buffer.first:
            _, offset, size = heapq.heappop(dying)
            holes = _merged(holes, offset, size)
        size = aligned(buffer.size)
        fitting = [hole for hole in holes if hole[1] >= size]
        if fitting:
            offset, length = min(fitting, key=lambda hole: hole[1])
            holes.remove((offset, length))
            if length > size:
                holes.append((offset + size, length - size))
        else:
            offset, top, holes = _extend(holes, top, size)
        offsets[id(buffer)] = offset
        heapq.heappush(dying, (buffer.last, offset, size))
    return offsets


def _extend(holes: list[tuple[int, int]], top: int, size: int) -> tuple[int, int, list[tuple[int, int]]]:
    """Grows the arena, starting in the hole at its end if there is one."""
    for hole in holes:
        if hole[0] + hole[1] == top:
            return hole[0], hole[0] + size, [other for other in holes if other is not hole]
    return top, top + size, holes


def _merged(holes: list[tuple[int, int]], offset: int, size: int) -> list[tuple[int, int]]:
    start, end, kept = offset, offset + size, []
    for hole_offset, length in holes:
        if hole_offset + length == start:
            start = hole_offset
        elif hole_offset == end:
            end = hole_offset + length
        else:
            kept.append((hole_offset, length))
    kept.append((start, end - start))
    return kept


def by_size(arena: Sequence[Buffer]) -> Offsets:
    """Largest first; each at the lowest offset where no buffer placed before it is live at the same time."""
    offsets: Offsets = {}
    placed: list[tuple[int, int, int, int]] = []
    for buffer in sorted(arena, key=lambda b: (-b.size, b.first)):
        size = aligned(buffer.size)
        offset = 0
        for start, end, first, last in placed:
            if first > buffer.last or last < buffer.first:
                continue
            if start - offset >= size:
                break
            offset = max(offset, end)
        offsets[id(buffer)] = offset
        entry = (offset, offset + size, buffer.first, buffer.last)
        placed.insert(_position(placed, offset), entry)
    return offsets


def _position(placed: list[tuple[int, int, int, int]], offset: int) -> int:
    low, high = 0, len(placed)
    while low < high:
        middle = (low + high) // 2
        if placed[middle][0] <= offset:
            low = middle + 1
        else:
            high = middle
    return low


STRATEGIES: dict[str, Callable[[Sequence[Buffer]], Offsets]] = {"best-fit": best_fit, "by-size": by_size}
