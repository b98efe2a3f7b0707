"""Modules that are not well formed, and what is said about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from compiler.ir.literal import Literal
from compiler.ir.location import FileLocation
from compiler.ir.program import NO_ATTRIBUTES, Attributes, Computation, Instruction, Module
from compiler.ir.semantics import NO_CONSTANTS, OperationError
from compiler.ir.types import F32, Type, tensor
from compiler.ir.verifier import MAX_PROBLEMS, VerificationError, recursion, verify

KIND = tensor(F32, 2)


class OnlyAddOfTwo:
    """Semantics under which `add` takes two operands and everything else anything."""

    def infer(
        self, opcode: str, operands: Sequence[Type], attributes: Attributes, called: Sequence[Computation]
    ) -> Type:
        return KIND

    def verify(
        self,
        opcode: str,
        operands: Sequence[Type],
        attributes: Attributes,
        called: Sequence[Computation],
        result: Type,
        constants: Mapping[int, Literal] = NO_CONSTANTS,
    ) -> None:
        if opcode == "add" and len(operands) != 2:
            raise OperationError(f"takes 2 operands, but has {len(operands)}")
        if opcode == "slice":
            attributes["limits"]

    def has_side_effect(self, opcode: str, attributes: Attributes) -> bool:
        return False

    def size_operands(self, opcode: str) -> tuple[int, ...]:
        return ()

    def called_computations_matter(self, opcode: str) -> bool:
        return False


def instruction(
    name: str,
    opcode: str,
    *operands: str,
    called: tuple[str, ...] = (),
    attributes: Attributes = NO_ATTRIBUTES,
) -> Instruction:
    return Instruction(name, opcode, KIND, operands, attributes, called, FileLocation("m.py", 7))


def parameter(name: str, index: int) -> Instruction:
    return instruction(name, "parameter", attributes=Attributes(index=index))


def computation(name: str, *instructions: Instruction, root: str = "") -> Computation:
    found = {i.name: i for i in instructions}
    parameters = tuple(i.name for i in instructions if i.opcode == "parameter")
    return Computation(name, found, root or instructions[-1].name, parameters)


def problems(*computations: Computation, entry: str = "main") -> list[str]:
    """Messages of the problems found."""
    module = Module("m", {c.name: c for c in computations}, entry)
    try:
        verify(module, OnlyAddOfTwo())
    except VerificationError as error:
        return [f"{p.computation}/{p.instruction}: {p.message}" for p in error.problems]
    return []


P = parameter("p", 0)


def test_a_sound_module_passes() -> None:
    assert problems(computation("main", P, instruction("a", "add", "p", "p"))) == []


def test_the_error_shows_the_models_own_line() -> None:
    module = Module("m", {"main": computation("main", P, instruction("a", "add", "p"))}, "main")
    with pytest.raises(VerificationError, match=r"^m\.py:7: main/a: takes 2 operands, but has 1$"):
        verify(module, OnlyAddOfTwo())


@pytest.mark.parametrize(
    ("computations", "message"),
    [
        ([computation("main", P, instruction("a", "add", "p", "x"))], "main/a: operand x is not defined"),
        ([computation("main", instruction("a", "neg", "p"), P)], "main/a: operand p stands after its user"),
        ([computation("main", P, root="r")], "main/: the root r does not exist"),
        (
            [computation("main", P, instruction("c", "call", "p", called=("f",)))],
            "main/c: calls f, which does not exist",
        ),
        ([computation("main", parameter("q", 1))], "main/: parameter 0 is missing"),
        ([computation("main", P, parameter("q", 0))], "main/q: parameter 0 is also p"),
        ([computation("main", parameter("q", -1))], "main/q: -1 is not the index of a parameter"),
        ([computation("other", P), computation("main", P)], "main/p: the name is also used in other"),
        ([computation("other", P)], "main/: the module has no computation of this name to be its entry"),
        (
            [computation("main", P, instruction("s", "slice", "p"))],
            "main/s: slice has malformed attributes ('limits')",
        ),
    ],
)
def test_each_rule(computations: list[Computation], message: str) -> None:
    assert problems(*computations) == [message]


def test_a_key_must_be_the_name() -> None:
    wrong = Computation("main", {"p": P, "b": instruction("a", "neg", "p")}, "b", ("p",))
    assert problems(wrong) == ["main/a: the instruction is kept under the name b"]


def test_recursion_is_told_as_the_circle() -> None:
    one = computation("one", P, instruction("c1", "call", "p", called=("two",)))
    two = computation("two", parameter("q", 0), instruction("c2", "call", "q", called=("one",)))
    assert problems(one, two, entry="one") == ["one/: the computation calls itself: one -> two -> one"]


def test_a_long_chain_of_calls_is_no_circle() -> None:
    chain: Mapping[str, Computation] = {
        f"f{n}": computation(f"f{n}", instruction(f"c{n}", "call", called=(f"f{n + 1}",) if n < 5000 else ()))
        for n in range(5001)
    }
    assert recursion(chain) == ()


def test_the_list_of_problems_ends_somewhere() -> None:
    many = computation("main", P, *(instruction(f"a{n}", "add", "p") for n in range(3 * MAX_PROBLEMS)))
    assert len(problems(many)) == MAX_PROBLEMS
