"""Collectives on grids of replicas and partitions: process groups of every kind, and what is refused."""

import numpy as np
import pytest

from compiler.frontend.mlir import parse
from compiler.ir.verifier import verify
from compiler.ops import SEMANTICS
from compiler.reference import EvaluationError, evaluate_on_devices
from tests.ops.programs import body_of, main, rejects

CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>"


def groups(rows):
    return f"replica_groups = dense<{rows}> : tensor<{len(rows)}x{len(rows[0])}xi64>"


def text_of(opcode, shape, result, attributes, body=""):
    x, r = f"tensor<{shape}xi64>", f"tensor<{result}xi64>"
    region = f" ({{\n{body}\n}})" if body else ""
    return main(
        f"%x: {x}",
        r,
        f'%0 = "stablehlo.{opcode}"(%x){region} {{{attributes}}} : ({x}) -> {r}\nreturn %0 : {r}',
    )


def on_grid(text, values, replicas, partitions):
    module = parse(text).module
    verify(module, SEMANTICS)
    found = evaluate_on_devices(
        module, [[np.asarray(v)] for v in values], num_replicas=replicas, num_partitions=partitions
    )
    return [result[0].tolist() for result in found]


ADD = body_of("add", "i64")
ONES = [np.array([10**k]) for k in range(4)]


def reduced(attributes, replicas, partitions):
    return [
        v[0] for v in on_grid(text_of("all_reduce", "1", "1", attributes, ADD), ONES, replicas, partitions)
    ]


def test_process_groups():
    """Four processes hold 1, 10, 100, 1000; in a 2 × 2 grid they are (0,0), (0,1), (1,0), (1,1)."""
    assert reduced(groups([[0, 1]]), 2, 2) == [101, 1010, 101, 1010]
    assert reduced(f"{groups([[0, 1]])}, {CHANNEL}", 2, 2) == [1111] * 4
    assert reduced(f"{groups([[0], [1]])}, {CHANNEL}", 2, 2) == [11, 11, 1100, 1100]
    flat = f"{groups([[0, 3], [1, 2]])}, {CHANNEL}, use_global_device_ids"
    assert reduced(flat, 2, 2) == [1001, 110, 110, 1001]
    assert reduced(groups([[0, 2], [1, 3]]), 4, 1) == [101, 1010, 101, 1010]
    assert reduced(groups([[0, 2, 3], [1, -1, -1]]), 4, 1) == [1101, 10, 1101, 1101]


def test_reduce_scatter():
    attributes = f"scatter_dimension = 1 : i64, {groups([[1, 0]])}"
    x = np.arange(8).reshape(2, 4)
    found = on_grid(text_of("reduce_scatter", "2x4", "2x2", attributes, ADD), [x, 10 * x], 2, 1)
    assert found == [[[22, 33], [66, 77]], [[0, 11], [44, 55]]]


def test_all_gather():
    text = text_of("all_gather", "2", "4", f"all_gather_dim = 0 : i64, {groups([[1, 0]])}")
    assert on_grid(text, [[1, 2], [3, 4]], 2, 1) == [[3, 4, 1, 2]] * 2


def test_all_to_all():
    attributes = (
        f"split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, {groups([[0, 1]])}"
    )
    text = text_of("all_to_all", "4", "4", attributes)
    assert on_grid(text, [[1, 2, 3, 4], [5, 6, 7, 8]], 2, 1) == [[1, 2, 5, 6], [3, 4, 7, 8]]
    assert on_grid(
        text.replace("replica_groups", f"{CHANNEL}, replica_groups"), [[1, 2, 3, 4], [5, 6, 7, 8]], 1, 2
    ) == [
        [1, 2, 5, 6],
        [3, 4, 7, 8],
    ]


def test_permute_and_broadcast():
    pairs = "source_target_pairs = dense<[[0, 1], [2, 0]]> : tensor<2x2xi64>"
    text = text_of("collective_permute", "1", "1", pairs)
    assert on_grid(text, [[7], [8], [9]], 3, 1) == [[9], [7], [0]]
    text = text_of("collective_broadcast", "1", "1", groups([[2, 0]]))
    assert on_grid(text, [[7], [8], [9]], 3, 1) == [[9], [0], [9]]


def test_collective_reduce():
    text = text_of("collective_reduce", "1", "1", groups([[1, 0]]), ADD)
    assert on_grid(text, [[7], [8]], 2, 1) == [[0], [15]]


def test_ids():
    text = main(
        "",
        "tensor<ui32>, tensor<ui32>",
        "%0 = stablehlo.replica_id : tensor<ui32>\n%1 = stablehlo.partition_id : tensor<ui32>\n"
        "return %0, %1 : tensor<ui32>, tensor<ui32>",
    )
    found = evaluate_on_devices(parse(text).module, [[]] * 6, num_replicas=2, num_partitions=3)
    assert [(int(r), int(p)) for r, p in found] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_missing_processes():
    with pytest.raises(EvaluationError, match=r"process \(2, 0\) does not exist"):
        on_grid(text_of("all_reduce", "1", "1", groups([[0, 1, 2]]), ADD), ONES[:2], 2, 1)


@pytest.mark.parametrize(
    ("rows", "message"),
    [([[0, 0]], "twice"), ([[0, 2]], "replica id 1 must occur")],
)
def test_group_members(rows, message):
    rejects(text_of("all_reduce", "1", "1", groups(rows), ADD), message)


def test_rejects():
    good = groups([[0, 1]])
    rejects(text_of("all_reduce", "1", "1", f"{good}, use_global_device_ids", ADD), "C4")
    rejects(
        text_of("all_reduce", "1", "1", "replica_groups = dense<0> : tensor<1xi64>", ADD), "list of lists"
    )
    rejects(text_of("all_reduce", "1", "1", good, body_of("add", "i32")), "promoted|match")
    rejects(text_of("all_gather", "2", "4", f"all_gather_dim = 1 : i64, {good}"), "C1")
    rejects(text_of("all_gather", "2", "5", f"all_gather_dim = 0 : i64, {good}"), "C6")
    rejects(text_of("reduce_scatter", "4", "2", f"scatter_dimension = 1 : i64, {good}", ADD), "C2")
    rejects(text_of("reduce_scatter", "4", "3", f"scatter_dimension = 0 : i64, {good}", ADD), "C8")
    split = f"split_dimension = 0 : i64, concat_dimension = 0 : i64, {good}"
    rejects(text_of("all_to_all", "4", "4", f"{split}, split_count = 3 : i64"), "C2")
    rejects(text_of("all_to_all", "4", "4", f"{split}, split_count = 4 : i64"), "4 members")
    rejects(text_of("all_to_all", "4", "4", f"{split}, split_count = 0 : i64"), "C4")
    pairs = "source_target_pairs = dense<[[0, 1], [0, 2]]> : tensor<2x2xi64>"
    rejects(text_of("collective_permute", "1", "1", pairs), "C2")
