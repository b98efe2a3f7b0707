"""What must hold of types themselves: scales, zero points, quantised axes, bounds."""

import pytest

from compiler.ir.program import Attributes
from compiler.ir.semantics import OperationError
from compiler.ir.types import ELEMENTS, F16, F32, QuantizedType, TensorType, tensor
from compiler.ops import SEMANTICS

I8 = ELEMENTS["i8"]


def quantized(shape, scales=(0.5,), zeros=None, axis=None, expressed=F32):
    kind = QuantizedType(I8, expressed, tuple(scales), tuple(zeros or (0,) * len(scales)), -128, 127, axis)
    return TensorType(kind, shape)


ROWS = quantized((2, 3), (0.5, 0.25), axis=0)


def refused(opcode, operand, result, message, **attributes):
    with pytest.raises(OperationError) as error:
        SEMANTICS.verify(opcode, [operand], Attributes(attributes), (), result)
    assert message in str(error.value)


def accepted(opcode, operand, result, **attributes):
    SEMANTICS.verify(opcode, [operand], Attributes(attributes), (), result)


def test_quantised_types_themselves():
    refused("negate", quantized((2,), zeros=(300,)), quantized((2,), zeros=(300,)), "zero point 300")
    tiny = quantized((2,), (1e-8,), expressed=F16)
    refused("negate", tiny, tiny, "scale 1e-08")
    beyond = quantized((2,), (0.5, 0.5), axis=3)
    refused("uniform_dequantize", beyond, tensor(F32, 2), "along dimension 3")
    short = quantized((2, 5), (0.5, 0.5), axis=1)
    refused("uniform_dequantize", short, tensor(F32, 2, 5), "2 scales for 5 slices")
    accepted("uniform_dequantize", ROWS, tensor(F32, 2, 3))


def test_most_operations_take_one_scale():
    refused("negate", ROWS, ROWS, "along an axis")
    refused("reverse", ROWS, ROWS, "along an axis", dimensions=(0,))
    accepted("get_dimension_size", ROWS, tensor(ELEMENTS["i32"]), dimension=0)


def test_quantised_axes_move_along():
    turned = quantized((3, 2), (0.5, 0.25), axis=1)
    accepted("transpose", ROWS, turned, permutation=(1, 0))
    wrong = quantized((3, 2), (0.5, 0.5, 0.5), axis=0)
    refused("transpose", ROWS, wrong, "(C4)", permutation=(1, 0))
    accepted("reshape", ROWS, quantized((2, 3, 1), (0.5, 0.25), axis=0))
    refused("reshape", ROWS, quantized((3, 2), (0.5, 0.25), axis=1), "(C3)")
    refused("reshape", ROWS, quantized((6,), (0.5,) * 6, axis=0), "(C3)")
    refused("reshape", quantized((2,)), quantized((2,), (0.25,)), "(C1)")
    accepted("broadcast_in_dim", ROWS, quantized((4, 2, 3), (0.5, 0.25), axis=1), broadcast_dimensions=(1, 2))
    refused(
        "broadcast_in_dim",
        ROWS,
        quantized((4, 2, 3), (0.5,) * 3, axis=2),
        "(C6)",
        broadcast_dimensions=(1, 2),
    )
    one = quantized((1, 3), (0.5,), axis=0)
    refused("broadcast_in_dim", one, ROWS, "(C6)", broadcast_dimensions=(0, 1))
    refused(
        "slice", quantized((2,)), quantized((2,), (0.25,)), "(C1)", start_indices=(0,), limit_indices=(2,)
    )


def test_bounds():
    bounded = TensorType(F32, (-1,), None, (4,))
    accepted("negate", bounded, bounded)
    refused("negate", bounded, tensor(F32, 5), "does not match the declared type")
    many = TensorType(F32, (-1, 3), None, (4,))
    refused("negate", many, many, "1 bounds for 2 dimensions")
    fixed = TensorType(F32, (3,), None, (3,))
    refused("negate", fixed, fixed, "static dimension 0")
    loose = tensor(F32, -1, 3)
    refused("broadcast_in_dim", tensor(F32, 3), loose, "single bounded dimension", broadcast_dimensions=(1,))


def test_accuracy():
    text = "#stablehlo.result_accuracy<atol = 1.0, rtol = 0.0, ulps = 4, mode = HIGHEST>"
    refused("exponential", tensor(F32), tensor(F32), "takes no tolerances", result_accuracy=text)
    accepted("exponential", tensor(F32), tensor(F32), result_accuracy=text.replace("HIGHEST", "TOLERANCE"))


def test_sums_of_values_quantised_along_an_axis():
    kind = quantized((1, 2), (0.5,), axis=0)
    other = quantized((1, 2), (0.5, 0.5), axis=1)
    SEMANTICS.verify("add", [kind, kind], Attributes(), (), kind)
    for operands, message in (([kind, other], "(C7)"), ([other, kind], "(C6)")):
        with pytest.raises(OperationError) as error:
            SEMANTICS.verify("add", operands, Attributes(), (), kind)
        assert message in str(error.value)
