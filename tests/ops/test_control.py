"""Loops, branches, calls and composites."""

import numpy as np
import pytest

from compiler.ir.semantics import OperationError
from compiler.ir.types import F32, I1, I32, TensorType, TupleType, tensor
from compiler.reference import evaluate
from tests.builder import ModuleBuilder
from tests.ops.programs import main, rejects, run


def test_while():
    text = main(
        "%n: tensor<i32>",
        "tensor<i32>, tensor<i32>",
        """
        %i = stablehlo.constant dense<0> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %0:2 = stablehlo.while(%k = %i, %t = %one) : tensor<i32>, tensor<i32>
        cond {
          %1 = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %1 : tensor<i1>
        } do {
          %2 = stablehlo.add %k, %one : tensor<i32>
          %3 = stablehlo.add %t, %t : tensor<i32>
          stablehlo.return %2, %3 : tensor<i32>, tensor<i32>
        }
        return %0#0, %0#1 : tensor<i32>, tensor<i32>""",
    )
    assert [int(v) for v in run(text, np.int32(5))] == [5, 32]
    assert [int(v) for v in run(text, np.int32(-1))] == [0, 1]


def case_text(count):
    branches = ", ".join(
        f"{{\n%c{k} = stablehlo.constant dense<{k * 10}> : tensor<i32>\n%s{k} = stablehlo.add %x, %c{k} : tensor<i32>\n"
        f'"stablehlo.return"(%s{k}) : (tensor<i32>) -> ()\n}}'
        for k in range(count)
    )
    return main(
        "%i: tensor<i32>, %x: tensor<i32>",
        "tensor<i32>",
        f'%0 = "stablehlo.case"(%i) ({branches}) : (tensor<i32>) -> tensor<i32>\nreturn %0 : tensor<i32>',
    )


@pytest.mark.parametrize(("index", "want"), [(0, 1), (1, 11), (2, 21), (3, 21), (-1, 21), (2**31 - 1, 21)])
def test_case_out_of_range_takes_the_last_branch(index, want):
    assert run(case_text(3), np.int32(index), np.int32(1))[0] == want


def test_if():
    text = main(
        "%p: tensor<i1>, %x: tensor<f32>",
        "tensor<f32>",
        '%0 = "stablehlo.if"(%p) ({\n%1 = stablehlo.negate %x : tensor<f32>\n"stablehlo.return"(%1) : (tensor<f32>) -> ()'
        '\n}, {\n"stablehlo.return"(%x) : (tensor<f32>) -> ()\n}) : (tensor<i1>) -> tensor<f32>\nreturn %0 : tensor<f32>',
    )
    assert run(text, True, np.float32(2))[0] == -2 and run(text, False, np.float32(2))[0] == 2


def test_fusion_and_call():
    module = ModuleBuilder()
    inner = module.computation("inner")
    x, y = inner.parameter(F32, 2), inner.parameter(F32, 2)
    inner.root(inner.op("add", x, y), inner.op("multiply", x, y))
    entry = module.computation("main")
    a = entry.parameter(F32, 2)
    first = entry.op("call", a, a, called=("inner",))
    second = entry.op(
        "fusion", entry.element(first, 0), entry.element(first, 1), called=("inner",), kind="kLoop"
    )
    entry.root(entry.element(second, 0))
    assert evaluate(module.build(), [np.array([1, 3], np.float32)])[0].tolist() == [3, 15]


def test_composite():
    function = "func.func private @impl(%a: tensor<f32>) -> tensor<f32> {\n%0 = stablehlo.add %a, %a : tensor<f32>\nreturn %0 : tensor<f32>\n}"
    body = '%0 = stablehlo.composite "my.op" %x {decomposition = @impl, version = 1 : i32} : (tensor<f32>) -> tensor<f32>\nreturn %0 : tensor<f32>'
    text = f"module {{\n{main('%x: tensor<f32>', 'tensor<f32>', body)}\n{function}\n}}"
    assert run(text, np.float32(4))[0] == 8
    rejects(text.replace("my.op", "my-op"), "C1")


def loop(condition_result, body_result):
    module = ModuleBuilder()
    condition = module.computation("condition")
    x = condition.parameter(F32)
    condition.root(condition.op("compare", x, x, comparison_direction="LT") if condition_result is I1 else x)
    body = module.computation("body")
    y = body.parameter(F32)
    body.root(
        y
        if body_result is F32
        else body.op("convert", y)
        if body_result is None
        else body.constant(np.int32(1))
    )
    entry = module.computation("main")
    return entry.op("while", entry.parameter(F32), called=("condition", "body"))


def test_rejects():
    with pytest.raises(OperationError, match="C1"):
        loop(F32, F32)
    with pytest.raises(OperationError, match="C2"):
        loop(I1, I32)
    module = ModuleBuilder()
    for name, element in (("first", F32), ("second", I32)):
        branch = module.computation(name)
        branch.parameter_of(TupleType(()))
        branch.root(branch.constant(0, element))
    entry = module.computation("main")
    index = entry.parameter(I32)
    nothing = entry.op("tuple")
    with pytest.raises(OperationError, match="C3"):
        entry.op("case", index, nothing, nothing, called=("first", "second"))
    with pytest.raises(OperationError, match="predicate"):
        entry.op("if", index, nothing, nothing, called=("first", "first"))
    with pytest.raises(OperationError, match="takes tuple"):
        entry.op("case", index, index, called=("first",))
    assert entry.type(entry.op("case", index, nothing, called=("first",))) == tensor(F32)
    assert isinstance(entry.type(index), TensorType)
