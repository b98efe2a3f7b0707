"""custom_call: built-in targets, LAPACK by name, registered functions, layouts and aliases; host transfers."""

import numpy as np
import pytest

from compiler.frontend.mlir import parse
from compiler.ir.program import Attributes
from compiler.ir.semantics import OperationError
from compiler.ir.types import F32, I32, TensorType, TupleType, element, tensor
from compiler.reference import EvaluationError, evaluate, evaluate_on_devices
from tests.builder import ModuleBuilder
from tests.ops.operation_calls import type_of
from tests.ops.programs import body_of, main, rejects, run


def target(name, *operands, result, custom_calls=None, **attributes):
    module = ModuleBuilder()
    entry = module.computation("main")
    arrays = [np.asarray(x) for x in operands]
    names = [entry.parameter_of(type_of(x)) for x in arrays]
    entry.root(entry.add("custom_call", result, *names, call_target_name=name, **attributes))
    found = evaluate(module.build(), arrays, custom_calls=custom_calls)
    return found if isinstance(result, TupleType) else found[0]


def test_unknown_targets_are_named():
    with pytest.raises(EvaluationError, match="custom call 'mystery'"):
        target("mystery", np.float32(1), result=tensor(F32))
    with pytest.raises(EvaluationError, match="lapack_snothing_ffi"):
        target("lapack_snothing_ffi", np.float32(1), result=tensor(F32))


def test_registered_functions():
    def double(evaluation, x):
        assert evaluation.attributes["call_target_name"] in ("mystery", "Sharding")
        return x + x

    assert target("mystery", np.float32(2), result=tensor(F32), custom_calls={"mystery": double}) == 4
    assert target("Sharding", np.float32(2), result=tensor(F32), custom_calls={"Sharding": double}) == 4


def test_annotations_change_nothing():
    x = np.arange(4, dtype=np.float32)
    for name in (
        "Sharding",
        "SPMDFullToShardShape",
        "annotate_device_placement",
        "xla.sdy.FuncResultSharding",
    ):
        assert target(name, x, result=tensor(F32, 4)).tolist() == x.tolist()
    with pytest.raises(EvaluationError, match="several partitions"):
        target("SPMDFullToShardShape", x, result=tensor(F32, 2))


def test_shards_of_partitions():
    text = main(
        "%x: tensor<4x2xf32>",
        "tensor<4x2xf32>",
        "%0 = stablehlo.custom_call @SPMDFullToShardShape(%x) : (tensor<4x2xf32>) -> tensor<2x1xf32>\n"
        "%1 = stablehlo.partition_id : tensor<ui32>\n%2 = stablehlo.convert %1 : (tensor<ui32>) -> tensor<f32>\n"
        "%3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<2x1xf32>\n"
        "%4 = stablehlo.add %0, %3 : tensor<2x1xf32>\n"
        "%5 = stablehlo.custom_call @SPMDShardToFullShape(%4) : (tensor<2x1xf32>) -> tensor<4x2xf32>\n"
        "return %5 : tensor<4x2xf32>",
    )
    module, x = parse(text).module, np.zeros((4, 2), np.float32)
    for (found,) in evaluate_on_devices(module, [[x]] * 4, num_partitions=4):
        assert found.tolist() == [[0, 1], [0, 1], [2, 3], [2, 3]]
    with pytest.raises(EvaluationError, match="several partitions"):
        evaluate_on_devices(module, [[x]] * 2, num_partitions=2)


def test_buffers():
    text = main(
        "%x: tensor<2xf32>",
        "tensor<2xf32>",
        '%0 = "stablehlo.custom_call"(%x) {call_target_name = "Pin"} : (tensor<2xf32>) -> memref<2xf32>\n'
        '%1 = "stablehlo.custom_call"(%0) {call_target_name = "Unpin"} : (memref<2xf32>) -> tensor<2xf32>\n'
        "return %1 : tensor<2xf32>",
    )
    assert run(text, np.array([1, 2], np.float32))[0].tolist() == [1, 2]
    rejects(text.replace('"Pin"', '"CreateBuffer"'), "takes no operand")
    rejects(text.replace('"Pin"', '"foo"'), "must be aliased once")


