"""Convolutions against the definition, element by element, over random shapes of every form."""

import itertools

import numpy as np
import pytest

from compiler.ir.semantics import OperationError
from compiler.ir.types import F32, I32, TensorType
from tests.ops.operation_calls import call


def plain_convolution(lhs, rhs, a):
    """lhs is batch, feature, spatial; rhs output feature, input feature, spatial; so is the result."""
    groups, batch_groups = a["feature_group_count"], a["batch_group_count"]
    rank = lhs.ndim - 2
    sizes = []
    for d in range(rank):
        size, window = lhs.shape[2 + d], rhs.shape[2 + d]
        whole = (0 if size == 0 else (size - 1) * a["lhs_dilation"][d] + 1) + sum(a["padding"][d])
        span = (window - 1) * a["rhs_dilation"][d] + 1
        sizes.append(0 if whole < span else (whole - span) // a["window_strides"][d] + 1)
    batches = lhs.shape[0] // batch_groups
    per_group = rhs.shape[0] // (groups * batch_groups)
    found = np.zeros((batches, rhs.shape[0], *sizes), object)
    for place in np.ndindex(*found.shape):
        n, o, spatial = place[0], place[1], place[2:]
        first = (o // per_group) * rhs.shape[1] if groups > 1 else 0
        image = n + (o // per_group) * batches if batch_groups > 1 else n
        total = 0
        for i, *window in itertools.product(*(range(s) for s in rhs.shape[1:])):
            where, inside = [], True
            for d in range(rank):
                at = (
                    spatial[d] * a["window_strides"][d]
                    + window[d] * a["rhs_dilation"][d]
                    - a["padding"][d][0]
                )
                inside &= (
                    at % a["lhs_dilation"][d] == 0 and 0 <= at // a["lhs_dilation"][d] < lhs.shape[2 + d]
                )
                where.append(at // a["lhs_dilation"][d])
            if not inside:
                continue
            tap = [
                rhs.shape[2 + d] - 1 - w if a["window_reversal"][d] else w
                for d, w in zip(range(rank), window, strict=True)
            ]
            total += lhs[(image, first + i, *where)].item() * rhs[(o, i, *tap)].item()
        found[place] = total
    return found


def random_case(rng):
    rank = int(rng.integers(0, 4))
    groups = int(rng.choice([1, 1, 2, 3]))
    batch_groups = 1 if groups > 1 else int(rng.choice([1, 1, 2]))
    each = int(rng.integers(1, 3))
    features = groups * each
    outputs = groups * batch_groups * int(rng.integers(1, 3))
    spatial = rng.integers(1, 6, rank)
    window = rng.integers(1, 4, rank)
    lhs = rng.integers(-3, 4, (batch_groups * int(rng.integers(1, 3)), features, *spatial))
    rhs = rng.integers(-3, 4, (outputs, each, *window))
    attributes = {
        "window_strides": tuple(int(v) for v in rng.integers(1, 3, rank)),
        "padding": tuple((int(p), int(q)) for p, q in rng.integers(-1, 4, (rank, 2))),
        "lhs_dilation": tuple(int(v) for v in rng.integers(1, 3, rank)),
        "rhs_dilation": tuple(int(v) for v in rng.integers(1, 3, rank)),
        "window_reversal": tuple(bool(v) for v in rng.integers(0, 2, rank)),
        "feature_group_count": groups,
        "batch_group_count": batch_groups,
    }
    return lhs, rhs, attributes


def numbered(rng, rank):
    """Random places for batch/feature/spatial on each side: attributes and the permutations that they mean."""
    orders = [tuple(int(v) for v in rng.permutation(rank + 2)) for _ in range(3)]
    names = (
        ("input", "batch", "feature"),
        ("kernel", "output_feature", "input_feature"),
        ("output", "batch", "feature"),
    )
    attributes = {}
    for (side, first, second), order in zip(names, orders, strict=True):
        attributes[f"{side}_{first}_dimension"] = order[0]
        attributes[f"{side}_{second}_dimension"] = order[1]
        attributes[f"{side}_spatial_dimensions"] = order[2:]
    return attributes, orders


def placed(array, order):
    """Dimension k of the array becomes dimension order[k]."""
    return array.transpose(np.argsort(order))


@pytest.mark.parametrize("seed", range(60))
def test_against_the_definition(seed):
    rng = np.random.default_rng(seed)
    lhs, rhs, attributes = random_case(rng)
    numbers, orders = numbered(rng, lhs.ndim - 2)
    dtype = [np.float32, np.int32, np.float64, np.int8, np.complex64][seed % 5]
    want = plain_convolution(lhs, rhs, attributes)
    found = call(
        "convolution",
        placed(lhs.astype(dtype), orders[0]),
        placed(rhs.astype(dtype), orders[1]),
        **attributes,
        **numbers,
    )
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, placed(want, orders[2]).astype(np.int64).astype(dtype))


@pytest.mark.parametrize("seed", range(4))
def test_dynamic_padding(seed):
    rng = np.random.default_rng(100 + seed)
    lhs, rhs, attributes = random_case(rng)
    numbers, _ = numbered(np.random.default_rng(0), lhs.ndim - 2)
    rank = lhs.ndim - 2
    order = tuple(range(rank + 2))
    for side, first, second in (
        ("input", "batch", "feature"),
        ("kernel", "output_feature", "input_feature"),
        ("output", "batch", "feature"),
    ):
        numbers |= {f"{side}_{first}_dimension": 0, f"{side}_{second}_dimension": 1}
        numbers[f"{side}_spatial_dimensions"] = order[2:]
    want = plain_convolution(lhs, rhs, attributes)
    padding = np.array(attributes.pop("padding"), np.int32).reshape(rank, 2)
    found = call(
        "dynamic_conv",
        lhs.astype(np.float32),
        rhs.astype(np.float32),
        padding,
        result=TensorType(F32, want.shape),
        **attributes,
        **numbers,
    )
    np.testing.assert_array_equal(found, want.astype(np.float32))


NHWC = {
    "input_batch_dimension": 0,
    "input_feature_dimension": 3,
    "input_spatial_dimensions": (1, 2),
    "kernel_input_feature_dimension": 2,
    "kernel_output_feature_dimension": 3,
    "kernel_spatial_dimensions": (0, 1),
    "output_batch_dimension": 0,
    "output_feature_dimension": 3,
    "output_spatial_dimensions": (1, 2),
    "window_strides": (1, 1),
    "padding": ((0, 0), (0, 0)),
    "lhs_dilation": (1, 1),
    "rhs_dilation": (1, 1),
    "window_reversal": (False, False),
    "feature_group_count": 1,
    "batch_group_count": 1,
}


def test_integers_widen():
    image = np.full((1, 4, 4, 64), 127, np.int8)
    kernel = np.full((2, 2, 64, 1), 127, np.int8)
    found = call("convolution", image, kernel, result=TensorType(I32, (1, 3, 3, 1)), **NHWC)
    assert (found == 127 * 127 * 256).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"window_strides": (1,)}, "C2"),
        ({"window_strides": (0, 1)}, "C3"),
        ({"padding": ((0, 0),)}, "C4"),
        ({"lhs_dilation": (1, 1, 1)}, "C5"),
        ({"lhs_dilation": (1, 0)}, "C6"),
        ({"rhs_dilation": ()}, "C7"),
        ({"rhs_dilation": (-1, 1)}, "C8"),
        ({"window_reversal": (True,)}, "C9"),
        ({"batch_group_count": 2}, "C10"),
        ({"feature_group_count": 2}, "C11|C14|C16"),
        ({"input_spatial_dimensions": (1, 1)}, "C13"),
        ({"kernel_spatial_dimensions": (0, 4)}, "C18"),
        ({"output_spatial_dimensions": (1,)}, "C20"),
        ({"feature_group_count": 0}, "C21"),
        ({"batch_group_count": 0}, "C22"),
        ({"precision_config": ("DEFAULT",) * 3}, "C24"),
    ],
)
def test_rejects(changes, message):
    operands = np.zeros((1, 4, 4, 3), np.float32), np.zeros((2, 2, 3, 5), np.float32)
    with pytest.raises(OperationError, match=message):
        call("convolution", *operands, **{**NHWC, **changes})
