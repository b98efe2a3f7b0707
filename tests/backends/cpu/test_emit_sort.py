"""Sorts of every kind against the operation's own rule: keys, comparators, dimensions, NaN, nonsense answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from guarded import Array, run_kernel
from one_kernel import compiler, emit, find, lowering, run_both, same_bits

from compiler.backends.cpu.emit.sort_kernel import sort_use, top_k_use
from compiler.backends.cpu.kernel_code import KernelCode, kernel_module
from compiler.frontend.mlir import parse_module
from compiler.ir.program import Computation, Instruction, Module, make_computation
from compiler.ir.types import ELEMENTS, Layout

_ORDERED = [e for e in ELEMENTS.values() if not e.is_complex]


def _type(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def _program(
    shape: tuple[int, ...], elements: list[str], dimension: int, comparator: str, is_stable: bool = True
) -> str:
    """A sort of several inputs; `comparator` is the text of the region, with `%0`, `%1` … for its arguments."""
    types = [_type(shape, element) for element in elements]
    names = [f"%arg{number}" for number in range(len(types))]
    arguments = ", ".join(f"{name}: {kind}" for name, kind in zip(names, types, strict=True))
    scalars = ", ".join(
        f"%x{2 * number + side}: tensor<{element}>"
        for number, element in enumerate(elements)
        for side in (0, 1)
    )
    many = "" if len(types) == 1 else f":{len(types)}"
    results = [f"%r#{number}" for number in range(len(types))] if many else ["%r"]
    listed = ", ".join(types)
    return f"""
