"""Types of values: element types, tensors, tuples, tokens.

The bottom of the flow: everything else in the compiler speaks of values through these types. Names of element
types are those of the StableHLO specification ("Types"); `hlo_name` gives XLA's spelling. Types are values:
equal types compare equal and hash equal, and the constructors intern the common ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

DYNAMIC = -1
"""Size of a dimension that is not known statically (`?`)."""


@dataclass(frozen=True, eq=False, slots=True)
class ElementType:
    """One scalar type. Instances are unique (compare by identity); get them by `element(name)`."""

    name: str
    """StableHLO spelling, e.g. `ui32`, `f8E4M3FN`, `complex<f32>`."""
    hlo_name: str
    """XLA's spelling, e.g. `u32`, `f8e4m3fn`, `c64`."""
    kind: str
    """One of `bool`, `int`, `uint`, `float`, `complex`."""
    bits: int
    dtype: np.dtype[Any]
    """NumPy's type; sub-byte types take one byte an element."""

    def __repr__(self) -> str:
        return self.name

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned integer (not boolean)."""
        return self.kind in ("int", "uint")

    @property
    def is_float(self) -> bool:
        """Any floating-point type, f4 to f64."""
        return self.kind == "float"

    @property
    def is_complex(self) -> bool:
        """`complex<f32>` or `complex<f64>`."""
        return self.kind == "complex"

    @property
    def storage_bytes(self) -> int:
        """Bytes one element takes in a buffer."""
        return int(self.dtype.itemsize)

    @property
    def real(self) -> ElementType:
        """The type of the real part of a complex type; the type itself otherwise."""
        return {"complex<f32>": F32, "complex<f64>": F64}.get(self.name, self)


def _scalar(name: str, hlo_name: str, kind: str, bits: int, dtype: Any) -> ElementType:
    return ElementType(name, hlo_name, kind, bits, np.dtype(dtype))


_FLOAT8 = ("f8E3M4", "f8E4M3", "f8E4M3FN", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU")


def _small_float(name: str, bits: int) -> ElementType:
    dtype = getattr(ml_dtypes, name.lower().replace(f"f{bits}", f"float{bits}_", 1))
    return _scalar(name, name.lower(), "float", bits, dtype)


def _all_elements() -> dict[str, ElementType]:
    table = [_scalar("i1", "pred", "bool", 1, np.bool_)]
    for bits in (2, 4):
        table.append(_scalar(f"i{bits}", f"s{bits}", "int", bits, getattr(ml_dtypes, f"int{bits}")))
        table.append(_scalar(f"ui{bits}", f"u{bits}", "uint", bits, getattr(ml_dtypes, f"uint{bits}")))
    for bits in (8, 16, 32, 64):
        table.append(_scalar(f"i{bits}", f"s{bits}", "int", bits, f"int{bits}"))
        table.append(_scalar(f"ui{bits}", f"u{bits}", "uint", bits, f"uint{bits}"))
    table += [_small_float("f4E2M1FN", 4), _small_float("f6E2M3FN", 6), _small_float("f6E3M2FN", 6)]
    table += [_small_float(name, 8) for name in _FLOAT8]
    table += [
        _scalar("bf16", "bf16", "float", 16, ml_dtypes.bfloat16),
        _scalar("f16", "f16", "float", 16, np.float16),
        _scalar("f32", "f32", "float", 32, np.float32),
        _scalar("f64", "f64", "float", 64, np.float64),
        _scalar("complex<f32>", "c64", "complex", 64, np.complex64),
        _scalar("complex<f64>", "c128", "complex", 128, np.complex128),
    ]
    return {entry.name: entry for entry in table}


ELEMENTS = _all_elements()
HLO_ELEMENTS = {entry.hlo_name: entry for entry in ELEMENTS.values()}
_BY_DTYPE = {entry.dtype: entry for entry in ELEMENTS.values()}

I1, I8, I32, I64 = (ELEMENTS[name] for name in ("i1", "i8", "i32", "i64"))
UI8, UI32, UI64 = (ELEMENTS[name] for name in ("ui8", "ui32", "ui64"))
BF16, F16, F32, F64 = (ELEMENTS[name] for name in ("bf16", "f16", "f32", "f64"))
C64, C128 = ELEMENTS["complex<f32>"], ELEMENTS["complex<f64>"]


def element(name: str) -> ElementType:
    """Returns the element type of a StableHLO name. Raises KeyError for an unknown one."""
    return ELEMENTS[name]


def element_of_dtype(dtype: np.dtype[Any]) -> ElementType:
    """Returns the element type that a NumPy dtype holds. Raises KeyError for others (`object`, `str`, …)."""
    return _BY_DTYPE[np.dtype(dtype)]


@dataclass(frozen=True, slots=True)
class QuantizedType:
    """`!quant.uniform<storage:expressed, scales:zero_points>` (specification, "Quantization").

    `axis` is the quantised dimension of per-axis types and None for per-tensor ones, which hold one scale.
    """

    storage: ElementType
    expressed: ElementType
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    storage_min: int
    storage_max: int
    axis: int | None = None

    @property
    def name(self) -> str:
        """MLIR's spelling of the type."""
        limits = f"<{self.storage_min}:{self.storage_max}>"
        axis = "" if self.axis is None else f":{self.axis}"
        pairs = [
            f"{scale!r}:{zero}" if zero else f"{scale!r}"
            for scale, zero in zip(self.scales, self.zero_points, strict=True)
        ]
        inner = pairs[0] if self.axis is None else "{" + ", ".join(pairs) + "}"
        storage = self.storage.name.replace("ui", "u")
        return f"!quant.uniform<{storage}{limits}:{self.expressed.name}{axis}, {inner}>"

    def __repr__(self) -> str:
        return self.name

    kind = "quantized"
    is_integer = False
    is_float = False
    is_complex = False

    @property
    def bits(self) -> int:
        """Bits of the storage type."""
        return self.storage.bits

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the stored integers."""
        return self.storage.dtype

    @property
    def storage_bytes(self) -> int:
        """Bytes one element takes in a buffer."""
        return self.storage.storage_bytes


AnyElement = ElementType | QuantizedType


@dataclass(frozen=True, slots=True)
class Layout:
    """Physical order of a tensor's dimensions, as in HLO: the fastest-varying dimension first."""

    minor_to_major: tuple[int, ...]
    suffix: str = ""
    """What HLO text may carry besides, kept verbatim for printing: tiles, memory space, element size."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """A ranked tensor. `layout` None means row-major; `bounds` holds upper bounds of dynamic dimensions."""

    element: AnyElement
    shape: tuple[int, ...]
    layout: Layout | None = None
    bounds: tuple[int, ...] | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """True when every size is known."""
        return DYNAMIC not in self.shape

    @property
    def size(self) -> int:
        """Number of elements; only of static types."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of a dense buffer of this type."""
        return self.size * self.element.storage_bytes

    @property
    def minor_to_major(self) -> tuple[int, ...]:
        """The layout with the default (row-major) filled in."""
        return self.layout.minor_to_major if self.layout else tuple(range(self.rank - 1, -1, -1))

    def with_element(self, new: AnyElement) -> TensorType:
        """The same shape and layout, other elements."""
        return TensorType(new, self.shape, self.layout, self.bounds)

    def with_shape(self, shape: tuple[int, ...]) -> TensorType:
        """The same elements in another shape, row-major."""
        return TensorType(self.element, shape)

    def with_layout(self, layout: Layout | None) -> TensorType:
        """The same logical tensor stored in another order."""
        if layout == Layout(tuple(range(self.rank - 1, -1, -1))):
            layout = None
        return TensorType(self.element, self.shape, layout, self.bounds)

    def __str__(self) -> str:
        dims = "".join(f"{'?' if size == DYNAMIC else size}x" for size in self.shape)
        bounds = ""
        if self.bounds:
            inner = ", ".join("?" if b == DYNAMIC else str(b) for b in self.bounds)
            bounds = f", #stablehlo.bounds<{inner}>"
        return f"tensor<{dims}{self.element.name}{bounds}>"


