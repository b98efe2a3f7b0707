"""Digests: equal for equal programs, different for any difference in meaning."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from compiler.frontend.mlir import parse_module
from compiler.ir.fingerprint import FingerprintCache, encode, fingerprint_computations, fingerprint_module
from compiler.ir.literal import Literal
from compiler.ir.program import Attributes, Computation
from compiler.ir.types import F32, tensor
from tests.frontend.mlir import programs


def digest(text: str) -> bytes:
    return fingerprint_module(parse_module(text))


def test_names_locations_and_order_do_not_count() -> None:
    one = """func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.sine %a : tensor<f32>
      %1 = stablehlo.cosine %b : tensor<f32>
      %2 = stablehlo.add %0, %1 : tensor<f32>
      return %2 : tensor<f32> }"""
    other = """module @named { func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
      %q = stablehlo.cosine %y : tensor<f32> loc("f.py":1:1)
      %p = stablehlo.sine %x : tensor<f32>
      %r = stablehlo.add %p, %q : tensor<f32>
      return %r : tensor<f32> } }"""
    assert digest(one) == digest(other)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("stablehlo.add %arg0, %0", "stablehlo.subtract %arg0, %0"),
        ("stablehlo.add %arg0, %0", "stablehlo.add %0, %arg0"),
        ("compare GT", "compare GE"),
        ("dense<5.000000e-01>", "dense<5.000001e-01>"),
        ("jax.buffer_donor = true", "jax.buffer_donor = false"),
        ("mhlo.num_partitions = 1", "mhlo.num_partitions = 2"),
        ("%5 = chlo.erf %4", "%dead = stablehlo.sine %4 : tensor<2x3xf32>\n    %5 = chlo.erf %4"),
    ],
)
def test_every_difference_counts(old: str, new: str) -> None:
    assert old in programs.ELEMENTWISE
    assert digest(programs.ELEMENTWISE.replace(old, new)) != digest(programs.ELEMENTWISE)


def test_sharing_counts() -> None:
    shared = "func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.sine %a : tensor<f32> %2 = stablehlo.add %0, %0 : tensor<f32> return %2 : tensor<f32> }"
    twice = shared.replace(
        "%2 = stablehlo.add %0, %0", "%1 = stablehlo.sine %a : tensor<f32> %2 = stablehlo.add %0, %1"
    )
    assert digest(shared) != digest(twice)


def test_what_is_called_counts() -> None:
    assert digest(programs.LOOP) != digest(
        programs.LOOP.replace("stablehlo.add %a, %a", "stablehlo.multiply %a, %a")
    )


def test_a_constant_of_equal_elements_is_a_splat() -> None:
    kind = tensor(F32, 3)
    dense = Literal(kind, np.full(3, 2.0, np.float32))
    splat = Literal(kind, np.array(2.0, np.float32))
    assert encode(dense) == encode(splat)
    assert encode(dense) != encode(Literal(kind, np.array([2.0, 2.0, 3.0], np.float32)))


def test_values_of_different_kinds_differ() -> None:
    found = [encode(value) for value in (1, True, 1.0, "1", (1,), ((1,),), Attributes(a=1), None, -0.0, 0.0)]
    assert len(set(found)) == len(found)


def test_the_cache_knows_the_object_and_what_it_calls() -> None:
    module = parse_module(programs.LOOP)
    cache = FingerprintCache()
    first = fingerprint_computations(module, cache)
    assert fingerprint_computations(module, cache) == first
    callee = module.computations["twice"]
    swapped = {
        name: replace(i, opcode="multiply") if i.opcode == "add" else i
        for name, i in callee.instructions.items()
    }
    changed = replace(
        module,
        computations={
            **module.computations,
            "twice": Computation("twice", swapped, callee.root, callee.parameters),
        },
    )
    second = fingerprint_computations(changed, cache)
    assert second["main"] != first["main"]
    assert second == fingerprint_computations(changed)


def test_a_large_program_takes_little_time() -> None:
    lines = "\n".join(f"%{n + 1} = stablehlo.add %{n}, %0 : tensor<8xf32>" for n in range(20_000))
    module = parse_module(
        f"func.func @main(%0: tensor<8xf32>) -> tensor<8xf32> {{\n{lines}\nreturn %20000 : tensor<8xf32> }}"
    )
    started = time.perf_counter()
    fingerprint_module(module)
    assert time.perf_counter() - started < 2.0
