"""Rewrites the graph of a kernel when its loops change: axes are replaced in every index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from compiler.kernel.elemental import Choose, Compute, Fold, IndexValue, Load, Node, Within
from compiler.kernel.index_expression import Axis, Dynamic, Index, substitute


@dataclass
class Substitution:
    """Replaces axes by index expressions.

    Attributes:
        indices: what stands for each replaced axis in an index.
        axes: which axis takes a replaced one's place as a loop; None for none.
    """

    indices: Mapping[Axis, Index]
    axes: Mapping[Axis, Axis | None]
    _nodes: dict[Node, Node] = field(default_factory=dict)
    _indices: dict[Index, Index] = field(default_factory=dict)

    def index(self, index: Index) -> Index:
        """The index over the new axes."""
        found = self._indices.get(index)
        if found is None:
            found = substitute(index, self.indices, lambda atom: Dynamic(self.node(atom.node), atom.limit))
            self._indices[index] = found
        return found

    def node(self, node: Node) -> Node:
        """The node over the new axes."""
        if not any(axis in self.axes for axis in self._touched(node)):
            return node
        found = self._nodes.get(node)
        if found is None:
            found = self._nodes[node] = self._changed(node)
        return found

    def _touched(self, node: Node) -> frozenset[Axis]:
        if isinstance(node, Fold):
            return node.axes.union(node.over, *(self._touched(entry) for entry in node.inputs))
        return node.axes

    def _loops(self, axes: tuple[Axis, ...] | frozenset[Axis]) -> list[Axis]:
        moved = [self.axes.get(axis, axis) for axis in axes]
        return [axis for axis in moved if axis is not None]

    def _changed(self, node: Node) -> Node:
        axes = frozenset(self._loops(node.axes))
        if isinstance(node, Load):
            return replace(node, axes=axes, offset=self.index(node.offset))
        if isinstance(node, IndexValue):
            return replace(node, axes=axes, index=self.index(node.index))
        if isinstance(node, Compute):
            return replace(node, axes=axes, operands=tuple(self.node(entry) for entry in node.operands))
        if isinstance(node, Choose):
            conditions = tuple(Within(self.index(c.index), c.low, c.high) for c in node.conditions)
            return replace(
                node,
                axes=axes,
                conditions=conditions,
                then=self.node(node.then),
                otherwise=self.node(node.otherwise),
            )
        if isinstance(node, Fold):
            return replace(
                node,
                axes=axes,
                over=tuple(self._loops(node.over)),
                initial=tuple(self.node(entry) for entry in node.initial),
                inputs=tuple(self.node(entry) for entry in node.inputs),
            )
        return replace(node, axes=axes)
