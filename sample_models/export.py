"""Exports the sample models anew: StableHLO text with source locations, inputs, and right outputs.

`python sample_models/export.py [NAME ...]` needs jax, and for the PyTorch model torch and torchax; models whose
framework is not installed are left as they are. The outputs are XLA's, on the CPU. Each is also computed in double
precision, and the tolerance in `index.json` is sized by how far the two are apart.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np
from jax.extend import source_info_util

HERE = Path(__file__).resolve().parent
LOCATIONS_LEAVE_OUT = r"^.*/(site-packages|sample_models/[a-z0-9_]+)/"
"""What is cut from the front of file names in locations, so that they are the same on every machine."""


def model_names() -> list[str]:
    """The folders beside this file that hold a model's source."""
    return sorted(path.parent.name for path in HERE.glob("*/*.py") if path.stem == path.parent.name)


def load_source(name: str) -> ModuleType:
    """Imports a model's source file under the model's name."""
    path = HERE / name / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def without_named_tensors() -> Iterator[None]:
    """Lets torchax load with releases of torch that have dropped named tensors, whose operations it looks up.

    None of the models uses one, so any other overload of the operation will do in torchax's tables.
    """
    from torch._ops import OpOverloadPacket

    lookup = OpOverloadPacket.__getattr__

    def lenient(packet: Any, name: str) -> Any:
        names_dimensions = "dimname" in name.lower() or "names" in name.split("_")
        if names_dimensions and name not in packet.overloads():
            name = packet.overloads()[0]
        return lookup(packet, name)

    OpOverloadPacket.__getattr__ = lenient
    try:
        yield
    finally:
        OpOverloadPacket.__getattr__ = lookup


def torch_function(name: str, model: Any) -> tuple[Any, Any]:
    """A PyTorch module as a JAX function of its weights and inputs, and the weights."""
    import torch

    with without_named_tensors():
        import torchax

        weights, function = torchax.extract_jax(model)

    def call(weights: Any, inputs: Any) -> Any:
        return function(weights, inputs)

    call.__name__ = name
    for package in (torch, torchax):
        source_info_util.register_exclusion(str(Path(package.__file__).parent))
    return call, jax.tree.map(np.asarray, weights)


def function_and_arguments(name: str) -> tuple[Any, tuple[Any, ...]]:
    """A model as a JAX function and the arguments to call it with."""
    source = load_source(name)
    model = getattr(source, name)
    arguments = source.example_arguments()
    if not name.startswith("torch_"):
        return model, arguments
    call, weights = torch_function(name, model())
    return call, (weights, tuple(argument.numpy() for argument in arguments))


def in_double(values: Any) -> Any:
    """The same arguments with every float widened to 64 bits."""
    return jax.tree.map(lambda x: np.float64(x) if np.asarray(x).dtype == np.float32 else x, values)


def tolerance(outputs: list[np.ndarray[Any, Any]], exact: list[np.ndarray[Any, Any]]) -> dict[str, float]:
    """Ten times the error of XLA's own outputs, at least 1e-5 of the largest value; with a relative part."""
    scale = max((float(np.max(np.abs(value))) for value in outputs if value.dtype.kind == "f"), default=0.0)
    error = max(float(np.max(np.abs(a - b))) for a, b in zip(outputs, exact, strict=True))
    return {"absolute": float(f"{max(10 * error, 1e-5 * scale):.1e}"), "relative": 1e-5}


def export(name: str) -> dict[str, Any]:
    """Writes one model's files and returns its line of the index."""
    function, arguments = function_and_arguments(name)
    lowered = jax.jit(function, keep_unused=True).lower(*arguments)
    text = lowered.as_text(debug_info=True)
    folder = HERE / name
    (folder / "model.mlir").write_text(text)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
    outputs = [np.asarray(leaf) for leaf in jax.tree.leaves(lowered.compile()(*arguments))]
    with jax.enable_x64(True):
        exact = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(function)(*in_double(arguments)))]
    np.savez_compressed(folder / "inputs.npz", **{f"arg{index}": leaf for index, leaf in enumerate(leaves)})
    np.savez_compressed(
        folder / "expected.npz", **{f"out{index}": leaf for index, leaf in enumerate(outputs)}
    )
    return {
        "name": name,
        "framework": "PyTorch" if name.startswith("torch_") else "JAX",
        "what": (load_source(name).__doc__ or "").strip().splitlines()[0],
        "arguments": len(leaves),
        "outputs": len(outputs),
        "tolerance": tolerance(outputs, exact),
    }


def main() -> int:
    """Exports the models named on the command line, or all of them."""
    parser = argparse.ArgumentParser(description="Export the sample models anew.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="models to export; all of them without any")
    names = parser.parse_args().names or model_names()
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_hlo_source_file_canonicalization_regex", LOCATIONS_LEAVE_OUT)
    source_info_util.register_exclusion(__file__)
    index_path = HERE / "index.json"
    known = json.loads(index_path.read_text()) if index_path.exists() else []
    entries = {entry["name"]: entry for entry in known}
    for name in names:
        try:
            entries[name] = export(name)
        except ModuleNotFoundError as error:
            print(f"{name}: left as it is, {error.name} is not installed")
        else:
            print(f"{name}: {entries[name]['tolerance']}")
    index_path.write_text(json.dumps([entries[name] for name in sorted(entries)], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
