"""Loop nests as text: `kernels --emit loops`."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.kernel.elemental import Choose, Compute, Constant, External, Fold, IndexValue, Load, Node
from compiler.kernel.loop_nest import LoopNest


def loops_text(nest: LoopNest, operands: Sequence[str], results: Sequence[str] = ()) -> str:
    """Pseudo-code: the loops, each value once, the stores. Operands are shown by the given names."""
    writer = _Writer(operands, results)
    for axis in nest.axes:
        writer.line(f"for {axis} in 0..{axis.extent}:")
        writer.depth += 1
    for store in nest.stores:
        value = writer.value(store.value)
        name = results[store.result] if store.result < len(results) else f"result{store.result}"
        writer.line(f"{name}[{store.offset}] = {value}")
    return "\n".join(writer.lines) + "\n"


class _Writer:
    def __init__(self, operands: Sequence[str], results: Sequence[str]) -> None:
        self.operands, self.results = operands, results
        self.lines: list[str] = []
        self.depth = 0
        self._names: dict[object, str] = {}

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def value(self, node: Node) -> str:
        if isinstance(node, Constant):
            return str(node.value)
        if isinstance(node, IndexValue):
            return f"({node.index})"
        if isinstance(node, External):
            return node.label
        key: object = (node.group, node.result) if isinstance(node, Fold) else node
        found = self._names.get(key)
        if found is None:
            found = self._define(node)
            self._names[key] = found
        return found

    def _define(self, node: Node) -> str:
        name = f"%{len(self._names)}"
        if isinstance(node, Load):
            known = 0 <= node.operand < len(self.operands)
            source = self.operands[node.operand] if known else f"table{-1 - node.operand}"
            text = f"{source}[{node.offset}]"
        elif isinstance(node, Compute):
            text = (
                f"{node.opcode}({', '.join(self.value(entry) for entry in node.operands)}) : {node.element}"
            )
        elif isinstance(node, Choose):
            conditions = " and ".join(str(condition) for condition in node.conditions)
            text = f"{self.value(node.then)} if {conditions} else {self.value(node.otherwise)}"
        else:
            assert isinstance(node, Fold)
            return self._fold(node)
        name = f"%{len(self._names)}"
        self.line(f"{name} = {text}")
        return name

    def _fold(self, node: Fold) -> str:
        name = f"%acc{len(self._names)}"
        self.line(f"{name} = {', '.join(self.value(entry) for entry in node.initial)}")
        outside = self.depth
        for axis in node.over:
            self.line(f"for {axis} in 0..{axis.extent}:")
            self.depth += 1
        inputs = [self.value(entry) for entry in node.inputs]
        bodies = ", ".join(_body(entry, name, inputs) for entry in node.body)
        self.line(f"{name} = {bodies}")
        self.depth = outside
        return name if len(node.body) == 1 else f"{name}.{node.result}"


def _body(node: Node, accumulator: str, inputs: Sequence[str]) -> str:
    if isinstance(node, External):
        count = len(inputs)
        if node.number < count:
            return accumulator if count == 1 else f"{accumulator}.{node.number}"
        return inputs[node.number - count]
    if isinstance(node, Compute):
        return f"{node.opcode}({', '.join(_body(entry, accumulator, inputs) for entry in node.operands)})"
    return node.label
