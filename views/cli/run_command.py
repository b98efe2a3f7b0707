"""`run`: compiles and runs a model; compares its outputs with expected ones, and measures the time."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from views.cli.arguments import (
    add_compile,
    add_inputs,
    add_json,
    add_model,
    count,
    entry_arguments,
    open_session,
    tolerance,
)
from views.cli.output import duration_text, print_json, print_lines, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from compiler.backends.base import Executable
    from compiler.ir.types import TensorType
    from explorer.case import Verdict
    from explorer.session import Session

    Array = np.ndarray[Any, np.dtype[Any]]


def configure(parser: argparse.ArgumentParser) -> None:
    """MODEL, arrays in and out, what is right, and how often to run."""
    add_model(parser)
    add_inputs(parser)
    parser.add_argument("--outputs", metavar="F.npz", help="write the outputs: out0, out1, …")
    parser.add_argument("--widen", action="store_true", help="write narrow floats as f32, not as raw bits")
    parser.add_argument("--expect", metavar="F.npz", help="right outputs; exit status 1 when any differs")
    parser.add_argument(
        "--rtol", type=tolerance, metavar="X", help="relative tolerance of an f32 (default 1e-4)"
    )
    parser.add_argument(
        "--atol", type=tolerance, metavar="X", help="absolute, in parts of the largest value (default 1e-4)"
    )
    parser.add_argument(
        "--repeat", type=count(0), default=0, metavar="N", help="run N times more and time them"
    )
    add_json(parser)
    add_compile(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints each output's type and values, differences and times; 1 when an expected output differs."""
    from explorer.arrays import flat_types, load_arrays, save_arrays
    from views.cli.arguments import output_path

    session = open_session(arguments)
    types = flat_types([session.parsed.module.entry_computation.result_type])
    inputs = entry_arguments(arguments, session)
    wanted = load_arrays(arguments.expect, "out", types, widened=True) if arguments.expect else None
    target = output_path(arguments.outputs) if arguments.outputs else None
    outputs, times = _outputs(session, inputs, arguments.repeat)
    if target is not None:
        save_arrays(str(target), "out", outputs, widen=arguments.widen)
    verdict = _judge(arguments, session, outputs, wanted)
    if arguments.json:
        _print_json(session, types, outputs, times, verdict)
    else:
        print_lines(_lines(types, outputs, times, verdict))
    return 0 if verdict is None or verdict.result == "good" else 1


def _outputs(
    session: Session, inputs: Sequence[Array], repeat: int
) -> tuple[list[Array], dict[str, list[float]]]:
    from explorer.session import record

    started = time.perf_counter()
    recording = record(replace(session, options=replace(session.options, keep_rewrites=False)))
    assert recording.compilation is not None
    compiled = time.perf_counter()
    executable = recording.compilation.executable
    try:
        outputs = list(_checked(executable, inputs))
        times = {"compile": [compiled - started], "run": []}
        for _ in range(repeat):
            begin = time.perf_counter()
            executable.run(inputs)
            times["run"].append(time.perf_counter() - begin)
        return outputs, times
    finally:
        executable.close()


def _checked(executable: Executable, inputs: Sequence[Array]) -> Sequence[Array]:
    """Runs once; a check inside the program that fails is the user's to know."""
    from compiler.ops.checks import CheckFailed
    from compiler.reference import EvaluationError
    from explorer.session import UserError

    try:
        return executable.run(inputs)
    except (CheckFailed, EvaluationError) as error:
        raise UserError(str(error)) from error


def _judge(
    arguments: argparse.Namespace, session: Session, outputs: Sequence[Array], wanted: list[Array] | None
) -> Verdict | None:
    from explorer.case import Expected, Tolerance

    if wanted is None:
        return None
    given = {name: getattr(arguments, name) for name in ("rtol", "atol")}
    tolerance = Tolerance(**{name: value for name, value in given.items() if value is not None})
    return Expected(tuple(wanted), tolerance).judge(outputs, session.parsed.module)


def _summary(array: Array) -> dict[str, Any]:
    """Smallest, largest and mean of the finite values, and how many are not finite."""
    import numpy as np

    wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    finite = wide[np.isfinite(wide)]
    facts: dict[str, Any] = {"nan": int(np.isnan(wide).sum()), "infinite": int(np.isinf(wide).sum())}
    if finite.size:
        size = np.abs(finite) if array.dtype.kind == "c" else finite
        facts |= {"smallest": float(size.min()), "largest": float(size.max()), "mean": float(size.mean())}
    return facts


def _lines(
    types: Sequence[TensorType],
    outputs: Sequence[Array],
    times: dict[str, list[float]],
    verdict: Verdict | None,
) -> list[str]:
    from compiler.ir.hlo_text import shape_text

    rows = []
    for index, (kind, array) in enumerate(zip(types, outputs, strict=True)):
        facts = _summary(array)
        numbers = [f"{facts[key]:.6g}" if key in facts else "" for key in ("smallest", "largest", "mean")]
        odd = [f"{facts['nan']} NaN"] * bool(facts["nan"]) + [f"{facts['infinite']} inf"] * bool(
            facts["infinite"]
        )
        rows.append((f"out{index}", shape_text(kind, False), *numbers, ", ".join(odd)))
    lines = table(("output", "type", "smallest", "largest", "mean", ""), rows, right=(2, 3, 4))
    if verdict is not None:
        lines += ["", *_difference_lines(verdict)]
    lines += ["", f"compiled in {duration_text(times['compile'][0])}"]
    if times["run"]:
        shortest, middle = duration_text(min(times["run"])), duration_text(median(times["run"]))
        lines.append(f"{len(times['run'])} runs: min {shortest}, median {middle}")
    return lines


def _difference_lines(verdict: Verdict) -> list[str]:
    rows = [
        (
            f"out{found.index}",
            "equal" if found.equal else "within" if found.within else "DIFFERS",
            f"{found.largest_absolute:.3g}",
            f"{found.largest_relative:.3g}",
            f"{found.largest_ulp:.4g}",
            f"{found.differing} of {found.total}",
        )
        for found in verdict.differences
    ]
    header = ("output", "", "absolute", "relative", "ULP", "elements")
    lines = table(header, rows, right=(2, 3, 4, 5)) if rows else []
    return lines + ([f"wrong: {verdict.detail}"] if verdict.detail else ["all as expected"])


def _print_json(
    session: Session,
    types: Sequence[TensorType],
    outputs: Sequence[Array],
    times: dict[str, list[float]],
    verdict: Verdict | None,
) -> None:
    from compiler.ir.hlo_text import shape_text

    differences = {found.index: asdict(found) for found in verdict.differences} if verdict else {}
    print_json(
        "run",
        model=session.path,
        backend=session.options.backend,
        outputs=[
            {
                "name": f"out{index}",
                "type": shape_text(kind, False),
                "shape": list(kind.shape),
                **_summary(array),
                "difference": differences.get(index),
            }
            for index, (kind, array) in enumerate(zip(types, outputs, strict=True))
        ],
        expected=None if verdict is None else {"result": verdict.result, "detail": verdict.detail},
        seconds={
            "compile": times["compile"][0],
            "runs": times["run"],
            "min": min(times["run"]) if times["run"] else None,
            "median": median(times["run"]) if times["run"] else None,
        },
    )
