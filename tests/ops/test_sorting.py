"""sort: recognised comparators, merged ones, and ones that contradict themselves; top_k."""

import functools

import ml_dtypes
import numpy as np
import pytest

from compiler.ir.types import element_of_dtype
from compiler.ops.sorting import top_k
from tests.ops.programs import main, rejects, run

NAN = np.float32(np.nan)


def sort_text(shape, elements, comparator, dimension):
    kinds = [f"tensor<{shape}{e}>" for e in elements]
    names = [f"%x{k}" for k in range(len(kinds))]
    scalars = ", ".join(f"%{side}{k}: tensor<{e}>" for k, e in enumerate(elements) for side in "ab")
    results = ", ".join(kinds)
    out = f"%0:{len(kinds)}" if len(kinds) > 1 else "%0"
    back = ", ".join(f"%0#{k}" if len(kinds) > 1 else "%0" for k in range(len(kinds)))
    return main(
        ", ".join(f"{n}: {k}" for n, k in zip(names, kinds, strict=True)),
        results,
        f'{out} = "stablehlo.sort"({", ".join(names)}) ({{\n^bb0({scalars}):\n{comparator}\n'
        f'"stablehlo.return"(%r) : (tensor<i1>) -> ()\n}}) {{dimension = {dimension} : i64, is_stable = true}} '
        f": ({results}) -> ({results})\nreturn {back} : {results}",
    )


def compare(direction, element, a="%a0", b="%b0", kind="", name="%r"):
    suffix = f", {kind}" if kind else ""
    return f"{name} = stablehlo.compare {direction}, {a}, {b}{suffix} : (tensor<{element}>, tensor<{element}>) -> tensor<i1>"


def test_directions_and_dimensions():
    x = np.random.default_rng(0).integers(-9, 9, (5, 7)).astype(np.int32)
    assert (run(sort_text("5x7x", ["i32"], compare("LT", "i32"), 0), x)[0] == np.sort(x, axis=0)).all()
    down = run(sort_text("5x7x", ["i32"], compare("GT", "i32"), 1), x)[0]
    assert (down == -np.sort(-x, axis=1)).all()
    swapped = run(sort_text("5x7x", ["i32"], compare("LT", "i32", "%b0", "%a0"), 1), x)[0]
    assert (swapped == down).all()


@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_stability(direction):
    x = np.random.default_rng(1).integers(0, 3, 50).astype(np.uint8)
    places = np.arange(50, dtype=np.int32)
    found = run(sort_text("50x", ["ui8", "i32"], compare(direction, "ui8"), 0), x, places)
    order = sorted(range(50), key=lambda k: int(x[k]) * (1 if direction == "LT" else -1))
    assert found[0].tolist() == x[order].tolist() and found[1].tolist() == order


def test_total_order():
    x = np.array([np.inf, NAN, 0.0, -0.0, -NAN, -np.inf, -1.0], np.float32)
    (found,) = run(sort_text("7x", ["f32"], compare("LT", "f32", kind="TOTALORDER"), 0), x)
    assert np.isnan(found[[0, -1]]).all() and np.signbit(found[0]) and not np.signbit(found[-1])
    assert (
        found[1:6].tolist() == [-np.inf, -1, 0, 0, np.inf]
        and np.signbit(found[3])
        and not np.signbit(found[4])
    )
    narrow = x.astype(ml_dtypes.bfloat16)
    (found,) = run(sort_text("7x", ["bf16"], compare("GT", "bf16", kind="TOTALORDER"), 0), narrow)
    assert found.astype(np.float32)[1:6].tolist() == [np.inf, 0, 0, -1, -np.inf]


