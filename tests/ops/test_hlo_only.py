"""Operations that only HLO has, on one device and on several."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.frontend.hlo import parse_hlo
from compiler.ir.verifier import VerificationError, verify
from compiler.ops import SEMANTICS
from compiler.reference import evaluate_on_devices

ADD = "add {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"


def on_devices(body: str, arguments: list[list[object]], partitions: int = 2) -> list[list[object]]:
    """Results by device of a module whose partitions are given their own arguments."""
    module = parse_hlo(f"HloModule m, num_partitions={partitions}\n\n{ADD}ENTRY e {{\n {body}\n}}\n").module
    verify(module, SEMANTICS)
    given = [[np.asarray(a, np.float32) for a in own] for own in arguments]
    found = evaluate_on_devices(module, given, num_partitions=partitions)
    return [[value.tolist() for value in own] for own in found]


def test_a_reduction_in_two_steps() -> None:
    body = (
        "p = f32[2] parameter(0)\n s = f32[2] all-reduce-start(p), channel_id=1, replica_groups={{0,1}}, "
        "use_global_device_ids=true, to_apply=add\n ROOT r = f32[2] all-reduce-done(s)"
    )
    assert on_devices(body, [[[1, 2]], [[10, 20]]]) == [[[11, 22]], [[11, 22]]]


def test_a_gather_in_two_steps() -> None:
    body = (
        "p = f32[2] parameter(0)\n s = (f32[2], f32[4]) all-gather-start(p), channel_id=1, replica_groups={{0,1}}, "
        "use_global_device_ids=true, dimensions={0}\n ROOT r = f32[4] all-gather-done(s)"
    )
    assert on_devices(body, [[[1, 2]], [[3, 4]]]) == [[[1, 2, 3, 4]]] * 2


def test_a_permutation_in_two_steps() -> None:
    body = (
        "p = f32[2] parameter(0)\n s = (f32[2], f32[2], u32[], u32[]) collective-permute-start(p), channel_id=1, "
        "source_target_pairs={{0,1},{1,0}}\n ROOT r = f32[2] collective-permute-done(s)"
    )
    assert on_devices(body, [[[1, 2]], [[3, 4]]]) == [[[3, 4]], [[1, 2]]]


def test_elements_of_a_tuple_are_exchanged() -> None:
    body = (
        "p = f32[1] parameter(0)\n q = f32[1] parameter(1)\n"
        " ROOT r = (f32[1], f32[1]) all-to-all(p, q), channel_id=1, replica_groups={{0,1}}"
    )
    assert on_devices(body, [[[1], [2]], [[3], [4]]]) == [[[1], [3]], [[2], [4]]]


def test_what_is_sent_arrives() -> None:
    body = (
        "p = f32[2] parameter(0)\n t = token[] after-all()\n s = (f32[2], u32[], token[]) send(p, t), channel_id=7\n"
        " d = token[] send-done(s), channel_id=7\n v = (f32[2], u32[], token[]) recv(d), channel_id=7\n"
        " w = (f32[2], token[]) recv-done(v), channel_id=7\n ROOT r = f32[2] get-tuple-element(w), index=0"
    )
    assert on_devices(body, [[[1, 2]]], partitions=1) == [[[1, 2]]]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "p = f32[2] parameter(0)\n ROOT r = (f32[3], f32[2], u32[]) copy-start(p)",
            "must hold the copy and its source",
        ),
        ("p = f32[2] parameter(0)\n ROOT r = f32[2] copy-start(p)", "the result must be a tuple"),
        ("p = f32[2] parameter(0)\n ROOT r = f32[2] copy-done(p)", "must be a tuple"),
        (
            "p = f32[2] parameter(0)\n q = f32[3] parameter(1)\n ROOT r = (f32[2], f32[3]) all-to-all(p, q), replica_groups={{0,1}}",
            "all operands must have one type",
        ),
    ],
)
def test_wrong_types_are_told(body: str, message: str) -> None:
    module = parse_hlo(f"HloModule m\n\nENTRY e {{\n {body}\n}}\n").module
    with pytest.raises(VerificationError, match=message):
        verify(module, SEMANTICS)


def test_values_are_split_over_a_mesh_and_joined() -> None:
    text = (
        'HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=2]>}}\n\nENTRY e {\n'
        " p = f32[4,2] parameter(0)\n"
        ' l = f32[2,1] custom-call(p), custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={'
        'xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"x\\"}, {\\"y\\"}]>]>",'
        'xla.sdy.manual_axes="#sdy<manual_axes{\\"x\\", \\"y\\"}>"}\n'
        " i = u32[] partition-id()\n f = f32[] convert(i)\n b = f32[2,1] broadcast(f), dimensions={}\n"
        " s = f32[2,1] add(l, b)\n"
        ' ROOT g = f32[4,2] custom-call(s), custom_call_target="xla.sdy.LocalToGlobalShape", frontend_attributes={'
        'xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"x\\"}, {\\"y\\"}]>]>",'
        'xla.sdy.manual_axes="#sdy<manual_axes{\\"x\\", \\"y\\"}>"}\n}\n'
    )
    module = parse_hlo(text).module
    x = np.zeros((4, 2), np.float32)
    found = evaluate_on_devices(module, [[x]] * 4, num_partitions=4)
    for (whole,) in found:
        assert whole.tolist() == [[0, 1], [0, 1], [2, 3], [2, 3]]
