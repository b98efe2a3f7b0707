"""Runs and verifies small programs given as text, for the tests of the structural families."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compiler.frontend.mlir import parse
from compiler.ir.verifier import VerificationError, verify
from compiler.ops import SEMANTICS
from compiler.reference import evaluate

Array = np.ndarray[Any, np.dtype[Any]]


def run(text: str, *arguments: Any, **options: Any) -> list[Array]:
    """Parses, verifies and evaluates a program."""
    module = parse(text).module
    verify(module, SEMANTICS)
    return evaluate(module, [np.asarray(argument) for argument in arguments], **options)


def main(arguments: str, results: str, body: str) -> str:
    """A module of one function: `main("%x: tensor<f32>", "tensor<f32>", "… return …")`."""
    return f"func.func @main({arguments}) -> ({results}) {{\n{body}\n}}"


def body_of(opcode: str, element: str) -> str:
    """A region that applies a binary operation to two scalars."""
    return (
        f"^bb0(%a: tensor<{element}>, %b: tensor<{element}>):\n"
        f'  %r = "stablehlo.{opcode}"(%a, %b) : (tensor<{element}>, tensor<{element}>) -> tensor<{element}>\n'
        f'  "stablehlo.return"(%r) : (tensor<{element}>) -> ()'
    )


def rejects(text: str, message: str) -> None:
    """Asserts that verification fails with a message that matches."""
    module = parse(text).module
    with pytest.raises(VerificationError, match=message):
        verify(module, SEMANTICS)
