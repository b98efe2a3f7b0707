"""A program, or the surroundings of one instruction, as a graph; and the pipeline as one.

A fusion is a frame around what it computes: its operands lead to its parameters, its root to its users. Other called
computations of more than a few scalars are frames that a dashed arrow leads to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from compiler.ir.hlo_text import format_instruction, shape_text
from compiler.ir.location import source_line
from compiler.ir.program import Computation, Instruction, Module
from compiler.ir.types import TensorType
from compiler.ops import OPERATIONS
from compiler.ops.record import Trait
from explorer.trace import StageRecord, Trace
from views.export.graphviz_graph import Cluster, Edge, Graph, Node

LABELLED_EDGES = 600
"""Arrows carry shapes in graphs of up to this many nodes; beyond, layouts would take too long."""

_KINDS: dict[str, tuple[str, ...]] = {
    "parameter": ("parameter",),
    "constant": ("constant", "iota", "partition_id", "replica_id"),
    "contraction": ("dot_general", "dot", "convolution", "triangular_solve", "cholesky", "fft"),
    "reduction": ("reduce", "reduce_window", "select_and_scatter", "sort", "scatter", "chlo.top_k"),
    "movement": (
        *(
            "broadcast_in_dim",
            "broadcast",
            "reshape",
            "bitcast",
            "copy",
            "transpose",
            "slice",
            "reverse",
            "pad",
        ),
        *("concatenate", "gather", "dynamic_slice", "dynamic_update_slice", "bitcast_convert"),
    ),
    "control": ("while", "case", "if", "call", "custom_call", "composite", "map"),
    "communication": (
        *("all_reduce", "all_gather", "all_to_all", "reduce_scatter", "collective_permute"),
        *("collective_broadcast", "send", "recv", "infeed", "outfeed", "after_all"),
    ),
    "tuple": ("tuple", "get_tuple_element", "optimization_barrier"),
    "fusion": ("fusion",),
}
_KIND_OF = {opcode: kind for kind, opcodes in _KINDS.items() for opcode in opcodes}


def node_kind(opcode: str) -> str:
    """The kind that decides a node's colour."""
    found = _KIND_OF.get(opcode)
    if found is not None:
        return found
    record = OPERATIONS.get(opcode)
    return "elementwise" if record is not None and Trait.ELEMENTWISE in record.traits else "other"


def node_count(module: Module, function: str) -> int:
    """How many nodes a computation has with everything it calls."""
    seen: set[str] = set()
    stack = [function]
    while stack:
        name = stack.pop()
        if name not in seen:
            seen.add(name)
            stack += [callee for instruction in module.computations[name] for callee in instruction.called]
    return sum(len(module.computations[name]) for name in seen)


def neighbourhood(computation: Computation, centre: str, radius: int) -> set[str]:
    """Names within `radius` steps of an instruction, along operands and users."""
    users: dict[str, list[str]] = {}
    for instruction in computation:
        for operand in instruction.operands:
            users.setdefault(operand, []).append(instruction.name)
    found, edge = {centre}, [centre]
    for _ in range(radius):
        near = {n for name in edge for n in (*computation[name].operands, *users.get(name, ()))}
        edge = [name for name in near if name not in found]
        found.update(edge)
    return found


def program_graph(module: Module, title: str, function: str, centre: str = "", radius: int = 2) -> Graph:
    """The graph of a computation with what it calls, or of an instruction's neighbourhood in it."""
    computation = module.computations[function]
    kept = neighbourhood(computation, centre, radius) if centre else set(computation.instructions)
    builder = _Builder(module, title, node_count(module, function) if not centre else len(kept))
    builder.centre = centre
    builder.add(computation, "", kept)
    return builder.graph


