"""What HLO text becomes: opcodes, attributes, constants, locations, names, and values."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.frontend.hlo import parse_hlo
from compiler.frontend.hlo.groups import replica_groups
from compiler.frontend.hlo.lexer import unquote
from compiler.frontend.hlo.literal_text import constant_literal
from compiler.frontend.hlo.shape_text import array_shape
from compiler.ir.editor import Editor
from compiler.ir.location import CallSite, FileLocation, NameLocation, scope_name, source_line
from compiler.ir.program import Instruction
from compiler.ir.rewrite import Rule
from compiler.ir.types import DYNAMIC, F32, HLO_ELEMENTS, TOKEN, FutureType, Layout, TensorType, tensor
from compiler.ops import SEMANTICS
from compiler.reference import EvaluationError, evaluate
from tests.frontend.hlo.programs import BODIES, every_program, program

PROGRAMS = every_program()


def root_of(name: str) -> Instruction:
    """The result of a program of the list."""
    return parse_hlo(PROGRAMS[name]).module.entry_computation.root_instruction


def test_shapes() -> None:
    assert array_shape("f32[2,3]{1,0}") == tensor(F32, 2, 3)
    assert array_shape("f32[2,3]{0,1}").layout == Layout((0, 1))  # type: ignore[union-attr]
    assert array_shape("bf16[8,128]{1,0:T(8,128)(2,1)S(3)}").layout == Layout((1, 0), ":T(8,128)(2,1)S(3)")  # type: ignore[union-attr]
    assert array_shape("f32[<=8,?]") == TensorType(F32, (DYNAMIC, DYNAMIC), None, (8, DYNAMIC))
    assert array_shape("token[]") is TOKEN


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("{ { 1, 2 }, { 3, -4.5e-3 } }", "f32[2,2]", [[1, 2], [3, -0.0045]]),
        ("{ /*i0=0*/ {1,2}, /*i0=1*/ {3,4} }", "s8[2,2]", [[1, 2], [3, 4]]),
        ("{true, false, 1, 0}", "pred[4]", [True, False, True, False]),
        ("{inf, -inf, nan}", "f16[3]", [np.inf, -np.inf, np.nan]),
        ("(1, -2.5)", "c64[]", 1 - 2.5j),
        ("{ (1, nan), (inf, 0) }", "c128[2]", [complex(1, np.nan), complex(np.inf, 0)]),
        ("{ {}, {} }", "f32[2,0]", np.zeros((2, 0))),
        ("{}", "s32[0]", []),
        ("18446744073709551615", "u64[]", 18446744073709551615),
        ("-8", "s4[]", -8),
        ("0x1.8p1", "f64[]", 3.0),
    ],
)
def test_constants(text: str, kind: str, value: object) -> None:
    wanted = array_shape(kind)
    assert isinstance(wanted, TensorType)
    found = constant_literal(text, wanted)
    assert found.type.shape == wanted.shape
    np.testing.assert_array_equal(found.array, np.asarray(value).astype(found.array.dtype))


@pytest.mark.parametrize(
    ("text", "bits"),
    [("nan", 0x7FC00000), ("-nan", 0xFFC00000), ("nan(0x1)", 0x7F800001), ("-nan(0x400123)", 0xFFC00123)],
)
def test_nans_keep_their_bits(text: str, bits: int) -> None:
    found = constant_literal(text, tensor(F32))
    assert int(found.array.view(np.uint32)) == bits


@pytest.mark.parametrize("name", sorted(HLO_ELEMENTS))
def test_every_element_type_has_constants(name: str) -> None:
    element = HLO_ELEMENTS[name]
    one = "(1, 0)" if element.is_complex else "1"
    found = constant_literal(f"{{{one}, {one}}}", TensorType(element, (2,)))
    assert found.array.dtype == element.dtype
    assert (found.array == np.ones(2, element.dtype)).all()


def test_strings() -> None:
    assert unquote(r'"a\"b\n\\c\303\251\x41"') == 'a"b\n\\céA'


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{}", ()),
        ("{{0,1},{2}}", ((0, 1), (2,))),
        ("[2,3]<=[6]", ((0, 1, 2), (3, 4, 5))),
        ("[2,2]<=[2,2]T(1,0)", ((0, 2), (1, 3))),
        ("mesh['x'=2,'y'=3] {'x'}", ((0, 3), (1, 4), (2, 5))),
        ("mesh['x'=2,'y'=2] {'x','y'}", ((0, 1, 2, 3),)),
        ("mesh['x'=2,'y'=2] {'y','x'}", ((0, 2, 1, 3),)),
    ],
)
def test_groups(text: str, groups: tuple[tuple[int, ...], ...]) -> None:
    assert replica_groups(text) == groups


def test_attributes_have_their_specified_names() -> None:
    found = root_of("convolution").attributes
    assert found["window_strides"] == (2, 1)
    assert found["padding"] == ((1, 1), (1, 1))
    assert found["window_reversal"] == (True, False)
    assert found["lhs_dilation"] == found["rhs_dilation"] == (1, 1)
    assert found["input_batch_dimension"] == 0 and found["input_spatial_dimensions"] == (1, 2)
    assert found["kernel_output_feature_dimension"] == 3 and found["feature_group_count"] == 2
    found = root_of("pad").attributes
    assert found["edge_padding_low"] == (1, -1)
    assert found["edge_padding_high"] == (0, 0)
    assert found["interior_padding"] == (1, 0)
    found = root_of("slice").attributes
    assert (found["start_indices"], found["limit_indices"], found["strides"]) == ((1, 0), (3, 8), (1, 3))
    found = root_of("reduce_window").attributes
    assert found["base_dilations"] == (2,) and found["window_dilations"] == (2,)
    found = root_of("dot").attributes
    assert found["lhs_batching_dimensions"] == (0,) and found["rhs_contracting_dimensions"] == (1,)
    assert found["precision_config"] == ("HIGHEST", "HIGHEST")
    assert root_of("custom_call").attributes["backend_config"] == {"uplo": 76}
    assert root_of("while").attributes["known_trip_count"] == 3
    assert "hlo.backend_config" not in root_of("while").attributes
    assert root_of("fusion").attributes["hlo.backend_config"].startswith('{"fusion_config"')
    assert root_of("top_k").opcode == "chlo.top_k"
    assert root_of("if").opcode == "if" and root_of("case").opcode == "case"


def test_asynchronous_pairs_are_futures() -> None:
    module = parse_hlo(PROGRAMS["asynchronous_sugar"]).module
    start = module.entry_computation["s"]
    assert start.opcode == "async_start"
    assert start.type == FutureType((tensor(F32, 4),))
    assert module.computations[start.called[0]].root_instruction.opcode == "negate"
    assert [i.opcode for i in module.entry_computation] == ["parameter", "async_start", "async_done"]


def test_metadata_is_a_location() -> None:
    text = program(
        'ROOT p = f32[] parameter(0), metadata={op_type="X" op_name="jit(f)/add" source_file="a.py" source_line=7}'
    )
    location = parse_hlo(text).module.entry_computation["p"].location
    assert location == NameLocation("jit(f)/add", FileLocation("a.py", 7))


FRAMES = """HloModule m

