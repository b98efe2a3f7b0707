"""Kernels of `sort` and `chlo.top_k`: each row on its own, its other dimensions cut into tasks.

A comparator that compares one input's elements by size becomes integer keys, which carry the elements' places; any other
one is asked about places. Either way the order is found first, and all inputs are then written in it. The sort is stable,
and nothing outside the row is touched whatever a comparator answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.analysis.values import leaves
from compiler.backends.cpu.emit.elemental import ElementalEmitter
from compiler.backends.cpu.emit.naming import PLACEHOLDER
from compiler.backends.cpu.emit.registers import Held, Registers, memory_kind, part_bytes
from compiler.backends.cpu.emit.rows import Rows, RowTasks, cut_rows, over_rows
from compiler.backends.cpu.emit.skeleton import KernelWriter
from compiler.backends.cpu.emit.sort_keys import KeyForm
from compiler.backends.cpu.emit.sorting import PLACE_BITS, Before, digit_sort, insert, merge_sort
from compiler.backends.cpu.kernel_code import KernelCode, SharedFunction
from compiler.backends.cpu.lowered import Buffer, Operand, Result, Use
from compiler.backends.cpu.text_builder import TextBuilder, llvm_type
from compiler.ir.program import Computation, Instruction
from compiler.ir.types import ElementType, TensorType
from compiler.kernel.elemental import External, Load, Node, walk
from compiler.kernel.expansion import CannotExpand, body_nodes, plain
from compiler.kernel.index_expression import physical_strides
from compiler.ops.sorting import Key, comparator_key

if TYPE_CHECKING:
    from compiler.backends.cpu.lowering import Lowering

_STEP_NS = 2.0
_MOST_PLACES = 1 << 31
_FEW = 64
"""So many of a row are kept in order while it is read once; more are sorted with all the others."""
_FEWEST_FOR_DIGITS = 512
_INLINE_NODES = 12


def sort_use(low: Lowering, computation: Computation, sort: Instruction) -> Use | None:
    """The kernel of a `sort`; None where the comparator has no scalar form."""
    operands = [computation[name].tensor for name in sort.operands]
    results = [kind for _, kind in leaves(sort.type)]
    if operands[0].rank == 0 or max(operands[0].shape) >= _MOST_PLACES:
        return None
    dimension = sort.attributes.get("dimension", -1) % operands[0].rank
    comparator = low.computations[sort.called[0]]
    try:
        kinds = [plain(kind) for kind in operands]
        shape = RowShape(operands, results, dimension)
        form = _key_form(comparator_key(comparator), kinds)
        if form is not None:
            code = _by_keys(shape, form, low.threads)
        else:
            code = _by_comparator(
                shape, body_nodes(comparator, low.computations, _doubled(kinds))[0], low.threads
            )
    except CannotExpand:
        return None
    buffers: tuple[Buffer, ...] = tuple(Operand(number) for number in range(len(operands)))
    buffers += tuple(Result(number) for number in range(len(results)))
    return Use(code, buffers, "sort")


def top_k_use(low: Lowering, computation: Computation, top_k: Instruction) -> Use | None:
    """The kernel of a `chlo.top_k`: totally ordered, the largest first, equal ones by place."""
    operand = computation[top_k.operands[0]].tensor
    results = [kind for _, kind in leaves(top_k.type)]
    if not isinstance(operand.element, ElementType) or operand.shape[-1] >= _MOST_PLACES:
        return None
    form = KeyForm(operand.element, Key(0, is_descending=True, is_total=True))
    shape = RowShape([operand], results, operand.rank - 1, takes=top_k.attributes["k"])
    return Use(_by_keys(shape, form, low.threads), (Operand(0), Result(0), Result(1)), "sort")


def _doubled(kinds: Sequence[ElementType]) -> list[ElementType]:
    return [kind for kind in kinds for _ in range(2)]


def _key_form(key: Key | None, kinds: Sequence[ElementType]) -> KeyForm | None:
    if key is None or kinds[key.input].is_complex:
        return None
    e = kinds[key.input]
    # Formats of a byte may have NaN or no zero of their own, which only their comparator knows.
    if key.zeros_equal and not (e.is_float and e.bits >= 16):
        return None
    return KeyForm(e, key)


@dataclass(frozen=True, slots=True)
class RowShape:
    """What is sorted: tensors of operands and results, and along which dimension.

    `takes` is how many of each row are written, with their places in the last result; None for all, without places.
    """

    operands: Sequence[TensorType]
    results: Sequence[TensorType]
    dimension: int
    takes: int | None = None

    @property
    def length(self) -> int:
        """Elements of a row."""
        return self.operands[0].shape[self.dimension]

    @property
    def written(self) -> int:
        """Elements of a row of the results."""
        return self.length if self.takes is None else self.takes

    @property
    def tensors(self) -> list[TensorType]:
        """Operands, then results."""
        return [*self.operands, *self.results]

    def steps(self) -> list[int]:
        """Elements from one of a row to the next, in each tensor."""
        return [physical_strides(kind.shape, kind.minor_to_major)[self.dimension] for kind in self.tensors]

    def tasks(self, threads: int, scratch_bytes: int) -> RowTasks:
        """How rows are shared out."""
        row_ns = _STEP_NS * self.length * max(self.length.bit_length(), 1)
        rows = Rows.of(self.operands[0], (self.dimension,))
        return cut_rows(rows, row_ns, threads, scratch_bytes)


def _raw(e: ElementType) -> tuple[str, int]:
    """An integer type for copying elements, and its alignment."""
    return f"i{8 * e.storage_bytes}", part_bytes(e)


def _by_keys(shape: RowShape, form: KeyForm, threads: int) -> KernelCode:
    few = shape.takes is not None and shape.takes <= _FEW
    size, kind, length = int(form.kind[1:]) // 8, form.kind, shape.length
    array_bytes = -(-(shape.written if few else length) * size // 64) * 64
    tasks = shape.tasks(threads, array_bytes if few else 2 * array_bytes)
    writer = KernelWriter(len(shape.operands))
    b = writer.b
    bases = [writer.pointer(number) for number in range(len(shape.tensors))]
    steps, name = shape.steps(), f"{PLACEHOLDER}.order"
    if not few:
        if length >= _FEWEST_FOR_DIGITS * max(1, form.bits // 32):
            writer.shared.append(digit_sort(name, kind, length, form.bits))
        else:
            writer.shared.append(merge_sort(name, kind, length, _smaller(kind)))

    def sort_row(starts: list[str], scratch: str) -> None:
        column = form.key.input
        raw, _ = _raw(form.element)
        start = b.gep(bases[column], starts[column], raw)

        def key_at(place: str) -> str:
            address = b.gep(start, b.mul(place, steps[column]), raw)
            return form.emit(Registers(b, writer.needed), address, place)

        if few:
            _keep_first(b, kind, scratch, shape, key_at)
            ordered = scratch
        else:
            with b.loop(0, length, hint="place") as place:
                b.store(kind, key_at(place), b.gep(scratch, place, kind))
            other = b.gep(scratch, array_bytes)
            ordered = b.call("ptr", name, f"ptr {scratch}", f"ptr {other}", "ptr null")
        _write(b, shape, bases, starts, ordered, kind)

    over_rows(writer, tasks, shape.tensors, sort_row)
    return writer.finish("sort", tasks.count, tasks.all_scratch_bytes)


def _smaller(kind: str) -> Before:
    return lambda b, x, y: b.compare("ult", x, y, kind)


def _keep_first(b: TextBuilder, kind: str, first: str, shape: RowShape, key_at: Callable[[str], str]) -> None:
    """Reads a row once, keeping its smallest keys in order."""
    count = shape.written
    with b.loop(0, count, hint="empty") as place:
        b.store(kind, -1, b.gep(first, place, kind))
    worst = b.gep(first, count - 1, kind)
    with b.loop(0, shape.length, hint="place") as place:
        key = key_at(place)
        with b.when(b.compare("ult", key, b.load(kind, worst), kind)):
            insert(b, kind, first, "0", str(count - 1), key, _smaller(kind))


def _by_comparator(shape: RowShape, before: Node, threads: int) -> KernelCode:
    """Places are sorted; the comparator reads copies of the inputs it looks at, which lie close together."""
    if any(isinstance(node, Load) for node in walk((before,))):
        raise CannotExpand("the comparator reads a table")
    kind, length, name = "i32", shape.length, f"{PLACEHOLDER}.order"
    used = {node.number // 2 for node in walk((before,)) if isinstance(node, External)}
    offsets, end = {}, 0
    for column in sorted(used):
        offsets[column] = end
        end += -(-length * shape.operands[column].element.storage_bytes // 64) * 64
    places = -(-4 * length // 64) * 64
    tasks = shape.tasks(threads, end + 2 * places)
    writer = KernelWriter(len(shape.operands))
    b = writer.b
    bases = [writer.pointer(number) for number in range(len(shape.tensors))]
    asked = _comparison(writer, shape, before, offsets)

    def ask(inner: TextBuilder, x: str, y: str) -> str:
        return inner.call("i1", asked, "ptr %context", f"i32 {x}", f"i32 {y}")

    writer.shared.append(merge_sort(name, kind, length, ask))
    steps = shape.steps()

    def sort_row(starts: list[str], scratch: str) -> None:
        first = b.gep(scratch, end)
        with b.loop(0, length, hint="place") as place:
            for column, offset in offsets.items():
                raw, align = _raw(plain(shape.operands[column]))
                source = b.gep(bases[column], b.add(starts[column], b.mul(place, steps[column])), raw)
                b.store(raw, b.load(raw, source, align), b.gep(b.gep(scratch, offset), place, raw), align)
            b.store(kind, b.op(f"trunc i64 {place} to i32"), b.gep(first, place, kind))
        other = b.gep(scratch, end + places)
        ordered = b.call("ptr", name, f"ptr {first}", f"ptr {other}", f"ptr {scratch}")
        _write(b, shape, bases, starts, ordered, kind)

    over_rows(writer, tasks, shape.tensors, sort_row)
    return writer.finish("sort", tasks.count, tasks.all_scratch_bytes)


def _comparison(writer: KernelWriter, shape: RowShape, before: Node, offsets: Mapping[int, int]) -> str:
    """A function that asks the comparator about two places of the copied columns; returns its name."""
    name = f"{PLACEHOLDER}.before"
    is_short = sum(1 for _ in walk((before,))) <= _INLINE_NODES
    attributes = "nounwind alwaysinline" if is_short else "nounwind"
    parameters = (("ptr", "columns"), ("i32", "x"), ("i32", "y"))
    b = TextBuilder(name, parameters, "i1", linkage="internal", attributes=attributes)
    registers = Registers(b, writer.needed)
    e = ElementalEmitter(registers, {})
    values: list[Held] = []
    for column in range(len(shape.operands)):
        for side in ("%x", "%y"):
            if column in offsets:
                start = b.gep("%columns", offsets[column])
                values.append(_loaded(registers, plain(shape.operands[column]), start, side))
            else:
                values.append("")
    b.ret(f"i1 {e.apply((before,), values)[0]}")
    writer.shared.append(SharedFunction(name, b.text(), tuple(sorted(b.declarations))))
    return name


def _loaded(registers: Registers, e: ElementType, start: str, place: str) -> Held:
    b, kind, align = registers.b, llvm_type(memory_kind(e)), part_bytes(e)
    at = b.op(f"zext i32 {place} to i64")
    if not e.is_complex:
        return registers.from_memory(e, 1, b.load(kind, b.gep(start, at, kind), align))
    address = b.gep(start, b.mul(at, 2), kind)
    return b.load(kind, address, align), b.load(kind, b.gep(address, 1, kind), align)


def _write(
    b: TextBuilder, shape: RowShape, bases: Sequence[str], starts: Sequence[str], ordered: str, kind: str
) -> None:
    """Writes the elements of a row in the order found, and their places if wanted."""
    count, steps = len(shape.operands), shape.steps()
    with b.loop(0, shape.written, hint="out") as number:
        place = _place_of(b, b.load(kind, b.gep(ordered, number, kind)), kind)
        for column, operand in enumerate(shape.operands):
            raw, align = _raw(plain(operand))
            to = count + column
            source = b.gep(bases[column], b.add(starts[column], b.mul(place, steps[column])), raw)
            target = b.gep(bases[to], b.add(starts[to], b.mul(number, steps[to])), raw)
            b.store(raw, b.load(raw, source, align), target, align)
        if shape.takes is not None:
            narrow = b.op(f"trunc i64 {place} to i32")
            b.store("i32", narrow, b.gep(bases[-1], b.add(starts[-1], b.mul(number, steps[-1])), "i32"), 4)


def _place_of(b: TextBuilder, found: str, kind: str) -> str:
    if kind == "i32":
        return b.op(f"zext i32 {found} to i64")
    low = found if kind == "i64" else b.op(f"trunc {kind} {found} to i64")
    return b.op(f"and i64 {low}, {(1 << PLACE_BITS) - 1}")


__all__ = ["RowShape", "sort_use", "top_k_use"]
