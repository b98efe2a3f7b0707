"""Random bits against the operation's own rule, bit for bit: algorithms, types, shapes, counters that wrap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from guarded import Side
from one_kernel import emit, run_both, same_bits

from compiler.backends.cpu.emit.random_kernel import generator_use
from compiler.frontend.mlir import parse_module
from compiler.ir.types import ELEMENTS

_OUTPUTS = [e for e in ELEMENTS.values() if e.is_integer or (e.is_float and e.bits >= 8)]
_ALGORITHMS = [("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 3)]


def _program(algorithm: str, state: str, shape: tuple[int, ...], element: str) -> str:
    output = f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"
    return f"""
func.func @main(%s: {state}) -> ({state}, {output}) {{
  %n, %o = stablehlo.rng_bit_generator %s, algorithm = {algorithm} : ({state}) -> ({state}, {output})
  return %n, %o : {state}, {output}
}}
"""


def _check(algorithm: str, words: list[int], shape: tuple[int, ...], element: str, **options: Any) -> None:
    text = _program(algorithm, f"tensor<{len(words)}xui64>", shape, element)
    state = np.array(words, np.uint64)
    found, right = run_both(text, "rng_bit_generator", generator_use, [state], **options)
    for left, expected in zip(found, right, strict=True):
        assert same_bits(left, expected)


def _state(length: int) -> list[int]:
    return [0x123456789ABCDEF0, 0xFFFF_FFFF_FFFF_FF00, 77][:length]


@pytest.mark.parametrize("element", _OUTPUTS, ids=str)
def test_all_types(element: Any) -> None:
    _check("THREE_FRY", _state(2), (6, 35), element.name)


@pytest.mark.parametrize("element", ["i2", "ui8", "bf16", "f32", "f64"])
@pytest.mark.parametrize(("algorithm", "length"), _ALGORITHMS[1:])
def test_words_of_philox(element: str, algorithm: str, length: int) -> None:
    _check(algorithm, _state(length), (6, 35), element)


_LINES = [(), (1,), (2,), (15,), (16,), (17,), (129,), (0, 4)]
_BOXES = [
    (3, 5),
    (7, 33, 2),
    (2, 64),
    (3, 2, 32),
    (9, 1, 16),
    (5, 4, 3),
    (3, 6, 5),
    (1, 1, 1),
    (33, 7),
    (35, 16),
    (5, 9, 9),
]


@pytest.mark.parametrize("shape", _LINES + _BOXES, ids=str)
def test_threefry_pairs_words_along_one_dimension(shape: tuple[int, ...]) -> None:
    side: Side = "end" if sum(shape) % 2 else "start"
    for element in ("ui8", "ui32"):
        _check("THREE_FRY", _state(2), shape, element, side=side)


@pytest.mark.parametrize("shape", _LINES + _BOXES[:2], ids=str)
@pytest.mark.parametrize(
    ("algorithm", "element"), [("THREE_FRY", "ui64"), ("PHILOX", "ui64"), ("PHILOX", "ui16")]
)
def test_streams_of_words(shape: tuple[int, ...], algorithm: str, element: str) -> None:
    _check(algorithm, _state(2), shape, element, side="end" if sum(shape) % 2 else "start")


@pytest.mark.parametrize(("algorithm", "length"), _ALGORITHMS[:3])
@pytest.mark.parametrize("counter", [1, 2**32 - 5, 2**64 - 40])
def test_counters_carry(algorithm: str, length: int, counter: int) -> None:
    words = [2**64 - 3, counter, 2**64 - 1][:length]
    _check(algorithm, words, (203,), "ui32")


@pytest.mark.parametrize("shape", [(200_000,), (3, 100_001), (301, 333)], ids=str)
@pytest.mark.parametrize(("algorithm", "length"), _ALGORITHMS[:2])
def test_many_tasks(shape: tuple[int, ...], algorithm: str, length: int) -> None:
    _check(algorithm, _state(length), shape, "ui32", threads=3)


@pytest.mark.parametrize("algorithm", ["THREE_FRY", "PHILOX", "DEFAULT"])
def test_state_of_32_bit_words(algorithm: str) -> None:
    text = _program(algorithm, "tensor<4xui32>", (11, 6), "bf16")
    state = np.array([1, 2, 0xFFFFFFFF, 0xFFFFFFFF], np.uint32)
    found, right = run_both(text, "rng_bit_generator", generator_use, [state])
    assert all(same_bits(left, expected) for left, expected in zip(found, right, strict=True))


def test_unusual_forms_are_left_to_the_library() -> None:
    for state, element in (("tensor<2xui64>", "f4E2M1FN"), ("tensor<7xui64>", "ui32")):
        module = parse_module(_program("DEFAULT", state, (4,), element))
        assert emit(module, "rng_bit_generator", generator_use) is None
