"""Speed, measured and printed, never asserted: `make bench`. Runs in turn (A B A B …), fastest and middle ratio."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

from compiler.driver import compile_module, optimise
from compiler.frontend.load import load
from compiler.options import CompileOptions
from explorer.arrays import load_arrays
from explorer.recorder import Recorder
from explorer.trace import Trace

SAMPLES = Path(__file__).resolve().parents[2] / "sample_models"
MODELS = sorted(path.parent.name for path in SAMPLES.glob("*/model.mlir"))

pytestmark = pytest.mark.bench


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def in_turn(
    first: Callable[[], object], second: Callable[[], object], pairs: int
) -> tuple[float, float, float]:
    """Fastest of each, and the middle of the pairwise ratios second / first."""
    first(), second()
    taken = [(seconds(first), seconds(second)) for _ in range(pairs)]
    return min(a for a, _ in taken), min(b for _, b in taken), median(b / a for a, b in taken)


@pytest.mark.parametrize("model", MODELS)
def test_recording_against_not_recording(model: str) -> None:
    module = load(str(SAMPLES / model / "model.mlir")).module

    def silent() -> None:
        optimise(module, CompileOptions(keep_rewrites=False))

    def recorded() -> None:
        optimise(module, CompileOptions(), Recorder(Trace(model, module)))

    off, on, ratio = in_turn(silent, recorded, 15)
    print(f"\n{model:<20} not recorded {off * 1e3:8.2f} ms   recorded {on * 1e3:8.2f} ms   ratio {ratio:.2f}")


@pytest.mark.parametrize("model", MODELS)
def test_against_xla(model: str) -> None:
    jax = pytest.importorskip("jax", reason="XLA is in the extra `oracle`")
    import numpy as np
    from jax.extend import backend as jax_backend

    path = SAMPLES / model / "model.mlir"
    module = load(str(path)).module
    arguments = load_arrays(
        str(SAMPLES / model / "inputs.npz"), "arg", module.entry_computation.parameter_types
    )
    ours = compile_module(module, CompileOptions()).executable
    client = jax_backend.get_backend("cpu")
    devices = jax.devices("cpu")[:1]
    try:
        theirs = client.compile_and_load(path.read_text(), devices)
    except Exception as error:
        pytest.skip(f"XLA does not take it: {str(error).splitlines()[0][:80]}")
    held = [jax.device_put(argument, devices[0]) for argument in arguments]

    def xla() -> None:
        for out in theirs.execute(held):
            np.asarray(out)

    xla_time, our_time, ratio = in_turn(xla, lambda: ours.run(arguments), 200)
    print(
        f"\n{model:<20} XLA {xla_time * 1e6:9.1f} µs   ours {our_time * 1e6:9.1f} µs   ours / XLA {ratio:.2f}"
    )
    ours.close()
