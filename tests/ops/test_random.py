"""Random bits: published vectors of both generators, layouts, states, and distributions."""

import numpy as np
import pytest

from compiler.ir.semantics import OperationError
from compiler.ir.types import F32, I32, UI64, TensorType, TupleType, element
from compiler.ops.random_bits import philox_4x32, philox_bits, threefry_2x32, threefry_bits
from tests.ops.operation_calls import call


def words(*values):
    return [np.array([v], np.uint32) for v in values]


@pytest.mark.parametrize(
    ("key", "counter", "want"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_vectors(key, counter, want):
    """Known answers that come with the paper's own implementation."""
    with np.errstate(over="ignore"):
        found = threefry_2x32(tuple(words(*key)), tuple(words(*counter)))
    assert tuple(int(v[0]) for v in found) == want


@pytest.mark.parametrize(
    ("key", "counter", "want"),
    [
        ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0xA4093822, 0x299F31D0),
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_vectors(key, counter, want):
    with np.errstate(over="ignore"):
        found = philox_4x32(tuple(words(*key)), words(*counter))
    assert tuple(int(v[0]) for v in found) == want


def test_threefry_layout():
    state = np.array([7, 5], np.uint64)
    new, pair = threefry_bits(state, (2, 3), 32)
    assert new.tolist() == [7, 5 + 3]
    new, whole = threefry_bits(state, (3,), 64)
    assert new.tolist() == [7, 5 + 3]
    # Word pairs lie along the first even dimension; as 64 bits the first word is the lower half.
    assert (
        pair[0].astype(np.uint64) | (pair[1].astype(np.uint64) << np.uint64(32))
    ).tolist() == whole.tolist()
    new, odd = threefry_bits(state, (3,), 32)
    assert new.tolist() == [7, 7] and odd.tolist() == threefry_bits(state, (4,), 32)[1][:3].tolist()
    assert threefry_bits(state, (3,), 8)[1].tolist() == (odd & 0xFF).tolist()


def test_philox_layout():
    state = np.array([7, 2**64 - 1, 0], np.uint64)
    with np.errstate(over="ignore"):
        new, bits = philox_bits(state, (6,), 32)
        first = philox_bits(np.array([7, 0, 1], np.uint64), (2,), 32)[1]
    assert new.tolist() == [7, 1, 1]
    assert bits[4:].tolist() == first.tolist()
    with np.errstate(over="ignore"):
        wide = philox_bits(state, (3,), 64)[1]
    assert wide.tolist() == bits.view(np.uint64).tolist()


def generated(state, algorithm, kind):
    result = TupleType((TensorType(element("ui64"), state.shape), kind))
    return call("rng_bit_generator", state, result=result, rng_algorithm=algorithm)


def test_record():
    state = np.array([1, 2], np.uint64)
    new, bits = generated(state, "DEFAULT", TensorType(I32, (3, 5)))
    assert bits.dtype == np.int32 and bits.shape == (3, 5) and new.tolist() == [1, 2 + 4]
    again = generated(state, "PHILOX", TensorType(element("ui32"), (3, 5)))[1]
    assert bits.view(np.uint32).tolist() == again.tolist()
    with pytest.raises(OperationError, match="C2"):
        generated(np.zeros(3, np.uint64), "THREE_FRY", TensorType(I32, (2,)))
    with pytest.raises(OperationError, match="C1"):
        call(
            "rng_bit_generator",
            state,
            result=TupleType((TensorType(UI64, (3,)), TensorType(I32, (2,)))),
            rng_algorithm="DEFAULT",
        )


def test_rng():
    def draw(distribution, low, high, kind):
        shape = np.array(kind.shape, np.int64)
        return call("rng", low, high, shape, result=kind, rng_distribution=distribution)

    uniform = draw("UNIFORM", np.float32(-2), np.float32(3), TensorType(F32, (4000,)))
    assert uniform.min() >= -2 and uniform.max() < 3 and abs(uniform.mean() - 0.5) < 0.1
    normal = draw("NORMAL", np.float32(1), np.float32(2), TensorType(F32, (4000,)))
    assert abs(normal.mean() - 1) < 0.1 and abs(normal.std() - 2) < 0.1
    whole = draw("UNIFORM", np.int32(-3), np.int32(4), TensorType(I32, (1000,)))
    assert set(whole.tolist()) == set(range(-3, 4))
    with pytest.raises(OperationError, match="C1"):
        draw("UNIFORM", np.float32(0), np.float64(1), TensorType(F32, (2,)))
    with pytest.raises(OperationError, match="operand #0"):
        draw("NORMAL", np.int32(0), np.int32(1), TensorType(I32, (2,)))
