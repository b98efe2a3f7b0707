"""scatter, in update order: the result starts as the operand, and each update element changes one of its elements.

Rows of neighbouring elements are updated by vectors; tasks share out the columns, never the updates, so that the order
for each element stays that of the specification. Elements whose place is out of bounds are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from compiler.backends.cpu.emit.elemental import ElementalEmitter
from compiler.backends.cpu.emit.loop_kernel import lanes_for, vector_loop
from compiler.backends.cpu.emit.registers import register_kind
from compiler.backends.cpu.emit.skeleton import KernelWriter
from compiler.backends.cpu.lowered import Move, Operand, Result, Use, numbered
from compiler.backends.cpu.text_builder import llvm_type
from compiler.ir.program import Computation, Instruction
from compiler.ir.types import TensorType
from compiler.kernel.elemental import Load, Node
from compiler.kernel.expansion import Expansion, body_nodes, plain
from compiler.kernel.index_expression import (
    ZERO,
    Axis,
    Index,
    axis_index,
    constant_index,
    dot,
    physical_strides,
)
from compiler.kernel.schedule import Schedule, Tasks, cut

if TYPE_CHECKING:
    from compiler.backends.cpu.lowering import Lowering

_ELEMENT_NS = 0.3


@dataclass(frozen=True, slots=True)
class _Scatter:
    """Loops and places of one scatter.

    Attributes:
        count: how many operands are updated at once.
        batch: loops over the updates.
        window: loops inside one update.
        starts: for each operand dimension that has one, the axis that stands for its start and the index's node.
        checked: the dimensions whose place may be out of bounds.
        places: for each operand dimension, the place of the present element.
    """

    count: int
    operand: TensorType
    batch: tuple[Axis, ...]
    window: tuple[Axis, ...]
    starts: tuple[tuple[Axis, Node], ...]
    checked: tuple[int, ...]
    places: tuple[Index, ...]
    updates: tuple[Node, ...]
    body: tuple[Node, ...]


def _plan(low: Lowering, computation: Computation, scatter: Instruction) -> _Scatter:
    from compiler.backends.cpu.lowering import solo

    alone = solo(computation, scatter)
    root = alone.root_instruction
    a, count = root.attributes, len(root.operands) // 2
    operand = alone[root.operands[0]].tensor
    indices, update = alone[root.operands[count]].tensor, alone[root.operands[count + 1]].tensor
    windows, vector = tuple(a["update_window_dims"]), a["index_vector_dim"]
    axes = [Axis(d, size) for d, size in enumerate(update.shape)]
    at = tuple(axis_index(axis) if axis.extent != 1 else ZERO for axis in axes)
    batch_at = tuple(at[d] for d in range(update.rank) if d not in windows)
    e = Expansion(alone, low.computations, split=False)

    def component(number: int) -> tuple[Index, ...]:
        if vector == indices.rank:
            return batch_at
        return (*batch_at[:vector], constant_index(number), *batch_at[vector:])

    batching = tuple(a.get("input_batching_dims", ()))
    removed = {*a["inserted_window_dims"], *batching}
    inner = iter(windows)
    starts: list[tuple[Axis, Node]] = []
    places: list[Index] = []
    checked: list[int] = []
    for d in range(operand.rank):
        place = ZERO if d in removed else at[next(inner)]
        if d in batching:
            position = a["scatter_indices_batching_dims"][batching.index(d)]
            place = place + batch_at[position - (position > vector)]
        if d in a["scatter_dims_to_operand_dims"]:
            node = e.value(root.operands[count], component(a["scatter_dims_to_operand_dims"].index(d)))
            axis = Axis(900 + d, operand.shape[d])
            starts.append((axis, node))
            checked.append(d)
            place = place + axis_index(axis)
        places.append(place)
    updates = tuple(e.value(name, at) for name in root.operands[count + 1 :])
    kinds = [plain(alone[name].tensor) for name in root.operands[:count]]
    kinds += [node.element for node in updates]
    return _Scatter(
        count,
        operand,
        tuple(axes[d] for d in range(update.rank) if d not in windows and update.shape[d] != 1),
        tuple(axes[d] for d in windows if update.shape[d] != 1),
        tuple(starts),
        tuple(checked),
        tuple(places),
        updates,
        body_nodes(low.computations[root.called[0]], low.computations, kinds),
    )


def scatter_use(low: Lowering, computation: Computation, scatter: Instruction) -> Use | None:
    """The kernel of a scatter."""
    s = _plan(low, computation, scatter)
    operands = len(scatter.operands)
    writer = KernelWriter(operands)
    e = writer.open([*range(s.count, operands), *range(operands, operands + s.count)])
    offset = dot(s.places, physical_strides(s.operand.shape, s.operand.minor_to_major))
    along, lanes = _lanes(s, offset, low)
    work = _ELEMENT_NS * prod(axis.extent for axis in (*s.batch, *s.window))
    tasks = cut((along,), work, low.threads, lanes) if along is not None else Tasks(1, 0, 1)
    schedule = Schedule(along, lanes, False, tasks)

    def one() -> None:
        nodes = _current(s, offset, operands)
        values = [e.value(node) for node in (*nodes, *s.updates)]
        for number, value in enumerate(e.apply(s.body, values)):
            e.store(nodes[number].element, e.buffers[operands + number], offset, value)

    def element() -> None:
        late = [d for d in s.checked if _in_window(s, d)]
        if late:
            with e.b.when(_inside(e, s, late)), e.scope():
                one()
        else:
            one()

    def update(first: str, last: str) -> None:
        for axis, node in s.starts:
            e.axes[axis] = _start(e, axis, node)
        early = [d for d in s.checked if not _in_window(s, d)]

        def body() -> None:
            _window(e, s, along, schedule, first, last, element)

        if early:
            with e.b.when(_inside(e, s, early)), e.scope():
                body()
        else:
            body()

    def all_updates(first: str, last: str) -> None:
        nested(e, s.batch, lambda: update(first, last))

    if tasks.count > 1 and along is not None:
        with e.b.loop("%begin", "%end", hint="task") as task, e.scope():
            first = e.b.mul(task, tasks.step)
            all_updates(first, e.b.minimum(e.b.add(first, tasks.step), along.extent))
    else:
        with e.scope():
            all_updates("0", str(along.extent if along is not None else 1))
    code = writer.finish("scatter", tasks.count)
    sizes = [computation[name].type.bytes for name in scatter.operands[: s.count]]
    moves = tuple(Move(Operand(number), Result(number), size) for number, size in enumerate(sizes))
    return Use(code, numbered(operands, s.count), "scatter", moves)


def _lanes(s: _Scatter, offset: Index, low: Lowering) -> tuple[Axis | None, int]:
    """The last loop of an update runs along the lanes where its elements are neighbours and surely inside."""
    if not s.window:
        return None, 1
    along = s.window[-1]
    own = [d for d, place in enumerate(s.places) if along in place.axes()]
    if offset.coefficient(along) != 1 or len(own) != 1 or own[0] in s.checked:
        return None, 1
    lanes = lanes_for([*s.updates, *_current(s, offset, 0)], along, along.extent, low.target, False, 2)
    return (along, lanes) if lanes > 1 else (None, 1)


def _current(s: _Scatter, offset: Index, first: int) -> list[Load]:
    kinds = [node.element for node in s.body]
    return [Load(kind, offset.axes(), "present", first + number, offset) for number, kind in enumerate(kinds)]


def _in_window(s: _Scatter, dimension: int) -> bool:
    return any(axis in s.window for axis in s.places[dimension].axes())


def _start(e: ElementalEmitter, axis: Axis, node: Node) -> str:
    """A start as a number between minus the dimension's size and its size: beyond those all places are outside."""
    b, value = e.b, str(e.uniform(node))
    kind = register_kind(node.element)
    if kind != "i64":
        op = "sext" if node.element.kind == "int" else "zext"
        value = b.op(f"{op} {llvm_type(kind)} {value} to i64")
    if node.element.kind == "uint":
        return b.intrinsic("i64", "llvm.umin.i64", ("i64", value), ("i64", axis.extent))
    low = b.intrinsic("i64", "llvm.smax.i64", ("i64", value), ("i64", -axis.extent))
    return b.intrinsic("i64", "llvm.smin.i64", ("i64", low), ("i64", axis.extent))


def _inside(e: ElementalEmitter, s: _Scatter, dimensions: Sequence[int]) -> str:
    total = ""
    for d in dimensions:
        one = e.b.compare("ult", e.index.scalar(s.places[d]), s.operand.shape[d])
        total = one if not total else e.b.op(f"and i1 {total}, {one}")
    return total


def nested(e: ElementalEmitter, axes: Sequence[Axis], body: object) -> None:
    """Loops in order, one point at a time."""
    assert callable(body)
    if not axes:
        with e.scope():
            body()
        return
    with e.b.loop(0, axes[0].extent, hint=str(axes[0])) as index, e.scope():
        e.axes[axes[0]] = index
        nested(e, axes[1:], body)


def _window(
    e: ElementalEmitter,
    s: _Scatter,
    along: Axis | None,
    schedule: Schedule,
    first: str,
    last: str,
    element: object,
) -> None:
    assert callable(element)
    if along is None:
        nested(e, s.window, element)
        return
    nested(e, s.window[:-1], lambda: vector_loop(e, along, schedule, first, last, element))
