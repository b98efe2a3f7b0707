"""Types in MLIR text, from their tokens; the same text gives the same object."""

from __future__ import annotations

import re
from functools import lru_cache

from compiler.ir.types import DYNAMIC, ELEMENTS, AnyElement, BufferType, QuantizedType, TensorType, element

_TENSOR = re.compile(r"tensor<\s*((?:(?:\d+|\?)\s*x\s*)*)(.*?)\s*>\Z", re.DOTALL)
_BOUNDS = re.compile(r",\s*#(?:stablehlo|mhlo)\.(?:bounds|type_extensions)<(.*)>\s*\Z", re.DOTALL)
_QUANT = re.compile(
    r"!quant\.uniform<\s*([iu]\d+|ui\d+)\s*(?:<\s*(-?\d+)\s*:\s*(-?\d+)\s*>)?\s*:\s*(\w+)\s*(?::\s*(\d+))?\s*,\s*(.*)>\Z",
    re.DOTALL,
)
MAX_RANK = 64


@lru_cache(maxsize=65536)
def tensor_type(text: str) -> TensorType:
    """The type that a `tensor<…>` token stands for.

    Raises:
        ValueError: with a message for the user.
    """
    match = _TENSOR.match(text)
    if match is None:
        raise ValueError(f"not a tensor type: {text}")
    sizes, rest = match.groups()
    if rest.startswith("*"):
        raise ValueError(f"tensors of unknown rank are not supported: {text}")
    shape = tuple(DYNAMIC if size.strip() == "?" else int(size) for size in sizes.split("x")[:-1])
    if len(shape) > MAX_RANK:
        raise ValueError(f"a tensor of rank {len(shape)} is beyond what is supported ({MAX_RANK})")
    if any(size >= 1 << 62 for size in shape):
        raise ValueError(f"a dimension of {max(shape)} is beyond what can be addressed")
    bounds = None
    encoding = _BOUNDS.search(rest)
    if encoding is not None:
        rest = rest[: encoding.start()]
        inner = encoding.group(1).replace("bounds", "").strip(" =[]")
        bounds = tuple(DYNAMIC if b.strip() == "?" else int(b) for b in inner.split(","))
        check_bounds(shape, bounds)
    elif "," in rest and not rest.startswith("!quant"):
        rest = rest.split(",")[0]
    return TensorType(element_type(rest.strip()), shape, None, bounds)


def check_bounds(shape: tuple[int, ...], bounds: tuple[int, ...]) -> None:
    """Raises ValueError unless there is a bound for each dimension, and only for those whose size is not known."""
    if len(bounds) != len(shape):
        raise ValueError(f"{len(bounds)} bounds are given for a tensor of rank {len(shape)}")
    for index, (size, bound) in enumerate(zip(shape, bounds, strict=True)):
        if size != DYNAMIC and bound != DYNAMIC:
            raise ValueError(f"dimension {index} has a bound, though its size {size} is known")


def buffer_type(text: str) -> BufferType:
    """The type that a `memref<…>` token stands for. Raises ValueError for one with a layout or memory space."""
    found = tensor_type(f"tensor{text[len('memref') :]}")
    if found.bounds or f"memref{str(found)[len('tensor') :]}" != text:
        raise ValueError(f"{text} has a layout, which is not supported")
    return BufferType(found.element, found.shape)


@lru_cache(maxsize=4096)
def element_type(text: str) -> AnyElement:
    """An element type by its text. Raises ValueError for an unknown one."""
    text = text.strip()
    if text in ELEMENTS:
        return ELEMENTS[text]
    if text == "index":
        return ELEMENTS["i64"]
    if text.startswith("!quant."):
        return _quantized(text)
    if text.startswith("complex<"):
        return element(text.replace(" ", "")) if text.replace(" ", "") in ELEMENTS else _unknown(text)
    if re.fullmatch(r"[su]\d+", text):
        renamed = text.replace("s", "i") if text[0] == "s" else f"ui{text[1:]}"
        if renamed in ELEMENTS:
            return ELEMENTS[renamed]
    return _unknown(text)


def _unknown(text: str) -> AnyElement:
    raise ValueError(f"unknown element type '{text}'")


def _quantized(text: str) -> QuantizedType:
    match = _QUANT.match(text)
    if match is None:
        raise ValueError(f"unknown quantized type '{text}'")
    storage_text, low, high, expressed, axis, rest = match.groups()
    signed = storage_text.startswith("i")
    storage_name = storage_text if signed else f"ui{storage_text.lstrip('ui')}"
    if storage_name not in ELEMENTS or expressed not in ELEMENTS:
        raise ValueError(f"unknown quantized type '{text}'")
    storage = element(storage_name)
    bits = storage.bits
    default_low = -(1 << (bits - 1)) if signed else 0
    default_high = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1
    pairs = [pair.strip() for pair in rest.strip().strip("{}").split(",") if pair.strip()]
    scales = tuple(float(pair.split(":")[0]) for pair in pairs)
    zeros = tuple(int(pair.split(":")[1]) if ":" in pair else 0 for pair in pairs)
    return QuantizedType(
        storage,
        element(expressed),
        scales,
        zeros,
        int(low) if low else default_low,
        int(high) if high else default_high,
        int(axis) if axis else None,
    )