@dataclass(frozen=True, slots=True)
class TupleType:
    """Several values as one, taken apart by `get_tuple_element`."""

    elements: tuple[Type, ...]

    @property
    def bytes(self) -> int:
        """Bytes of all elements together."""
        return sum(entry.bytes for entry in self.elements)

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.elements))}>"


@dataclass(frozen=True, slots=True)
class FutureType(TupleType):
    """Values that an asynchronous operation will have computed: a tuple that only `async_done` takes apart."""

    def __str__(self) -> str:
        return f"!stablehlo.future<{', '.join(map(str, self.elements))}>"


@dataclass(frozen=True, slots=True)
class BufferType(TensorType):
    """A tensor in a buffer of its own (`memref`), passed by reference; only interfaces have it."""

    def __str__(self) -> str:
        return f"memref<{TensorType.__str__(self)[len('tensor<') :]}"


@dataclass(frozen=True, slots=True)
class TokenType:
    """Orders side effects; holds no data."""

    @property
    def bytes(self) -> int:
        """Always 0."""
        return 0

    def __str__(self) -> str:
        return "!stablehlo.token"


Type = TensorType | TupleType | TokenType
TOKEN = TokenType()


@lru_cache(maxsize=65536)
def tensor(element_type: AnyElement, *shape: int) -> TensorType:
    """Interned row-major tensor type: `tensor(F32, 2, 3)`."""
    return TensorType(element_type, shape)


def same_value_type(left: Type, right: Type) -> bool:
    """True when two types describe the same logical value, whatever their layouts."""
    if left is right:
        return True
    if isinstance(left, TensorType) and isinstance(right, TensorType):
        return left.element == right.element and left.shape == right.shape
    if isinstance(left, TupleType) and isinstance(right, TupleType):
        if len(left.elements) != len(right.elements):
            return False
        return all(same_value_type(a, b) for a, b in zip(left.elements, right.elements, strict=True))
    return left == right
