"""Drawing graphs with Graphviz, with the engine that comes as a wheel, and what is said when neither will do."""

from __future__ import annotations

import stat
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from views.export import graphviz_engine
from views.export.dot_size import count_nodes
from views.export.graphviz_engine import GraphvizError, render

SMALL = """digraph module {
  rankdir=TB; node [shape=box, style="rounded,filled"];
  subgraph cluster_fusion { label="fusion.1"; "add.1" [label="add.1\\nf32[2,3]", tooltip="x < y & z"]; }
  "arg0.2" -> "add.1"; "arg0.2":s -> "multiply.3":n [label=" 0 "];
}"""


@pytest.fixture
def no_dot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphviz_engine, "system_engine", lambda: None)


def fake_dot(folder: Path, script: str) -> str:
    program = folder / "dot"
    program.write_text(f"#!{sys.executable}\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def titles(svg: bytes) -> set[str]:
    return {
        element.text or ""
        for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")
    }


def test_svg_of_the_shipped_engine_has_every_node_and_edge(no_dot: None) -> None:
    svg = render(SMALL, "svg")
    assert {"arg0.2", "add.1", "multiply.3", "arg0.2->add.1"} <= titles(svg)
    assert b"x &lt; y &amp; z" in svg


def test_png_of_the_shipped_engine_has_a_size(no_dot: None) -> None:
    png = render(SMALL, "png")
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    assert width > 50 and height > 100


def test_dot_needs_no_engine(monkeypatch: pytest.MonkeyPatch, no_dot: None) -> None:
    monkeypatch.setattr(graphviz_engine, "shipped_engine", lambda: None)
    assert render(SMALL, "dot").decode() == SMALL


def test_without_any_engine_the_error_names_both(monkeypatch: pytest.MonkeyPatch, no_dot: None) -> None:
    monkeypatch.setattr(graphviz_engine, "shipped_engine", lambda: None)
    with pytest.raises(GraphvizError, match=r"install Graphviz .* graphviz-pure"):
        render(SMALL, "svg")


def test_graphviz_on_the_path_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_dot(tmp_path, "import sys; print(sys.argv[1:], len(sys.stdin.read()))")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert render(SMALL, "pdf").decode().split() == ["['-Kdot',", "'-Tpdf']", str(len(SMALL))]


def test_pdf_without_graphviz_says_what_to_install(monkeypatch: pytest.MonkeyPatch, no_dot: None) -> None:
    monkeypatch.setitem(sys.modules, "svglib.svglib", None)
    with pytest.raises(GraphvizError, match=r"xla-explore\[pdf\]"):
        render(SMALL, "pdf")


def test_pdf_from_the_shipped_engines_svg_keeps_linked_nodes(no_dot: None) -> None:
    pytest.importorskip("svglib")
    pdf = render(SMALL, "pdf")
    linked = render(SMALL.replace("tooltip", "comment"), "pdf")
    assert pdf.startswith(b"%PDF")
    assert abs(len(pdf) - len(linked)) < 50


def test_links_become_groups_for_pdf(no_dot: None) -> None:
    svg = render(SMALL, "svg")
    assert b"<a " in svg
    plain = graphviz_engine._plain_svg(svg)
    root = ElementTree.fromstring(plain)
    assert not list(root.iter("{http://www.w3.org/2000/svg}a"))
    assert "add.1" in {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}


def test_a_graph_that_is_not_one_is_a_line(no_dot: None) -> None:
    with pytest.raises(GraphvizError) as caught:
        render("digraph { a -> ", "svg")
    assert "\n" not in str(caught.value) and "Graphviz failed" in str(caught.value)


def test_unknown_format() -> None:
    with pytest.raises(GraphvizError, match="'gif'; there are svg, png, pdf, dot"):
        render(SMALL, "gif")


def test_too_many_nodes_are_refused_at_once() -> None:
    source = "digraph {" + "".join(f'"n.{index}" -> "n.{index + 1}";' for index in range(30_000)) + "}"
    started = time.monotonic()
    with pytest.raises(GraphvizError, match=r"30,001 nodes .* --around INSTRUCTION --radius N"):
        render(source, "svg")
    assert time.monotonic() - started < 5


def test_a_slow_layout_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = fake_dot(tmp_path, "import time; time.sleep(30)")
    monkeypatch.setattr(graphviz_engine, "system_engine", lambda: slow)
    started = time.monotonic()
    with pytest.raises(GraphvizError, match=r"layout of 3 nodes took longer than 0.5 seconds"):
        render(SMALL, "svg", timeout_seconds=0.5)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("source", "nodes"),
    [
        ("digraph {}", 0),
        ("strict digraph name { a; b; a -> b }", 2),
        ('graph { a -- b -- "a"; }', 2),
        ("digraph { a:f0:n -> b:f1; }", 2),
        ('digraph { subgraph cluster_0 { label="x -> y"; a } b [label=<<b>x]</b>>]; }', 2),
        ("digraph { node [a=1]; edge [b=2]; graph [c=3]; rank=same; // d -> e\n /* f */ x }", 1),
        ('digraph { "a b" -> { c d }; "q\\"q" -> "a b" }', 4),
    ],
)
def test_count_nodes(source: str, nodes: int) -> None:
    assert count_nodes(source) == nodes
