"""Programs as values: Instruction, Computation, Module.

An instruction never changes after it is made; a computation is an ordered mapping from name to instruction, a
module one from name to computation. A snapshot is therefore a reference, and unchanged parts are shared between
snapshots. Programs change only through `compiler.ir.editor.Editor`.

The shape is HLO's: computations are isolated from above, an instruction has one result (perhaps a tuple, taken
apart by `get_tuple_element`), and called computations are named in `called`, in the order of the operation
record's `regions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NoReturn

from compiler.ir.literal import Literal
from compiler.ir.location import Location
from compiler.ir.types import TensorType, Type


class Attributes(dict[str, Any]):
    """An immutable, hashable mapping of attributes; values are themselves immutable and hashable."""

    __slots__ = ("_hash",)
    _hash: int

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("attributes are immutable; use .having(...)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(frozenset(self.items()))
            return self._hash

    def having(self, **changes: Any) -> Attributes:
        """A copy with some entries replaced or added; a value of None removes the entry."""
        merged = {**self, **changes}
        return Attributes({key: value for key, value in merged.items() if value is not None})


NO_ATTRIBUTES = Attributes()


@dataclass(frozen=True, slots=True)
class Instruction:
    """One operation. `name` is unique in the module and never recycled; operands are names in the computation."""

    name: str
    opcode: str
    type: Type
    operands: tuple[str, ...] = ()
    attributes: Attributes = NO_ATTRIBUTES
    called: tuple[str, ...] = ()
    location: Location | None = None

    @property
    def tensor(self) -> TensorType:
        """The result type of an instruction known to yield a tensor. Raises TypeError otherwise."""
        if not isinstance(self.type, TensorType):
            raise TypeError(f"{self.name} yields {self.type}, not a tensor")
        return self.type

    @property
    def literal(self) -> Literal:
        """The value of a `constant`."""
        value = self.attributes["value"]
        assert isinstance(value, Literal)
        return value

    def with_operands(self, operands: tuple[str, ...]) -> Instruction:
        """The same instruction, reading other values."""
        return Instruction(
            self.name, self.opcode, self.type, operands, self.attributes, self.called, self.location
        )

    def with_type(self, new_type: Type) -> Instruction:
        """The same instruction under another type (a layout, say)."""
        return Instruction(
            self.name, self.opcode, new_type, self.operands, self.attributes, self.called, self.location
        )

    def with_attributes(self, attributes: Attributes) -> Instruction:
        """The same instruction under other attributes."""
        return Instruction(
            self.name, self.opcode, self.type, self.operands, attributes, self.called, self.location
        )

    def with_called(self, called: tuple[str, ...]) -> Instruction:
        """The same instruction, calling other computations."""
        return Instruction(
            self.name, self.opcode, self.type, self.operands, self.attributes, called, self.location
        )


@dataclass(frozen=True, slots=True, eq=False)
class Computation:
    """An ordered mapping from name to instruction, operands before users; `root` is what it returns.

    Once the module is scheduled the order is the order of execution.
    """

    name: str
    instructions: Mapping[str, Instruction]
    root: str
    parameters: tuple[str, ...]
    """Names of the `parameter` instructions by index."""

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions.values())

    def __len__(self) -> int:
        return len(self.instructions)

    def __getitem__(self, name: str) -> Instruction:
        return self.instructions[name]

    @property
    def root_instruction(self) -> Instruction:
        """The instruction that makes the result."""
        return self.instructions[self.root]

    @property
    def result_type(self) -> Type:
        """Type of the result."""
        return self.instructions[self.root].type

    @property
    def parameter_types(self) -> tuple[Type, ...]:
        """Types of the parameters by index."""
        return tuple(self.instructions[name].type for name in self.parameters)


def make_computation(name: str, instructions: Mapping[str, Instruction], root: str) -> Computation:
    """Builds a computation, finding its parameters.

    Raises:
        ValueError: when parameter indices are not 0, 1, … or the root is missing.
    """
    if root not in instructions:
        raise ValueError(f"computation {name} has no instruction {root} to be its root")
    found = {i.attributes["index"]: i.name for i in instructions.values() if i.opcode == "parameter"}
    if sorted(found) != list(range(len(found))):
        raise ValueError(f"computation {name} has parameters {sorted(found)}")
    parameters = tuple(found[index] for index in range(len(found)))
    return Computation(name, MappingProxyType(dict(instructions)), root, parameters)


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """A whole program. `computations` lists callees before callers; `entry` names the one that is run.

    `parameter_attributes` and `result_attributes` are the entry's (donation, shardings, framework names);
    `lineages` numbers the names derived from each original number, so that names are never recycled.
    """

    name: str
    computations: Mapping[str, Computation]
    entry: str
    attributes: Attributes = NO_ATTRIBUTES
    parameter_attributes: tuple[Attributes, ...] = ()
    result_attributes: tuple[Attributes, ...] = ()
    lineages: Mapping[str, int] = field(default_factory=dict)
    is_scheduled: bool = False

    @property
    def entry_computation(self) -> Computation:
        """The computation that is run."""
        return self.computations[self.entry]

    @property
    def instruction_count(self) -> int:
        """Instructions of all computations together."""
        return sum(len(computation) for computation in self.computations.values())

    def instruction(self, computation: str, name: str) -> Instruction:
        """One instruction. Raises KeyError when there is none of that name."""
        return self.computations[computation].instructions[name]

    def find(self, name: str) -> tuple[Computation, Instruction] | None:
        """Looks an instruction up by its module-wide name."""
        for computation in self.computations.values():
            found = computation.instructions.get(name)
            if found is not None:
                return computation, found
        return None

    def is_donated(self, parameter: int) -> bool:
        """True when the caller gives up the entry parameter's buffer (`jax.buffer_donor`, `tf.aliasing_output`)."""
        if parameter >= len(self.parameter_attributes):
            return False
        attributes = self.parameter_attributes[parameter]
        return bool(attributes.get("jax.buffer_donor")) or "tf.aliasing_output" in attributes


def result_types(result: Type) -> tuple[Type, ...]:
    """Flattens a result type one level: the elements of a tuple, or the type alone."""
    return result.elements if hasattr(result, "elements") else (result,)
