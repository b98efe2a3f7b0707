"""What all loop kernels have in common: buffers, tasks, loops, values computed as far out as they can be.

A kernel is `void (ptr %buffers, i64 %begin, i64 %end)`: operands first, then results, then scratch. Its name is made
from its text, so that kernels with equal code are one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from compiler.backends.cpu.emit.elemental import ElementalEmitter
from compiler.backends.cpu.emit.naming import PLACEHOLDER, named_after_text
from compiler.backends.cpu.emit.registers import Registers
from compiler.backends.cpu.kernel_code import KernelCode, SharedFunction
from compiler.backends.cpu.text_builder import TextBuilder
from compiler.backends.cpu.vector_math import Key, closure
from compiler.ir.literal import Literal
from compiler.kernel.elemental import Choose, Constant, External, Fold, Load, Node, children, dynamic_nodes
from compiler.kernel.index_expression import Axis, Index
from compiler.kernel.schedule import Tasks

PARAMETERS = (("ptr noalias", "buffers"), ("i64", "begin"), ("i64", "end"))


@dataclass
class KernelWriter:
    """One kernel under construction.

    Attributes:
        operands: how many operand buffers there are.
        tables: constants that come along with the code.
    """

    operands: int
    tables: Sequence[Literal] = ()
    b: TextBuilder = field(default_factory=lambda: TextBuilder(PLACEHOLDER, PARAMETERS))
    needed: dict[Key, None] = field(default_factory=dict)
    shared: list[SharedFunction] = field(default_factory=list)
    _pointers: dict[int, str] = field(default_factory=dict)

    def open(self, buffers: Sequence[int]) -> ElementalEmitter:
        """Loads the addresses of some buffers and returns an emitter for them."""
        pointers: dict[int, str] = {}
        for number in dict.fromkeys(buffers):
            if number < 0:
                pointers[number] = f"@{PLACEHOLDER}.table{-1 - number}"
            else:
                pointers[number] = self.pointer(number)
        return ElementalEmitter(Registers(self.b, self.needed), pointers)

    def pointer(self, number: int) -> str:
        """The address of a buffer; to be asked for in the entry block."""
        if number not in self._pointers:
            slot = self.b.gep("%buffers", number, "ptr", "at")
            self._pointers[number] = self.b.load("ptr", slot, 8, hint="buffer")
        return self._pointers[number]

    def finish(self, kind: str, tasks: int, scratch_bytes: int = 0) -> KernelCode:
        """Ends the function and names it after its text."""
        self.b.ret()
        text = "".join(self._table_text()) + self.b.text()
        functions = [SharedFunction(f.name, f.text, f.declarations) for f in closure(self.needed)]
        code = KernelCode(
            PLACEHOLDER,
            text,
            tasks,
            scratch_bytes,
            shared=(*functions, *self.shared),
            declarations=tuple(sorted(self.b.declarations)),
        )
        return named_after_text(kind, code)

    def _table_text(self) -> list[str]:
        found = []
        for number, literal in enumerate(self.tables):
            raw = literal.array.tobytes()
            text = "".join(f"\\{byte:02X}" for byte in raw)
            found.append(
                f'@{PLACEHOLDER}.table{number} = private constant [{len(raw)} x i8] c"{text}", align 64\n'
            )
        return found


def unguarded(roots: Sequence[Node]) -> list[Node]:
    """The nodes that are needed whatever conditions hold, operands first; not those inside a fold's loops."""
    found: dict[Node, None] = {}
    stack: list[tuple[Node, bool]] = [(root, False) for root in reversed(roots)]
    seen: set[Node] = set()
    while stack:
        node, done = stack.pop()
        if done:
            found[node] = None
            continue
        if node in seen:
            continue
        seen.add(node)
        stack.append((node, True))
        if isinstance(node, Choose):
            below: tuple[Node, ...] = tuple(n for c in node.conditions for n in dynamic_nodes(c.index))
        elif isinstance(node, Fold):
            below = node.initial
        else:
            below = children(node)
        stack.extend((entry, False) for entry in below)
    return list(found)


def hoist(e: ElementalEmitter, nodes: Sequence[Node], known: frozenset[Axis]) -> None:
    """Computes what depends on no other axes than `known`, here and now."""
    for node in nodes:
        if isinstance(node, (Constant, External)) or not node.axes <= known:
            continue
        e.uniform(node)


def hoist_addresses(
    e: ElementalEmitter, nodes: Sequence[Node], offsets: Sequence[Index], along: Axis | None
) -> None:
    """Computes the parts of addresses that do not depend on the lanes' axis."""
    indices = [*offsets, *(node.offset for node in nodes if isinstance(node, Load) and along in node.axes)]
    for index in dict.fromkeys(indices):
        rest = [(atom, count) for atom, count in index.terms if along not in Index(((atom, 1),)).axes()]
        known = all(axis in e.axes for atom, _ in rest for axis in Index(((atom, 1),)).axes())
        if rest and known and len(rest) < len(index.terms):
            e.index.scalar(Index(tuple(rest), index.constant))


def over_tasks(
    e: ElementalEmitter,
    axes: Sequence[Axis],
    tasks: Tasks,
    nodes: Sequence[Node],
    body: Callable[[str, str], None],
    *,
    along: Axis | None,
) -> None:
    """Loops over tasks and over `axes` (all but the lanes' axis, which comes last in the nest).

    `body` is given the range of the lanes' axis.
    """
    b = e.b
    hoist(e, nodes, frozenset())
    extent = along.extent if along is not None else 1
    if tasks.count <= 1:
        _loops(e, axes, nodes, lambda: body("0", str(extent)))
        return
    with b.loop("%begin", "%end", hint="task") as task, e.scope():
        first = b.mul(task, tasks.step)
        if tasks.prefix == 0:
            last = b.minimum(b.add(first, tasks.step), extent)
            _loops(e, axes, nodes, lambda: body(first, last))
            return
        prefix, rest = axes[: tasks.prefix], axes[tasks.prefix :]
        total = 1
        for axis in prefix:
            total *= axis.extent
        last = b.minimum(b.add(first, tasks.step), total)
        with b.loop(first, last, hint="row") as row, e.scope():
            number = row
            for position in range(len(prefix) - 1, 0, -1):
                axis = prefix[position]
                e.axes[axis] = b.rem(number, axis.extent)
                number = b.div(number, axis.extent)
            e.axes[prefix[0]] = number
            hoist(e, nodes, frozenset(e.axes))
            _loops(e, rest, nodes, lambda: body("0", str(extent)))
        for axis in prefix:
            del e.axes[axis]


def _loops(
    e: ElementalEmitter, axes: Sequence[Axis], nodes: Sequence[Node], body: Callable[[], None]
) -> None:
    if not axes:
        body()
        return
    with e.b.loop(0, axes[0].extent, hint=str(axes[0])) as index, e.scope():
        e.axes[axes[0]] = index
        hoist(e, nodes, frozenset(e.axes))
        _loops(e, axes[1:], nodes, body)
        del e.axes[axes[0]]
