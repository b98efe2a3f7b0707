"""Quantised operands of operations that compute on real numbers: the values they stand for, and results back.

The specification defines quantised forms as dequantise, operate, quantise.
"""

from __future__ import annotations

from compiler.ir.types import AnyElement, ElementType, QuantizedType
from compiler.ops.element_arrays import narrow
from compiler.ops.quantization import dequantize, quantize
from compiler.ops.record import Array


def real_values(array: Array, element: AnyElement) -> tuple[Array, ElementType]:
    """Elements as numbers of a plain type: quantised ones as the real values that they stand for."""
    if isinstance(element, QuantizedType):
        return dequantize(array, element), element.expressed
    return array, element


def stored(values: Array, element: AnyElement) -> Array:
    """Computed numbers as elements: rounded or wrapped once, and quantised where the type is."""
    if isinstance(element, QuantizedType):
        return quantize(narrow(values, element.expressed), element)
    return narrow(values, element)


def expressed(element: AnyElement) -> ElementType:
    """The type of the real values of an element type."""
    return element.expressed if isinstance(element, QuantizedType) else element
