"""`graph`: a program, the surroundings of an instruction, or the pipeline as a Graphviz graph."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from views.cli.arguments import (
    add_compile,
    add_json,
    add_model,
    count,
    find_stage,
    open_trace,
    output_path,
    unknown_name,
)
from views.cli.output import plural, print_json

if TYPE_CHECKING:
    from compiler.ir.program import Module
    from explorer.trace import Trace
    from views.export.graphviz_graph import Graph


def configure(parser: argparse.ArgumentParser) -> None:
    """MODEL, which program, how much of it, and where to."""
    add_model(parser)
    parser.add_argument(
        "--stage", metavar="S", default="", help="the program after this stage (default: last)"
    )
    parser.add_argument("--input", action="store_true", help="the program as it was read")
    parser.add_argument("--function", metavar="F", default="", help="this computation (default: the entry)")
    parser.add_argument("--around", metavar="I", default="", help="only the surroundings of this instruction")
    parser.add_argument(
        "--radius", type=count(0), default=2, metavar="N", help="how far around it (default 2)"
    )
    parser.add_argument("--pipeline", action="store_true", help="the stages, with what each did")
    parser.add_argument(
        "-o", "--output", metavar="F", help="svg, png, pdf or dot by its ending (default: dot)"
    )
    add_json(parser)
    add_compile(parser)


def run(arguments: argparse.Namespace) -> int:
    """Writes the picture, or prints the graph's text."""
    from explorer.session import UserError
    from views.export.graphviz_engine import FORMATS, NODE_LIMIT, GraphvizError, render
    from views.export.graphviz_graph import dot_text
    from views.export.program_graph import pipeline_graph

    path = output_path(arguments.output) if arguments.output else None
    form = path.suffix.removeprefix(".").lower() if path else "dot"
    if form not in FORMATS:
        raise UserError(f"{arguments.output}: its ending must be one of {', '.join(FORMATS)}")
    trace = open_trace(arguments, code=arguments.pipeline)
    limit = NODE_LIMIT if form != "dot" and not arguments.json else 0
    graph = pipeline_graph(trace) if arguments.pipeline else _program(arguments, trace, limit)
    if arguments.json:
        nodes = [asdict(node) | {"marks": sorted(node.marks)} for node in graph.nodes]
        edges = [asdict(edge) for edge in graph.edges]
        clusters = [asdict(cluster) for cluster in graph.clusters]
        print_json("graph", title=graph.title, nodes=nodes, edges=edges, clusters=clusters)
    if path is None:
        if not arguments.json:
            print(dot_text(graph), end="")
        return 0
    try:
        picture = render(dot_text(graph), form)
    except GraphvizError as error:
        raise UserError(str(error)) from error
    _write(path, picture)
    if not arguments.json:
        from views.highlight import visible

        print(visible(f"{path}: {plural(len(graph.nodes), 'node')}, {plural(len(graph.edges), 'edge')}"))
    return 0


def _program(arguments: argparse.Namespace, trace: Trace, limit: int) -> Graph:
    from explorer.session import UserError
    from views.export.program_graph import node_count, program_graph

    module, where = _module(arguments, trace)
    centre = arguments.around.removeprefix("%")
    function = arguments.function or module.entry
    if centre:
        function = _owner(module, centre, arguments.function)
    elif function not in module.computations:
        raise unknown_name("computation", function, module.computations)
    else:
        size = node_count(module, function)
        if limit and size > limit:
            raise UserError(
                f"{function} has {size:,} instructions with what it calls, and {limit:,} is the most that is laid out; "
                "narrow it with --around INSTRUCTION --radius N or --function F, or write the text with -o F.dot"
            )
    title = f"{trace.model}, {where}: {function}"
    return program_graph(module, title, function, centre, max(0, arguments.radius))


def _module(arguments: argparse.Namespace, trace: Trace) -> tuple[Module, str]:
    if arguments.input:
        return trace.input, "as read"
    if arguments.stage:
        stage = find_stage(trace, arguments.stage)
        return stage.after, f"after {stage.id}"
    return trace.final, "after all stages"


def _owner(module: Module, centre: str, function: str) -> str:
    """The computation that an instruction is in."""
    found = module.find(centre)
    if found is None or (function and found[0].name != function):
        names = [i.name for c in module.computations.values() if function in ("", c.name) for i in c]
        raise unknown_name("instruction", centre, names)
    return found[0].name


def _write(path: Path, picture: bytes) -> None:
    """Writes a file as a whole or not at all."""
    import os
    import tempfile

    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(picture)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