def test_shape_assertion():
    nothing = TupleType(())
    target("shape_assertion", True, np.int32(3), result=nothing, error_message="b is {0}")
    with pytest.raises(EvaluationError, match="b is 3"):
        target("shape_assertion", False, np.int32(3), result=nothing, error_message="b is {0}")


def test_dynamic_operations():
    x = np.array([3, 9, 1, 9], np.float32)
    result = TupleType((tensor(F32, 2), tensor(I32, 2)))
    values, places = target("stablehlo.dynamic_top_k", x, np.int32(2), result=result)
    assert values.tolist() == [9, 9] and places.tolist() == [1, 3]
    smallest = Attributes(k=2, largest=False)
    values, places = target("mhlo.topk", x, result=result, **{"mhlo.attributes": smallest})
    assert values.tolist() == [1, 3] and places.tolist() == [2, 0]
    state = np.array([1, 2], np.uint64)
    kind = TupleType((TensorType(element("ui64"), (2,)), TensorType(element("ui32"), (-1,))))
    new, bits = target(
        "stablehlo.dynamic_rng_bit_generator", state, np.array([5]), result=kind, rng_algorithm="THREE_FRY"
    )
    assert bits.shape == (5,) and new.tolist() == [1, 2 + 3]


def test_dynamic_reduce_window():
    module = ModuleBuilder()
    body = module.reducer("add", F32)
    entry = module.computation("main")
    x, init = np.arange(6, dtype=np.float32), np.float32(0)
    sizes = [np.array(v) for v in ([2], [2], [1], [1], [[0, 0]])]
    arrays = [x, init, *sizes]
    names = [entry.parameter_of(type_of(v)) for v in map(np.asarray, arrays)]
    entry.root(
        entry.add(
            "custom_call",
            tensor(F32, 3),
            *names,
            called=(body,),
            call_target_name="stablehlo.dynamic_reduce_window",
        )
    )
    assert evaluate(module.build(), [np.asarray(v) for v in arrays])[0].tolist() == [1, 5, 9]


def options(**values):
    return {"mhlo.backend_config": Attributes({k: ord(v) for k, v in values.items()})}


@pytest.mark.parametrize(
    ("prefix", "dtype"), [("s", np.float32), ("d", np.float64), ("c", np.complex64), ("z", np.complex128)]
)
def test_lapack(prefix, dtype):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(2, 4, 4)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        a = a + (1j * rng.normal(size=(2, 4, 4))).astype(dtype)
    real = np.empty(0, dtype).real.dtype
    e = type_of(a).element
    exact = {"rtol": 1e-4, "atol": 1e-4}

    def tensors(*parts):
        return TupleType(tuple(TensorType(kind, shape) for kind, shape in parts))

    info = (I32, (2,))
    whole, column = (2, 4, 4), (2, 4)
    lu, pivots, status = target(
        f"lapack_{prefix}getrf_ffi", a, result=tensors((e, whole), (I32, column), info)
    )
    for k in range(2):
        permuted = np.eye(4)
        for row, other in enumerate(pivots[k] - 1):
            permuted[[row, other]] = permuted[[other, row]]
        product = (np.tril(lu[k], -1) + np.eye(4)) @ np.triu(lu[k])
        np.testing.assert_allclose(permuted @ a[k], product, **exact)
    assert not status.any()
    packed, tau = target(f"lapack_{prefix}geqrf_ffi", a, result=tensors((e, whole), (e, column)))
    name = "orgqr" if prefix in "sd" else "ungqr"
    q = target(f"lapack_{prefix}{name}_ffi", packed, tau, result=TensorType(e, whole))
    np.testing.assert_allclose(q @ np.triu(packed), a, **exact)
    r = type_of(np.empty(0, real)).element
    _, s, u, vt, _ = target(
        f"lapack_{prefix}gesdd_ffi",
        a,
        result=tensors((e, whole), (r, column), (e, whole), (e, whole), info),
        **options(mode="A"),
    )
    np.testing.assert_allclose((u * s[:, None, :]) @ vt, a, **exact)
    symmetric = a + np.conj(np.swapaxes(a, 1, 2))
    name = "syevd" if prefix in "sd" else "heevd"
    v, w, _ = target(
        f"lapack_{prefix}{name}_ffi",
        symmetric,
        result=tensors((e, whole), (r, column), info),
        **options(mode="V", uplo="L"),
    )
    np.testing.assert_allclose(symmetric @ v, v * w[:, None, :], **exact)
    b = np.ones((2, 4, 3), dtype)
    x = target(
        f"lapack_{prefix}trsm_ffi",
        a,
        b,
        result=TensorType(e, b.shape),
        **options(side="L", uplo="U", trans_x="N", diag="N"),
    )
    np.testing.assert_allclose(np.triu(a) @ x, b, rtol=1e-3, atol=1e-3)


