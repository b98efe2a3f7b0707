"""CHLO: values against SciPy's and NumPy's, and each decomposition against the operation itself."""

import ml_dtypes
import numpy as np
import pytest
from scipy import special

from compiler.ir.program import Attributes
from compiler.ir.semantics import OperationError
from compiler.ir.types import ELEMENTS, F32, I1, I32, TensorType, TupleType, tensor
from compiler.ops import OPERATIONS, SEMANTICS
from compiler.ops.record import Trait
from compiler.reference import evaluate
from tests.builder import ModuleBuilder
from tests.ops.operation_calls import call, decomposed, samples, type_of

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("opcode", "x", "expected"),
    [
        ("erf_inv", [1.0, -1.0, 2.0, 0.0], [INF, -INF, NAN, 0.0]),
        ("lgamma", [0.0, -1.0, 1.0, 2.0, INF, -INF, NAN], [INF, INF, 0.0, 0.0, INF, INF, NAN]),
        ("digamma", [0.0, -2.0, 1.0], [NAN, NAN, special.psi(1.0)]),
        ("acosh", [1.0, 0.5, INF], [0.0, NAN, INF]),
        ("atanh", [1.0, -1.0, 1.5], [INF, -INF, NAN]),
        ("bessel_i1e", [0.0, -1.0, 1e4], [0.0, -special.i1e(1.0), special.i1e(1e4)]),
        ("erfc", [INF, -INF, 10.0], [0.0, 2.0, special.erfc(10.0)]),
    ],
)
def test_special_functions(opcode, x, expected):
    for dtype in (np.float32, np.float64):
        found = call(f"chlo.{opcode}", np.array(x, dtype))
        np.testing.assert_allclose(found, np.array(expected, dtype), rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_next_after_steps_once(dtype):
    x = np.array([1.0, 1.0, 0.0, -0.0, 0.0, INF, NAN, 2.0, -1.0], dtype)
    y = np.array([2.0, 0.0, 1.0, -1.0, -0.0, 0.0, 1.0, 2.0, -INF], dtype)
    found = call("chlo.next_after", x, y)
    if dtype != ml_dtypes.bfloat16:
        np.testing.assert_array_equal(found, np.nextafter(x, y))
    assert np.signbit(found[4])
    assert float(found[0]) > 1 > float(found[1])


@pytest.mark.parametrize("element", [e for e in ELEMENTS.values() if e.is_integer], ids=str)
def test_multiply_high_is_exact(element):
    x, y = samples(element, 40, 1), samples(element, 40, 2)
    found = call("chlo.mulhi", x, y)
    exact = [(int(a) * int(b)) >> element.bits for a, b in zip(x, y, strict=True)]
    assert [int(v) for v in found] == exact


def test_polygamma_and_zeta():
    x = np.array([0.5, 1.0, 3.5], np.float64)
    n = np.array([1.0, 2.0, 0.0])
    expected = [special.polygamma(1, 0.5), special.polygamma(2, 1.0), special.psi(3.5)]
    np.testing.assert_allclose(call("chlo.polygamma", n, x), expected, rtol=1e-13)
    found = call("chlo.zeta", np.array([2.0, 1.0, 0.5, 3.0]), np.array([1.0, 1.0, 1.0, 0.0]))
    np.testing.assert_allclose(found, [np.pi**2 / 6, INF, NAN, INF], rtol=1e-13)


def test_top_k_is_stable_and_puts_nan_first():
    x = np.array([[3.0, NAN, 1.0, 3.0], [0.0, -0.0, -INF, 0.0]], np.float32)
    values, places = call("chlo.top_k", x, k=3)
    assert places.tolist() == [[1, 0, 3], [0, 3, 1]]
    np.testing.assert_array_equal(values[1], np.array([0.0, 0.0, -0.0], np.float32))
    values, places = call("chlo.top_k", np.array([3, 250, 7, 250], np.uint8), k=2)
    assert (values.tolist(), places.tolist()) == ([250, 250], [1, 3])


def test_implicit_broadcasting():
    matrix, row = np.ones((2, 3), np.float32), np.array([1, 2, 3], np.float32)
    assert call("chlo.broadcast_add", matrix, row).tolist() == [[2, 3, 4]] * 2
    column = np.array([1, 2], np.float32)
    found = call("chlo.broadcast_subtract", column, matrix, broadcast_dimensions=(0,))
    assert found.tolist() == [[0, 0, 0], [1, 1, 1]]
    found = call("chlo.broadcast_select", np.array(True), matrix, np.float32(0))
    assert found.tolist() == matrix.tolist()
    with pytest.raises(OperationError, match="cannot be broadcast"):
        call("chlo.broadcast_add", matrix, np.ones((2, 2), np.float32))
    with pytest.raises(OperationError, match="broadcast_dimensions"):
        call("chlo.broadcast_add", matrix, column, broadcast_dimensions=(0, 1))


ELEMENTWISE = sorted(
    name
    for name, entry in OPERATIONS.items()
    if entry.decompose is not None and Trait.ELEMENTWISE in entry.traits
)


@pytest.mark.parametrize("opcode", ELEMENTWISE)
@pytest.mark.parametrize("name", ["i8", "ui64", "i64", "bf16", "f16", "f32", "f64", "complex<f32>"])
def test_elementwise_decompositions(opcode, name):
    element = ELEMENTS[name]
    kinds = [tensor(element, 48)] * OPERATIONS[opcode].arity
    try:
        result = SEMANTICS.infer(opcode, kinds, Attributes(), ())
        SEMANTICS.verify(opcode, kinds, Attributes(), (), result)
    except OperationError:
        pytest.skip(f"{opcode} does not take {name}")
    operands = [samples(element, 48, seed) for seed in range(len(kinds))]
    if opcode in ("chlo.zeta", "chlo.polygamma"):
        operands = [np.arange(48).astype(element.dtype) % 4, np.linspace(0.25, 20, 48).astype(element.dtype)]
    expected = call(opcode, *operands)
    (found,) = decomposed(opcode, operands, result=result)
    assert found.dtype == expected.dtype
    wide = np.complex128 if element.is_complex else np.float64
    slack = 16 if opcode == "chlo.polygamma" and name == "f64" else 2
    eps = float(ml_dtypes.finfo(element.dtype).eps) if element.is_float else 1e-6 if element.is_complex else 0
    np.testing.assert_allclose(found.astype(wide), expected.astype(wide), rtol=slack * eps, atol=0)


BROADCASTS = sorted(name for name in OPERATIONS if name.startswith("chlo.broadcast_"))


@pytest.mark.parametrize("opcode", BROADCASTS)
def test_broadcast_decompositions(opcode):
    attributes = {"comparison_direction": "GE"} if opcode.endswith("compare") else {}
    element = (
        ELEMENTS["i32"]
        if opcode.rpartition("_")[2] in ("and", "or", "xor", "left", "logical", "arithmetic")
        else F32
    )
    operands = [samples(element, 6, 1).reshape(2, 3), samples(element, 3, 2)]
    if opcode.endswith("select"):
        operands = [np.array([[True], [False]]), *operands]
    result = SEMANTICS.infer(opcode, [type_of(x) for x in operands], Attributes(attributes), ())
    expected = call(opcode, *operands, **attributes)
    (found,) = decomposed(opcode, operands, result=result, **attributes)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["f32", "bf16", "i32", "ui8"])
