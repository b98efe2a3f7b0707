"""Shapes of arguments: as arrays or as text, with what is missing or wrong in one line."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.frontend.errors import SourceError
from compiler.ir.types import F32, TensorType
from explorer.arrays import load_arrays
from explorer.session import Session, UserError
from explorer.shapes import for_arguments, with_shapes
from explorer.verification import load_valid

REPEATED = """func.func @main(%n: tensor<i32>, %row: tensor<?xf32>) -> tensor<?x?xf32> {
  %size = stablehlo.get_dimension_size %row, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %m = stablehlo.reshape %size : (tensor<i32>) -> tensor<1xi32>
  %count = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %shape = stablehlo.concatenate %count, %m, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %0 = stablehlo.dynamic_broadcast_in_dim %row, %shape, dims = [1] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
"""
"""A row of any length, repeated as often as the first argument says."""


@pytest.fixture
def session(tmp_path):
    path = tmp_path / "repeated.mlir"
    path.write_text(REPEATED)
    return Session(str(path), load_valid(str(path)))


def result(session: Session) -> TensorType:
    return session.parsed.module.entry_computation.result_type


def test_written_shapes_and_sizes(session):
    found = with_shapes(session, ["arg0=4", "arg1=3"])
    assert result(found) == TensorType(F32, (4, 3))
    assert {index: int(value) for index, value in found.sizes.items()} == {0: 4}
    assert found.source is session.parsed


def test_one_size_left_open_is_that_of_the_dimensions(session):
    assert result(with_shapes(session, ["arg1=5"])) == TensorType(F32, (5, 5))


def test_platform_argument_is_not_taken_for_a_size(tmp_path):
    path = tmp_path / "platforms.mlir"
    path.write_text(
        'func.func @main(%p: tensor<i32> {jax.global_constant = "_platform_index"}, %x: tensor<?xf32>)'
        " -> tensor<?xf32> {\n  return %x : tensor<?xf32>\n}\n"
    )
    found = with_shapes(Session(str(path), load_valid(str(path))), ["arg1=3"])
    assert int(found.sizes[0]) == 0


def test_shapes_of_arrays(session, tmp_path):
    path = str(tmp_path / "inputs.npz")
    np.savez(path, arg0=np.asarray(2, np.int32), arg1=np.zeros(7, np.float32))
    found = with_shapes(session, [], path)
    assert result(found) == TensorType(F32, (2, 7))
    row = load_arrays(path, "arg", session.parsed.module.entry_computation.parameter_types)[1]
    assert row.shape == (7,)


def test_programs_are_made_once_for_the_same_sizes(session):
    first = with_shapes(session, ["arg0=4", "arg1=3"])
    assert with_shapes(session, ["arg0=4", "arg1=3"]).parsed is first.parsed
    other = with_shapes(first, ["arg0=5", "arg1=3"])
    assert other.parsed is not first.parsed
    assert result(other) == TensorType(F32, (5, 3))
    types = first.parsed.module.entry_computation.parameter_types
    assert for_arguments(other, types, {0: np.asarray(4, np.int32)}).parsed is first.parsed


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([], r"sizes are dynamic: give the shape of arg1 \(tensor<\?xf32>\), as --shape arg1=2"),
        (["arg1=2x3"], r"arg1 cannot have the shape 2x3: the model takes tensor<\?xf32>"),
        (["arg1=two"], r"--shape arg1=two: write it as arg0=2x3"),
        (["arg2=3"], r"--shape arg2=3: the model takes 2 arguments, from arg0 on"),
        (["arg1=3", "arg1=4"], r"arg1 has a shape already"),
        (["arg0=2x2", "arg1=3"], r"arg0 is the integer tensor<i32>: give its value, as arg0=3"),
        (["arg0=3000000000", "arg1=3"], r"tensor<i32> does not hold 3000000000"),
        (["arg1=99999999999999999"], r"are more than can be held"),
    ],
)
def test_mistakes(session, shapes, message):
    with pytest.raises(UserError, match=message) as caught:
        with_shapes(session, shapes)
    assert "\n" not in str(caught.value)


def test_inputs_that_do_not_agree_with_the_shapes(session, tmp_path):
    path = str(tmp_path / "inputs.npz")
    np.savez(path, arg0=np.asarray(2, np.int32), arg1=np.zeros(7, np.float32))
    with pytest.raises(UserError, match="arg0 is 2 in the inputs, but --shape says 3"):
        with_shapes(session, ["arg0=3"], path)
    np.savez(path, arg0=np.asarray(2, np.int32))
    with pytest.raises(UserError, match=r"inputs\.npz holds no arg1"):
        with_shapes(session, [], path)


def test_what_stays_dynamic_is_shown_in_the_source(tmp_path):
    path = tmp_path / "unknown.mlir"
    path.write_text(
        REPEATED.replace("%n: tensor<i32>", "%n: tensor<1xi32>").replace(
            "stablehlo.reshape %n : (tensor<i32>)", "stablehlo.reshape %n : (tensor<1xi32>)"
        )
    )
    with pytest.raises(SourceError) as caught:
        with_shapes(Session(str(path), load_valid(str(path))), ["arg1=3"])
    assert caught.value.line == 6
    assert "dynamic_broadcast_in_dim" in caught.value.source_line
    assert "stays dynamic" in caught.value.message


def test_static_models_stay_as_they_are(tmp_path):
    path = tmp_path / "static.mlir"
    path.write_text("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}\n")
    session = Session(str(path), load_valid(str(path)))
    assert with_shapes(session, ["arg0=2"]) is session
    with pytest.raises(UserError, match="arg0 cannot have the shape 3"):
        with_shapes(session, ["arg0=3"])
