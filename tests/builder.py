"""Builds small modules by hand, for tests of everything that works on programs.

    m = ModuleBuilder()
    f = m.computation("main")
    x, y = f.parameter(F32, 2, 3), f.parameter(F32, 2, 3)
    f.root(f.op("add", x, y))
    module = m.build("main")

Names follow the frontends' convention: `{opcode}.{n}` with n counted over the module, `arg{index}.{n}` for parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.ir.literal import Literal
from compiler.ir.location import FileLocation
from compiler.ir.program import Attributes, Computation, Instruction, Module, make_computation
from compiler.ir.types import ElementType, TensorType, TupleType, Type, element_of_dtype
from compiler.ops import SEMANTICS


class ComputationBuilder:
    """One computation in the making; methods add an instruction and return its name."""

    def __init__(self, module: ModuleBuilder, name: str) -> None:
        self.module = module
        self.name = name
        self.instructions: dict[str, Instruction] = {}
        self._root = ""
        self._parameters = 0

    def add(
        self, opcode: str, kind: Type, /, *operands: str, called: tuple[str, ...] = (), **attributes: Any
    ) -> str:
        """An instruction of a given type."""
        number = self.module.next_number()
        name = f"{opcode}.{number}"
        if opcode == "parameter":
            name = f"arg{attributes['index']}.{number}"
        self.instructions[name] = Instruction(
            name, opcode, kind, operands, Attributes(attributes), called, FileLocation("test.mlir", number)
        )
        self._root = name
        return name

    def parameter(self, element: ElementType, *shape: int) -> str:
        """The next parameter, a tensor."""
        return self.parameter_of(TensorType(element, shape))

    def parameter_of(self, kind: Type) -> str:
        """The next parameter, of any type."""
        self._parameters += 1
        return self.add("parameter", kind, index=self._parameters - 1)

    def constant(self, value: Any, element: ElementType | None = None) -> str:
        """A constant from anything NumPy takes as an array; of NumPy's own element type unless one is given."""
        array = np.asarray(value) if element is None else np.asarray(value).astype(element.dtype)
        kind = TensorType(element or element_of_dtype(array.dtype), array.shape)
        return self.add("constant", kind, value=Literal(kind, array))

    def splat(self, value: Any, element: ElementType, *shape: int) -> str:
        """A constant whose elements are all the same, stored as a splat."""
        kind = TensorType(element, shape)
        return self.add("constant", kind, value=Literal(kind, np.asarray(value).astype(element.dtype)))

    def op(self, opcode: str, /, *operands: str, called: tuple[str, ...] = (), **attributes: Any) -> str:
        """An operation whose result type follows from its operands."""
        bodies = [self.module.computations[name] for name in called]
        types = [self.instructions[operand].type for operand in operands]
        kind = SEMANTICS.infer(opcode, types, Attributes(attributes), bodies)
        return self.add(opcode, kind, *operands, called=called, **attributes)

    def shaped(self, opcode: str, shape: tuple[int, ...], /, *operands: str, **attributes: Any) -> str:
        """An operation that says its own shape (`reshape`, `broadcast_in_dim`); elements as the first operand's."""
        first = self.instructions[operands[0]].tensor
        return self.add(opcode, TensorType(first.element, shape), *operands, **attributes)

    def iota(self, element: ElementType, *shape: int, dimension: int = 0) -> str:
        """0, 1, 2, … along one dimension."""
        return self.add("iota", TensorType(element, shape), iota_dimension=dimension)

    def element(self, value: str, index: int) -> str:
        """One element of a tuple."""
        return self.op("get_tuple_element", value, index=index)

    def root(self, *names: str) -> Computation:
        """Ends the computation with a result, a tuple unless it is one value, and enters it into the module."""
        self._root = names[0] if len(names) == 1 else self.op("tuple", *names)
        made = make_computation(self.name, self.instructions, self._root)
        self.module.computations[self.name] = made
        return made

    def type(self, name: str) -> Type:
        """The type of a value."""
        return self.instructions[name].type


class ModuleBuilder:
    """A module in the making. Computations must be finished before others call them."""

    def __init__(self, name: str = "test") -> None:
        self.name = name
        self.computations: dict[str, Computation] = {}
        self._count = 0

    def next_number(self) -> int:
        """The next instruction's number."""
        self._count += 1
        return self._count

    def computation(self, name: str) -> ComputationBuilder:
        """Begins a computation."""
        return ComputationBuilder(self, name)

    def reducer(self, opcode: str, element: ElementType) -> str:
        """A computation that applies a binary operation to two scalars; its name."""
        body = self.computation(f"{opcode}_{element.hlo_name}_{self._count}")
        body.root(body.op(opcode, body.parameter(element), body.parameter(element)))
        return body.name

    def build(self, entry: str = "main") -> Module:
        """The module."""
        return Module(self.name, dict(self.computations), entry)


def pair(*kinds: Type) -> TupleType:
    """A tuple type."""
    return TupleType(kinds)
