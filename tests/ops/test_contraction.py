"""dot_general and dot against plain loops, for every kind of element."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest

from compiler.ir.program import Attributes
from compiler.ir.semantics import OperationError
from compiler.ir.types import BF16, F32, F64, I8, I32, TensorType, element_of_dtype, tensor
from compiler.ops import SEMANTICS
from compiler.ops.record import Site
from compiler.ops.table import flops
from tests.ops.operation_calls import call, type_of


def plain_dot(lhs, rhs, batch, contract, zero, multiply=lambda a, b: a * b, add=lambda a, b: a + b):
    """The specification's definition, element by element."""
    (lb, rb), (lc, rc) = batch, contract
    lf = [d for d in range(lhs.ndim) if d not in (*lb, *lc)]
    rf = [d for d in range(rhs.ndim) if d not in (*rb, *rc)]
    shape = [lhs.shape[d] for d in (*lb, *lf)] + [rhs.shape[d] for d in rf]
    found = np.empty(shape, object)
    for place in np.ndindex(*shape):
        total = zero
        for inner in itertools.product(*(range(lhs.shape[d]) for d in lc)):
            left, right = [0] * lhs.ndim, [0] * rhs.ndim
            for k, (a, b) in enumerate(zip(lb, rb, strict=True)):
                left[a] = right[b] = place[k]
            for k, d in enumerate(lf):
                left[d] = place[len(lb) + k]
            for k, d in enumerate(rf):
                right[d] = place[len(lb) + len(lf) + k]
            for k, (a, b) in enumerate(zip(lc, rc, strict=True)):
                left[a] = right[b] = inner[k]
            total = add(total, multiply(lhs[tuple(left)].item(), rhs[tuple(right)].item()))
        found[place] = total
    return found


def dot_general(lhs, rhs, batch, contract, result=None, **attributes):
    return call(
        "dot_general",
        lhs,
        rhs,
        result=result,
        lhs_batching_dimensions=batch[0],
        rhs_batching_dimensions=batch[1],
        lhs_contracting_dimensions=contract[0],
        rhs_contracting_dimensions=contract[1],
        **attributes,
    )


CASES = [
    ((3, 4, 5), (6, 5, 3), ((0,), (2,)), ((2,), (1,))),
    ((2, 3), (3, 4), ((), ()), ((1,), (0,))),
    ((2, 3, 4), (4, 3, 2), ((), ()), ((1, 2), (1, 0))),
    ((5,), (5,), ((), ()), ((0,), (0,))),
    ((2,), (3,), ((), ()), ((), ())),
    ((2, 0), (0, 3), ((), ()), ((1,), (0,))),
    ((0, 4), (4, 3), ((), ()), ((1,), (0,))),
]


@pytest.mark.parametrize(("left", "right", "batch", "contract"), CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int32, np.uint8, np.bool_])
def test_against_loops(left, right, batch, contract, dtype):
    rng = np.random.default_rng(1)
    lhs = (rng.integers(-4, 5, left) if dtype != np.bool_ else rng.integers(0, 2, left)).astype(dtype)
    rhs = (rng.integers(-4, 5, right) if dtype != np.bool_ else rng.integers(0, 2, right)).astype(dtype)
    if dtype == np.bool_:
        want = plain_dot(lhs, rhs, batch, contract, False, lambda a, b: a and b, lambda a, b: a or b)
    else:
        want = plain_dot(lhs, rhs, batch, contract, 0)
    found = dot_general(lhs, rhs, batch, contract)
    assert found.dtype == dtype
    if np.dtype(dtype).kind == "u":
        want = np.asarray(want % 256, object)
    assert (found == want.astype(found.dtype)).all() and found.shape == want.shape


def test_integers_wrap():
    rng = np.random.default_rng(2)
    lhs = rng.integers(-(2**62), 2**62, (3, 4))
    rhs = rng.integers(-(2**62), 2**62, (4, 5))
    want = plain_dot(lhs, rhs, ((), ()), ((1,), (0,)), 0)
    found = dot_general(lhs, rhs, ((), ()), ((1,), (0,)))
    assert [int(v) % 2**64 for v in found.reshape(-1)] == [v % 2**64 for v in want.reshape(-1)]


