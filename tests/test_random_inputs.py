"""Random arguments fit their types and repeat."""

import numpy as np
import pytest

from compiler.ir.types import ELEMENTS, F32, I32, QuantizedType, TensorType, TupleType, tensor
from compiler.random_inputs import random_array, random_inputs


@pytest.mark.parametrize("element", ELEMENTS.values(), ids=str)
def test_every_element_type(element):
    for shape in ((), (3, 4), (0, 2)):
        found = random_array(tensor(element, *shape), 7)
        assert found.dtype == element.dtype
        assert found.shape == shape
    many = random_array(tensor(element, 200), 7)
    assert len({bytes(v.tobytes()) for v in many}) > 1


def test_seeds_and_streams():
    kinds = [tensor(F32, 5), TupleType((tensor(F32, 5), tensor(I32)))]
    first, again, other = random_inputs(kinds, 1), random_inputs(kinds, 1), random_inputs(kinds, 2)
    assert len(first) == 3
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[0], other[0])


def test_storage_limits_hold():
    kind = QuantizedType(ELEMENTS["i8"], F32, (0.5,), (0,), -3, 3)
    found = random_array(TensorType(kind, (100,)), 0)
    assert found.min() >= -3 and found.max() <= 3


def test_dynamic_sizes_are_refused():
    with pytest.raises(ValueError, match="give its sizes"):
        random_array(TensorType(F32, (-1,)), 0)
