"""What the printer prints, the parser reads back to an equal module."""

from __future__ import annotations

import pytest

from compiler.frontend.mlir import parse_module
from compiler.frontend.mlir.printer import print_module
from compiler.ir.fingerprint import fingerprint_module
from compiler.ir.program import Attributes, Instruction, Module, make_computation
from compiler.ir.types import F32, tensor
from tests.frontend.mlir import programs


@pytest.mark.parametrize("generic", [False, True], ids=["pretty", "generic"])
@pytest.mark.parametrize("name", sorted(programs.ALL))
def test_print_and_read(name: str, generic: bool) -> None:
    module = parse_module(programs.ALL[name])
    text = print_module(module, generic=generic)
    assert fingerprint_module(parse_module(text, "printed")) == fingerprint_module(module), text


@pytest.mark.parametrize("name", sorted(programs.ALL))
def test_printing_is_stable(name: str) -> None:
    once = print_module(parse_module(programs.ALL[name]))
    assert print_module(parse_module(print_module(parse_module(once)))) == print_module(parse_module(once))


def test_the_text_is_the_frameworks_own_style() -> None:
    text = print_module(parse_module(programs.LOOP))
    assert text == (
        "module @module {\n"
        "  func.func public @main(%arg0.1: tensor<4xf32>, %arg1.2: tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {\n"
        "    %constant.3 = stablehlo.constant dense<0> : tensor<i32>\n"
        "    %while.17:3 = stablehlo.while(%arg0.9.0 = %constant.3, %arg0.9.1 = %arg0.1, %arg0.9.2 = %arg1.2) : "
        "tensor<i32>, tensor<4xf32>, tensor<i32>\n"
        "    cond {\n"
        "      %compare.8 = stablehlo.compare LT, %arg0.9.0, %arg0.9.2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "      stablehlo.return %compare.8 : tensor<i1>\n"
        "    } do {\n"
        "      %constant.10 = stablehlo.constant dense<1> : tensor<i32>\n"
        "      %add.12 = stablehlo.add %arg0.9.0, %constant.10 : tensor<i32>\n"
        "      %call.14 = func.call @twice(%arg0.9.1) : (tensor<4xf32>) -> tensor<4xf32>\n"
        "      stablehlo.return %add.12, %call.14, %arg0.9.2 : tensor<i32>, tensor<4xf32>, tensor<i32>\n"
        "    }\n"
        "    return %while.17#1, %while.17#0 : tensor<4xf32>, tensor<i32>\n"
        "  }\n"
        "  func.func private @twice(%arg0.21: tensor<4xf32>) -> tensor<4xf32> {\n"
        "    %add.22 = stablehlo.add %arg0.21, %arg0.21 : tensor<4xf32>\n"
        "    return %add.22 : tensor<4xf32>\n"
        "  }\n"
        "}\n"
    )


def test_locations_are_written_and_read() -> None:
    source = 'func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.negate %a : tensor<f32> loc(callsite("f"("a b.py":1:2) at fused<"m">["g", "h.py":3:4]))\n return %0 : tensor<f32> }'
    module = parse_module(source)
    again = parse_module(print_module(module, locations=True))
    assert (
        again.entry_computation.root_instruction.location
        == module.entry_computation.root_instruction.location
    )


def test_what_only_hlo_has_is_in_a_dialect_of_its_own() -> None:
    kind = tensor(F32, 4)
    inner = {
        "p.1": Instruction("p.1", "parameter", kind, (), Attributes(index=0)),
        "negate.2": Instruction("negate.2", "negate", kind, ("p.1",)),
    }
    outer = {
        "arg0.3": Instruction("arg0.3", "parameter", kind, (), Attributes(index=0)),
        "copy.4": Instruction("copy.4", "copy", kind, ("arg0.3",)),
        "fusion.5": Instruction(
            "fusion.5", "fusion", kind, ("copy.4",), Attributes(kind="kLoop"), ("fused",)
        ),
    }
    computations = {
        "fused": make_computation("fused", inner, "negate.2"),
        "main": make_computation("main", outer, "fusion.5"),
    }
    module = Module("fused", computations, "main")
    text = print_module(module)
    assert '"hlo.copy"(%arg0.3) : (tensor<4xf32>) -> tensor<4xf32>' in text
    again = parse_module(text)
    opcodes = [i.opcode for computation in again.computations.values() for i in computation]
    assert opcodes == ["parameter", "negate", "parameter", "copy", "fusion"]
    assert again.entry_computation.root_instruction.attributes == {"kind": "kLoop"}


def test_numbers_keep_the_types_they_were_written_with() -> None:
    text = print_module(parse_module(programs.CALLS))
    assert "mhlo.backend_config = {scale = 1.5 : f32, uplo = 76 : ui8}" in text
    assert 'stablehlo.custom_call @"my target"' in text
    assert "api_version = 4 : i32" in text
