"""gather and scatter against the definition, over random dimension numbers; repeated and foreign indices."""

import numpy as np
import pytest

from compiler.ir.semantics import OperationError
from compiler.ir.types import F32, TensorType
from tests.ops.operation_calls import call
from tests.ops.programs import body_of, main, rejects, run


def random_numbers(rng, rank):
    """Which operand dimensions are batching, collapsed (inserted), and window ones."""
    roles = rng.integers(0, 3, rank)
    batching = tuple(int(d) for d in np.flatnonzero(roles == 0))
    collapsed = tuple(int(d) for d in np.flatnonzero(roles == 1))
    window = tuple(int(d) for d in np.flatnonzero(roles == 2))
    return batching, collapsed, window


def random_gather(rng):
    rank = int(rng.integers(1, 5))
    shape = rng.integers(1, 5, rank)
    batching, collapsed, window = random_numbers(rng, rank)
    mapped = [d for d in range(rank) if d not in batching and rng.random() < 0.8]
    start_map = tuple(int(d) for d in rng.permutation(mapped)) if mapped else ()
    free = int(rng.integers(0, 2))
    batch = [("batching", d) for d in batching] + [("free", k) for k in range(free)]
    order = rng.permutation(len(batch))
    batch = [batch[k] for k in order]
    batch_shape = [int(shape[d]) if role == "batching" else int(rng.integers(1, 4)) for role, d in batch]
    vector = int(rng.integers(0, len(batch) + 1))
    implicit = len(start_map) == 1 and rng.random() < 0.3
    if implicit:
        vector, index_shape = len(batch), batch_shape
    else:
        index_shape = [*batch_shape[:vector], len(start_map), *batch_shape[vector:]]
    places = {d: k for k, (role, d) in enumerate(batch) if role == "batching"}
    starts_batching = tuple(k + (k >= vector and not implicit) for k in (places[d] for d in batching))
    total = len(batch) + len(window)
    offsets = tuple(sorted(int(v) for v in rng.choice(total, len(window), replace=False)))
    sizes = tuple(
        int(rng.integers(0 if d in collapsed else 1, 2))
        if d not in window
        else int(rng.integers(1, shape[d] + 1))
        for d in range(rank)
    )
    sizes = tuple(1 if d in batching or d in collapsed else size for d, size in enumerate(sizes))
    indices = rng.integers(-3, 7, index_shape)
    return (
        tuple(map(int, shape)),
        indices,
        batching,
        collapsed,
        window,
        start_map,
        vector,
        starts_batching,
        offsets,
        sizes,
    )


def index_vector(indices, vector, batch_place):
    where = list(batch_place)
    if vector == indices.ndim:
        return [int(indices[tuple(where)])]
    where.insert(vector, slice(None))
    return [int(v) for v in indices[tuple(where)]]


def element_place(place, case):
    """For an element of the windowed tensor: operand place before clamping, and the start and offset parts."""
    shape, indices, batching, _collapsed, window, start_map, vector, starts_batching, offsets, _ = case
    batch = [v for d, v in enumerate(place) if d not in offsets]
    offset = [place[d] for d in offsets]
    start = [0] * len(shape)
    for d, value in zip(start_map, index_vector(indices, vector, batch), strict=True):
        start[d] = value
    fixed = [0] * len(shape)
    for d, k in zip(batching, starts_batching, strict=True):
        fixed[d] = batch[k - (k > vector)]
    for d, value in zip(window, offset, strict=True):
        fixed[d] = value
    return start, fixed


@pytest.mark.parametrize("seed", range(80))
def test_gather(seed):
    rng = np.random.default_rng(seed)
    case = random_gather(rng)
    shape, indices, batching, collapsed, _window, start_map, vector, starts_batching, offsets, sizes = case
    operand = rng.normal(size=shape).astype(np.float32)
    attributes = {
        "offset_dims": offsets,
        "collapsed_slice_dims": collapsed,
        "operand_batching_dims": batching,
        "start_indices_batching_dims": starts_batching,
        "start_index_map": start_map,
        "index_vector_dim": vector,
    }
    dtype = [np.int32, np.int64, np.int8][seed % 3]
    found = call("gather", operand, indices.astype(dtype), slice_sizes=sizes, **attributes)
    for place in np.ndindex(*found.shape):
        start, fixed = element_place(place, case)
        clamped = [min(max(s, 0), n - z) for s, n, z in zip(start, shape, sizes, strict=True)]
        assert found[place] == operand[tuple(a + b for a, b in zip(clamped, fixed, strict=True))]
    dynamic = call(
        "dynamic_gather",
        operand,
        indices.astype(dtype),
        np.array(sizes, np.int64),
        result=TensorType(F32, found.shape),
        **attributes,
    )
    np.testing.assert_array_equal(dynamic, found)


