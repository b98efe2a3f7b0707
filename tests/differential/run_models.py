"""Runs a folder of exported models on a backend and compares with their stored outputs: a table, then `N passed, N failed`.

    python tests/differential/run_models.py FOLDER [NAME...] [--backend cpu] [--skip KIND,KIND] [--timeout SECONDS]

Each `FOLDER/NAME` holds `model.mlir` and `spec.json`; `FOLDER/make_inputs.py` makes the inputs and compares the outputs.
Every model runs as the console program runs it, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_one(folder: Path, name: str, backend: str, timeout: float, scratch: Path) -> tuple[bool, str]:
    """Runs one model; tells whether its outputs are right, and what was seen."""
    inputs, outputs = scratch / f"{name}.inputs.npz", scratch / f"{name}.outputs.npz"
    maker = [sys.executable, str(folder / "make_inputs.py")]
    subprocess.run([*maker, "inputs", str(folder / name), str(inputs)], check=True, capture_output=True)
    model = folder / name / "model.mlir"
    program = [sys.executable, "-m", "views.main", "run", str(model), "--inputs", str(inputs)]
    program += ["--outputs", str(outputs), "--backend", backend]
    try:
        ran = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return False, f"longer than {timeout:g} s"
    if ran.returncode:
        return False, (ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1][:150]
    checked = subprocess.run(
        [*maker, "check", str(folder / name), str(outputs)], capture_output=True, text=True
    )
    said = (checked.stdout.strip() or checked.stderr.strip()).splitlines()
    inputs.unlink()
    outputs.unlink()
    return checked.returncode == 0, said[-1][:150] if said else ""


def main() -> int:
    """Runs the models and prints the table."""
    parser = argparse.ArgumentParser(description="Runs exported models and compares their outputs.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--skip", default="dynamic,sharded,linalg-library", help="kinds that are left out")
    parser.add_argument("--timeout", type=float, default=600.0)
    arguments = parser.parse_intermixed_args()
    folder: Path = arguments.folder.resolve()
    skipped = set(arguments.skip.split(","))
    names = arguments.names or sorted(path.parent.name for path in folder.glob("*/spec.json"))
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="models-") as scratch:
        for name in names:
            kind = json.loads((folder / name / "spec.json").read_text())["kind"]
            if kind in skipped and not arguments.names:
                continue
            started = time.monotonic()
            right, said = run_one(folder, name, arguments.backend, arguments.timeout, Path(scratch))
            passed, failed = passed + right, failed + (not right)
            mark = "pass" if right else "FAIL"
            print(f"{mark}  {name:<34} {kind:<16} {time.monotonic() - started:7.1f} s  {said}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