def test_narrow_operands_in_wide_sums():
    lhs = np.full((1, 300), 127, np.int8)
    assert dot_general(lhs, lhs.T, ((), ()), ((1,), (0,)), tensor(I32, 1, 1)) == 300 * 127 * 127
    assert dot_general(lhs, lhs.T, ((), ()), ((1,), (0,)), tensor(I8, 1, 1)).item() == np.int8(
        (300 * 127 * 127) % 256 - 256 * ((300 * 127 * 127) % 256 > 127)
    )
    # 1 + 256 * 2^-9 is 1.5: a sum that was rounded to bf16 after each addition would stay 1.
    row = np.concatenate([[1.0], np.full(256, 2.0**-9)]).astype(ml_dtypes.bfloat16)
    ones = np.ones(257, ml_dtypes.bfloat16)
    assert dot_general(row, ones, ((), ()), ((0,), (0,))).item() == 1.5
    assert dot_general(row, ones, ((), ()), ((0,), (0,)), TensorType(F32, ())).dtype == np.float32


def test_f8_operands():
    values = np.array([1, 2, -3, 0.5], ml_dtypes.float8_e4m3fn)
    found = dot_general(values, values, ((), ()), ((0,), (0,)), TensorType(BF16, ()))
    assert found.item() == 1 + 4 + 9 + 0.25


def test_algorithm_rounds_its_operands():
    lhs = np.array([1 + 2.0**-9, 3.0], np.float32)
    one = np.array([1.0, 0.0], np.float32)
    algorithm = {
        "lhs_precision_type": "bf16",
        "rhs_precision_type": "bf16",
        "accumulation_type": "f32",
        "lhs_component_count": 1,
        "rhs_component_count": 1,
        "num_primitive_operations": 1,
        "allow_imprecise_accumulation": False,
    }
    args = (lhs, one, ((), ()), ((0,), (0,)))
    assert dot_general(*args).item() == 1 + 2.0**-9
    assert dot_general(*args, algorithm=Attributes(algorithm)).item() == 1.0
    tf32 = Attributes({**algorithm, "lhs_precision_type": "tf32", "rhs_precision_type": "tf32"})
    assert dot_general(*args, algorithm=tf32).item() == 1 + 2.0**-9
    split = Attributes(
        {**algorithm, "num_primitive_operations": 3, "lhs_component_count": 2, "rhs_component_count": 2}
    )
    assert dot_general(*args, algorithm=split).item() == 1 + 2.0**-9
    with pytest.raises(OperationError, match="C28"):
        dot_general(*args, algorithm=Attributes({**algorithm, "lhs_component_count": 3}))


def test_dot():
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(3, dtype=np.float32)
    assert call("dot", a, b).tolist() == [5, 14]
    assert call("dot", b, b) == 5
    assert call("dot", b, a.T).tolist() == [5, 14]


def test_rounds_once():
    rng = np.random.default_rng(3)
    lhs = rng.normal(size=(1, 1000)).astype(np.float32)
    rhs = rng.normal(size=(1000, 1)).astype(np.float32)
    exact = math.fsum(float(a) * float(b) for a, b in zip(lhs[0], rhs[:, 0], strict=True))
    assert dot_general(lhs, rhs, ((), ()), ((1,), (0,))).item() == np.float32(exact)


@pytest.mark.parametrize(
    ("batch", "contract", "message"),
    [
        (((0,), ()), ((1,), (1,)), "C1"),
        (((0,), (0,)), ((), (1,)), "C2"),
        (((0,), (0,)), ((0,), (1,)), "C3"),
        (((0,), (0,)), ((1,), (0,)), "C4"),
        (((3,), (0,)), ((1,), (1,)), "C5"),
        (((0,), (0,)), ((-1,), (1,)), "C6"),
        (((0,), (3,)), ((1,), (1,)), "C7"),
        (((0,), (0,)), ((1,), (3,)), "C8"),
        (((0,), (1,)), ((1,), (2,)), "C9"),
        (((0,), (0,)), ((1,), (2,)), "C10"),
    ],
)
def test_rejects(batch, contract, message):
    operands = [np.zeros((2, 3, 4), np.float32), np.zeros((2, 3, 5), np.float32)]
    with pytest.raises(OperationError, match=message):
        dot_general(*operands, batch, contract)


def test_rejects_mixed_elements():
    with pytest.raises(OperationError, match="C13"):
        dot_general(np.zeros(2, np.int32), np.zeros(2, np.float32), ((), ()), ((0,), (0,)))
    with pytest.raises(OperationError, match="C13"):
        dot_general(
            np.zeros(2, np.complex64), np.zeros(2, np.complex64), ((), ()), ((0,), (0,)), TensorType(F32, ())
        )


def test_flops():
    kinds = [type_of(np.zeros((2, 3), np.float64)), type_of(np.zeros((3, 5), np.float64))]
    attributes = Attributes(lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,))
    result = SEMANTICS.infer("dot_general", kinds, attributes, ())
    assert result == tensor(F64, 2, 5) and element_of_dtype(np.dtype(np.float64)) is F64
    assert flops(Site("dot_general", kinds, attributes, (), result)) == 2 * 2 * 3 * 5