FileNames
1 "main.py"
2 "lib.py"

FunctionNames
1 "main"
2 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=2}
2 {file_name_id=2 function_name_id=2 line=9 end_line=9 column=4 end_column=5}

StackFrames
1 {file_location_id=1 parent_frame_id=%d}
2 {file_location_id=2 parent_frame_id=%d}

ENTRY e {
  ROOT p = f32[] parameter(0), metadata={op_name="x" stack_frame_id=2}
}
"""


@pytest.mark.parametrize("parents", [(0, 1), (1, 2)])
def test_stack_frames_are_chains_of_calls(parents: tuple[int, int]) -> None:
    location = parse_hlo(FRAMES % parents).module.entry_computation["p"].location
    inner = NameLocation("f", FileLocation("lib.py", 9, 4))
    outer = NameLocation("main", FileLocation("main.py", 3, 1))
    assert location == NameLocation("x", CallSite(inner, outer))
    assert scope_name(location) == "x"
    assert source_line(location) == FileLocation("lib.py", 9, 4)


def test_names_are_kept_and_made_unique() -> None:
    text = (
        "HloModule m\n\none {\n p = f32[] parameter(0)\n ROOT p.1 = f32[] negate(p)\n}\n"
        "ENTRY two {\n p = f32[] parameter(0)\n ROOT c = f32[] call(p), to_apply=one\n}\n"
    )
    module = parse_hlo(text).module
    assert list(module.computations["one"].instructions) == ["p", "p.1"]
    assert list(module.computations["two"].instructions) == ["p.2", "c"]


def test_fresh_names_are_none_of_the_file() -> None:
    text = program(
        "add.3 = f32[] parameter(0)\n negate.3.1 = f32[] negate(add.3)\n ROOT negate.3.7 = f32[] negate(negate.3.1)"
    )
    module = parse_hlo(text).module
    editor = Editor(module, SEMANTICS)
    with editor.rewrite(Rule("r", "x"), "main", "negate.3.7") as edit:
        made = edit.add("negate", ["add.3"])
        edit.set_root(made)
    assert made not in module.entry_computation.instructions
    assert made == "negate.3.8"


def test_bitcasts_read_memory_in_its_order() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (found,) = evaluate(parse_hlo(program(BODIES["bitcast"])).module, [x])
    np.testing.assert_array_equal(found, x.T.reshape(3, 2))
    (found,) = evaluate(parse_hlo(program(BODIES["bitcast_of_another_type"])).module, [x])
    np.testing.assert_array_equal(found, x.view(np.int32).reshape(6))


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("reduce", [np.ones((2, 3), np.float32)], [[3, 3]]),
        ("call", [np.float32(2)], [4]),
        ("while", [np.ones(2, np.float32)], [3, [8, 8]]),
        ("case", [np.int32(7), np.float32(2)], [2]),
        ("if", [np.bool_(True), np.float32(2)], [-2]),
        ("fusion", [np.ones(2, np.float32)], [[-1, -1]]),
        (
            "sort",
            [np.array([3, 1, 2, 0], np.float32), np.arange(4, dtype=np.int32)],
            [[0, 1, 2, 3], [3, 1, 2, 0]],
        ),
        ("asynchronous", [np.ones(4, np.float32)], [[-1] * 4]),
        ("asynchronous_sugar", [np.ones(4, np.float32)], [[-1] * 4]),
        ("asynchronous_collectives", [np.ones(4, np.float32)], [[1] * 4]),
        ("copy_in_two_steps", [np.ones(4, np.float32)], [[1] * 4]),
        ("tuple_constant", [], [1.5, [2, 3]]),
        ("partition", [], [0]),
        ("tokens", [np.float32(5)], [5]),
        ("top_k", [np.tile(np.arange(8, dtype=np.float32), (2, 1))], [[[7, 6, 5]] * 2, [[7, 6, 5]] * 2]),
    ],
)
def test_values(name: str, arguments: list[object], expected: list[object]) -> None:
    found = evaluate(parse_hlo(PROGRAMS[name]).module, [np.asarray(a) for a in arguments])
    assert len(found) == len(expected)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


def test_a_constant_that_was_left_out_has_no_value() -> None:
    with pytest.raises(EvaluationError, match="left out of the HLO text"):
        evaluate(parse_hlo(PROGRAMS["elided"]).module, [])


def test_comments_and_shapes_of_operands_are_skipped() -> None:
    text = program(
        "p = f32[2]{0} parameter(0) // text\n ROOT r = (f32[2], f32[2]) tuple(f32[2]{0} %p, /*index=1*/f32[2] p)"
    )
    assert parse_hlo(text).module.entry_computation.root_instruction.operands == ("p", "p")
