"""The reference interpreter: calls, loops, devices, errors that name the place, and what observers see."""

import threading

import numpy as np
import pytest

from compiler.ir.types import F32, I32, TensorType, TupleType, tensor
from compiler.ops.checks import CheckFailed, check_almost_equal, check_close, ulp_distance
from compiler.ops.record import Token
from compiler.reference import (
    EvaluationError,
    Interpreter,
    evaluate,
    evaluate_computation,
    evaluate_on_devices,
    flatten,
)
from compiler.reference_devices import DeviceGrid, run_grid
from tests.builder import ModuleBuilder

SCALAR = tensor(F32)


def doubling():
    module = ModuleBuilder()
    inner = module.computation("double")
    x = inner.parameter(F32, 2)
    inner.root(inner.op("add", x, x))
    main = module.computation("main")
    y = main.parameter(F32, 2)
    main.root(main.add("call", tensor(F32, 2), main.op("negate", y), called=("double",)))
    return module.build()


def test_calls_and_observation():
    seen = []
    found = evaluate(
        doubling(),
        [np.array([1, 2], np.float32)],
        on_value=lambda where, instruction, operands, value: seen.append(
            (where, instruction.opcode, [o.tolist() for o in operands], value.tolist())
        ),
    )
    assert [v.tolist() for v in found] == [[-2, -4]]
    assert seen == [
        ("main", "negate", [[1, 2]], [-1, -2]),
        ("double", "add", [[-1, -2], [-1, -2]], [-2, -4]),
        ("main", "call", [[-1, -2]], [-2, -4]),
    ]


def test_very_deep_calls():
    module = ModuleBuilder()
    for depth in range(5000):
        body = module.computation(f"f{depth}")
        x = body.parameter(F32)
        body.root(body.add("call", SCALAR, x, called=(f"f{depth - 1}",)) if depth else body.op("negate", x))
    (found,) = evaluate(module.build("f4999"), [np.float32(3)])
    assert found == -3


def test_one_computation_alone():
    found = evaluate_computation(doubling(), "double", [np.array([3, 4], np.float32)])
    assert found.tolist() == [6, 8]


def test_values_die_after_their_last_use():
    module = ModuleBuilder()
    main = module.computation("main")
    x = main.parameter(F32, 4)
    for _ in range(5):
        x = main.op("negate", x)
    main.root(x)
    interpreter = Interpreter(module.build())
    plan = interpreter._plan("main")
    dead = [name for step in plan.steps for name in step.dead]
    assert len(dead) == len(set(dead)) == 5
    assert plan.root not in dead


