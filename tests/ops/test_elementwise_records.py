"""Every elementwise record on every element type: types agree, nothing warns, scalar rules compute the same."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.ir.program import NO_ATTRIBUTES, Attributes
from compiler.ir.semantics import OperationError
from compiler.ir.types import ELEMENTS, TensorType, tensor
from compiler.ops import OPERATIONS, SEMANTICS
from compiler.ops.record import Trait
from compiler.reference import evaluate
from tests.builder import ModuleBuilder
from tests.ops.operation_calls import call, decomposed, samples

ATTRIBUTES = {
    "compare": {"comparison_direction": "LE"},
    "reduce_precision": {"exponent_bits": 4, "mantissa_bits": 2},
}
APART = {"convert", "bitcast_convert", "select", "uniform_quantize", "uniform_dequantize"}
UNIFORM = sorted(
    name for name, entry in OPERATIONS.items() if Trait.ELEMENTWISE in entry.traits and name not in APART
)


def supported(opcode, element):
    operands = [tensor(element, 4)] * OPERATIONS[opcode].arity
    attributes = Attributes(ATTRIBUTES.get(opcode, {}))
    try:
        result = SEMANTICS.infer(opcode, operands, attributes, ())
        SEMANTICS.verify(opcode, operands, attributes, (), result)
    except OperationError:
        return None
    return result


CASES = [
    (opcode, element)
    for opcode in UNIFORM
    for element in ELEMENTS.values()
    if supported(opcode, element) is not None
]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(CASES), st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_inference_and_evaluation_agree(case, count, seed):
    opcode, element = case
    operands = [samples(element, count, seed + index) for index in range(OPERATIONS[opcode].arity)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = call(opcode, *operands, **ATTRIBUTES.get(opcode, {}))
    wanted = SEMANTICS.infer(
        opcode, [TensorType(element, (count,))] * len(operands), Attributes(ATTRIBUTES.get(opcode, {})), ()
    )
    assert isinstance(wanted, TensorType)
    assert found.dtype == wanted.element.dtype
    assert found.shape == wanted.shape


@pytest.mark.parametrize("source", ELEMENTS.values(), ids=str)
@pytest.mark.parametrize("target", ELEMENTS.values(), ids=str)
def test_conversions_have_the_target_type(source, target):
    x = samples(source, 24)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = call("convert", x, result=tensor(target, 24))
    assert found.dtype == target.dtype


def _close(found, expected, ulps):
    if expected.dtype.kind in "biu" or "int" in expected.dtype.name:
        np.testing.assert_array_equal(found, expected)
        return
    if expected.dtype.kind == "c":
        size = np.maximum(np.abs(expected.astype(np.complex128)), 0)
        step = np.finfo(expected.real.dtype).eps * np.where(np.isfinite(size), size, 0)
        for part in ("real", "imag"):
            _within(getattr(found, part), getattr(expected, part), ulps * step)
        return
    wide = expected.astype(np.float64)
    eps = 2.0**-7 if expected.dtype.itemsize < 4 else np.finfo(expected.dtype).eps
    eps = 0.5 if expected.dtype.itemsize == 1 else eps
    _within(found, expected, ulps * eps * np.where(np.isfinite(wide), np.abs(wide), 0))


def _within(found, expected, slack):
    a, b = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        good = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= slack + 1e-300)
    assert good.all(), (found[~good][:3], expected[~good][:3])


RULES = [
    (opcode, element)
    for opcode, element in CASES
    if OPERATIONS[opcode].scalar is not None
    and element.name
    in (
        "i1",
        "i2",
        "ui4",
        "i8",
        "ui8",
        "i32",
        "ui64",
        "i64",
        "bf16",
        "f32",
        "f64",
        "complex<f32>",
        "complex<f64>",
    )
]


@pytest.mark.parametrize(("opcode", "element"), RULES, ids=lambda value: str(value))
def test_scalar_rules_compute_what_evaluation_does(opcode, element):
    attributes = ATTRIBUTES.get(opcode, {})
    arity = OPERATIONS[opcode].arity
    if element.is_complex:
        rng = np.random.default_rng(5)
        operands = [
            (rng.normal(size=64) * 2 + 1j * rng.normal(size=64) * 2).astype(element.dtype)
            for _ in range(arity)
        ]
    else:
        operands = [samples(element, 64, seed) for seed in range(arity)]
    if opcode in ("chlo.zeta", "chlo.polygamma"):
        operands = _positive(opcode, operands, element)
    result = SEMANTICS.infer(opcode, [tensor(element, 64)] * arity, Attributes(attributes), ())
    expected = call(opcode, *operands, **attributes)
    (found,) = decomposed(opcode, operands, result=result, by_rule=True, **attributes)
    _close(found, expected, 24 if element.is_complex else 4)


def _positive(opcode, operands, element):
    first = np.arange(64) % 5 + (1.5 if opcode == "chlo.zeta" else 0)
    second = np.linspace(0.3, 30, 64)
    return [first.astype(element.dtype), second.astype(element.dtype)]


def test_widened_calls_equal_element_by_element_ones():
    module = ModuleBuilder()
    body = module.computation("body")
    x, y = (body.parameter(ELEMENTS["f32"]) for _ in range(2))
    two = body.constant(np.float32(2))
    body.root(body.op("maximum", body.op("multiply", x, two), body.op("exponential", y)))
    main = module.computation("main")
    operands = [main.parameter(ELEMENTS["f32"], 3, 4) for _ in range(2)]
    main.root(main.op("map", *operands, called=("body",), dimensions=(0, 1)))
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(3, 4)).astype(np.float32) for _ in range(2))
    (found,) = evaluate(module.build(), [a, b])
    np.testing.assert_array_equal(found, np.maximum(a * 2, np.exp(b.astype(np.float64)).astype(np.float32)))


@pytest.mark.parametrize(
    ("opcode", "operands", "attributes", "message"),
    [
        ("add", ("f32:2", "f32:3"), {}, "(C1)"),
        ("add", ("f32:2", "f64:2"), {}, "(C1)"),
        ("subtract", ("i1:2", "i1:2"), {}, "kind int"),
        ("exponential", ("i32:2",), {}, "kind float"),
        ("compare", ("f32:2", "f32:2"), {"comparison_direction": "LT", "compare_type": "SIGNED"}, "(C3)"),
        ("compare", ("f32:2", "f32:2"), {"comparison_direction": "XX"}, "must be one of"),
        ("compare", ("f32:2", "f32:2"), {}, "needs the attribute comparison_direction"),
        ("select", ("i1:3", "f32:2", "f32:2"), {}, "(C1)"),
        ("select", ("i1:2", "f32:2", "f64:2"), {}, "(C2)"),
        ("clamp", ("f32:3", "f32:2", "f32:2"), {}, "(C1)"),
        ("clamp", ("f32:2", "f32:2", "f64:2"), {}, "(C3)"),
        ("reduce_precision", ("f32:2",), {"exponent_bits": 0, "mantissa_bits": 1}, "(C2)"),
        ("reduce_precision", ("f32:2",), {"exponent_bits": 1, "mantissa_bits": -1}, "(C3)"),
        ("add", ("f32:2",), {}, "takes 2 operands"),
        ("no_such_operation", (), {}, "unknown operation"),
    ],
)
def test_broken_constraints_are_named(opcode, operands, attributes, message):
    types = []
    for text in operands:
        name, size = text.split(":")
        types.append(tensor(ELEMENTS[name], int(size)))
    with pytest.raises(OperationError) as error:
        result = SEMANTICS.infer(opcode, types, Attributes(attributes) or NO_ATTRIBUTES, ())
        SEMANTICS.verify(opcode, types, Attributes(attributes), (), result)
    assert message in str(error.value)