def test_top_k_decomposition(name):
    x = samples(ELEMENTS[name], 14).reshape(2, 7)
    result = SEMANTICS.infer("chlo.top_k", [type_of(x)], Attributes(k=4), ())
    expected = call("chlo.top_k", x, k=4)
    for found, wanted in zip(decomposed("chlo.top_k", [x], result=result, k=4), expected, strict=True):
        np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64))


def scan_module(reverse):
    module = ModuleBuilder()
    body = module.computation("body")
    value, carry = body.parameter(F32, 2), body.parameter(F32, 2)
    total = body.op("add", value, carry)
    body.root(body.op("multiply", total, total), total)
    attributes = {"dimension": 1, "is_reverse": reverse}
    return module, attributes


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_and_its_loop(reverse):
    x, start = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([10, 20], np.float32)
    module, attributes = scan_module(reverse)
    main = module.computation("main")
    names = [main.parameter_of(type_of(v)) for v in (x, start)]
    scan = main.op("chlo.scan", *names, called=("body",), **attributes)
    main.root(main.element(scan, 0), main.element(scan, 1))
    rows, total = evaluate(module.build(), [x, start])
    order = x[:, ::-1] if reverse else x
    sums = start[:, None] + np.cumsum(order, axis=1)
    np.testing.assert_array_equal(rows, (sums[:, ::-1] if reverse else sums) ** 2)
    np.testing.assert_array_equal(total, sums[:, -1])
    module, attributes = scan_module(reverse)
    result = TupleType((tensor(F32, 2, 3), tensor(F32, 2)))
    found = decomposed("chlo.scan", [x, start], result=result, module=module, called=("body",), **attributes)
    np.testing.assert_array_equal(found[0], rows)
    np.testing.assert_array_equal(found[1], total)


