"""reduce_window and select_and_scatter against the definition, over random windows."""

import itertools

import numpy as np
import pytest

from tests.ops.programs import body_of, main, rejects, run


def dense(pairs):
    return f"dense<{[list(pair) for pair in pairs]}> : tensor<{len(pairs)}x2xi64>"


def array(values):
    return f"array<i64: {', '.join(map(str, values))}>"


def shaped(shape, element):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def window_text(shape, result, element, opcode, size, strides, base, inner, padding):
    x, r = shaped(shape, element), shaped(result, element)
    return main(
        f"%x: {x}, %i: tensor<{element}>",
        r,
        f'%0 = "stablehlo.reduce_window"(%x, %i) ({{\n{body_of(opcode, element)}\n}}) {{window_dimensions = {array(size)}, '
        f"window_strides = {array(strides)}, base_dilations = {array(base)}, window_dilations = {array(inner)}, "
        f"padding = {dense(padding)}}} : ({x}, tensor<{element}>) -> {r}\nreturn %0 : {r}",
    )


def plain_windows(x, start, fold, size, strides, base, inner, padding):
    rank = x.ndim
    counts = []
    for d in range(rank):
        whole = (x.shape[d] - 1) * base[d] + 1 + sum(padding[d])
        span = (size[d] - 1) * inner[d] + 1
        counts.append(0 if whole < span else (whole - span) // strides[d] + 1)
    found = np.full(counts, start, x.dtype)
    for place in np.ndindex(*counts):
        total = start
        for offset in itertools.product(*map(range, size)):
            at = [place[d] * strides[d] + offset[d] * inner[d] - padding[d][0] for d in range(rank)]
            inside = all(p % b == 0 and 0 <= p // b < n for p, b, n in zip(at, base, x.shape, strict=True))
            value = x[tuple(p // b for p, b in zip(at, base, strict=True))] if inside else start
            total = fold(total, value)
        found[place] = total
    return found


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize(
    ("opcode", "fold", "start"), [("add", np.add, 0), ("maximum", np.maximum, -99), ("add", np.add, 2)]
)
def test_against_the_definition(seed, opcode, fold, start):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    shape = [int(v) for v in rng.integers(1, 8, rank)]
    size, strides, base, inner = ([int(v) for v in rng.integers(1, high, rank)] for high in (7, 3, 3, 3))
    padding = [(int(p), int(q)) for p, q in rng.integers(-1, 5, (rank, 2))]
    element, dtype = [("f32", np.float32), ("i32", np.int32)][seed % 2]
    x = rng.integers(-5, 6, shape).astype(dtype)
    want = plain_windows(x, dtype(start), fold, size, strides, base, inner, padding)
    text = window_text(shape, want.shape, element, opcode, size, strides, base, inner, padding)
    np.testing.assert_array_equal(run(text, x, dtype(start))[0], want)


def test_long_windows():
    x = np.random.default_rng(0).normal(size=5000).astype(np.float32)
    text = window_text([5000], [5000], "f32", "add", [5000], [1], [1], [1], [(4999, 0)])
    (found,) = run(text, x, np.float32(0))
    np.testing.assert_allclose(found, np.cumsum(x.astype(np.float64)), rtol=1e-6, atol=1e-5)


def test_variadic_body():
    text = main(
        "%x: tensor<6xf32>, %n: tensor<6xi32>",
        "tensor<4xf32>, tensor<4xi32>",
        """
        %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
        %j = stablehlo.constant dense<-1> : tensor<i32>
        %0:2 = "stablehlo.reduce_window"(%x, %n, %i, %j) ({
        ^bb0(%a: tensor<f32>, %p: tensor<i32>, %b: tensor<f32>, %q: tensor<i32>):
          %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>
          %3 = stablehlo.select %1, %p, %q : tensor<i1>, tensor<i32>
          "stablehlo.return"(%2, %3) : (tensor<f32>, tensor<i32>) -> ()
        }) {window_dimensions = array<i64: 3>} : (tensor<6xf32>, tensor<6xi32>, tensor<f32>, tensor<i32>)
          -> (tensor<4xf32>, tensor<4xi32>)
        return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>""",
    )
    most, where = run(text, np.array([3, 1, 3, 0, 5, 5], np.float32), np.arange(6, dtype=np.int32))
    assert most.tolist() == [3, 3, 5, 5] and where.tolist() == [0, 2, 4, 4]


def select_text(shape, windows, size, strides, padding, direction="GE"):
    x, s = shaped(shape, "f32"), shaped(windows, "f32")
    return main(
        f"%x: {x}, %s: {s}, %i: tensor<f32>",
        x,
        f'%0 = "stablehlo.select_and_scatter"(%x, %s, %i) ({{\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
        f"%c = stablehlo.compare {direction}, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        f'"stablehlo.return"(%c) : (tensor<i1>) -> ()\n}}, {{\n{body_of("add", "f32")}\n}}) '
        f"{{window_dimensions = {array(size)}, window_strides = {array(strides)}, padding = {dense(padding)}}} "
        f": ({x}, {s}, tensor<f32>) -> {x}\nreturn %0 : {x}",
    )


@pytest.mark.parametrize("seed", range(20))
def test_select_and_scatter(seed):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    shape = [int(v) for v in rng.integers(2, 7, rank)]
    size, strides = ([int(v) for v in rng.integers(1, high, rank)] for high in (4, 3))
    padding = [(int(rng.integers(0, s)), int(rng.integers(0, s))) for s in size]
    counts = [(n + sum(p) - s) // t + 1 for n, p, s, t in zip(shape, padding, size, strides, strict=True)]
    if min(counts) < 1:
        return
    x = rng.integers(0, 4, shape).astype(np.float32)
    source = rng.integers(1, 9, counts).astype(np.float32)
    want = np.full(shape, np.float32(0.5))
    for place in np.ndindex(*counts):
        best = None
        for offset in itertools.product(*map(range, size)):
            at = tuple(place[d] * strides[d] + offset[d] - padding[d][0] for d in range(rank))
            if any(p < 0 or p >= n for p, n in zip(at, shape, strict=True)):
                continue
            if best is None or not x[best] >= x[at]:
                best = at
        if best is not None:
            want[best] += source[place]
    text = select_text(shape, counts, size, strides, padding)
    np.testing.assert_array_equal(run(text, x, source, np.float32(0.5))[0], want)


def test_rejects():
    good = ([4, 4], [2, 2], "f32", "add", [2, 2], [2, 2], [1, 1], [1, 1], [(0, 0), (0, 0)])

    def changed(index, value):
        return window_text(*good[:index], value, *good[index + 1 :])

    rejects(changed(4, [2]), "C4")
    rejects(changed(4, [0, 2]), "C5")
    rejects(changed(5, [2]), "C6")
    rejects(changed(5, [2, 0]), "C7")
    rejects(changed(6, [1]), "C8")
    rejects(changed(6, [0, 1]), "C9")
    rejects(changed(7, [1, 1, 1]), "C10")
    rejects(changed(7, [1, 0]), "C11")
    rejects(changed(8, [(0, 0)]), "C12")
    rejects(changed(1, [3, 2]), "does not match")
    rejects(select_text([4], [3], [2], [2], [(0, 0)]), "C2")
    rejects(select_text([4], [2], [2, 2], [2], [(0, 0)]), "C4")
