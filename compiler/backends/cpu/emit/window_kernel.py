"""reduce_window: a fold over the window inside loops over the results; running folds (cumsum) in one pass.

Positions in the padding contribute the initial value, as the StableHLO specification says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.backends.cpu.emit.identity import simple_operation
from compiler.backends.cpu.emit.loop_kernel import is_maskable, lanes_for, vector_loop
from compiler.backends.cpu.emit.registers import Held
from compiler.backends.cpu.emit.skeleton import KernelWriter, hoist_addresses, over_tasks, unguarded
from compiler.backends.cpu.lowered import Operand, Result, Use
from compiler.ir.program import Computation, Instruction
from compiler.ir.types import TensorType, TupleType
from compiler.kernel.elemental import Constant, Fold, Load, Node, Within
from compiler.kernel.expansion import Expansion, make_fold, plain
from compiler.kernel.index_expression import ZERO, Axis, Index, axis_index, dot, physical_strides
from compiler.kernel.loop_nest import LoopNest, Store
from compiler.kernel.schedule import Schedule, cut, lane_step, work_ns

if TYPE_CHECKING:
    from compiler.backends.cpu.lowering import Lowering


def window_use(low: Lowering, computation: Computation, window: Instruction) -> Use | None:
    """The kernel of a reduce_window."""
    from compiler.backends.cpu.lowering import solo

    alone = solo(computation, window)
    return _scan_use(low, alone) or low.nest_use(_window_nest(low, alone), len(window.operands))


def _types(window: Instruction) -> list[TensorType]:
    if isinstance(window.type, TupleType):
        return [kind for kind in window.type.elements if isinstance(kind, TensorType)]
    return [window.tensor]


def _loops(sizes: tuple[int, ...], first: int) -> tuple[list[Axis], tuple[Index, ...]]:
    axes = [Axis(first + d, size) for d, size in enumerate(sizes)]
    indices = tuple(axis_index(axis) if axis.extent != 1 else ZERO for axis in axes)
    return [axis for axis in axes if axis.extent != 1], indices


def _window_nest(low: Lowering, alone: Computation) -> LoopNest:
    window = alone.root_instruction
    a, types = window.attributes, _types(window)
    count = len(window.operands) // 2
    operand = alone[window.operands[0]].tensor
    kept, at = _loops(types[0].shape, 0)
    inner, taps = _loops(tuple(a["window_dimensions"]), 500)
    conditions: list[Within] = []
    place: list[Index] = []
    for d in range(operand.rank):
        index = at[d] * a["window_strides"][d] + taps[d] * a["window_dilations"][d] - a["padding"][d][0]
        dilation = a["base_dilations"][d]
        span = (operand.shape[d] - 1) * dilation + 1 if operand.shape[d] else 0
        conditions.append(Within(index, 0, span))
        if dilation > 1:
            index, rest = index.divided(dilation)
            conditions.append(Within(rest, 0, 1))
        place.append(index)
    e = Expansion(alone, low.computations, split=False)
    initial = tuple(e.value(name, ()) for name in window.operands[count:])
    if operand.size:
        found = tuple(e.value(name, tuple(place)) for name in window.operands[:count])
        inputs = tuple(
            e.choose([(tuple(conditions), node), ((), padding)])
            for node, padding in zip(found, initial, strict=True)
        )
    else:
        inputs = initial
    values: tuple[Node, ...] = make_fold(e, window.called[0], tuple(inner), initial, inputs)
    stores = tuple(
        Store(number, plain(kind), dot(at, physical_strides(kind.shape, kind.minor_to_major)), value)
        for number, (kind, value) in enumerate(zip(types, values, strict=True))
    )
    axes = tuple(sorted(kept, key=lambda axis: -stores[0].offset.coefficient(axis)))
    return LoopNest(axes, stores, window=True)


def _scan_dimension(window: Instruction, operand: TensorType) -> tuple[int, bool] | None:
    """The dimension of a running fold, and whether it runs backwards."""
    a = window.attributes
    wide = [d for d, size in enumerate(a["window_dimensions"]) if size != 1]
    ones = (*a["window_strides"], *a["base_dilations"], *a["window_dilations"])
    if len(wide) != 1 or any(value != 1 for value in ones) or len(window.operands) != 2:
        return None
    d = wide[0]
    size = operand.shape[d]
    if a["window_dimensions"][d] != size or any(
        a["padding"][other] != (0, 0) for other in range(operand.rank) if other != d
    ):
        return None
    if tuple(a["padding"][d]) == (size - 1, 0):
        return d, False
    return (d, True) if tuple(a["padding"][d]) == (0, size - 1) else None


_NEUTRAL = {"add": (0, 0.0), "multiply": (1, 1.0), "or": (0,), "xor": (0,)}


def _is_neutral(fold: Fold) -> bool:
    """Whether taking the initial value in again and again changes nothing."""
    operation, initial = simple_operation(fold), fold.initial[0]
    if operation in ("maximum", "minimum", "and", "or"):
        return True
    return isinstance(initial, Constant) and initial.value in _NEUTRAL.get(operation, ())


def _scan_use(low: Lowering, alone: Computation) -> Use | None:
    """A window that reaches from the first element to the present one: one pass that carries the result along."""
    window = alone.root_instruction
    operand = alone[window.operands[0]].tensor
    found = _scan_dimension(window, operand) if isinstance(window.type, TensorType) else None
    if found is None:
        return None
    dimension, backwards = found
    axes, at = _loops(operand.shape, 0)
    along_scan = next(axis for axis in axes if axis.number == dimension)
    place = list(at)
    if backwards:
        place[dimension] = at[dimension] * -1 + (operand.shape[dimension] - 1)
    e = Expansion(alone, low.computations, split=False)
    initial = (e.value(window.operands[1], ()),)
    element = e.value(window.operands[0], tuple(place))
    fold = make_fold(e, window.called[0], (along_scan,), initial, (element,))[0]
    if not _is_neutral(fold):
        return None
    kind = window.tensor
    offset = dot(place, physical_strides(kind.shape, kind.minor_to_major))
    kept = [axis for axis in axes if axis != along_scan]
    kept.sort(key=lambda axis: -abs(offset.coefficient(axis)))
    nest = LoopNest(tuple(kept), (Store(0, plain(kind), offset, fold),), folded=(along_scan,))
    return _emit_scan(low, nest, fold)


def _emit_scan(low: Lowering, nest: LoopNest, fold: Fold) -> Use:
    writer = KernelWriter(2)
    nodes, store = nest.nodes, nest.stores[0]
    e = writer.open([*(node.operand for node in nodes if isinstance(node, Load)), 2])
    free = unguarded((*fold.initial, *fold.inputs))
    along = nest.axes[-1] if nest.axes and lane_step(store.offset, nest.axes[-1]) == 1 else None
    lanes, maskable = 1, False
    if along is not None:
        maskable = is_maskable(nest, nodes, along, low.target)
        lanes = lanes_for(nodes, along, along.extent, low.target, maskable, 4)
        along = along if lanes > 1 else None
    tasks = cut(nest.axes, work_ns(nest), low.threads, lanes, along_last=along is not None)
    schedule = Schedule(along, lanes, maskable, tasks)

    def column() -> None:
        elements = [fold.initial[0].element]

        def step(values: list[Held]) -> list[Held]:
            result = e.apply(fold.body, [values[0], e.value(fold.inputs[0])])
            e.store(store.element, e.buffers[2], store.offset, result[0])
            return result

        e.looped(nest.folded, elements, [e.value(fold.initial[0])], step)

    def points(first: str, last: str) -> None:
        if along is None:
            column()
        else:
            hoist_addresses(e, free, [], along)
            vector_loop(e, along, schedule, first, last, column)

    axes = nest.axes[:-1] if along is not None else nest.axes
    over_tasks(e, axes, tasks, free, points, along=along)
    code = writer.finish("scan", tasks.count)
    return Use(code, (Operand(0), Operand(1), Result(0)), "scan", (), nest)
