"""Turns dot source into a picture, with the machine's own Graphviz or with the one this package depends on.

The graph writers make dot source; this is where it becomes SVG, PNG or PDF. Graphviz's `dot` is used when it is on
the PATH. Otherwise `graphviz-pure` does the layout: a port of Graphviz that comes as a wheel, needs nothing else, and
writes everything but PDF. A PDF is then drawn from its SVG when svglib is installed. Both programs are run here and
not by the `graphviz` package, whose calls cannot be ended after a time.
"""

from __future__ import annotations

import io
import logging
import os
import shutil
import subprocess
import sysconfig
import warnings
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from xml.etree import ElementTree

from views.export.dot_size import count_nodes

FORMATS = ("svg", "png", "pdf", "dot")
"""What `render` makes; `dot` is the source itself, without a layout."""

NODE_LIMIT = 3000
"""Layout time grows with the square of the nodes: 2,000 take 4 seconds, 5,000 take 45."""

TIMEOUT_SECONDS = 60.0

_SHIPPED = "graphviz-pure"


class GraphvizError(Exception):
    """A graph that cannot be drawn; one line that says what to do about it."""


def render(
    dot_source: str,
    format: str,
    *,
    node_limit: int = NODE_LIMIT,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> bytes:
    """Lays a graph out and returns the picture.

    Args:
        dot_source: A graph in Graphviz's language.
        format: One of `FORMATS`.
        node_limit: More nodes than this are refused before any layout starts.
        timeout_seconds: The layout is ended after this long.

    Raises:
        GraphvizError: for an unknown format, a graph that is too large, too slow or not valid, or a missing engine.
    """
    if format not in FORMATS:
        raise GraphvizError(f"unknown graph format {format!r}; there are {', '.join(FORMATS)}")
    if format == "dot":
        return dot_source.encode("utf-8")
    nodes = count_nodes(dot_source)
    if nodes > node_limit:
        raise GraphvizError(
            f"the graph has {nodes:,} nodes and {node_limit:,} is the most that is laid out; "
            "narrow it with --around INSTRUCTION --radius N, or write the source with -o F.dot"
        )
    program = system_engine()
    if program is not None:
        return _lay_out(program, dot_source, format, nodes, timeout_seconds)
    shipped = shipped_engine()
    if shipped is None:
        raise GraphvizError(
            "no Graphviz found: install Graphviz so that `dot` is on the PATH, or `pip install graphviz-pure`"
        )
    if format == "pdf":
        return _pdf(_lay_out(shipped, dot_source, "svg", nodes, timeout_seconds))
    return _lay_out(shipped, dot_source, format, nodes, timeout_seconds)


def system_engine() -> str | None:
    """The path of Graphviz's own `dot`, None when there is none."""
    return shutil.which("dot")


def shipped_engine() -> str | None:
    """The path of the `graphviz-pure` program, wherever its wheel was installed, None when it was not."""
    suffix = sysconfig.get_config_var("EXE") or ""
    beside = Path(sysconfig.get_path("scripts")) / (_SHIPPED + suffix)
    if beside.exists():
        return str(beside)
    try:
        files = distribution(_SHIPPED).files or []
    except PackageNotFoundError:
        return shutil.which(_SHIPPED)
    for file in files:
        if file.name == _SHIPPED + suffix:
            located = Path(os.fspath(file.locate()))
            if located.exists():
                return str(located)
    return shutil.which(_SHIPPED)


def _lay_out(program: str, dot_source: str, format: str, nodes: int, timeout_seconds: float) -> bytes:
    """Runs an engine with `dot`'s command line; the source goes in and the picture comes out through pipes."""
    try:
        done = subprocess.run(
            [program, "-Kdot", f"-T{format}"],
            input=dot_source.encode("utf-8"),
            capture_output=True,
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GraphvizError(
            f"the layout of {nodes:,} nodes took longer than {timeout_seconds:g} seconds; "
            "narrow it with --around INSTRUCTION --radius N, or write the source with -o F.dot"
        ) from None
    except OSError as error:
        raise GraphvizError(f"{program} does not start: {error.strerror}") from None
    if done.returncode != 0 or not done.stdout:
        raise GraphvizError(
            f"Graphviz failed: {_first_line(done.stderr) or f'exit status {done.returncode}'}"
        )
    return done.stdout


def _first_line(stderr: bytes) -> str:
    """The first line that an engine complained with, without control characters."""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return "".join(letter for letter in lines[0] if letter.isprintable()) if lines else ""


def _pdf(svg: bytes) -> bytes:
    """Draws an engine's SVG as a one-page PDF.

    Raises:
        GraphvizError: when svglib is not installed or cannot draw it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from reportlab.graphics import renderPDF
            from svglib.svglib import svg2rlg
    except ImportError:
        raise GraphvizError(
            "PDF needs Graphviz's `dot` on the PATH, or `pip install xla-explore[pdf]`; SVG and PNG need neither"
        ) from None
    logging.getLogger("svglib").setLevel(logging.ERROR)
    drawing = svg2rlg(io.BytesIO(_plain_svg(svg)))
    if drawing is None:
        raise GraphvizError("the graph's SVG could not be drawn as PDF; use Graphviz's own `dot`")
    pdf: bytes = renderPDF.drawToString(drawing)
    return pdf


def _plain_svg(svg: bytes) -> bytes:
    """Links become groups and titles go: svglib leaves out whatever stands inside a link."""
    namespace = "{http://www.w3.org/2000/svg}"
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        if element.tag == f"{namespace}a":
            element.tag = f"{namespace}g"
            element.attrib.clear()
        for child in [one for one in element if one.tag == f"{namespace}title"]:
            element.remove(child)
    plain: bytes = ElementTree.tostring(root, encoding="utf-8")
    return plain
