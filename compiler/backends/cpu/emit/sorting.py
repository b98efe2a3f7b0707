"""Sorting algorithms over an array of small values in scratch memory: merging, by digits, and the first few.

Values are integers: keys with the element's place in their low bits, or places alone that a comparator is asked about.
All are stable, and keep to their arrays whatever the comparator answers.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler.backends.cpu.emit.rows import Slot, loop_while
from compiler.backends.cpu.kernel_code import SharedFunction
from compiler.backends.cpu.text_builder import TextBuilder

Before = Callable[[TextBuilder, str, str], str]
"""Emits whether the first value must come before the second one (an ``i1``)."""

PLACE_BITS = 32
"""Low bits of a key that hold the element's place."""
_RUN = 12
_DIGIT_BITS = 8
_COPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


def _finished(b: TextBuilder) -> SharedFunction:
    return SharedFunction(b.name, b.text(), tuple(sorted(b.declarations)))


def _copy(b: TextBuilder, target: str, source: str, count: str, size: int) -> None:
    b.declare(_COPY)
    b.emit(
        f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {b.mul(count, size)}, i1 false)"
    )


def merge_sort(name: str, kind: str, length: int, before: Before) -> SharedFunction:
    """``ptr @name(ptr %from, ptr %to, ptr %context)`` sorts the values at `%from`; the address of the result is returned.

    Runs are sorted by insertion, then merged two at a time from one array to the other.
    """
    b = TextBuilder(name, (("ptr", "from"), ("ptr", "to"), ("ptr", "context")), "ptr", linkage="internal")
    size = int(kind[1:]) // 8
    with b.loop(0, length, _RUN, "run") as start:
        _insertion(b, kind, start, b.minimum(b.add(start, _RUN), length), before)
    passes = 0
    while _RUN << passes < length:
        passes += 1
    start_values = (("ptr", "%from"), ("ptr", "%to"), ("i64", str(_RUN)))
    with b.carried_loop(0, passes, start_values, hint="pass") as turn:
        source, target, width = turn.values
        with b.loop(0, length, b.mul(width, 2), "pair") as left:
            middle = b.minimum(b.add(left, width), length)
            end = b.minimum(b.add(middle, width), length)
            _merge(b, kind, size, source, target, (left, middle, end), before)
        turn.next = [target, source, b.mul(width, 2)]
    b.ret(f"ptr {turn.results[0]}")
    return _finished(b)


def _insertion(b: TextBuilder, kind: str, start: str, end: str, before: Before) -> None:
    """Sorts a short range of `%from` in place."""
    with b.loop(b.add(start, 1), end, hint="next") as number:
        value = b.load(kind, b.gep("%from", number, kind))
        insert(b, kind, "%from", start, number, value, before)


def insert(b: TextBuilder, kind: str, array: str, start: str, end: str, value: str, before: Before) -> None:
    """Moves values of ``array[start:end]`` that `value` must come before one place up, and puts it there."""
    place = Slot.new(b, "i64", end)
    check, move, done = b.label("check"), b.label("move"), b.label("found")
    head = b.label("insert")
    b.branch(head)
    b.place(head)
    here = place.get()
    b.branch_if(b.compare("sgt", here, start), check, done)
    b.place(check)
    below = b.sub(here, 1)
    other = b.load(kind, b.gep(array, below, kind))
    b.branch_if(before(b, value, other), move, done)
    b.place(move)
    b.store(kind, other, b.gep(array, here, kind))
    place.set(below)
    b.branch(head)
    b.place(done)
    b.store(kind, value, b.gep(array, place.get(), kind))