class _Builder:
    def __init__(self, module: Module, title: str, size: int) -> None:
        self.module = module
        self.graph = Graph(title)
        self.centre = ""
        self._labels = size <= LABELLED_EDGES
        self._done: set[str] = set()

    def add(self, computation: Computation, cluster: str, kept: set[str]) -> None:
        """Nodes and arrows of a computation's instructions, and frames for what they call."""
        self._done.add(computation.name)
        for instruction in computation:
            if instruction.name not in kept:
                continue
            body = self._fusion_body(instruction)
            if body is not None:
                self._add_frame(instruction, body, cluster)
                targets = list(body.parameters)
            else:
                cut = any(operand not in kept for operand in instruction.operands)
                self._add_node(instruction, computation, cluster, cut)
                targets = [instruction.name] * len(instruction.operands)
                self._add_called(instruction, cluster)
            for operand, target in zip(instruction.operands, targets, strict=False):
                if operand in kept:
                    self._add_edge(computation[operand], target)

    def _fusion_body(self, instruction: Instruction) -> Computation | None:
        if instruction.opcode != "fusion" or instruction.called[0] in self._done:
            return None
        return self.module.computations[instruction.called[0]]

    def _add_frame(self, instruction: Instruction, body: Computation, parent: str) -> None:
        kind = instruction.attributes.get("kind", "")
        self.graph.clusters.append(Cluster(body.name, f"{instruction.name} {kind}".strip(), parent))
        self.add(body, body.name, set(body.instructions))

    def _add_called(self, instruction: Instruction, cluster: str) -> None:
        for name in instruction.called:
            body = self.module.computations[name]
            if _is_scalar(body):
                continue
            if name not in self._done:
                self.graph.clusters.append(Cluster(name, f"{name}, called by {instruction.name}", cluster))
                self.add(body, name, set(body.instructions))
            self.graph.edges.append(Edge(instruction.name, self._end(body), kind="call"))

    def _end(self, body: Computation) -> str:
        """The node that stands for a computation's result."""
        root = body.root_instruction
        if root.opcode == "fusion":
            return self._end(self.module.computations[root.called[0]])
        return root.name

    def _add_node(self, instruction: Instruction, owner: Computation, cluster: str, cut: bool) -> None:
        is_root = instruction.name == owner.root
        lines = [instruction.opcode, instruction.name]
        if is_root or instruction.opcode == "parameter" or not self._labels:
            lines.append(shape_text(instruction.type, False))
        scalars = [name for name in instruction.called if _is_scalar(self.module.computations[name])]
        lines += [f"by {name}" for name in scalars]
        facts = {"root": is_root, "cut": cut, "centre": instruction.name == self.centre}
        marks = frozenset(mark for mark, holds in facts.items() if holds)
        line = source_line(instruction.location)
        text = format_instruction(instruction, owner, layout=False)
        tooltip = f"{text}   {line}" if line is not None else text
        kind = node_kind(instruction.opcode)
        self.graph.nodes.append(Node(instruction.name, tuple(lines), kind, cluster, tooltip, marks))

    def _add_edge(self, source: Instruction, target: str) -> None:
        start = source.name
        if source.opcode == "fusion":
            start = self._end(self.module.computations[source.called[0]])
        label = shape_text(source.type, False) if self._labels else ""
        self.graph.edges.append(Edge(start, target, label))


def _is_scalar(computation: Computation) -> bool:
    """True for the few scalar operations of a reduction: they are named in the label, not drawn."""
    return len(computation) <= 6 and all(
        isinstance(i.type, TensorType) and not i.type.shape and not i.called for i in computation
    )


def pipeline_graph(trace: Trace) -> Graph:
    """The stages in order, with what each did; stages that changed nothing are grey."""
    graph = Graph(f"{trace.model}: {len(trace.stages)} stages")
    count = trace.input.instruction_count
    graph.nodes.append(Node("model", (trace.model, f"{count:,} instructions"), "parameter"))
    previous = "model"
    for stage in trace.stages:
        name = f"stage {stage.index}"
        kind = "stage" if stage.changed else "unchanged"
        graph.nodes.append(Node(name, tuple(_stage_lines(stage)), kind, tooltip=stage.why))
        graph.edges.append(Edge(previous, name, f"{stage.instructions_before:,}"))
        previous = name
    if trace.code is not None:
        lines = (f"{trace.code.backend} code", f"{len(trace.code.kernels):,} kernels")
        graph.nodes.append(Node("code", lines, "contraction"))
        graph.edges.append(Edge(previous, "code", f"{trace.final.instruction_count:,}"))
    return graph


def _stage_lines(stage: StageRecord) -> Iterable[str]:
    yield f"{stage.index} {stage.id}"
    if stage.skipped:
        yield stage.skipped
    if stage.changed:
        yield f"{stage.instructions_before:,} -> {stage.instructions_after:,} instructions"
    rules = Counter(rewrite.rule.id for rewrite in stage.rewrites)
    yield from (f"{count} × {rule}" for rule, count in rules.most_common(5))
    if len(rules) > 5:
        yield f"and {len(rules) - 5} more rules"
    if stage.decisions:
        yield f"{len(stage.decisions):,} decisions"
    yield f"{stage.seconds * 1e3:.1f} ms"