@pytest.mark.parametrize("seed", range(60))
def test_scatter(seed):
    rng = np.random.default_rng(1000 + seed)
    case = random_gather(rng)
    shape, indices, batching, collapsed, _window, start_map, vector, starts_batching, offsets, sizes = case
    attributes = {
        "offset_dims": offsets,
        "collapsed_slice_dims": collapsed,
        "operand_batching_dims": batching,
        "start_indices_batching_dims": starts_batching,
        "start_index_map": start_map,
        "index_vector_dim": vector,
    }
    operand = rng.integers(0, 9, shape).astype(np.float32)
    like = call("gather", operand, indices, slice_sizes=sizes, **attributes)
    updates = rng.integers(1, 9, like.shape).astype(np.float32)
    opcode, apply = [
        ("add", lambda a, b: a + b),
        ("maximum", max),
        ("multiply", lambda a, b: a * b),
        ("subtract", lambda a, b: a - b),
    ][seed % 4]
    want = operand.astype(np.float64)
    for place in np.ndindex(*updates.shape):
        start, fixed = element_place(place, case)
        where = tuple(a + b for a, b in zip(start, fixed, strict=True))
        if all(0 <= w < n for w, n in zip(where, shape, strict=True)):
            want[where] = apply(want[where], float(updates[place]))

    def tensor_text(array, element):
        return f"tensor<{''.join(f'{n}x' for n in array.shape)}{element}>"

    x, i, u = tensor_text(operand, "f32"), tensor_text(indices, "i64"), tensor_text(updates, "f32")
    text = main(
        f"%x: {x}, %i: {i}, %u: {u}",
        x,
        f'%0 = "stablehlo.scatter"(%x, %i, %u) ({{\n{body_of(opcode, "f32")}\n}}) {{scatter_dimension_numbers = '
        f"#stablehlo.scatter<update_window_dims = {list(offsets)}, inserted_window_dims = {list(collapsed)}, "
        f"input_batching_dims = {list(batching)}, scatter_indices_batching_dims = {list(starts_batching)}, "
        f"scatter_dims_to_operand_dims = {list(start_map)}, index_vector_dim = {vector}>}} : ({x}, {i}, {u}) -> {x}\n"
        f"return %0 : {x}",
    )
    np.testing.assert_array_equal(run(text, operand, indices, updates)[0], want.astype(np.float32))


def scatter_rows(region, index_type="i32", count=6, extra=""):
    t = "tensor<4xf32>"
    u = f"tensor<{count}xf32>"
    i = f"tensor<{count}x1x{index_type}>"
    return main(
        f"%x: {t}, %i: {i}, %u: {u}",
        t,
        f'%0 = "stablehlo.scatter"(%x, %i, %u) ({{\n{region}\n}}) {{scatter_dimension_numbers = #stablehlo.scatter<'
        "update_window_dims = [], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
        f">{extra}}} : ({t}, {i}, {u}) -> {t}\nreturn %0 : {t}",
    )


ASSIGN = '^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"stablehlo.return"(%b) : (tensor<f32>) -> ()'
X = np.zeros(4, np.float32)
U = np.arange(1, 7, dtype=np.float32)


def test_repeated_indices_in_order():
    indices = np.array([[1], [1], [9], [0], [1], [-1]], np.int32)
    assert run(scatter_rows(ASSIGN), X, indices, U)[0].tolist() == [4, 5, 0, 0]
    # a * 2 + b depends on the order of the updates.
    region = (
        "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%c = stablehlo.add %a, %a : tensor<f32>\n"
        '%d = stablehlo.add %c, %b : tensor<f32>\n"stablehlo.return"(%d) : (tensor<f32>) -> ()'
    )
    assert run(scatter_rows(region), X, indices, U)[0].tolist() == [4, (1 * 2 + 2) * 2 + 5, 0, 0]


