"""What reading MLIR text makes of each construct."""

from __future__ import annotations

import pytest

from compiler.frontend.mlir import parse, parse_module, split_programs
from compiler.ir.location import CallSite, FileLocation, FusedLocation, NameLocation
from compiler.ir.program import Instruction, Module
from compiler.ir.types import F32, I1, I32, FutureType, QuantizedType, TensorType, TupleType, tensor
from tests.frontend.mlir import programs


def only(module: Module, opcode: str) -> Instruction:
    """The one instruction of an opcode."""
    found = [i for computation in module.computations.values() for i in computation if i.opcode == opcode]
    assert len(found) == 1, found
    return found[0]


def test_names_types_and_attributes_of_a_straight_program() -> None:
    module = parse_module(programs.ELEMENTWISE)
    assert module.name == "small"
    assert module.attributes == {"mhlo.num_partitions": 1, "mhlo.num_replicas": 1}
    assert module.parameter_attributes[0] == {"jax.buffer_donor": True}
    assert module.result_attributes == ({"jax.result_info": "y"},)
    assert list(module.entry_computation.instructions) == [
        "arg0.1",
        "arg1.2",
        "constant.3",
        "broadcast_in_dim.4",
        "broadcast_in_dim.5",
        "add.6",
        "compare.7",
        "select.8",
        "erf.9",
    ]
    assert module.entry_computation.root == "erf.9"
    assert only(module, "chlo.erf").type == tensor(F32, 2, 3)
    assert only(module, "compare").attributes == {"comparison_direction": "GT", "compare_type": "FLOAT"}


def test_a_loop_carries_its_captures() -> None:
    module = parse_module(programs.LOOP)
    loop = only(module, "while")
    assert isinstance(loop.type, TupleType)
    assert [str(kind) for kind in loop.type.elements] == ["tensor<i32>", "tensor<4xf32>", "tensor<i32>"]
    condition, body = (module.computations[name] for name in loop.called)
    assert condition.result_type == tensor(I1)
    carried = body.root_instruction
    assert carried.opcode == "tuple"
    unchanged = body[carried.operands[2]]
    assert (unchanged.opcode, unchanged.attributes["index"]) == ("get_tuple_element", 2)
    assert module.entry_computation.root_instruction.opcode == "tuple"
    assert list(module.computations)[-1] == "main"


def test_branches_are_given_what_they_capture() -> None:
    module = parse_module(programs.BRANCHES)
    case = only(module, "case")
    entry = module.entry_computation
    packed = [entry[name] for name in case.operands[1:]]
    assert [len(i.operands) for i in packed] == [2, 1, 0]
    assert [len(module.computations[name].parameters) for name in case.called] == [1, 1, 1]


def test_equal_reducers_are_one_computation() -> None:
    module = parse_module(programs.REDUCTIONS)
    assert {"add_f32", "maximum_f32"} <= set(module.computations)
    window = only(module, "reduce_window")
    assert window.attributes == {
        "window_dimensions": (2, 2),
        "window_strides": (2, 2),
        "base_dilations": (1, 1),
        "window_dilations": (1, 1),
        "padding": ((0, 0), (0, 0)),
    }


def test_reducer_groups_become_parameters_in_the_specifications_order() -> None:
    module = parse_module(programs.REDUCTIONS)
    best = next(i for i in module.entry_computation if i.opcode == "reduce" and len(i.operands) == 4)
    types = module.computations[best.called[0]].parameter_types
    assert types == (tensor(F32), tensor(I32), tensor(F32), tensor(I32))


def test_defaults_are_filled_in() -> None:
    module = parse_module(programs.CONTRACTIONS)
    convolution = only(module, "convolution").attributes
    assert convolution["lhs_dilation"] == convolution["rhs_dilation"] == (1, 1)
    assert convolution["window_reversal"] == (False, False)
    assert convolution["padding"] == ((1, 1), (1, 1))
    assert (convolution["input_batch_dimension"], convolution["kernel_spatial_dimensions"]) == (0, (0, 1))
    dot = only(module, "dot_general").attributes
    assert dot["lhs_batching_dimensions"] == (0,)
    assert dot["precision_config"] == ("HIGHEST", "DEFAULT")
    sort = only(parse_module(programs.SORTING), "sort").attributes
    assert sort == {"dimension": 1, "is_stable": True}


