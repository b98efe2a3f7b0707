"""`kernels`: what the machine code consists of, and each kernel's loops, LLVM IR or assembly."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from views.cli.arguments import add_compile, add_json, add_model, is_trace, open_recording, unknown_name
from views.cli.output import duration_text, plural, print_json, print_lines, size_text, table

if TYPE_CHECKING:
    from compiler.backends.base import Executable, KernelRecord
    from explorer.trace import CodeRecord, Trace

FORMS = ("loops", "llvm", "optimised-llvm", "asm")


def configure(parser: argparse.ArgumentParser) -> None:
    """MODEL, a kernel, a form."""
    add_model(parser)
    parser.add_argument("name", metavar="NAME", nargs="?", default="", help="one kernel (default: a table)")
    parser.add_argument(
        "--emit", choices=FORMS, help="print its text in this form (all kernels' without NAME)"
    )
    add_json(parser)
    add_compile(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints the table of kernels, or the text of one or all."""
    if is_trace(arguments.model):
        from explorer.trace_decode import load_trace

        return _report(load_trace(arguments.model), None, arguments)
    recording = open_recording(arguments)
    assert recording.compilation is not None
    executable = recording.compilation.executable
    try:
        return _report(recording.trace, executable, arguments)
    finally:
        executable.close()


def _report(trace: Trace, executable: Executable | None, arguments: argparse.Namespace) -> int:
    from explorer.session import UserError

    if trace.code is None:
        raise UserError(f"{arguments.model}: the recording has no machine code {trace.error}".rstrip())
    kernels = list(trace.code.kernels)
    if arguments.name:
        kernels = [kernel for kernel in kernels if kernel.name == arguments.name.removeprefix("%")]
        if not kernels:
            raise unknown_name("kernel", arguments.name, [kernel.name for kernel in trace.code.kernels])
    texts = {k.name: _form(k, arguments.emit, executable) for k in kernels} if arguments.emit else {}
    if arguments.emit and arguments.name and texts[kernels[0].name] is None:
        raise UserError(f"kernel {kernels[0].name} has no {arguments.emit} form here: {_why(executable)}")
    if arguments.json:
        rows = [_row(kernel) | ({"text": texts[kernel.name]} if texts else {}) for kernel in kernels]
        print_json(
            "kernels",
            model=trace.model,
            backend=trace.code.backend,
            seconds=trace.code.seconds,
            emit=arguments.emit,
            kernels=rows,
        )
    elif arguments.emit:
        _print_texts(kernels, texts, titled=not arguments.name)
    else:
        _print_kernels(trace, trace.code, kernels, detailed=bool(arguments.name))
    return 0


def _why(executable: Executable | None) -> str:
    return "a library does it" if executable else "the trace was saved without it (trace --forms)"


def _form(kernel: KernelRecord, form: str, executable: Executable | None) -> str | None:
    from compiler.backends.base import BackendError

    if form in kernel.forms:
        return kernel.forms[form]
    if executable is None:
        return None
    try:
        return executable.kernel_form(kernel.name, form)
    except BackendError:
        return None


def _print_texts(kernels: list[KernelRecord], texts: dict[str, str | None], titled: bool) -> None:
    from views.highlight import visible

    for kernel in kernels:
        text = texts[kernel.name]
        if titled:
            print(visible(f"; ---- {kernel.name} ({kernel.kind})"))
        print_lines(
            visible(line.replace("\t", "        ")) for line in (text or "; no such form").splitlines()
        )


def _print_kernels(trace: Trace, code: CodeRecord, kernels: list[KernelRecord], detailed: bool) -> None:
    rows = [
        (
            kernel.name,
            kernel.kind,
            size_text(kernel.bytes_read),
            size_text(kernel.bytes_written),
            f"{kernel.flops:,.0f}" if kernel.flops else "",
            str(kernel.tasks) if kernel.tasks > 1 else "",
            kernel.code,
        )
        for kernel in kernels
    ]
    header = ("kernel", "kind", "reads", "writes", "FLOPs", "tasks", "code")
    print_lines(table(header, rows, right=(2, 3, 4, 5), shrink=0))
    if detailed:
        print_lines(["", *_instructions(trace, kernels[0])])
        return
    different = len({kernel.code for kernel in kernels if kernel.code})
    made = f", {different:,} different" if different else ""
    print(
        f"{plural(len(kernels), 'kernel')}{made}, for {code.backend}, made in {duration_text(code.seconds)}"
    )


def _instructions(trace: Trace, kernel: KernelRecord) -> list[str]:
    """The instructions that a kernel computes, with the user's lines."""
    from compiler.ir.hlo_text import format_instruction
    from compiler.ir.location import source_line
    from views.highlight import visible

    lines = []
    for computation, name in kernel.instructions:
        owner = trace.final.computations.get(computation)
        if owner is None or name not in owner.instructions:
            continue
        instruction = owner[name]
        line = source_line(instruction.location)
        where = f"   # {line}" if line is not None else ""
        lines.append(visible(f"  {format_instruction(instruction, owner, layout=False)}{where}"))
    return lines


def _row(kernel: KernelRecord) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "kind": kernel.kind,
        "instructions": [list(place) for place in kernel.instructions],
        "bytes_read": kernel.bytes_read,
        "bytes_written": kernel.bytes_written,
        "flops": kernel.flops,
        "tasks": kernel.tasks,
        "code": kernel.code,
        "forms": sorted(kernel.forms),
    }