def ragged(lhs_batching, rhs_batching, lhs_contracting, rhs_contracting, dimension, group):
    names = ("lhs_batching", "rhs_batching", "lhs_contracting", "rhs_contracting", "lhs_ragged", "rhs_group")
    lists = (lhs_batching, rhs_batching, lhs_contracting, rhs_contracting, (dimension,), group)
    record = Attributes({f"{name}_dimensions": entry for name, entry in zip(names, lists, strict=True)})
    return {"ragged_dot_dimension_numbers": record}


RNG = np.random.default_rng(3)
RAGGED = {
    "rows": ((7, 5), (3, 5, 4), [3, 0, 2], ragged((), (), (1,), (1,), 0, (0,))),
    "batched rows": ((2, 7, 5), (3, 2, 5, 4), [1, 4, 2], ragged((0,), (1,), (2,), (2,), 1, (0,))),
    "sizes by batch": (
        (2, 7, 5),
        (3, 2, 5, 4),
        [[1, 4, 2], [0, 7, 0]],
        ragged((0,), (1,), (2,), (2,), 1, (0,)),
    ),
    "terms": ((2, 5, 7), (2, 7, 4), [1, 4, 2], ragged((0,), (0,), (2,), (1,), 2, ())),
    "batches": ((3, 5, 7), (3, 7, 4), [1, 2], ragged((0,), (0,), (2,), (1,), 0, ())),
}


@pytest.mark.parametrize("case", RAGGED)
def test_ragged_products(case):
    left_shape, right_shape, sizes, attributes = RAGGED[case]
    lhs, rhs = (RNG.integers(-4, 5, shape).astype(np.float32) for shape in (left_shape, right_shape))
    sizes = np.array(sizes, np.int32)
    found = call("chlo.ragged_dot", lhs, rhs, sizes, **attributes)
    if case == "rows":
        np.testing.assert_array_equal(found[:3], lhs[:3] @ rhs[0])
        np.testing.assert_array_equal(found[3:5], lhs[3:5] @ rhs[2])
        assert not found[5:].any()
    if case == "terms":
        np.testing.assert_array_equal(found[1], lhs[:, :, 1:5] @ rhs[:, 1:5])
    if case == "sizes by batch":
        np.testing.assert_array_equal(found[1], lhs[1] @ rhs[1, 1])
    result = TensorType(F32, found.shape)
    (other,) = decomposed("chlo.ragged_dot", [lhs, rhs, sizes], result=result, **attributes)
    np.testing.assert_array_equal(other, found)


def test_classification():
    x = np.array([INF, -INF, NAN, 1.0], np.float32)
    assert call("chlo.is_inf", x).tolist() == [True, True, False, False]
    assert call("chlo.is_pos_inf", x).tolist() == [True, False, False, False]
    assert call("chlo.is_neg_inf", x).tolist() == [False, True, False, False]
    assert SEMANTICS.infer("chlo.is_inf", [tensor(F32, 4)], Attributes(), ()) == tensor(I1, 4)
    assert call("chlo.constant_like", x, value=2.5).tolist() == [2.5] * 4
    assert SEMANTICS.infer("chlo.top_k", [tensor(F32, 4)], Attributes(k=1), ()).elements[1] == tensor(I32, 1)