def _merge(
    b: TextBuilder,
    kind: str,
    size: int,
    source: str,
    target: str,
    bounds: tuple[str, str, str],
    before: Before,
) -> None:
    """Merges two neighbouring runs; where the second follows the first already, both are copied."""
    start, middle, end = bounds
    mixed, plain, done = b.label("mixed"), b.label("plain"), b.label("merged")
    asked = b.label("asked")
    b.branch_if(b.compare("slt", middle, end), asked, plain)
    b.place(asked)
    first = b.load(kind, b.gep(source, middle, kind))
    last = b.load(kind, b.gep(source, b.sub(middle, 1), kind))
    b.branch_if(before(b, first, last), mixed, plain)
    b.place(plain)
    _copy(b, b.gep(target, start, kind), b.gep(source, start, kind), b.sub(end, start), size)
    b.branch(done)
    b.place(mixed)
    left, right, out = Slot.new(b, "i64", start), Slot.new(b, "i64", middle), Slot.new(b, "i64", start)

    def both_left() -> str:
        has_left = b.compare("slt", left.get(), middle)
        return b.op(f"and i1 {has_left}, {b.compare('slt', right.get(), end)}")

    def take_one() -> None:
        i, j, k = left.get(), right.get(), out.get()
        x, y = b.load(kind, b.gep(source, i, kind)), b.load(kind, b.gep(source, j, kind))
        is_right = before(b, y, x)
        b.store(kind, b.select(is_right, y, x, kind), b.gep(target, k, kind))
        step = b.op(f"zext i1 {is_right} to i64")
        right.set(b.add(j, step))
        left.set(b.add(i, b.sub(1, step)))
        out.set(b.add(k, 1))

    loop_while(b, both_left, take_one)
    rest = b.sub(middle, left.get())
    _copy(b, b.gep(target, out.get(), kind), b.gep(source, left.get(), kind), rest, size)
    place = b.add(out.get(), rest)
    _copy(b, b.gep(target, place, kind), b.gep(source, right.get(), kind), b.sub(end, right.get()), size)
    b.branch(done)
    b.place(done)


def digit_sort(name: str, kind: str, length: int, key_bits: int) -> SharedFunction:
    """As `merge_sort`, for keys above `PLACE_BITS` low bits: counts and distributes by one digit after another.

    Values come in the order of their places, which the low bits hold; a digit that all values share is passed over.
    """
    b = TextBuilder(name, (("ptr", "from"), ("ptr", "to"), ("ptr", "context")), "ptr", linkage="internal")
    buckets = 1 << _DIGIT_BITS
    counts = b.alloca("i64", buckets, 64)
    source, target = Slot.new(b, "ptr", "%from"), Slot.new(b, "ptr", "%to")
    b.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    with b.loop(PLACE_BITS, PLACE_BITS + key_bits, _DIGIT_BITS, "shift") as shift:
        amount = shift if kind == "i64" else b.op(f"zext i64 {shift} to {kind}")
        here, there = source.get(), target.get()

        def bucket(value: str, amount: str = amount) -> str:
            digit = b.op(f"lshr {kind} {value}, {amount}")
            low = digit if kind == "i64" else b.op(f"trunc {kind} {digit} to i64")
            return b.gep(counts, b.op(f"and i64 {low}, {buckets - 1}"), "i64")

        b.emit(f"call void @llvm.memset.p0.i64(ptr {counts}, i8 0, i64 {8 * buckets}, i1 false)")
        with b.loop(0, length, hint="count") as number:
            at = bucket(b.load(kind, b.gep(here, number, kind)))
            b.store("i64", b.add(b.load("i64", at), 1), at)
        shared = b.load("i64", bucket(b.load(kind, here)))
        with b.when(b.compare("ne", shared, length)):
            with b.carried_loop(0, buckets, [("i64", "0")], hint="bucket") as total:
                at = b.gep(counts, total.index, "i64")
                count = b.load("i64", at)
                b.store("i64", total.values[0], at)
                total.next = [b.add(total.values[0], count)]
            with b.loop(0, length, hint="move") as number:
                value = b.load(kind, b.gep(here, number, kind))
                at = bucket(value)
                place = b.load("i64", at)
                b.store("i64", b.add(place, 1), at)
                b.store(kind, value, b.gep(there, place, kind))
            source.set(there)
            target.set(here)
    b.ret(f"ptr {source.get()}")
    return _finished(b)


__all__ = ["PLACE_BITS", "Before", "digit_sort", "insert", "merge_sort"]
