"""`check`: runs self-checking programs, several at a time, and counts."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from views.cli.arguments import (
    add_compile,
    add_json,
    compile_options,
    count,
)
from views.cli.output import print_json

if TYPE_CHECKING:
    from compiler.ir.program import Module
    from compiler.options import CompileOptions
    from explorer.check import CheckResult


def configure(parser: argparse.ArgumentParser) -> None:
    """PATH…, and how many at once."""
    parser.add_argument("paths", metavar="PATH", nargs="+", help="files, or folders of .mlir files")
    parser.add_argument(
        "--jobs", type=count(1), default=1, metavar="N", help="files to run at once (default 1)"
    )
    add_json(parser)
    add_compile(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints a line for each program that fails and `N passed, N failed`; 1 when any fails."""
    from compiler.backends.registry import find_backend
    from compiler.plugins import load_plugins
    from explorer.verification import model_files
    from views.highlight import visible

    options = compile_options(arguments)
    find_backend(options.backend, load_plugins(options.plugins).backends)
    files = [path for path in model_files(arguments.paths) if not path.endswith((".bc", ".mlirbc", ".hlo"))]
    passed = 0
    failures = []
    for result in _results(files, _Runner(options), max(1, arguments.jobs)):
        passed += result.passed
        if not result.passed:
            failures.append(result)
            if not arguments.json:
                print(visible(str(result)), flush=True)
    if arguments.json:
        rows = [
            {"file": r.path, "line": r.line, "function": r.function, "message": r.message} for r in failures
        ]
        print_json("check", passed=passed, failed=len(failures), failures=rows)
    else:
        print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


@dataclass(frozen=True)
class _Runner:
    """Compiles and runs one program; whatever goes wrong is that program's failure.

    Programs that ask for the interpreter by name (`interpreter.run_parallel`) are given to it as they were read, and so are,
    on its own backend, those whose sizes only a run tells.
    """

    options: CompileOptions

    def __call__(self, module: Module) -> Sequence[Any]:
        from compiler.analysis.refined_types import RefinementError
        from compiler.analysis.shape_refinement import is_dynamic_module, refine
        from compiler.driver import compile_module
        from compiler.ops.checks import CheckFailed
        from compiler.reference import EvaluationError
        from explorer.check import run_on_interpreter
        from explorer.session import user_errors

        if any(i.opcode.startswith("interpreter.") for c in module.computations.values() for i in c):
            return run_on_interpreter(module)
        try:
            if is_dynamic_module(module):
                module = refine(module, module.entry_computation.parameter_types).module
        except RefinementError as error:
            if self.options.backend != "interpreter":
                raise EvaluationError(str(error)) from error
            return run_on_interpreter(module)
        try:
            executable = compile_module(module, self.options).executable
            try:
                return executable.run([])
            finally:
                executable.close()
        except (CheckFailed, EvaluationError):
            raise
        except user_errors() as error:
            raise EvaluationError(str(error).splitlines()[0]) from error
        except Exception as error:
            raise EvaluationError(f"internal error: {type(error).__name__}: {error}") from error


def _results(files: Sequence[str], runner: _Runner, jobs: int) -> Iterator[CheckResult]:
    """What became of each program, in the order of the files."""
    from explorer.check import CheckResult, check_file

    if jobs == 1 or len(files) < 2:
        for path in files:
            yield from check_file(path, runner)
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    with ProcessPoolExecutor(min(jobs, len(files)), get_context("spawn")) as pool:
        pending = [(path, pool.submit(partial(check_file, path, runner))) for path in files]
        try:
            for path, future in pending:
                try:
                    yield from future.result()
                except BrokenProcessPool:
                    yield CheckResult(
                        path, 1, "", "not finished: the process that ran it, or one beside it, died"
                    )
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