def layouts(operand, result, kind="tensor<2x3xf32>"):
    attributes = f"operand_layouts = [{operand}], result_layouts = [{result}]"
    return main(
        f"%x: {kind}",
        kind,
        f'%0 = "stablehlo.custom_call"(%x) {{call_target_name = "foo", {attributes}}} : ({kind}) -> {kind}\n'
        f"return %0 : {kind}",
    )


def test_rejects():
    fine = "dense<[1, 0]> : tensor<2xindex>"
    rejects(layouts("dense<[0, 2]> : tensor<2xindex>", fine), "operand #0")
    rejects(layouts(fine, f"{fine}, {fine}"), "2 for 1")
    text = layouts(fine, fine)
    alias = (
        "output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, "
        "operand_tuple_indices = []>]"
    )
    rejects(text.replace("operand_layouts", f"{alias}, operand_layouts"), "operand_index")
    rejects(text.replace('"foo"', '"foo", api_version = 4 : i32, backend_config = "x"'), "dictionary")


def test_send_and_receive():
    text = """
    module {
      func.func @send(%x: tensor<2xi64>, %t: !stablehlo.token) -> !stablehlo.token {
        %0 = "stablehlo.send"(%x, %t) {channel_handle = #stablehlo.channel_handle<handle = 3, type = 2>, is_host_transfer = true}
          : (tensor<2xi64>, !stablehlo.token) -> !stablehlo.token
        return %0 : !stablehlo.token
      }
      func.func @receive(%t: !stablehlo.token) -> (tensor<2xi64>, !stablehlo.token) {
        %0:2 = "stablehlo.recv"(%t) {channel_handle = #stablehlo.channel_handle<handle = 3, type = 3>, is_host_transfer = true}
          : (!stablehlo.token) -> (tensor<2xi64>, !stablehlo.token)
        return %0#0, %0#1 : tensor<2xi64>, !stablehlo.token
      }
      func.func @main(%x: tensor<2xi64>) -> tensor<2xi64> {
        %t = stablehlo.after_all : !stablehlo.token
        %0:3 = "interpreter.run_parallel"(%x, %t, %t) {programs = [[@send], [@receive]]}
          : (tensor<2xi64>, !stablehlo.token, !stablehlo.token) -> (!stablehlo.token, tensor<2xi64>, !stablehlo.token)
        return %0#1 : tensor<2xi64>
      }
    }"""
    assert run(text, np.array([4, 5]))[0].tolist() == [4, 5]
    rejects(text.replace("type = 2", "type = 1"), "C1")
    rejects(text.replace("type = 3", "type = 2"), "C1")


def test_asynchronous_operations():
    region = (
        f'"stablehlo.reduce"(%y, %c) ({{\n{body_of("add", "f32")}\n}}) {{dimensions = array<i64: 0>}} '
        ": (tensor<3xf32>, tensor<f32>) -> tensor<f32>"
    )
    text = main(
        "%x: tensor<3xf32>",
        "tensor<f32>",
        f'%0 = "stablehlo.async_start"(%x) ({{\n^bb0(%y: tensor<3xf32>):\n%c = stablehlo.constant dense<1.0> : tensor<f32>\n'
        f'%1 = {region}\n"stablehlo.return"(%1) : (tensor<f32>) -> ()\n}}) : (tensor<3xf32>) -> '
        '!stablehlo.future<tensor<f32>>\n%2 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<f32>>) -> tensor<f32>\n'
        "return %2 : tensor<f32>",
    )
    assert run(text, np.array([1, 2, 3], np.float32))[0] == 7


def test_custom_call_needs_a_type():
    module = ModuleBuilder()
    with pytest.raises(OperationError, match="must be given"):
        module.computation("main").op("custom_call", call_target_name="foo")