def test_tuples_are_flattened_and_rebuilt():
    module = ModuleBuilder()
    main = module.computation("main")
    pair = main.parameter_of(TupleType((SCALAR, tensor(I32))))
    main.root(main.element(pair, 1), main.element(pair, 0))
    one, two = np.float32(1), np.int32(2)
    for arguments in ([one, two], [(np.asarray(one), np.asarray(two))]):
        assert [v.item() for v in evaluate(module.build(), arguments)] == [2, 1]
    assert flatten((np.zeros(1), (), (Token(), np.ones(1))))[1].tolist() == [1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([np.zeros(3, np.float32)], "argument #0 must be tensor<2xf32>, but is 3 of float32"),
        ([np.zeros(2, np.float64)], "argument #0 must be tensor<2xf32>"),
        ([], "takes more arguments"),
        ([np.zeros(2, np.float32)] * 2, "takes fewer arguments"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(EvaluationError, match=message):
        evaluate(doubling(), arguments)


def test_errors_name_the_instruction_and_its_line():
    module = ModuleBuilder()
    main = module.computation("main")
    x, size = main.parameter(F32, 4), main.parameter(I32, 1)
    main.root(main.add("dynamic_reshape", TensorType(F32, (-1,)), x, size))
    with pytest.raises(EvaluationError) as error:
        evaluate(module.build(), [np.zeros(4, np.float32), np.array([3], np.int32)])
    assert str(error.value).startswith("test.mlir:3: dynamic_reshape.3 (dynamic_reshape): 4 elements")


def test_unknown_operations_are_refused():
    module = ModuleBuilder()
    main = module.computation("main")
    main.root(main.add("no_such", SCALAR))
    with pytest.raises(EvaluationError, match="unknown operation 'no_such'"):
        evaluate(module.build(), [])


def checking(got, want, opcode="check.expect_eq", **attributes):
    module = ModuleBuilder()
    main = module.computation("main")
    names = [main.constant(got), main.constant(want)]
    main.root(main.op(opcode, *names, **attributes))
    return evaluate(module.build(), [])


def test_checks():
    nan = np.float32(np.nan)
    assert checking(np.array([1, nan]), np.array([1, nan])) == []
    with pytest.raises(CheckFailed, match=r"test.mlir:3: check.expect_eq.3 .*got 2.* want 3.* at \[1\]"):
        checking(np.array([1, 2], np.int32), np.array([1, 3], np.int32))
    near = np.nextafter(np.float32(1), np.float32(2))
    checking(np.float32(1), near, "check.expect_close", max_ulp_difference=1)
    with pytest.raises(CheckFailed, match="ULP"):
        checking(np.float32(1), near, "check.expect_close", max_ulp_difference=0)
    checking(5.0, 5.0001, "check.expect_almost_eq")
    with pytest.raises(CheckFailed, match="farther apart"):
        checking(5.0, 5.1, "check.expect_almost_eq")
    with pytest.raises(CheckFailed):
        check_almost_equal(np.array([np.inf]), np.array([-np.inf]), 1.0)
    with pytest.raises(CheckFailed):
        check_close(np.array([np.inf]), np.array([np.finfo(np.float64).max]), 10)


def test_ulp_distance_crosses_zero():
    tiny = np.array([5e-324])
    assert ulp_distance(tiny, -tiny)[0] == 2
    assert ulp_distance(np.array([0.0]), np.array([-0.0]))[0] == 0
    assert ulp_distance(np.array([np.nan]), np.array([1.0]))[0] == 2**64 - 1


def test_processes_exchange_values():
    grid = DeviceGrid(2, 2)

    def body(device):
        first = device.exchange("sum", np.asarray(device.replica_id * 2 + device.partition_id))
        second = device.exchange("sum", np.asarray(10))
        return sum(int(v) for v in first.values()), len(second), sorted(first)

    assert run_grid(grid, [body] * 4) == [(6, 4, [(0, 0), (0, 1), (1, 0), (1, 1)])] * 4


@pytest.mark.parametrize("way", ["different places", "one ends", "one fails"])
def test_processes_that_never_meet_are_told_so(way):
    def left(device):
        return device.exchange("left", ())

    def right(device):
        if way == "one fails":
            raise EvaluationError("broken")
        return device.exchange("right", ()) if way == "different places" else None

    before = threading.active_count()
    with pytest.raises(Exception, match="broken" if way == "one fails" else "deadlock.*waits at left"):
        run_grid(DeviceGrid(1, 2), [left, right])
    assert threading.active_count() == before


def test_channels():
    def send(device):
        device.send(7, np.asarray(1))
        device.send(7, np.asarray(2))

    def receive(device):
        return [int(device.receive(7)) for _ in range(2)]

    assert run_grid(DeviceGrid(1, 2), [send, receive]) == [None, [1, 2]]


def test_one_module_on_several_devices():
    found = evaluate_on_devices(doubling(), [[np.full(2, v, np.float32)] for v in (1, 2)], num_replicas=2)
    assert [v[0].tolist() for v in found] == [[-2, -2], [-4, -4]]


def test_reduction_by_a_widened_computation_with_constants():
    module = ModuleBuilder()
    body = module.computation("body")
    x, y = body.parameter(F32), body.parameter(F32)
    two = body.constant(np.float32(2))
    body.root(body.op("maximum", body.op("maximum", x, y), two))
    main = module.computation("main")
    names = [main.parameter(F32, 2, 3), main.constant(np.float32(0))]
    main.root(main.op("reduce", *names, called=("body",), dimensions=(1,)))
    (found,) = evaluate(module.build(), [np.array([[1, -2, 3], [-4, 5, -6]], np.float32)])
    assert found.tolist() == [3, 5]
