"""Every elementwise operation on every element type it takes, at odd lengths, against its own evaluation rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from guarded import Array
from whole_program import assert_same, run_cpu

from compiler.ir.program import Attributes, Module
from compiler.ir.semantics import OperationError
from compiler.ir.types import ELEMENTS, I1, ElementType, TensorType
from compiler.ops import OPERATIONS, SEMANTICS
from compiler.ops.record import Trait
from compiler.reference import EvaluationError, evaluate
from tests.builder import ModuleBuilder

_LENGTH = 71
_LOOSE = {"lgamma", "digamma", "power", "zeta", "polygamma", "bessel_i1e", "erfc", "tan", "sinh", "cosh"}
_OPCODES = sorted(
    name
    for name, record in OPERATIONS.items()
    if record.scalar is not None and Trait.ELEMENTWISE in record.traits and record.arity > 0
)


def _sample(e: ElementType, seed: int) -> Array:
    numbers = np.random.default_rng(seed)
    if e.kind == "bool":
        return numbers.integers(0, 2, _LENGTH).astype(np.bool_)
    if e.is_integer:
        width = e.dtype.itemsize
        raw = numbers.integers(0, 256, (_LENGTH, width)).astype(np.uint8).view(f"u{width}").reshape(-1)
        raw[:6] = [0, 1, 2, 3, 5, (1 << min(e.bits, 7)) - 1]
        if e.bits < 8:
            low = (raw.astype(np.int64) & ((1 << e.bits) - 1)).astype(np.int8)
            if e.kind == "int":
                low = (low ^ (1 << (e.bits - 1))) - (1 << (e.bits - 1))
            return low.astype(e.dtype)
        return raw.view(e.dtype)
    values = numbers.standard_normal(_LENGTH) * 3
    values[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5]
    if e.is_complex:
        return (values + 1j * numbers.standard_normal(_LENGTH)).astype(e.dtype)[8:]
    with np.errstate(all="ignore"):
        return values.astype(e.dtype)


def _attributes(opcode: str, kind: str) -> dict[str, Any]:
    if opcode == "compare":
        types = {
            "float": "FLOAT",
            "int": "SIGNED",
            "uint": "UNSIGNED",
            "bool": "UNSIGNED",
            "complex": "FLOAT",
        }
        return {"comparison_direction": "LE" if kind != "complex" else "EQ", "compare_type": types[kind]}
    return {"exponent_bits": 4, "mantissa_bits": 3} if opcode == "reduce_precision" else {}


def _module(e: ElementType) -> tuple[Module, list[str]]:
    """All operations that take the type, as results of one program."""
    b = ModuleBuilder()
    f = b.computation("main")
    length = _LENGTH - 8 * e.is_complex
    values = [f.parameter(e, length) for _ in range(2)]
    flags = f.parameter(I1, length)
    opcodes, results = [], []
    for opcode in _OPCODES:
        if opcode in ("convert", "bitcast_convert"):
            continue
        if opcode == "chlo.next_after" and (e.bits < 8 or e.name == "f8E8M0FNU"):
            continue  # Its formula is for formats with a sign bit in a whole byte.
        record, attributes = OPERATIONS[opcode], _attributes(opcode, e.kind)
        operands = [values[n % 2] for n in range(record.arity)]
        if opcode == "select":
            operands[0] = flags
        try:
            types = [f.type(name) for name in operands]
            kind = SEMANTICS.infer(opcode, types, Attributes(attributes), [])
            SEMANTICS.verify(opcode, types, Attributes(attributes), [], kind)
        except OperationError:
            continue
        results.append(f.add(opcode, kind, *operands, **attributes))
        opcodes.append(opcode)
    f.root(*results)
    return b.build(), opcodes


def _tolerance(opcode: str, e: ElementType) -> float:
    if not (e.is_float or e.is_complex):
        return 0.0
    steps = 2.0 ** -(23 if e.real.bits == 32 else 52) if e.is_complex else float(_epsilon(e))
    if OPERATIONS[opcode].transcendental or e.is_complex or opcode in ("sqrt", "remainder"):
        loose = 64.0 if opcode.removeprefix("chlo.") in _LOOSE or e.is_complex else 4.0
        return steps * (loose if e.bits >= 32 else 1.0)
    return 0.0


def _epsilon(e: ElementType) -> float:
    one = np.ones((), e.dtype).astype(np.float64)
    raw = np.ones(1, e.dtype).view(f"u{e.dtype.itemsize}") + 1
    return float(raw.view(e.dtype).astype(np.float64)[0] - one)


@pytest.mark.parametrize("name", list(ELEMENTS))
def test_every_operation(name: str) -> None:
    e = ELEMENTS[name]
    module, opcodes = _module(e)
    numbers = np.random.default_rng(3)
    arguments = [_sample(e, 1), _sample(e, 2)]
    arguments.append(numbers.integers(0, 2, arguments[0].shape).astype(np.bool_))
    wanted = evaluate(module, arguments)
    got = run_cpu(module, arguments, disable="fusion,constant-folding,cse")
    for opcode, left, right in zip(opcodes, got, wanted, strict=True):
        tolerance = _tolerance(opcode, e)
        try:
            assert_same([left], [right], rtol=tolerance, atol=tolerance if tolerance else 0.0)
        except AssertionError as error:
            raise AssertionError(f"{opcode} of {name}: {error}") from error


@pytest.mark.parametrize("source", list(ELEMENTS))
def test_conversions(source: str) -> None:
    e = ELEMENTS[source]
    b = ModuleBuilder()
    f = b.computation("main")
    sample = _sample(e, 5)
    value = f.parameter(e, *sample.shape)
    targets = [target for target in ELEMENTS.values() if not (e.is_complex and not target.is_complex)]
    names = [f.add("convert", TensorType(target, sample.shape), value) for target in targets]
    same = [
        t
        for t in ELEMENTS.values()
        if t.bits == e.bits and not t.is_complex and not e.is_complex and t.bits > 1
    ]
    names += [f.add("bitcast_convert", TensorType(target, sample.shape), value) for target in same]
    f.root(*names)
    module = b.build()
    try:
        wanted = evaluate(module, [sample])
    except EvaluationError as error:
        pytest.skip(str(error))
    got = run_cpu(module, [sample], disable="fusion,constant-folding,cse")
    for target, left, right in zip([*targets, *same], got, wanted, strict=True):
        try:
            assert_same([left], [right])
        except AssertionError as error:
            raise AssertionError(f"{source} to {target.name}: {error}") from error
