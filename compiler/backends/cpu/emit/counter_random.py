"""Threefry-2x32 and Philox-4x32 on vectors of counters (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).

Each function is given the key and a vector of counters, and returns the words of their blocks, a vector for each word.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.backends.cpu.text_builder import TextBuilder

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_GROUPS = 5
_PHILOX_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


@dataclass(frozen=True, slots=True)
class Words:
    """Arithmetic on vectors of 32-bit words."""

    b: TextBuilder
    lanes: int

    @property
    def kind(self) -> str:
        """LLVM's type of a vector of words."""
        return f"<{self.lanes} x i32>"

    @property
    def wide(self) -> str:
        """LLVM's type of a vector of 64-bit values."""
        return f"<{self.lanes} x i64>"

    def op(self, name: str, left: str, right: str) -> str:
        """One instruction on two vectors."""
        return self.b.op(f"{name} {self.kind} {left}, {right}")

    def number(self, value: int) -> str:
        """A constant in all lanes."""
        return f"splat (i32 {value & 0xFFFFFFFF})"

    def spread(self, word: str) -> str:
        """One word in all lanes."""
        return self.b.splat("i32", word, self.lanes)

    def rotated(self, value: str, amount: int) -> str:
        """Bits moved up, those that leave coming in at the low end."""
        name = f"llvm.fshl.v{self.lanes}i32"
        kind = self.kind
        return self.b.intrinsic(
            kind, name, (kind, value), (kind, value), (kind, self.number(amount)), hint="turned"
        )

    def halves(self, values: str) -> tuple[str, str]:
        """Low and high words of 64-bit values."""
        low = self.b.op(f"trunc {self.wide} {values} to {self.kind}")
        shifted = self.b.op(f"lshr {self.wide} {values}, splat (i64 32)")
        return low, self.b.op(f"trunc {self.wide} {shifted} to {self.kind}")

    def product(self, value: str, factor: int) -> tuple[str, str]:
        """Low and high words of a product."""
        wide = self.b.op(f"zext {self.kind} {value} to {self.wide}")
        return self.halves(self.b.op(f"mul {self.wide} {wide}, splat (i64 {factor})"))


def key_halves(b: TextBuilder, key: str) -> tuple[str, str]:
    """Low and high words of the key."""
    low = b.op(f"trunc i64 {key} to i32")
    return low, b.op(f"trunc i64 {b.op(f'lshr i64 {key}, 32')} to i32")


def threefry(w: Words, key: tuple[str, str], counter: str) -> list[str]:
    """Twenty rounds of Threefry-2x32 on 64-bit counters: two words each."""
    b = w.b
    mixed = b.op(f"xor i32 {b.op(f'xor i32 {key[0]}, {key[1]}')}, {_PARITY}")
    keys = [w.spread(word) for word in (*key, mixed)]
    low, high = w.halves(counter)
    x, y = w.op("add", low, keys[0]), w.op("add", high, keys[1])
    for group in range(_GROUPS):
        for rotation in _ROTATIONS[group % 2]:
            x = w.op("add", x, y)
            y = w.op("xor", w.rotated(y, rotation), x)
        x = w.op("add", x, keys[(group + 1) % 3])
        y = w.op("add", w.op("add", y, keys[(group + 2) % 3]), w.number(group + 1))
    return [x, y]


def philox(w: Words, key: tuple[str, str], low: str, high: str) -> list[str]:
    """Ten rounds of Philox-4x32 on 128-bit counters, given by their 64-bit halves: four words each."""
    first, second = key
    x = [*w.halves(low), *w.halves(high)]
    for turn in range(_PHILOX_ROUNDS):
        if turn:
            first = w.b.op(f"add i32 {first}, {_WEYL[0]}")
            second = w.b.op(f"add i32 {second}, {_WEYL[1]}")
        low0, high0 = w.product(x[0], _MULTIPLIERS[0])
        low1, high1 = w.product(x[2], _MULTIPLIERS[1])
        x = [
            w.op("xor", w.op("xor", high1, x[1]), w.spread(first)),
            low1,
            w.op("xor", w.op("xor", high0, x[3]), w.spread(second)),
            low0,
        ]
    return x


__all__ = ["Words", "key_halves", "philox", "threefry"]
