"""The state of a search in a file, so that an interrupted one goes on where it stopped.

A state belongs to one question: model, inputs, oracle and options, told by a digest. Verdicts of another question are
never taken for this one's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compiler.decisions.overrides import write_atomically
from compiler.ir.fingerprint import fingerprint_module
from compiler.options import CompileOptions
from explorer.case import BAD, GOOD, UNKNOWN, Case, Command, Expected, Verdict
from explorer.session import UserError

VERSION = 1


def question_digest(case: Case, options: CompileOptions) -> str:
    """A digest of everything that verdicts depend on, plugin files' contents included."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(fingerprint_module(case.module))
    digest.update("\0".join(i.name for c in case.module.computations.values() for i in c).encode())
    _add_arrays(digest, case.inputs)
    if isinstance(case.oracle, Expected):
        _add_arrays(digest, case.oracle.outputs)
        digest.update(repr(case.oracle.tolerance).encode())
    elif isinstance(case.oracle, Command):
        digest.update(repr(case.oracle.words).encode())
    facts = (options.backend, sorted(options.values.items()), sorted(options.overrides.items()))
    digest.update(repr((*facts, options.fp_fast, options.restraint)).encode())
    for plugin in options.plugins:
        digest.update(Path(plugin).read_bytes())
    return digest.hexdigest()


def _add_arrays(digest: Any, arrays: Sequence[Any]) -> None:
    for array in arrays:
        digest.update(repr((str(array.dtype), array.shape)).encode())
        digest.update(array.tobytes())


def load_state(path: str, question: str) -> dict[str, Verdict] | None:
    """Verdicts of an earlier search; an empty mapping when there is no file yet, None when it is another question's.

    Raises:
        UserError: when the file is not a state of a search.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: is not the state of a search ({error})") from None
    try:
        if data["version"] != VERSION or data["question"] != question:
            return None
        found = {
            str(key): Verdict(row["result"], str(row["detail"])) for key, row in data["verdicts"].items()
        }
    except (KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: is not the state of a search") from None
    return {key: verdict for key, verdict in found.items() if verdict.result in (GOOD, BAD, UNKNOWN)}


def save_state(path: str, question: str, known: Mapping[str, Verdict]) -> None:
    """Writes the state, as a whole or not at all."""
    verdicts = {key: {"result": v.result, "detail": v.detail} for key, v in known.items()}
    document = {"version": VERSION, "question": question, "verdicts": verdicts}
    write_atomically(path, json.dumps(document, indent=1) + "\n")
