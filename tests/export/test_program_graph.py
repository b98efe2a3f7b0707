"""Graphs of programs: frames for what is called, escaped labels, neighbourhoods, the pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.frontend.load import load
from compiler.ir.types import F32
from explorer.session import Session, record
from explorer.trace import Trace
from tests.builder import ModuleBuilder
from views.export.dot_size import count_nodes
from views.export.graphviz_engine import render
from views.export.graphviz_graph import COLOURS, Cluster, Edge, Graph, Node, dot_text, quoted
from views.export.program_graph import (
    neighbourhood,
    node_count,
    node_kind,
    pipeline_graph,
    program_graph,
)

SAMPLES = Path(__file__).resolve().parents[2] / "sample_models"


def recorded(name: str) -> Trace:
    path = str(SAMPLES / name / "model.mlir")
    return record(Session(path, load(path)), code=False).trace


def test_labels_stand_for_exactly_their_text() -> None:
    hostile = 'a"] evil [label="x\\n\\N<b>\x1b[31m\n'
    assert quoted(hostile).count('"') - quoted(hostile).count('\\"') == 2
    graph = Graph(
        hostile, [Node(hostile, (hostile,), "other", hostile, hostile)], [], [Cluster(hostile, hostile)]
    )
    graph.edges.append(Edge(hostile, hostile, hostile))
    text = dot_text(graph)
    assert "\x1b" not in text and count_nodes(text) == 1
    svg = render(text, "svg").decode()
    assert "<b>" not in svg and svg.count('class="node"') == 1


def test_fusions_are_frames_that_operands_lead_into() -> None:
    module = recorded("mlp").final
    graph = program_graph(module, "t", module.entry)
    fusions = [i for i in module.entry_computation if i.opcode == "fusion"]
    assert {cluster.id for cluster in graph.clusters} == {i.called[0] for i in fusions}
    names = {node.id for node in graph.nodes}
    assert not names & {i.name for i in fusions}
    assert all(edge.source in names and edge.target in names for edge in graph.edges)
    first = module.computations[fusions[0].called[0]]
    reached = {edge.target for edge in graph.edges if edge.source.startswith("arg")}
    assert set(first.parameters) <= reached


@pytest.mark.parametrize("name", ["lstm_scan", "while_newton", "moe_router", "train_step"])
def test_every_arrow_ends_at_a_node(name: str) -> None:
    trace = recorded(name)
    for module in (trace.input, trace.final):
        for function in module.computations:
            graph = program_graph(module, "t", function)
            names = [node.id for node in graph.nodes]
            assert len(set(names)) == len(names) <= node_count(module, function)
            assert {edge.source for edge in graph.edges} | {edge.target for edge in graph.edges} <= set(names)
            frames = {cluster.id for cluster in graph.clusters} | {""}
            assert {node.cluster for node in graph.nodes} <= frames
            assert {cluster.parent for cluster in graph.clusters} <= frames


def test_loops_lead_to_their_bodies() -> None:
    module = recorded("while_newton").input
    graph = program_graph(module, "t", module.entry)
    calls = [edge for edge in graph.edges if edge.kind == "call"]
    assert calls and all(edge.source.startswith(("while", "call", "case", "if")) for edge in calls)
    assert "arrowhead=empty" in dot_text(graph)


def test_a_neighbourhood_grows_with_its_radius() -> None:
    builder = ModuleBuilder().computation("main")
    value = builder.parameter(F32, 2)
    for _ in range(6):
        value = builder.op("negate", value)
    computation = builder.root(value)
    assert neighbourhood(computation, "negate.4", 0) == {"negate.4"}
    assert neighbourhood(computation, "negate.4", 1) == {"negate.3", "negate.4", "negate.5"}
    assert neighbourhood(computation, "negate.4", 99) == set(computation.instructions)
    graph = program_graph(builder.module.build(), "t", "main", "negate.4", 1)
    marks = {node.id: node.marks for node in graph.nodes}
    assert marks["negate.4"] == {"centre"} and marks["negate.3"] == {"cut"}


def test_kinds_have_colours() -> None:
    for opcode, kind in {
        "add": "elementwise",
        "dot_general": "contraction",
        "reduce": "reduction",
        "reshape": "movement",
        "while": "control",
        "all_reduce": "communication",
        "unheard_of": "other",
    }.items():
        assert node_kind(opcode) == kind in COLOURS


def test_the_pipeline_says_what_each_stage_did() -> None:
    trace = recorded("mlp")
    graph = pipeline_graph(trace)
    assert len(graph.nodes) == len(trace.stages) + 1 == len(graph.edges) + 1
    fusion = next(node for node in graph.nodes if any(line.endswith(" fusion") for line in node.lines))
    assert fusion.kind == "stage" and any("decisions" in line for line in fusion.lines)
    assert render(dot_text(graph), "svg").startswith(b"<?xml")
