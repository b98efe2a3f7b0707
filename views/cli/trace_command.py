"""`trace`: saves the recording of a compile to one file, to be opened elsewhere without the model."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from views.cli.arguments import add_compile, add_json, add_model, is_trace, open_recording, output_path
from views.cli.output import plural, print_json, print_lines, size_text

if TYPE_CHECKING:
    from compiler.backends.base import Executable, KernelRecord
    from explorer.session import Recording
    from explorer.trace import Trace

FORMS = ("loops", "llvm", "optimised-llvm", "asm")


def configure(parser: argparse.ArgumentParser) -> None:
    """MODEL, where to, and what of the machine code."""
    add_model(parser)
    parser.add_argument("-o", "--output", required=True, metavar="F.xtrace", help="the file to write")
    parser.add_argument(
        "--forms",
        default="loops",
        metavar="LIST",
        help=f"texts of kernels to keep, of {', '.join(FORMS)} (default loops; empty for none)",
    )
    parser.add_argument("--no-code", action="store_true", help="stop before machine code is made")
    add_json(parser)
    add_compile(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compiles, records, writes the file as a whole or not at all."""
    from explorer.session import UserError
    from explorer.trace_encode import save_trace

    if is_trace(arguments.model):
        raise UserError(f"{arguments.model}: is a saved trace already")
    path = output_path(arguments.output)
    forms = [form for form in arguments.forms.split(",") if form]
    wrong = next((form for form in forms if form not in FORMS), None)
    if wrong is not None:
        raise UserError(f"--forms: there is no form {wrong!r}; there are {', '.join(FORMS)}")
    trace = _with_forms(open_recording(arguments, code=not arguments.no_code), forms)
    save_trace(trace, str(path))
    facts = {
        "path": str(path),
        "bytes": path.stat().st_size,
        "stages": len(trace.stages),
        "kernels": len(trace.code.kernels) if trace.code else 0,
    }
    if arguments.json:
        print_json("trace", **facts)
        return 0
    from views.highlight import visible

    kernels = f", {plural(len(trace.code.kernels), 'kernel')}" if trace.code else ""
    size = size_text(path.stat().st_size)
    print_lines([visible(f"{path}: {plural(len(trace.stages), 'stage')}{kernels}, {size}")])
    return 0


def _with_forms(recording: Recording, forms: list[str]) -> Trace:
    """The trace with the kernels' texts in it, and the machine code given back."""
    trace = recording.trace
    if recording.compilation is None:
        return trace
    executable = recording.compilation.executable
    try:
        if trace.code is None or not forms:
            return trace
        kernels = tuple(_with_texts(executable, kernel, forms) for kernel in trace.code.kernels)
        return trace.having(code=replace(trace.code, kernels=kernels))
    finally:
        executable.close()


def _with_texts(executable: Executable, kernel: KernelRecord, forms: list[str]) -> KernelRecord:
    from compiler.backends.base import BackendError

    texts = dict(kernel.forms)
    for form in forms:
        try:
            texts[form] = executable.kernel_form(kernel.name, form)
        except BackendError:
            continue
    return replace(kernel, forms=texts)
