"""Runs single operations by their records, and whole decompositions, for the tests of the operation families."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from compiler.ir.program import NO_ATTRIBUTES, Attributes, Instruction, make_computation
from compiler.ir.types import ElementType, TensorType, Type, element_of_dtype
from compiler.ops import OPERATIONS, SEMANTICS
from compiler.ops.decompose import by_scalar_rule
from compiler.reference import evaluate, flatten
from tests.builder import ComputationBuilder, ModuleBuilder

Array = np.ndarray[Any, np.dtype[Any]]


def type_of(array: Array) -> TensorType:
    """The tensor type that an array holds."""
    return TensorType(element_of_dtype(array.dtype), array.shape)


def call(opcode: str, *operands: Any, result: Type | None = None, **attributes: Any) -> Any:
    """Infers, verifies and evaluates one operation on arrays."""
    arrays = [np.asarray(x) for x in operands]
    types = [type_of(x) for x in arrays]
    kind = result or SEMANTICS.infer(opcode, types, Attributes(attributes), ())
    SEMANTICS.verify(opcode, types, Attributes(attributes), (), kind)
    module = ModuleBuilder()
    main = module.computation("main")
    names = [main.parameter_of(kind) for kind in types]
    main.root(main.add(opcode, kind, *names, **attributes))
    found = evaluate(module.build(), arrays)
    return found[0] if isinstance(kind, TensorType) else found


class ModuleWriter:
    """A decomposition's builder over a computation in the making."""

    def __init__(self, body: ComputationBuilder, instruction: Instruction) -> None:
        self._body = body
        self.attributes = instruction.attributes
        self.result = instruction.type
        self.called = instruction.called

    def type_of(self, name: str) -> Type:
        return self._body.type(name)

    def called_types(self, index: int) -> tuple[tuple[Type, ...], Type]:
        found = self._body.module.computations[self.called[index]]
        return found.parameter_types, found.result_type

    def add(
        self,
        opcode: str,
        operands: Iterable[str] = (),
        *,
        type: Type | None = None,
        attributes: Attributes = NO_ATTRIBUTES,
        called: tuple[str, ...] = (),
    ) -> str:
        names = tuple(operands)
        types = [self._body.type(name) for name in names]
        bodies = [self._body.module.computations[name] for name in called]
        kind = type or SEMANTICS.infer(opcode, types, attributes, bodies)
        SEMANTICS.verify(opcode, types, attributes, bodies, kind)
        return self._body.add(opcode, kind, *names, called=called, **attributes)

    def fresh_name(self, opcode: str) -> str:
        return f"{opcode}.{self._body.module.next_number()}"

    def add_computation(self, base: str, instructions: Iterable[Instruction], root: str) -> str:
        name = f"{base}.{self._body.module.next_number()}"
        self._body.module.computations[name] = make_computation(name, {i.name: i for i in instructions}, root)
        return name


def decomposed(
    opcode: str,
    operands: Sequence[Array],
    *,
    result: Type,
    by_rule: bool = False,
    module: ModuleBuilder | None = None,
    called: tuple[str, ...] = (),
    **attributes: Any,
) -> list[Array]:
    """Evaluates an operation's decomposition (or its scalar rule on whole tensors) instead of the operation."""
    module = module or ModuleBuilder()
    main = module.computation("main")
    names = [main.parameter_of(type_of(x)) for x in operands]
    instruction = Instruction("replaced", opcode, result, tuple(names), Attributes(attributes), called)
    writer = ModuleWriter(main, instruction)
    record = OPERATIONS[opcode]
    root = by_scalar_rule(writer, record.scalar, *names) if by_rule else record.decompose(writer, *names)
    main.root(root)
    assert all(i.opcode != opcode or by_rule for i in module.computations["main"])
    return flatten(tuple(evaluate(module.build(), operands)))


SPECIAL = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    7.25,
    100.0,
    -1e-3,
    1e-30,
    np.inf,
    -np.inf,
    np.nan,
)


def samples(element: ElementType, count: int, seed: int = 1) -> Array:
    """Values of every sort of an element type: special ones first, random ones after them."""
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        if element.kind == "bool":
            return rng.integers(0, 2, count).astype(np.bool_)
        if element.is_integer:
            low = -(1 << (element.bits - 1)) if element.kind == "int" else 0
            high = low + (1 << element.bits) - 1
            edges = [0, 1, low, high, high - 1, low + 1, 2, 3]
            drawn = [int(v) for v in rng.integers(0, 1 << min(element.bits, 62), count)]
            values = [low + v if v % 2 else v % (high + 1) for v in drawn]
            chosen = (edges + values)[:count]
            return (
                np.array(chosen, np.int64 if low else np.uint64)
                .astype(_carrier(element))
                .astype(element.dtype)
            )
        values = np.concatenate([SPECIAL, rng.normal(size=count) * 3, rng.normal(size=count) * 1e-6])
        if element.is_complex:
            parts = rng.permutation(values)[:count] + 0j
            found = np.empty(count, element.dtype)
            found.real, found.imag = parts.real, rng.permutation(values)[:count]
            return found
        return rng.permutation(values)[:count].astype(element.dtype)


def _carrier(element: ElementType) -> Any:
    if element.bits < 8:
        return np.int8 if element.kind == "int" else np.uint8
    return element.dtype