CANONICAL = "\n".join(
    [
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
        "%nan = stablehlo.constant dense<0x7FC00000> : tensor<f32>",
        *(
            line
            for side in "ab"
            for line in (
                compare("EQ", "f32", f"%{side}0", "%zero", name=f"%z{side}"),
                f"%y{side} = stablehlo.select %z{side}, %zero, %{side}0 : tensor<i1>, tensor<f32>",
                compare("NE", "f32", f"%{side}0", f"%{side}0", name=f"%n{side}"),
                f"%k{side} = stablehlo.select %n{side}, %nan, %y{side} : tensor<i1>, tensor<f32>",
            )
        ),
        compare("LT", "f32", "%ka", "%kb", kind="TOTALORDER"),
    ]
)


def test_zeros_and_nan_alike():
    """Frameworks' usual comparator: both zeros are equal, all NaN are equal and last."""
    x = np.array([NAN, 0.0, -0.0, 1.0, -NAN, -1.0, 0.0], np.float32)
    found, places = run(sort_text("7x", ["f32", "i32"], CANONICAL, 0), x, np.arange(7, dtype=np.int32))
    assert places.tolist() == [5, 1, 2, 6, 3, 0, 4]
    assert found[:5].tolist() == [-1, 0, 0, 0, 1] and np.isnan(found[5:]).all()


LEXICOGRAPHIC = "\n".join(
    [
        compare("LT", "i32", name="%l"),
        compare("EQ", "i32", name="%e"),
        compare("LT", "f32", "%a1", "%b1", name="%m"),
        "%n = stablehlo.and %e, %m : tensor<i1>",
        "%r = stablehlo.or %l, %n : tensor<i1>",
    ]
)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 100, 129])
def test_merged_comparators(count):
    rng = np.random.default_rng(count)
    keys = rng.integers(0, 4, (3, count)).astype(np.int32)
    values = rng.integers(0, 4, (3, count)).astype(np.float32)
    places = np.broadcast_to(np.arange(count, dtype=np.int32), (3, count))
    text = sort_text(f"3x{count}x", ["i32", "f32", "i32"], LEXICOGRAPHIC, 1)
    found = run(text, keys, values, places)
    for row in range(3):
        order = sorted(range(count), key=lambda k: (keys[row, k], values[row, k]))
        assert found[2][row].tolist() == order


def test_comparator_without_an_order():
    """NaN under a plain `<`: whatever the order, no element may be lost."""
    x = np.array([3, NAN, 1, NAN, 2, 0, NAN, 5], np.float32)
    text = sort_text(
        "8x", ["f32", "f32"], compare("LT", "f32", name="%l") + "\n%r = stablehlo.and %l, %l : tensor<i1>", 0
    )
    first, second = run(text, x, -x)
    assert sorted(first[~np.isnan(first)].tolist()) == [0, 1, 2, 3, 5] and np.isnan(first).sum() == 3
    np.testing.assert_array_equal(first, -second)


def test_complex_by_parts():
    rng = np.random.default_rng(5)
    x = (rng.integers(0, 3, 40) + 1j * rng.integers(0, 3, 40)).astype(np.complex64)
    (found,) = run(sort_text("40x", ["complex<f32>"], compare("LT", "complex<f32>"), 0), x)
    order = sorted(
        x.tolist(),
        key=functools.cmp_to_key(
            lambda a, b: (a.real, a.imag) > (b.real, b.imag) or -((a.real, a.imag) < (b.real, b.imag))
        ),
    )
    assert found.tolist() == order


def test_top_k():
    x = np.array([[1, 3, 3, 2], [0, 0, -0.0, NAN]], np.float32)
    values, places = top_k(x, element_of_dtype(x.dtype), 3)
    assert places.tolist() == [[1, 2, 3], [3, 0, 1]] and places.dtype == np.int32
    assert values[0].tolist() == [3, 3, 2] and np.isnan(values[1, 0])


def test_rejects():
    rejects(sort_text("5x7x", ["i32"], compare("LT", "i32"), 2), "C4")
    rejects(
        sort_text("5x", ["i32", "f32"], compare("LT", "i32"), 0).replace(
            "%a1: tensor<f32>", "%a1: tensor<i32>"
        ),
        "C5",
    )
