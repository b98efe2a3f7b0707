"""Every construct is valid, and what is printed of it reads back as the same program."""

from __future__ import annotations

import pytest

from compiler.frontend.hlo import parse_hlo
from compiler.ir.fingerprint import fingerprint_module
from compiler.ir.hlo_text import print_module
from compiler.ir.verifier import verify
from compiler.ops import SEMANTICS
from tests.frontend.hlo.programs import every_program

PROGRAMS = every_program()


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_a_valid_program(name: str) -> None:
    verify(parse_hlo(PROGRAMS[name]).module, SEMANTICS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_printed_and_read_again_it_is_the_same(name: str) -> None:
    module = parse_hlo(PROGRAMS[name]).module
    text = print_module(module)
    again = parse_hlo(text).module
    assert fingerprint_module(again) == fingerprint_module(module), text
    assert print_module(again) == text


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_instruction_has_its_place(name: str) -> None:
    parsed = parse_hlo(PROGRAMS[name])
    lines = PROGRAMS[name].split("\n")
    names = [i.name for c in parsed.module.computations.values() for i in c]
    assert set(names) == set(parsed.positions)
    for line, column in parsed.positions.values():
        assert lines[line - 1][column - 1].isalpha() or lines[line - 1][column - 1] == "%"


def test_a_header_survives() -> None:
    header = (
        ", is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias), {1}: (0, {}, must-alias) }, "
        "buffer_donor={ (0, {}) }, entry_computation_layout={(f32[2]{0}, f32[2]{0})->(f32[2]{0}, f32[2]{0})}, "
        'allow_spmd_sharding_propagation_to_output={true,true}, num_partitions=4, frontend_attributes={a.b="x, \\"y\\"",c={q = 1}}'
    )
    body = (
        "p = f32[2]{0} parameter(0), sharding={devices=[2]<=[2]}, parameter_replication={false}\n"
        ' q = f32[2]{0} parameter(1), frontend_attributes={k="v"}\n ROOT t = (f32[2]{0}, f32[2]{0}) tuple(p, q)'
    )
    text = f"HloModule m{header}\n\nENTRY main {{\n {body}\n}}\n"
    module = parse_hlo(text).module
    assert module.is_scheduled
    assert module.is_donated(0) and module.is_donated(1)
    assert module.parameter_attributes[1]["tf.aliasing_output"] == 0
    assert module.attributes["mhlo.num_partitions"] == 4
    assert module.attributes["mhlo.frontend_attributes"] == {"a.b": 'x, "y"', "c": "{q = 1}"}
    assert module.attributes["hlo.allow_spmd_sharding_propagation_to_output"] == "{true,true}"
    assert module.entry_computation["p"].attributes["mhlo.sharding"] == "{devices=[2]<=[2]}"
    again = parse_hlo(print_module(module)).module
    assert fingerprint_module(again) == fingerprint_module(module)
