"""What tests of passes share: running one, inputs that hurt, and equality of results to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.decisions.log import Decider
from compiler.ir.editor import Editor
from compiler.ir.program import Module
from compiler.ir.replay import apply
from compiler.ir.rewrite import Rewrite
from compiler.ir.types import ElementType, TensorType, TupleType, Type
from compiler.ir.verifier import verify
from compiler.ops import SEMANTICS
from compiler.passes.base import Pass, PassContext
from compiler.reference import evaluate


class Target:
    """A backend that takes the operations it is told to take."""

    name = "test"
    vector_bytes = 32
    cache_bytes = (32 << 10, 1 << 20)
    threads = 1

    def __init__(self, *supported: str) -> None:
        self.supported = frozenset(supported)

    def supports(self, opcode: str) -> bool:
        return opcode in self.supported

    def accepts_fusion(self, kind: str, opcodes: frozenset[str]) -> str:
        return ""


def context(*supported: str, fp_fast: bool = False, **options: Any) -> PassContext:
    """A context for one pass alone."""
    named = {key.replace("_", "-"): value for key, value in options.items()}
    return PassContext(Decider(), Target(*supported), named, fp_fast)


def run(module: Module, *passes: Pass, given: PassContext | None = None) -> tuple[Module, list[Rewrite]]:
    """Runs passes, checks that the module before and after is valid and that the rewrites replay to it."""
    verify(module, SEMANTICS)
    rewrites: list[Rewrite] = []
    editor = Editor(module, SEMANTICS, listener=rewrites.append)
    for entry in passes:
        editor.begin_stage(entry.name)
        entry.run(editor, given or context())
    after = editor.snapshot()
    verify(after, SEMANTICS)
    replayed = apply(module, rewrites)
    assert {n: (dict(c.instructions), c.root) for n, c in replayed.computations.items()} == {
        n: (dict(c.instructions), c.root) for n, c in after.computations.items()
    }
    return after, rewrites


def opcodes(module: Module, computation: str | None = None) -> list[str]:
    """The opcodes of a computation in order, parameters and constants left out."""
    chosen = module.computations[computation or module.entry]
    return [i.opcode for i in chosen if i.opcode not in ("parameter", "constant")]


SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan, 1e-45, -3e-41, 3.4e38, -3.4e38, 1e-320)


def inputs(module: Module, seed: int, special: bool = True) -> list[Any]:
    """Random values for the entry's parameters, floats among them special ones with `special`."""
    chance = np.random.default_rng(seed)
    return [value_of(kind, chance, special) for kind in module.entry_computation.parameter_types]


def value_of(kind: Type, chance: np.random.Generator, special: bool) -> Any:
    """A random value of a type."""
    if isinstance(kind, TupleType):
        return tuple(value_of(entry, chance, special) for entry in kind.elements)
    assert isinstance(kind, TensorType) and isinstance(kind.element, ElementType)
    element, shape = kind.element, kind.shape
    with np.errstate(all="ignore"):
        if element.kind == "bool":
            return chance.random(shape) < 0.5
        if element.is_integer:
            low, high = (
                (0, 2**element.bits)
                if element.kind == "uint"
                else (-(2 ** (element.bits - 1)), 2 ** (element.bits - 1))
            )
            wide = chance.integers(low, high, shape, dtype=np.uint64 if element.kind == "uint" else np.int64)
            small = chance.integers(max(low, -3), min(high, 9), shape)
            return np.where(chance.random(shape) < 0.5, wide, small.astype(wide.dtype)).astype(element.dtype)
        parts = [_floats(shape, chance, special) for _ in range(2)]
        if element.is_complex:
            return (parts[0] + 1j * parts[1]).astype(element.dtype)
        return parts[0].astype(element.dtype)


def _floats(shape: tuple[int, ...], chance: np.random.Generator, special: bool) -> Any:
    plain = chance.standard_normal(shape) * np.exp(chance.standard_normal(shape))
    if not special:
        return plain
    return np.where(chance.random(shape) < 0.4, chance.choice(SPECIAL, shape), plain)


def same_bits(left: Any, right: Any) -> bool:
    """Equality of arrays to the bit, all NaNs being one."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype.kind == "c":
        return same_bits(left.real, right.real) and same_bits(left.imag, right.imag)
    with np.errstate(all="ignore"):
        nan = left != left
        if not np.array_equal(nan, right != right):
            return False
        zero = np.zeros((), left.dtype)
        masked = [np.ascontiguousarray(np.where(nan, zero, x).astype(left.dtype)) for x in (left, right)]
    return masked[0].tobytes() == masked[1].tobytes()


def assert_same_results(before: Module, after: Module, *, seeds: int = 3, special: bool = True) -> None:
    """Runs both modules on random inputs and compares every result to the bit."""
    for seed in range(seeds):
        arguments = inputs(before, seed, special)
        wanted, found = evaluate(before, arguments), evaluate(after, arguments)
        assert len(wanted) == len(found)
        for index, (left, right) in enumerate(zip(wanted, found, strict=True)):
            assert same_bits(np.asarray(left), np.asarray(right)), (
                f"result {index}, seed {seed}:\n{left}\n{right}"
            )


def transformed(
    module: Module, *passes: Pass, given: PassContext | None = None, special: bool = True
) -> Module:
    """The module after some passes, which must mean the same and reach their end in one run."""
    after, _ = run(module, *passes, given=given)
    assert_same_results(module, after, special=special)
    again, rewrites = run(after, *passes, given=given)
    assert not rewrites and again is after, [entry.id for entry in rewrites]
    return after