func.func @main({arguments}) -> ({listed}) {{
  %r{many} = "stablehlo.sort"({", ".join(names)}) <{{dimension = {dimension} : i64, is_stable = {str(is_stable).lower()}}}> ({{
  ^bb0({scalars}):
    {comparator}
  }}) : ({listed}) -> ({listed})
  return {", ".join(results)} : {listed}
}}
"""


def _compare(element: str, direction: str = "LT", kind: str = "", pair: tuple[int, int] = (0, 1)) -> str:
    tail = f", {kind}" if kind else ""
    return f"""%c = stablehlo.compare {direction}, %x{pair[0]}, %x{pair[1]}{tail} : (tensor<{element}>, tensor<{element}>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>"""


def _values(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    """Values with repetitions, and for floats with zeros, infinities and NaN of both signs."""
    rng = np.random.default_rng([seed, *shape])
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        few = rng.integers(0, 5, shape).astype(dtype)
        return np.where(
            rng.random(shape) < 0.5, few, rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        )
    if dtype.kind == "c":
        return (rng.integers(-2, 3, shape) + 1j * rng.integers(-2, 3, shape)).astype(dtype)
    with np.errstate(all="ignore"):
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1, -1]).astype(dtype)
        wide = rng.normal(size=shape) * 4
        mixed = wide.astype(dtype)
    return np.where(rng.random(shape) < 0.4, special[rng.integers(0, 8, shape)], mixed)


def _check(text: str, arguments: list[Array], **options: Any) -> None:
    found, right = run_both(text, "sort", sort_use, arguments, **options)
    assert len(found) == len(right)
    for left, expected in zip(found, right, strict=True):
        assert same_bits(left, expected)


@pytest.mark.parametrize("element", _ORDERED, ids=str)
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_all_types_in_both_directions(element: Any, direction: str) -> None:
    text = _program((3, 37), [element.name, "i32"], 1, _compare(element.name, direction))
    keys = _values((3, 37), element.dtype)
    _check(text, [keys, np.arange(111, dtype=np.int32).reshape(3, 37)])


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_total_order_puts_zeros_and_nan_where_their_signs_say(element: str, direction: str) -> None:
    text = _program((5, 90), [element, "i32"], -1, _compare(element, direction, "TOTALORDER"))
    keys = _values((5, 90), ELEMENTS[element].dtype)
    _check(text, [keys, np.arange(450, dtype=np.int32).reshape(5, 90)])


@pytest.mark.parametrize("shape", [(4, 5, 6), (1, 7, 3), (2, 1, 1), (9, 40, 2)], ids=str)
@pytest.mark.parametrize("dimension", [0, 1, 2])
@pytest.mark.parametrize("side", ["start", "end"])
def test_any_dimension(shape: tuple[int, ...], dimension: int, side: Any) -> None:
    text = _program(shape, ["f32", "i8", "complex<f64>"], dimension, _compare("i8", "GT", pair=(3, 2)))
    arrays = [_values(shape, np.float32), _values(shape, np.int8), _values(shape, np.complex128)]
    _check(text, arrays, side=side)


@pytest.mark.parametrize("length", [1, 2, 3, 12, 13, 24, 25, 100, 511, 512, 513, 3000])
@pytest.mark.parametrize("element", ["f32", "i64", "ui8"])
def test_lengths_by_merging_and_by_digits(length: int, element: str) -> None:
    text = _program((2, length), [element, "i32"], 1, _compare(element))
    keys = _values((2, length), ELEMENTS[element].dtype)
    _check(text, [keys, np.arange(2 * length, dtype=np.int32).reshape(2, length)], threads=1)


def test_rising_falling_and_equal_rows() -> None:
    row = np.arange(1000, dtype=np.int32)
    keys = np.stack([row, row[::-1], row * 0, row % 2, row << 20])
    for wanted in ("LT", "GT"):
        text = _program(keys.shape, ["i32", "i32"], 1, _compare("i32", wanted))
        _check(text, [keys, np.arange(5000, dtype=np.int32).reshape(5, 1000)])


_LEXICOGRAPHIC = """%lt = stablehlo.compare LT, %x0, %x1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %eq = stablehlo.compare EQ, %x0, %x1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %gt = stablehlo.compare GT, %x2, %x3, TOTALORDER : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
    %both = stablehlo.and %eq, %gt : tensor<i1>
    %c = stablehlo.or %lt, %both : tensor<i1>
    stablehlo.return %c : tensor<i1>"""


@pytest.mark.parametrize("length", [1, 5, 12, 13, 200, 1025])
def test_two_keys(length: int) -> None:
    rng = np.random.default_rng(length)
    shape = (length, 3)
    first = rng.integers(0, 4, shape).astype(np.int32)
    second = _values(shape, ELEMENTS["bf16"].dtype)
    text = _program(shape, ["i32", "bf16", "i64"], 0, _LEXICOGRAPHIC)
    _check(text, [first, second, np.arange(3 * length).reshape(shape)])


_MAGNITUDE = """%a = stablehlo.abs %x0 : (tensor<complex<f32>>) -> tensor<f32>
    %b = stablehlo.abs %x1 : (tensor<complex<f32>>) -> tensor<f32>
    %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>"""


def test_comparators_may_compute() -> None:
    text = _program((6, 50), ["complex<f32>"], 1, _MAGNITUDE)
    _check(text, [_values((6, 50), np.complex64)])


@pytest.mark.parametrize("element", ["i4", "ui2", "f8E4M3FN", "bf16"])
def test_comparators_of_narrow_types(element: str) -> None:
    doubled = f"""%a = stablehlo.add %x0, %x0 : tensor<{element}>
    %b = stablehlo.add %x1, %x1 : tensor<{element}>
    {_compare(element, "GT", "TOTALORDER" if "f" in element else "").replace("%x0, %x1", "%a, %b")}"""
    keys = np.random.default_rng(1).integers(-3, 4, (3, 40)).astype(ELEMENTS[element].dtype)
    text = _program((3, 40), [element, "i64"], 1, doubled)
    _check(text, [keys, np.arange(120).reshape(3, 40)])


def test_comparators_may_call() -> None:
    called = """%a = func.call @key(%x0) : (tensor<f32>) -> tensor<f32>
    %b = func.call @key(%x1) : (tensor<f32>) -> tensor<f32>
    %c = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>"""
    key = """
func.func private @key(%x: tensor<f32>) -> tensor<f32> {
  %y = stablehlo.cosine %x : tensor<f32>
  %z = stablehlo.floor %y : tensor<f32>
  return %z : tensor<f32>
}
"""
    _check(_program((2, 60), ["f32"], 1, called) + key, [_values((2, 60), np.float32)])


_ALIKE = """%zero = stablehlo.constant dense<0.0> : tensor<{0}>
    %nan = stablehlo.constant dense<0x{1}> : tensor<{0}>
    %n0 = stablehlo.compare NE, %x0, %x0 : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    %z0 = stablehlo.compare EQ, %x0, %zero : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    %s0 = stablehlo.select %z0, %zero, %x0 : tensor<i1>, tensor<{0}>
    %k0 = stablehlo.select %n0, %nan, %s0 : tensor<i1>, tensor<{0}>
    %n1 = stablehlo.compare NE, %x1, %x1 : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    %z1 = stablehlo.compare EQ, %x1, %zero : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    %s1 = stablehlo.select %z1, %zero, %x1 : tensor<i1>, tensor<{0}>
    %k1 = stablehlo.select %n1, %nan, %s1 : tensor<i1>, tensor<{0}>
    %c = stablehlo.compare {2}, %k0, %k1, TOTALORDER : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>"""


@pytest.mark.parametrize("direction", ["LT", "GT"])
@pytest.mark.parametrize(
    ("element", "nan"), [("f32", "7FC00000"), ("f64", "7FF8000000000000"), ("f16", "7E00")]
)
def test_zeros_alike_and_nan_alike(element: str, nan: str, direction: str) -> None:
    text = _program((3, 70), [element, "i32"], 1, _ALIKE.format(element, nan, direction))
    keys = _values((3, 70), ELEMENTS[element].dtype)
    _check(text, [keys, np.arange(210, dtype=np.int32).reshape(3, 70)])


_NONSENSE = {
    "always": "%c = stablehlo.constant dense<true> : tensor<i1>\n    stablehlo.return %c : tensor<i1>",
    "never": "%c = stablehlo.constant dense<false> : tensor<i1>\n    stablehlo.return %c : tensor<i1>",
    "unequal": _compare("f32", "NE"),
    "not greater or equal": """%ge = stablehlo.compare GE, %x0, %x1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %c = stablehlo.not %ge : tensor<i1>
    stablehlo.return %c : tensor<i1>""",
}


@pytest.mark.parametrize("comparator", _NONSENSE)
@pytest.mark.parametrize("side", ["start", "end"])
def test_contradictions_keep_to_the_buffers_and_lose_nothing(comparator: str, side: Any) -> None:
    for length in (1, 11, 12, 13, 47, 300):
        text = _program((2, length), ["f32"], 1, _NONSENSE[comparator])
        keys = _values((2, length), np.float32)
        (found,), _ = run_both(text, "sort", sort_use, [keys], side=side)
        for row, before in zip(found.view(np.uint32), keys.view(np.uint32), strict=True):
            assert sorted(row.tolist()) == sorted(before.tolist())


def _with_layouts(module: Module, layouts: Sequence[tuple[int, ...]]) -> Module:
    """The program's parameters and its one result in other layouts."""
    entry = module.entry_computation
    order = iter(layouts)
    changed = {
        instruction.name: instruction.with_type(instruction.tensor.with_layout(Layout(next(order))))
        for instruction in entry
    }
    return _replaced(module, make_computation(entry.name, changed, entry.root))


def _replaced(module: Module, entry: Computation) -> Module:
    return Module(module.name, {**module.computations, entry.name: entry}, entry.name)


def _stored(array: Array, layout: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(array.transpose(layout[::-1]))


@pytest.mark.parametrize("dimension", [0, 1, 2])
def test_layouts(dimension: int) -> None:
    shape = (3, 4, 5)
    module = parse_module(_program(shape, ["i16"], dimension, _compare("i16")))
    layouts = [(1, 2, 0), (0, 1, 2)]
    use = emit(_with_layouts(module, layouts), "sort", sort_use)
    assert use is not None
    assert isinstance(use.code, KernelCode)
    keys = _values(shape, np.int16)
    library = compiler().load(kernel_module([use.code]))
    out = np.zeros_like(_stored(keys, layouts[1]))
    _, found = run_kernel(library, use.code, [_stored(keys, layouts[0]), out])
    assert np.array_equal(found, _stored(np.sort(keys, axis=dimension), layouts[1]))


def test_a_scalar_is_left_to_the_library() -> None:
    module = parse_module(_program((), ["f32"], -1, _compare("f32")))
    assert emit(module, "sort", sort_use) is None


def _top_k(shape: tuple[int, ...], element: str, k: int) -> str:
    result = (*shape[:-1], k)
    values, places = _type(result, element), _type(result, "i32")
    return f"""
func.func @main(%x: {_type(shape, element)}) -> ({values}, {places}) {{
  %v, %i = chlo.top_k(%x, k = {k}) : {_type(shape, element)} -> ({values}, {places})
  return %v, %i : {values}, {places}
}}
"""


@pytest.mark.parametrize("element", [e for e in _ORDERED if e.kind != "bool"], ids=str)
@pytest.mark.parametrize(("shape", "k"), [((3, 50), 7), ((4, 90), 80), ((6,), 6), ((2, 3, 9), 1)], ids=str)
def test_top_k(element: Any, shape: tuple[int, ...], k: int) -> None:
    found, right = run_both(
        _top_k(shape, element.name, k), "chlo.top_k", top_k_use, [_values(shape, element.dtype)], side="start"
    )
    assert all(same_bits(left, expected) for left, expected in zip(found, right, strict=True))


def test_equal_instructions_have_one_name() -> None:
    def name(k: int) -> str:
        module = parse_module(_top_k((2, 30), "f32", k))
        instruction: Instruction = find(module, "chlo.top_k")
        use = top_k_use(lowering(module, 4), module.entry_computation, instruction)
        assert use is not None
        assert isinstance(use.code, KernelCode)
        return use.code.name

    assert name(3) == name(3) != name(4)
