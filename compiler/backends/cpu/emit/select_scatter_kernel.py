"""select_and_scatter: each window picks one of its elements, which the source value is then scattered to.

Windows are visited in order; the picked element is the one that no later element of the window displaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.backends.cpu.emit.registers import Held, register_type
from compiler.backends.cpu.emit.scatter_kernel import nested
from compiler.backends.cpu.emit.skeleton import KernelWriter
from compiler.backends.cpu.lowered import Operand, Result, Use
from compiler.ir.program import Computation, Instruction
from compiler.kernel.elemental import Load
from compiler.kernel.expansion import Expansion, body_nodes, plain
from compiler.kernel.index_expression import ZERO, Axis, Index, axis_index, dot, physical_strides

if TYPE_CHECKING:
    from compiler.backends.cpu.lowering import Lowering

_RESULT = 3


def select_and_scatter_use(low: Lowering, computation: Computation, instruction: Instruction) -> Use | None:
    """The kernel of a select_and_scatter."""
    from compiler.backends.cpu.lowering import solo

    alone = solo(computation, instruction)
    root = alone.root_instruction
    a = root.attributes
    operand, source = (alone[name].tensor for name in root.operands[:2])
    kind = plain(operand)
    if kind.is_complex:
        return None
    outer = [Axis(d, size) for d, size in enumerate(source.shape)]
    inner = [Axis(500 + d, size) for d, size in enumerate(a["window_dimensions"])]
    at = tuple(axis_index(axis) if axis.extent != 1 else ZERO for axis in outer)
    taps = tuple(axis_index(axis) if axis.extent != 1 else ZERO for axis in inner)
    places: list[Index] = [
        at[d] * a["window_strides"][d] + taps[d] - a["padding"][d][0] for d in range(operand.rank)
    ]
    strides = physical_strides(operand.shape, operand.minor_to_major)
    offset = dot(places, strides)
    expansion = Expansion(alone, low.computations, split=False)
    initial, given = expansion.value(root.operands[2], ()), expansion.value(root.operands[1], at)
    select = body_nodes(low.computations[root.called[0]], low.computations, (kind, kind))
    scatter = body_nodes(low.computations[root.called[1]], low.computations, (kind, kind))
    element = Load(kind, offset.axes(), "element", 0, offset)
    writer = KernelWriter(3)
    e = writer.open(range(4))
    b = writer.b
    scalar = register_type(kind, 1)
    # One number stands for the place in the result, so that a run-time offset is an ordinary index.
    spot = Axis(900, operand.size)
    with b.loop(0, operand.size, hint="fill") as position, e.scope():
        e.axes[spot] = position
        e.store(kind, e.buffers[_RESULT], axis_index(spot), e.value(initial))
    conditions = [
        (place, operand.shape[d])
        for d, place in enumerate(places)
        if place.range()[0] < 0 or place.range()[1] >= operand.shape[d]
    ]
    best_value, best_place = b.alloca(scalar, 1, 8), b.alloca("i64", 1, 8)

    def consider() -> None:
        seen = b.load("i64", best_place)
        here = e.index.scalar(offset)
        value = str(e.value(element))
        kept = str(e.apply(select, [b.load(scalar, best_value), value])[0])
        known = b.compare("sge", seen, 0)
        keep = b.op(f"and i1 {known}, {kept}")
        with b.otherwise(keep):
            b.store(scalar, value, best_value)
            b.store("i64", here, best_place)

    def tap() -> None:
        if not conditions:
            consider()
            return
        total = ""
        for place, size in conditions:
            one = b.compare("ult", e.index.scalar(place), size)
            total = one if not total else b.op(f"and i1 {total}, {one}")
        with b.when(total), e.scope():
            consider()

    def window() -> None:
        b.store("i64", -1, best_place)
        b.store(scalar, str(e.builder(1).constant(kind, 0)), best_value)
        nested(e, [axis for axis in inner if axis.extent != 1], tap)
        found = b.load("i64", best_place)
        with b.when(b.compare("sge", found, 0)), e.scope():
            e.axes[spot] = found
            present: Held = e.value(Load(kind, frozenset((spot,)), "present", _RESULT, axis_index(spot)))
            result = e.apply(scatter, [present, e.value(given)])[0]
            e.store(kind, e.buffers[_RESULT], axis_index(spot), result)

    nested(e, [axis for axis in outer if axis.extent != 1], window)
    buffers = (Operand(0), Operand(1), Operand(2), Result(0))
    return Use(writer.finish("scatter", 1), buffers, "scatter")
