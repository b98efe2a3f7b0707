"""Operations that move elements: values against NumPy's own, and every constraint's message."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.ir.program import Attributes
from compiler.ir.semantics import OperationError
from compiler.ir.types import DYNAMIC, ELEMENTS, F32, I32, TOKEN, Layout, TensorType, TupleType, tensor
from compiler.ops import SEMANTICS
from compiler.reference import evaluate
from tests.builder import ModuleBuilder
from tests.ops.operation_calls import call

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_broadcast_in_dim_transposes_and_repeats():
    x = np.array([[1, 2, 3]], np.int32)
    found = call("broadcast_in_dim", x, result=tensor(I32, 2, 3, 2), broadcast_dimensions=(2, 1))
    assert found.tolist() == [[[1, 1], [2, 2], [3, 3]]] * 2


def test_transpose_slice_reverse_concatenate():
    np.testing.assert_array_equal(call("transpose", X, permutation=(2, 0, 1)), X.transpose(2, 0, 1))
    options = {"start_indices": (0, 1, 1), "limit_indices": (2, 3, 4), "strides": (1, 2, 2)}
    np.testing.assert_array_equal(call("slice", X, **options), X[0:2, 1:3:2, 1:4:2])
    np.testing.assert_array_equal(call("reverse", X, dimensions=(0, 2)), X[::-1, :, ::-1])
    np.testing.assert_array_equal(
        call("concatenate", X, X[:, :1], dimension=1), np.concatenate([X, X[:, :1]], 1)
    )
    np.testing.assert_array_equal(call("reshape", X, result=tensor(F32, 4, 6)), X.reshape(4, 6))


def naive_pad(x, value, low, high, gap):
    size = max(0, len(x) + max(len(x) - 1, 0) * gap)
    wide = [value] * (size + max(low, 0) + max(high, 0))
    for index, element in enumerate(x):
        wide[max(low, 0) + index * (gap + 1)] = element
    start, stop = max(-low, 0), len(wide) - max(-high, 0)
    return wide[start:stop]


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 6), st.integers(-5, 4), st.integers(-5, 4), st.integers(0, 3))
def test_pad_with_any_amounts(size, low, high, gap):
    if size + max(size - 1, 0) * gap + low + high < 0:
        return
    spread = size + max(size - 1, 0) * gap
    if max(-low, 0) + max(-high, 0) > spread + max(low, 0) + max(high, 0):
        return
    x = np.arange(1, size + 1, dtype=np.int32)
    options = {"edge_padding_low": (low,), "edge_padding_high": (high,), "interior_padding": (gap,)}
    found = call("pad", x, np.int32(-7), **options)
    assert found.tolist() == naive_pad(x.tolist(), -7, low, high, gap)


@settings(max_examples=100, deadline=None)
@given(st.integers(-10, 10), st.integers(-10, 10))
def test_dynamic_slices_stay_inside(row, column):
    x = np.arange(20, dtype=np.int32).reshape(4, 5)
    starts = (np.int64(row), np.int64(column))
    r, c = min(max(row, 0), 2), min(max(column, 0), 3)
    np.testing.assert_array_equal(
        call("dynamic_slice", x, *starts, slice_sizes=(2, 2)), x[r : r + 2, c : c + 2]
    )
    update = np.full((2, 2), -1, np.int32)
    wanted = x.copy()
    wanted[r : r + 2, c : c + 2] = -1
    np.testing.assert_array_equal(call("dynamic_update_slice", x, update, *starts), wanted)
    assert x[0, 0] == 0


@pytest.mark.parametrize("element", [e for e in ELEMENTS.values() if e.kind != "bool"], ids=str)
def test_iota_counts_in_every_type(element):
    found = call("iota", result=tensor(element, 2, 3), iota_dimension=1)
    assert found.dtype == element.dtype
    assert found.shape == (2, 3)
    if element.bits > 4 and element.name != "f8E8M0FNU":
        assert [float(np.real(v)) for v in found[1].astype(np.complex128)] == [0.0, 1.0, 2.0]


def test_dynamic_forms_read_their_sizes():
    sizes = np.array([2, 3], np.int64)
    dynamic = tensor(F32, DYNAMIC, DYNAMIC)
    assert call("dynamic_iota", sizes, result=dynamic, iota_dimension=0).tolist() == [[0.0] * 3, [1.0] * 3]
    row = np.array([1, 2, 3], np.float32)
    found = call("dynamic_broadcast_in_dim", row, sizes, result=dynamic, broadcast_dimensions=(1,))
    assert found.tolist() == [[1, 2, 3]] * 2
    assert call("dynamic_reshape", X[0, :2, :3], sizes, result=dynamic).shape == (2, 3)
    one = np.array([1], np.int32)
    found = call("dynamic_pad", row, np.float32(0), one, one, one, result=tensor(F32, DYNAMIC))
    assert found.tolist() == [0, 1, 0, 2, 0, 3, 0]
    found = call("real_dynamic_slice", row, one, one * 3, one, result=tensor(F32, DYNAMIC))
    assert found.tolist() == [2, 3]
    assert call("get_dimension_size", X, dimension=2).tolist() == 4


def test_bitcast_reads_the_buffer_in_layout_order():
    module = ModuleBuilder()
    main = module.computation("main")
    column_major = TensorType(I32, (2, 3), Layout((0, 1)))
    x = main.parameter_of(column_major)
    main.root(main.add("bitcast", tensor(I32, 3, 2), x))
    (found,) = evaluate(module.build(), [np.array([[1, 2, 3], [4, 5, 6]], np.int32)])
    assert found.tolist() == [[1, 4], [2, 5], [3, 6]]


def test_tuples_and_barriers():
    module = ModuleBuilder()
    main = module.computation("main")
    x, y = main.parameter(F32), main.parameter(I32, 2)
    both = main.op("optimization_barrier", main.op("tuple", x, y))
    main.root(main.element(both, 1), main.element(both, 0))
    found = evaluate(module.build(), [np.float32(1), np.array([2, 3], np.int32)])
    assert [v.tolist() for v in found] == [[2, 3], 1.0]


T = {
    "v": tensor(F32, 4),
    "m": tensor(F32, 2, 3),
    "i": tensor(I32),
    "iv": tensor(I32, 2),
    "s": tensor(F32),
    "pair": TupleType((tensor(F32), tensor(I32))),
    "token": TOKEN,
}


@pytest.mark.parametrize(
    ("opcode", "operands", "result", "attributes", "message"),
    [
        ("broadcast_in_dim", "m", tensor(F32, 2, 3), {"broadcast_dimensions": (0,)}, "(C2)"),
        ("broadcast_in_dim", "m", tensor(F32, 2, 3), {"broadcast_dimensions": (0, 2)}, "(C3)"),
        ("broadcast_in_dim", "m", tensor(F32, 2, 3), {"broadcast_dimensions": (1, 1)}, "(C4)"),
        ("broadcast_in_dim", "m", tensor(F32, 3, 3), {"broadcast_dimensions": (0, 1)}, "(C5)"),
        ("broadcast_in_dim", "m", tensor(I32, 2, 3), {"broadcast_dimensions": (0, 1)}, "(C1)"),
        ("reshape", "m", tensor(F32, 5), {}, "(C2)"),
        ("reshape", "m", None, {}, "must be given"),
        ("transpose", "m", None, {"permutation": (0, 0)}, "(C2)"),
        ("slice", "v", None, {"start_indices": (0,), "limit_indices": (4, 4), "strides": (1,)}, "(C2)"),
        ("slice", "v", None, {"start_indices": (3,), "limit_indices": (2,), "strides": (1,)}, "(C3)"),
        ("slice", "v", None, {"start_indices": (0,), "limit_indices": (5,), "strides": (1,)}, "(C3)"),
        ("slice", "v", None, {"start_indices": (0,), "limit_indices": (4,), "strides": (0,)}, "(C4)"),
        ("pad", "v i", None, {"edge_padding_low": (0,), "edge_padding_high": (0,)}, "(C1)"),
        ("pad", "v s", None, {"edge_padding_low": (0, 0), "edge_padding_high": (0,)}, "(C2)"),
        (
            "pad",
            "v s",
            None,
            {"edge_padding_low": (0,), "edge_padding_high": (0,), "interior_padding": (-1,)},
            "(C3)",
        ),
        ("pad", "v s", None, {"edge_padding_low": (-5,), "edge_padding_high": (0,)}, "(C4)"),
        ("concatenate", "", None, {"dimension": 0}, "(C3)"),
        ("concatenate", "m m", None, {"dimension": 2}, "(C4)"),
        ("concatenate", "m v", None, {"dimension": 0}, "(C1)"),
        ("reverse", "m", None, {"dimensions": (0, 0)}, "(C2)"),
        ("reverse", "m", None, {"dimensions": (2,)}, "(C3)"),
        ("dynamic_slice", "v i", None, {"slice_sizes": (5,)}, "(C5)"),
        ("dynamic_slice", "v i", None, {"slice_sizes": (1, 1)}, "(C4)"),
        ("dynamic_slice", "v s", None, {"slice_sizes": (1,)}, "integer scalar"),
        ("dynamic_update_slice", "v m i", None, {}, "(C3)"),
        ("dynamic_update_slice", "m m i", None, {}, "start_indices"),
        ("iota", "", tensor(F32, 2), {"iota_dimension": 1}, "(C1)"),
        ("get_tuple_element", "pair", None, {"index": 2}, "(C1)"),
        ("get_tuple_element", "m", None, {"index": 0}, "must be a tuple"),
        ("get_dimension_size", "m", None, {"dimension": 2}, "(C1)"),
        ("after_all", "m", None, {}, "token"),
        ("transpose", "m", tensor(F32, 2, 3), {"permutation": (1, 0)}, "does not match the declared type"),
        ("dynamic_reshape", "m iv", tensor(F32, 6), {}, "(C4)"),
        ("dynamic_iota", "iv", tensor(F32, 2, 2), {"iota_dimension": 2}, "(C1)"),
    ],
)
def test_broken_constraints_are_named(opcode, operands, result, attributes, message):
    types = [T[name] for name in operands.split()]
    with pytest.raises(OperationError) as error:
        kind = result or SEMANTICS.infer(opcode, types, Attributes(attributes), ())
        SEMANTICS.verify(opcode, types, Attributes(attributes), (), kind)
    assert message in str(error.value)
