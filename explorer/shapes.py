"""Shapes of the actual arguments: what the user gives them as, and the program made static for them.

A model with `?` dimensions is refined before anything else sees it. The shapes come from the arrays it is to run on, or are
written out (`arg1=3x4`); the leading integer scalars of exported programs, which hold sizes, take a single number (`arg0=3`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from compiler.analysis.refined_types import RefinementError, is_static
from compiler.analysis.shape_refinement import is_dynamic_module, refine
from compiler.frontend.errors import SourceError
from compiler.frontend.parsed import Parsed
from compiler.ir.program import Module
from compiler.ir.types import DYNAMIC, ElementType, TensorType, Type
from compiler.ops.constraints import same_shape
from explorer.arrays import as_type, read_npz
from explorer.session import Session, UserError, read_sources

Array = np.ndarray[Any, np.dtype[Any]]

_SHAPE = re.compile(r"arg(\d{1,6})=(\d{1,18}(?:x\d{1,18})*)")
_MAX_ELEMENTS = 1 << 48


def with_shapes(session: Session, shapes: Sequence[str], inputs: str | None = None) -> Session:
    """The session of the program made static for argument shapes (`arg0=2x3`) or for the arrays of a file.

    A static program stays as it is; shapes given for it must be its own.

    Raises:
        UserError: when a shape is malformed, missing, or does not fit the model.
        SourceError: when the program cannot be made static for these shapes; tells where.
    """
    module = (session.source or session.parsed).module
    declared = module.entry_computation.parameter_types
    written = _written(shapes, len(declared))
    if not is_dynamic_module(module):
        for index, sizes in written.items():
            _fitted(session.path, index, declared[index], sizes)
        return session
    types: list[Type] = list(declared)
    values: dict[int, Array] = {}
    stored = read_npz(inputs) if inputs else {}
    leading = _leading_integers(declared)
    for index, kind in enumerate(declared):
        array = stored.get(f"arg{index}")
        if index in leading and (array is not None or index in written):
            values[index] = _size_value(session.path, index, kind, array, written.get(index))
        elif index in written:
            types[index] = _fitted(session.path, index, kind, written[index])
        elif array is not None and isinstance(kind, TensorType):
            types[index] = _fitted(inputs or "", index, kind, array.shape)
    _require_all(session.path, types, inputs)
    for index in leading:
        if index not in values and _is_platform(module, index):
            values[index] = np.zeros((), np.int32)
    guessed = _guess(leading, declared, types, values)
    return for_arguments(session, types, {**guessed, **values})


def for_arguments(session: Session, types: Sequence[Type], values: Mapping[int, Array]) -> Session:
    """The session of the program refined for static argument types, made once for the same types and sizes.

    Raises:
        UserError, SourceError: see `with_shapes`.
    """
    source = session.source or session.parsed
    key = (tuple(types), tuple((index, int(value)) for index, value in sorted(values.items())))
    if key not in session.by_shape:
        session.by_shape[key] = _refined(session.path, source, types, values)
    return replace(session, parsed=session.by_shape[key], source=source, sizes=dict(values))


def _refined(path: str, source: Parsed, types: Sequence[Type], values: Mapping[int, Array]) -> Parsed:
    from compiler.ir.verifier import VerificationError, verify
    from compiler.ops import SEMANTICS

    try:
        refined = refine(source.module, types, values)
        positions = dict(source.positions)
        for name, origin in refined.origins.items():
            if origin in source.positions:
                positions[name] = source.positions[origin]
        verify(refined.module, SEMANTICS)
    except RefinementError as error:
        if error.instruction is None:
            raise UserError(f"{path}: {error}") from None
        message = f"{error.subject}: {error.message}"
        raise _source_error(path, source.positions.get(error.instruction.name), message) from None
    except VerificationError as error:
        problem = error.problems[0]
        message = f"{problem.instruction or problem.computation}, with the sizes given: {problem.message}"
        raise _source_error(path, positions.get(problem.instruction), message) from None
    return Parsed(refined.module, positions, source.filename)


def _source_error(path: str, position: tuple[int, int] | None, message: str) -> SourceError:
    line, column = position or (0, 0)
    text = read_sources(path).get(path, "").split("\n")
    return SourceError(path, line, column, message, text[line - 1] if 0 < line <= len(text) else "")


def _written(shapes: Sequence[str], count: int) -> dict[int, tuple[int, ...]]:
    """Sizes by argument number, as the user wrote them."""
    found: dict[int, tuple[int, ...]] = {}
    for text in shapes:
        match = _SHAPE.fullmatch(text)
        if match is None:
            raise UserError(f"--shape {text}: write it as arg0=2x3")
        index, sizes = int(match[1]), tuple(map(int, match[2].split("x")))
        if index >= count:
            raise UserError(
                f"--shape {text}: the model takes {count} argument{'s' * (count != 1)}, from arg0 on"
            )
        if index in found:
            raise UserError(f"--shape {text}: arg{index} has a shape already")
        if math.prod(sizes) > _MAX_ELEMENTS:
            raise UserError(f"--shape {text}: {math.prod(sizes)} elements are more than can be held")
        found[index] = sizes
    return found


def _fitted(where: str, index: int, declared: Type, sizes: tuple[int, ...]) -> TensorType:
    if not isinstance(declared, TensorType) or not same_shape(sizes, declared.shape):
        shown = "x".join(map(str, sizes)) or "scalar"
        raise UserError(f"{where}: arg{index} cannot have the shape {shown}: the model takes {declared}")
    return declared.with_shape(sizes)


def _is_platform(module: Module, index: int) -> bool:
    """True for the argument that says which of several platforms, counted from 0, an exported program runs on."""
    if index >= len(module.parameter_attributes):
        return False
    return module.parameter_attributes[index].get("jax.global_constant") == "_platform_index"


def _leading_integers(declared: Sequence[Type]) -> list[int]:
    """The arguments that may hold sizes: integer scalars before all others."""
    found = []
    for index, kind in enumerate(declared):
        if not isinstance(kind, TensorType) or kind.rank or kind.element.kind not in ("int", "uint"):
            break
        found.append(index)
    return found


def _size_value(
    path: str, index: int, kind: Type, array: Array | None, written: tuple[int, ...] | None
) -> Array:
    assert isinstance(kind, TensorType) and isinstance(kind.element, ElementType)
    if written is None:
        assert array is not None
        return as_type(array, kind, f"arg{index}")
    if len(written) != 1:
        raise UserError(f"{path}: arg{index} is the integer {kind}: give its value, as arg{index}=3")
    if array is not None and int(array) != written[0]:
        raise UserError(f"{path}: arg{index} is {int(array)} in the inputs, but --shape says {written[0]}")
    if written[0] >= 1 << (kind.element.bits - 1):
        raise UserError(f"{path}: arg{index}: {kind} does not hold {written[0]}")
    return np.asarray(written[0]).astype(kind.element.dtype)


def _require_all(path: str, types: Sequence[Type], inputs: str | None) -> None:
    missing = [(index, kind) for index, kind in enumerate(types) if not is_static(kind)]
    if not missing:
        return
    listed = ", ".join(f"arg{index} ({kind})" for index, kind in missing)
    index, kind = missing[0]
    sizes = kind.shape if isinstance(kind, TensorType) else ()
    example = "x".join("2" if size == DYNAMIC else str(size) for size in sizes)
    lacking = f"{inputs} holds no arg{index}, and " if inputs else ""
    raise UserError(
        f"{path}: {lacking}the model's sizes are dynamic: give the shape of {listed}, as --shape arg{index}={example}"
    )


def _guess(
    leading: Sequence[int], declared: Sequence[Type], types: Sequence[Type], values: Mapping[int, Array]
) -> dict[int, Array]:
    """The one size that was left open, where all `?` dimensions of the arguments agree on it."""
    sizes = set()
    for before, after in zip(declared, types, strict=True):
        if isinstance(before, TensorType) and isinstance(after, TensorType):
            pairs = zip(before.shape, after.shape, strict=True)
            sizes |= {known for size, known in pairs if size == DYNAMIC}
    open_arguments = [index for index in leading if index not in values]
    if len(open_arguments) != 1 or len(sizes) != 1:
        return {}
    kind = declared[open_arguments[0]]
    assert isinstance(kind, TensorType)
    return {open_arguments[0]: np.asarray(sizes.pop()).astype(kind.element.dtype)}