def test_large_unsigned_indices_are_foreign():
    indices = np.array([[2**63], [2**64 - 1], [3], [2], [2], [2]], np.uint64)
    found = run(scatter_rows(body_of("add", "f32"), "ui64"), X, indices, U)[0]
    assert found.tolist() == [0, 0, 4 + 5 + 6, 3]
    small = call(
        "gather",
        np.arange(4, dtype=np.float32),
        indices,
        offset_dims=(),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=1,
        slice_sizes=(1,),
    )
    assert small.tolist() == [3, 3, 3, 2, 2, 2]


def test_several_operands():
    text = main(
        "%x: tensor<3xf32>, %y: tensor<3xi32>, %i: tensor<2x1xi32>, %u: tensor<2xf32>, %v: tensor<2xi32>",
        "tensor<3xf32>, tensor<3xi32>",
        """
        %0:2 = "stablehlo.scatter"(%x, %y, %i, %u, %v) ({
        ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
          %1 = stablehlo.add %a, %c : tensor<f32>
          %2 = stablehlo.maximum %b, %d : tensor<i32>
          "stablehlo.return"(%1, %2) : (tensor<f32>, tensor<i32>) -> ()
        }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [], inserted_window_dims = [0],
            scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
          : (tensor<3xf32>, tensor<3xi32>, tensor<2x1xi32>, tensor<2xf32>, tensor<2xi32>) -> (tensor<3xf32>, tensor<3xi32>)
        return %0#0, %0#1 : tensor<3xf32>, tensor<3xi32>""",
    )
    x, y = np.ones(3, np.float32), np.array([5, 5, 5], np.int32)
    first, second = run(text, x, y, np.array([[2], [2]], np.int32), x[:2] * 3, np.array([7, 6], np.int32))
    assert first.tolist() == [1, 1, 7] and second.tolist() == [5, 5, 7]


def test_torch_index_select():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    picked = call("torch_index_select", x, np.array([2, 0], np.int32), dim=1, batch_dims=0)
    np.testing.assert_array_equal(picked, x[:, [2, 0]])
    each = call("torch_index_select", x, np.array([[2], [0]], np.int32), dim=1, batch_dims=1)
    np.testing.assert_array_equal(each, np.stack([x[0, [2]], x[1, [0]]]))


GOOD = {
    "offset_dims": (1,),
    "collapsed_slice_dims": (0,),
    "operand_batching_dims": (),
    "start_indices_batching_dims": (),
    "start_index_map": (0,),
    "index_vector_dim": 1,
    "slice_sizes": (1, 4),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"collapsed_slice_dims": ()}, "C1"),
        ({"index_vector_dim": 3}, "C2"),
        ({"start_index_map": (0, 1)}, "C3"),
        ({"offset_dims": (2,)}, "C5"),
        ({"collapsed_slice_dims": (2,)}, "C8"),
        ({"slice_sizes": (2, 4)}, "C9"),
        ({"start_index_map": (2,)}, "C19"),
        ({"slice_sizes": (1,)}, "C20"),
        ({"slice_sizes": (1, 5)}, "C21"),
    ],
)
def test_gather_rejects(changes, message):
    with pytest.raises(OperationError, match=message):
        call("gather", np.zeros((3, 4), np.float32), np.zeros((2, 1), np.int32), **{**GOOD, **changes})


def test_scatter_rejects():
    rejects(scatter_rows(body_of("add", "i32")), "does not match")
    rejects(
        scatter_rows(body_of("add", "f32")).replace("index_vector_dim = 1", "index_vector_dim = 3"), "C22"
    )
    rejects(scatter_rows(body_of("add", "f32")).replace("operand_dims = [0]", "operand_dims = [1]"), "C21")
    rejects(
        scatter_rows(body_of("add", "f32")).replace(
            "inserted_window_dims = [0]", "inserted_window_dims = []"
        ),
        "C2",
    )


def test_extremes_of_floats():
    x = np.array([0.0, -0.0, -1.0, np.nan], np.float32)
    indices = np.array([[0], [1], [2], [3], [2], [1]], np.int32)
    updates = np.array([-0.0, 0.0, np.nan, 5.0, 7.0, -3.0], np.float32)
    (most,) = run(scatter_rows(body_of("maximum", "f32")), x, indices, updates)
    (least,) = run(scatter_rows(body_of("minimum", "f32")), x, indices, updates)
    assert most[:2].tolist() == [0, 0] and not np.signbit(most[:2]).any() and np.isnan(most[2:]).all()
    assert least[:2].tolist() == [0, -3] and np.signbit(least[0]) and np.isnan(least[2:]).all()
