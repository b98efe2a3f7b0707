"""Kernels of `rng_bit_generator`: vectors of counters to vectors of words, stored where XLA puts them, bit for bit.

Blocks are numbered by their counters, and tasks are ranges of blocks; the first task also writes the new state.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from compiler.analysis.values import leaves
from compiler.backends.cpu.emit.counter_random import Words, key_halves, philox, threefry
from compiler.backends.cpu.emit.skeleton import KernelWriter
from compiler.backends.cpu.kernel_code import KernelCode
from compiler.backends.cpu.lowered import Operand, Result, Use
from compiler.backends.cpu.target import Target
from compiler.backends.cpu.text_builder import TextBuilder
from compiler.ir.program import Computation, Instruction
from compiler.ir.types import ElementType, TensorType

if TYPE_CHECKING:
    from compiler.backends.cpu.lowering import Lowering

_TASK_NS = 8_000.0
_TASKS_PER_THREAD = 4
_BLOCK_NS = 1.0


def generator_use(low: Lowering, computation: Computation, generator: Instruction) -> Use | None:
    """The kernel of a `rng_bit_generator`; None for states and outputs in unusual forms."""
    state = computation[generator.operands[0]].tensor
    _, output = (kind for _, kind in leaves(generator.type))
    e = output.element
    words = state.bytes // 8
    is_threefry = generator.attributes["rng_algorithm"] == "THREE_FRY"
    if not isinstance(e, ElementType) or state.bytes % 8 or words not in ((2,) if is_threefry else (2, 3)):
        return None
    if output.layout is not None or (e.is_float and e.bits < 8):
        return None
    stream = _threefry_stream(output, e) if is_threefry else _philox_stream(output, e)
    code = _Generator(stream, words, state.element.storage_bytes, low.target, low.threads).code()
    return Use(code, (Operand(0), Result(0), Result(1)), "random")


@dataclass(frozen=True, slots=True)
class Stream:
    """Which word of which block goes where.

    Attributes:
        element: the output's element type.
        is_threefry: else Philox.
        blocks: how many blocks there are.
        per_block: words of a block.
        stored_bits: bits that are stored of each word.
        total: how many words are stored.
        size: words that the block's words alternate along: word `p` of block `(o, h, n)` goes to `(o, per_block h + p, n)`.
        inner: words of what lies inside that.
    """

    element: ElementType
    is_threefry: bool
    blocks: int
    per_block: int
    stored_bits: int
    total: int
    size: int
    inner: int = 1

    @property
    def is_in_order(self) -> bool:
        """Whether block after block lies in memory as it is made (the last one perhaps cut off)."""
        return self.inner == 1 and (self.size % self.per_block == 0 or self.size == self.total)

    @property
    def groups(self) -> int:
        """Blocks along the dimension that words alternate along."""
        return -(-self.size // self.per_block)


def _stored_bits(e: ElementType) -> int:
    return min(8 * e.storage_bytes, 32)


def _philox_stream(output: TensorType, e: ElementType) -> Stream:
    words = output.size * (2 if e.bits == 64 else 1)
    return Stream(e, False, -(-words // 4), 4, _stored_bits(e), words, words)


def _threefry_stream(output: TensorType, e: ElementType) -> Stream:
    """Words of 64-bit values are together; others are neighbours along the first even dimension, or the largest one."""
    shape = output.shape
    if e.bits == 64:
        return Stream(e, True, output.size, 2, 32, 2 * output.size, 2 * output.size)
    if not shape:
        return Stream(e, True, 1, 2, _stored_bits(e), 1, 1)
    even = [d for d, size in enumerate(shape) if size % 2 == 0]
    split = even[0] if even else shape.index(max(shape))
    size, inner = shape[split], prod(shape[split + 1 :])
    blocks = prod(shape[:split]) * -(-size // 2) * inner
    return Stream(e, True, blocks, 2, _stored_bits(e), output.size, size, inner)


@dataclass
class _Generator:
    """Writes one kernel. `state_words` are 64-bit; `state_align` is what the state's memory is aligned to."""

    stream: Stream
    state_words: int
    state_align: int
    target: Target
    threads: int

    def code(self) -> KernelCode:
        stream = self.stream
        lanes = self.target.lanes(32)
        wanted = 1
        if self.threads > 1:
            wanted = max(1, int(min(self.threads * _TASKS_PER_THREAD, stream.blocks * _BLOCK_NS / _TASK_NS)))
        step = max(1, -(-stream.blocks // (wanted * lanes))) * lanes
        tasks = max(1, -(-stream.blocks // step))
        writer = KernelWriter(1)
        b = writer.b
        state, new, out = (writer.pointer(number) for number in range(3))
        words = [
            b.load("i64", b.gep(state, n, "i64"), self.state_align, "state") for n in range(self.state_words)
        ]
        with b.when(b.compare("eq", "%begin", 0)):
            self._new_state(b, words, new)
        key = key_halves(b, words[0])
        with b.loop("%begin", "%end", hint="task") as task:
            first = b.mul(task, step)
            last = b.minimum(b.add(first, step), stream.blocks)
            full = b.add(first, b.mul(b.div(b.sub(last, first), lanes), lanes))
            if stream.is_in_order and stream.total % stream.per_block:
                # The last block is not stored whole.
                cut = b.mul(b.div(b.sub(b.minimum(last, stream.blocks - 1), first), lanes), lanes)
                full = b.add(first, cut)
            with b.loop(first, full, lanes, "block") as block:
                self._store_all(b, self._blocks(b, key, words, block, lanes), block, out, lanes)
            with b.loop(full, last, lanes, "rest") as block:
                made = self._blocks(b, key, words, block, lanes)
                self._store_each(b, made, block, b.minimum(b.sub(last, block), lanes), out, lanes)
        return writer.finish("random", tasks)

    def _new_state(self, b: TextBuilder, words: list[str], new: str) -> None:
        """The counter after the blocks that were used."""
        b.store("i64", words[0], new, self.state_align)
        carry: str | int = self.stream.blocks
        for number, word in enumerate(words[1:], 1):
            total = b.op(f"add i64 {word}, {carry}")
            b.store("i64", total, b.gep(new, number, "i64"), self.state_align)
            carry = b.op(f"zext i1 {b.compare('ult', total, word)} to i64")

    def _blocks(
        self, b: TextBuilder, key: tuple[str, str], words: list[str], block: str, lanes: int
    ) -> list[str]:
        w = Words(b, lanes)
        wide = w.wide
        numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
        start = b.splat("i64", b.op(f"add i64 {block}, {words[1]}"), lanes)
        counter = b.op(f"add {wide} {start}, <{numbers}>", "counter")
        if self.stream.is_threefry:
            return threefry(w, key, counter)
        # A state of two words has no upper half for the counter: XLA takes the key for it.
        high = b.splat("i64", words[2] if self.state_words > 2 else words[0], lanes)
        low_start = b.splat("i64", words[1], lanes)
        wrapped = b.op(f"icmp ult {wide} {counter}, {low_start}")
        carry = b.op(f"zext <{lanes} x i1> {wrapped} to {wide}")
        return philox(w, key, counter, b.op(f"add {wide} {high}, {carry}"))

    def _stored(self, b: TextBuilder, words: str, lanes: int) -> str:
        """Words as they lie in memory."""
        bits, e = self.stream.stored_bits, self.stream.element
        if bits < 32:
            words = b.op(f"trunc <{lanes} x i32> {words} to <{lanes} x i{bits}>")
        if e.bits < 8:
            words = b.op(f"and <{lanes} x i8> {words}, splat (i8 {(1 << e.bits) - 1})")
        return words

    def _store_all(self, b: TextBuilder, made: list[str], block: str, out: str, lanes: int) -> None:
        """Stores full vectors of blocks: words in turn, or each word along a row of its own."""
        stream, kind = self.stream, f"i{self.stream.stored_bits}"
        align = stream.stored_bits // 8
        if stream.is_in_order:
            joined, count = _interleaved(b, made, lanes)
            address = b.gep(out, b.mul(block, stream.per_block), kind)
            b.store(f"<{count} x {kind}>", self._stored(b, joined, count), address, align)
        elif stream.inner % lanes == 0:
            for number, words in enumerate(made):
                place, exists = self._place(b, block, number)
                value = self._stored(b, words, lanes)
                with b.when(exists):
                    b.store(f"<{lanes} x {kind}>", value, b.gep(out, place, kind), align)
        else:
            self._store_each(b, made, block, str(lanes), out, lanes)

    def _store_each(
        self, b: TextBuilder, made: list[str], block: str, count: str, out: str, lanes: int
    ) -> None:
        """Stores the words of the first `count` of a vector of blocks one by one."""
        bits = self.stream.stored_bits
        kind = f"i{bits}"
        slots = []
        for words in made:
            slot = b.alloca(f"<{lanes} x {kind}>")
            b.store(f"<{lanes} x {kind}>", self._stored(b, words, lanes), slot)
            slots.append(slot)
        with b.loop(0, count, hint="lane") as lane:
            for number, slot in enumerate(slots):
                place, exists = self._place(b, b.add(block, lane), number)
                with b.when(exists):
                    b.store(kind, b.load(kind, b.gep(slot, lane, kind)), b.gep(out, place, kind))

    def _place(self, b: TextBuilder, block: str, number: int) -> tuple[str, str]:
        """Where word `number` of a block goes, and whether it is stored."""
        stream = self.stream
        outside = b.div(block, stream.inner)
        n = b.rem(block, stream.inner)
        group = b.rem(outside, stream.groups)
        o = b.div(outside, stream.groups)
        along = b.add(b.mul(group, stream.per_block), number)
        place = b.add(b.mul(b.add(b.mul(o, stream.size), along), stream.inner), n)
        return place, b.compare("slt", along, stream.size)


def _interleaved(b: TextBuilder, made: list[str], lanes: int) -> tuple[str, int]:
    """The words of each block side by side, block after block."""
    if len(made) == 4:
        evens, count = _zipped(b, made[0], made[2], lanes)
        odds, _ = _zipped(b, made[1], made[3], lanes)
        return _zipped(b, evens, odds, count)
    return _zipped(b, made[0], made[1], lanes)


def _zipped(b: TextBuilder, left: str, right: str, lanes: int) -> tuple[str, int]:
    kind = f"<{lanes} x i32>"
    numbers = ", ".join(f"i32 {lane}, i32 {lane + lanes}" for lane in range(lanes))
    joined = b.op(f"shufflevector {kind} {left}, {kind} {right}, <{2 * lanes} x i32> <{numbers}>")
    return joined, 2 * lanes


__all__ = ["generator_use"]
