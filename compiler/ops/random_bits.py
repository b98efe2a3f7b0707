"""Counter-based generators as XLA runs them: Threefry-2x32 and Philox-4x32, state in, bits and new state out.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). Which counter makes which element, and where the two or
four words of a block go, is XLA's choice, followed here bit by bit.
"""

from __future__ import annotations

import math

import numpy as np

from compiler.ops.record import Array

_U32 = np.uint32
_U64 = np.uint64
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_PHILOX_ROUNDS = 10
_PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_PHILOX_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = _U64(0xFFFFFFFF)


def _halves(values: Array) -> tuple[Array, Array]:
    """Low and high words of 64-bit values."""
    wide = np.asarray(values, _U64)
    return (wide & _LOW).astype(_U32), (wide >> _U64(32)).astype(_U32)


def _joined(low: Array, high: Array) -> Array:
    return low.astype(_U64) | (high.astype(_U64) << _U64(32))


def threefry_2x32(key: tuple[Array, Array], counter: tuple[Array, Array]) -> tuple[Array, Array]:
    """Twenty rounds on pairs of 32-bit words."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ _U32(_PARITY))
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = x + y
            y = ((y << _U32(rotation)) | (y >> _U32(32 - rotation))) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + _U32(group + 1)
    return x, y


def philox_4x32(key: tuple[Array, Array], counter: list[Array]) -> list[Array]:
    """Ten rounds on blocks of four 32-bit words."""
    first, second = key
    a, b, c, d = counter
    for turn in range(_PHILOX_ROUNDS):
        low0, high0 = _halves(a.astype(_U64) * _U64(_PHILOX_MULTIPLIERS[0]))
        low1, high1 = _halves(c.astype(_U64) * _U64(_PHILOX_MULTIPLIERS[1]))
        a, b, c, d = high1 ^ b ^ first, low1, high0 ^ d ^ second, low0
        if turn + 1 < _PHILOX_ROUNDS:
            first, second = first + _U32(_PHILOX_WEYL[0]), second + _U32(_PHILOX_WEYL[1])
    return [a, b, c, d]


def threefry_bits(state: Array, shape: tuple[int, ...], bits: int) -> tuple[Array, Array]:
    """New state and unsigned bits. `state` is two 64-bit words: the key and the counter."""
    key = _halves(state[0])
    if bits == 64:
        counter, used = _counter(state[1], shape)
        low, high = threefry_2x32(key, _halves(counter))
        values = _joined(low, high)
    else:
        values, used = _threefry_32(key, state[1], shape)
    with np.errstate(over="ignore"):
        new = np.array([state[0], state[1] + _U64(used)], _U64)
    return new, values.astype(f"u{bits // 8}")


def _counter(start: np.generic, shape: tuple[int, ...]) -> tuple[Array, int]:
    """The counter of each element: its row-major number after the start."""
    count = math.prod(shape)
    with np.errstate(over="ignore"):
        return (np.arange(count, dtype=_U64) + _U64(start)).reshape(shape), count


def _threefry_32(key: tuple[Array, Array], start: np.generic, shape: tuple[int, ...]) -> tuple[Array, int]:
    """Both words of a block are used: they are neighbours along the first even dimension, or the largest one."""
    if not shape:
        counter, used = _counter(start, (1,))
        return threefry_2x32(key, _halves(counter))[0].reshape(()), used
    even = [d for d, size in enumerate(shape) if size % 2 == 0]
    split = even[0] if even else int(np.argmax(shape))
    half = list(shape)
    half[split] = (shape[split] + 1) // 2
    counter, used = _counter(start, tuple(half))
    pair = np.stack(threefry_2x32(key, _halves(counter)), axis=split + 1)
    half[split] *= 2
    return pair.reshape(half)[tuple(slice(size) for size in shape)], used


def philox_bits(state: Array, shape: tuple[int, ...], bits: int) -> tuple[Array, Array]:
    """New state and unsigned bits. `state` is two or three 64-bit words: the key and a counter of 64 or 128 bits."""
    count = math.prod(shape)
    words = count * (2 if bits == 64 else 1)
    blocks = (words + 3) // 4
    counter = sum(int(word) << (64 * place) for place, word in enumerate(state[1:]))
    low = np.arange(blocks, dtype=_U64) + state[1]
    # A state of two words has no upper half for the counter: XLA takes the key for it.
    high_start = state[2] if len(state) > 2 else state[0]
    high = np.where(low < state[1], high_start + _U64(1), high_start)
    made = philox_4x32(_halves(state[0]), [*_halves(low), *_halves(high)])
    if bits == 64:
        values = np.stack([_joined(made[0], made[1]), _joined(made[2], made[3])], axis=-1).reshape(-1)
    else:
        values = np.stack(made, axis=-1).reshape(-1)
    after = counter + blocks
    new = [state[0]] + [_U64((after >> (64 * place)) & ((1 << 64) - 1)) for place in range(len(state) - 1)]
    return np.array(new, _U64), values[:count].reshape(shape).astype(f"u{bits // 8}")
