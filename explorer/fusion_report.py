"""Kernels and the edges between them: what was computed together, what was not, and why.

A group is an instruction that runs as a kernel of its own in the final program: a fusion with its members, or a single
instruction. Its edges are the decisions of kind `fusion` about it, read from the log; recordings without a log (dumps of
other compilers) have groups without edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compiler.decisions.log import Decision
from compiler.ir.program import Computation, Instruction, Module
from explorer.trace import Trace

NOT_KERNELS = frozenset(
    {"parameter", "constant", "tuple", "get_tuple_element", "bitcast", "while", "if", "case", "call"}
)
CONTROL = frozenset({"while", "if", "case", "call"})


@dataclass(frozen=True, slots=True)
class Edge:
    """One edge as it was considered; names are those of the instructions before fusion."""

    producer: str
    consumer: str
    decision: Decision

    @property
    def fused(self) -> bool:
        """True when the producer is computed inside the consumer's kernel."""
        return self.decision.chosen == "fuse"


@dataclass(frozen=True, slots=True)
class FusionGroup:
    """One kernel and its instructions (`members`, the root last).

    `into` are the edges that could have drawn a producer in, `onward` those by which it could have gone into a later
    kernel.
    """

    computation: str
    instruction: Instruction
    kind: str
    body: str
    members: tuple[Instruction, ...]
    into: tuple[Edge, ...]
    onward: tuple[Edge, ...]


def fusion_report(trace: Trace) -> tuple[FusionGroup, ...]:
    """All kernels of the final program in program order."""
    into: dict[str, list[Edge]] = {}
    onward: dict[str, list[Edge]] = {}
    for decision in trace.decisions:
        producer, arrow, consumer = decision.subject.partition("/")[2].partition("->")
        if decision.kind != "fusion" or not arrow:
            continue
        edge = Edge(producer, consumer, decision)
        into.setdefault(consumer, []).append(edge)
        onward.setdefault(producer, []).append(edge)
    return tuple(
        _group(trace.final, computation, instruction, into, onward)
        for computation in _run(trace.final)
        for instruction in computation
        if instruction.opcode not in NOT_KERNELS
    )


def _group(
    module: Module,
    computation: Computation,
    instruction: Instruction,
    into: dict[str, list[Edge]],
    onward: dict[str, list[Edge]],
) -> FusionGroup:
    members: tuple[Instruction, ...] = (instruction,)
    root, body, kind = instruction.name, "", instruction.opcode
    if instruction.opcode == "fusion" and instruction.called:
        fused = module.computations[instruction.called[0]]
        members = tuple(found for found in fused if found.opcode != "parameter")
        root, body = fused.root, fused.name
        kind = str(instruction.attributes.get("kind", "fusion"))
    outgoing = [edge for edge in onward.get(root, ()) if not edge.fused]
    return FusionGroup(
        computation.name, instruction, kind, body, members, tuple(into.get(root, ())), tuple(outgoing)
    )


def _run(module: Module) -> Iterator[Computation]:
    """The entry and what it reaches through loops, branches and calls, each once."""
    seen: set[str] = set()
    waiting = [module.entry]
    while waiting:
        name = waiting.pop(0)
        if name in seen or name not in module.computations:
            continue
        seen.add(name)
        computation = module.computations[name]
        yield computation
        for instruction in computation:
            if instruction.opcode in CONTROL:
                waiting.extend(instruction.called)
