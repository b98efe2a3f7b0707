"""Quantised values: there and back, saturation, per-axis scales, and elementwise operations through real values."""

import numpy as np
import pytest

from compiler.ir.program import Attributes
from compiler.ir.semantics import OperationError
from compiler.ir.types import BF16, ELEMENTS, F32, F64, QuantizedType, TensorType, tensor
from compiler.ops import SEMANTICS
from compiler.ops.quantization import dequantize, quantize, requantize
from compiler.reference import evaluate
from tests.builder import ModuleBuilder

I8, UI8 = ELEMENTS["i8"], ELEMENTS["ui8"]
HALVES = QuantizedType(I8, F32, (0.5,), (3,), -128, 127)
FINE = QuantizedType(UI8, F32, (0.25,), (0,), 0, 255)
ROWS = QuantizedType(I8, F32, (1.0, 0.1), (0, -5), -128, 127, axis=0)


def run(opcode, result, *operands):
    """Evaluates an operation on (stored integers or real values, type) pairs."""
    module = ModuleBuilder()
    main = module.computation("main")
    names = [main.parameter_of(kind) for _, kind in operands]
    main.root(main.add(opcode, result, *names))
    SEMANTICS.verify(opcode, [kind for _, kind in operands], Attributes(), (), result)
    return evaluate(module.build(), [value for value, _ in operands])[0]


def test_there_and_back():
    stored = np.arange(-128, 128).astype(np.int8)
    real = dequantize(stored, HALVES)
    np.testing.assert_array_equal(real, (np.arange(-128, 128) - 3) * np.float32(0.5))
    np.testing.assert_array_equal(quantize(real, HALVES), stored)


def test_rounding_and_saturation():
    values = np.array([0.25, 0.75, -0.25, 1e9, -1e9, np.nan, np.inf], np.float32)
    assert quantize(values, HALVES).tolist()[:5] == [3, 5, 3, 127, -128]
    assert quantize(values, HALVES).tolist()[6] == 127
    narrow = QuantizedType(I8, F32, (1.0,), (0,), -10, 10)
    assert quantize(np.array([50, -50], np.float32), narrow).tolist() == [10, -10]


def test_each_row_has_its_scale():
    stored = np.array([[10, 20], [10, 20]], np.int8)
    expected = np.array([[10, 20], [1.5, 2.5]], np.float32)
    np.testing.assert_allclose(dequantize(stored, ROWS), expected, rtol=1e-6)
    np.testing.assert_array_equal(quantize(expected, ROWS), stored)


def test_operations_on_real_values():
    kind = TensorType(HALVES, (3,))
    x = quantize(np.array([1.0, -2.0, 60.0], np.float32), HALVES)
    y = quantize(np.array([0.5, 0.5, 60.0], np.float32), HALVES)
    found = dequantize(run("add", kind, (x, kind), (y, kind)), HALVES)
    assert found.tolist() == [1.5, -1.5, 62.0]
    assert (
        run("negate", kind, (x, kind)).tolist()
        == quantize(np.array([-1, 2, -60], np.float32), HALVES).tolist()
    )


def test_conversions_between_types():
    real, kind = tensor(F32, 2), TensorType(HALVES, (2,))
    x = np.array([1.5, -3.0], np.float32)
    stored = run("uniform_quantize", kind, (x, real))
    assert stored.tolist() == [6, -3]
    assert run("uniform_dequantize", real, (stored, kind)).tolist() == x.tolist()
    fine = TensorType(FINE, (2,))
    assert run("uniform_quantize", fine, (stored, kind)).tolist() == [6, 0]
    assert requantize(stored, HALVES, HALVES) is stored


@pytest.mark.parametrize(
    ("opcode", "operand", "result", "message"),
    [
        ("uniform_quantize", tensor(F64, 2), TensorType(HALVES, (2,)), "(C2)"),
        ("uniform_quantize", tensor(BF16, 3), TensorType(HALVES, (2,)), "(C1)"),
        ("uniform_quantize", tensor(F32, 2), tensor(F32, 2), "must be quantized"),
        ("uniform_dequantize", tensor(F32, 2), tensor(F32, 2), "must be quantized"),
        ("not", TensorType(HALVES, (2,)), TensorType(HALVES, (2,)), "kind bool"),
    ],
)
def test_broken_constraints_are_named(opcode, operand, result, message):
    with pytest.raises(OperationError) as error:
        SEMANTICS.verify(opcode, [operand], Attributes(), (), result)
    assert message in str(error.value)