def test_generic_and_pretty_forms_give_the_same() -> None:
    pretty = parse_module(
        "func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.add %a, %a : tensor<f32> return %0 : tensor<f32> }"
    )
    generic = parse_module(
        """"builtin.module"() <{sym_name = "module"}> ({
          "func.func"() <{function_type = (tensor<f32>) -> tensor<f32>, sym_name = "main"}> ({
          ^bb0(%x: tensor<f32>):
            %1 = "stablehlo.add"(%x, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
            "func.return"(%1) : (tensor<f32>) -> ()
          }) : () -> ()
        }) : () -> ()"""
    )
    assert list(pretty.entry_computation.instructions) == list(generic.entry_computation.instructions)


def test_locations_of_every_kind_and_references_to_what_comes_later() -> None:
    text = """#near = loc("model.py":3:7)
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %a, %a : tensor<f32> loc(#near)
  %1 = stablehlo.add %0, %a : tensor<f32> loc("layer"(#near))
  %2 = stablehlo.add %1, %a : tensor<f32> loc(callsite("f"("m.py":1:2) at #late))
  %3 = stablehlo.add %2, %a : tensor<f32> loc(fused[#near, #late])
  %4 = stablehlo.add %3, %a : tensor<f32> loc(unknown)
  return %4 : tensor<f32>
}
#late = loc("main.py":10:0)
"""
    parsed = parse(text, "m.mlir")
    places = [i.location for i in parsed.module.entry_computation if i.opcode == "add"]
    near, late = FileLocation("model.py", 3, 7), FileLocation("main.py", 10, 0)
    assert places == [
        near,
        NameLocation("layer", near),
        CallSite(NameLocation("f", FileLocation("m.py", 1, 2)), late),
        FusedLocation((near, late)),
        FileLocation("m.mlir", 7, 8),
    ]
    assert parsed.positions["add.2"] == (3, 8)


def test_programs_of_one_file_keep_their_lines() -> None:
    text = "func.func @main() { return }\n// -----\n\nfunc.func @main() {\n  %0 = stablehlo.nothing\n  return }\n"
    programs_found = split_programs(text)
    assert [offset for offset, _ in programs_found] == [0, 2]
    with pytest.raises(Exception, match=r"f:5:8: error") as caught:
        parse(programs_found[1][1], "f", programs_found[1][0])
    assert caught.value.line == 5  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tensor<2x?xf32>", TensorType(F32, (2, -1))),
        ("tensor<?x4xf32, #stablehlo.bounds<8, ?>>", TensorType(F32, (-1, 4), None, (8, -1))),
        ("tuple<tensor<f32>, !stablehlo.token>", None),
        ("!stablehlo.future<tensor<f32>>", FutureType((tensor(F32),))),
    ],
)
def test_types(text: str, expected: object) -> None:
    module = parse_module(f"func.func @main(%a: {text}) {{ return }}")
    found = module.entry_computation.parameter_types[0]
    assert str(found) == text
    assert expected is None or found == expected


def test_quantized_types_of_both_spellings() -> None:
    text = """func.func @main(%a: tensor<2x!quant.uniform<i8:f32, 0.5:3>>, %b: tensor<2x!quant.uniform<i8<-128:127>:f32:0, {0.5:3, 0.25}>>) { return }"""
    first, second = parse_module(text).entry_computation.parameter_types
    assert isinstance(first, TensorType)
    assert isinstance(second, TensorType)
    assert isinstance(first.element, QuantizedType)
    assert isinstance(second.element, QuantizedType)
    assert (first.element.scales, first.element.zero_points, first.element.axis) == ((0.5,), (3,), None)
    assert (second.element.scales, second.element.zero_points, second.element.axis) == (
        (0.5, 0.25),
        (3, 0),
        0,
    )


def test_shardings_are_kept() -> None:
    module = parse_module(programs.SHARDED)
    assert module.attributes["sdy.mesh.mesh"] == '<["x"=2, "y"=4]>'
    assert module.parameter_attributes[0]["sdy.sharding"] == '#sdy.sharding<@mesh, [{"x"}, {}]>'
    assert only(module, "sdy.sharding_constraint").attributes["sharding"] == '<@mesh, [{"x"}, {"y"}]>'
    manual = only(module, "sdy.manual_computation")
    assert manual.attributes["manual_axes"] == '{"x"}'
    assert module.computations[manual.called[0]].result_type == tensor(F32, 4, 8)


def test_the_entry_is_main_or_the_first_public_function() -> None:
    one = "func.func private @helper() { return }\nfunc.func @run() { return }"
    assert parse_module(one).entry == "run"
    assert parse_module(one.replace("@helper", "@main")).entry == "main"
