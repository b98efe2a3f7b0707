"""Examples for the rules about shapes: for each rule programs on which it fires, and programs on which none may."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler.ir.types import BF16, ELEMENTS, F16, F32, F64, I1, I32, TensorType
from tests.builder import ComputationBuilder

B = ComputationBuilder
Example = Callable[[B], str]
EXAMPLES: dict[str, list[Example]] = {}
UI32, I8 = ELEMENTS["ui32"], ELEMENTS["i8"]


def example(rule: str) -> Callable[[Example], Example]:
    def note(function: Example) -> Example:
        EXAMPLES.setdefault(rule, []).append(function)
        return function

    return note


def spread(f: B, x: str, shape: tuple[int, ...], *dims: int) -> str:
    return f.shaped("broadcast_in_dim", shape, x, broadcast_dimensions=dims)


def cut(
    f: B, x: str, starts: tuple[int, ...], limits: tuple[int, ...], strides: tuple[int, ...] | None = None
) -> str:
    steps = strides or (1,) * len(starts)
    return f.op("slice", x, start_indices=starts, limit_indices=limits, strides=steps)


def pad(
    f: B, x: str, value: str, low: tuple[int, ...], high: tuple[int, ...], gaps: tuple[int, ...] | None = None
) -> str:
    none = (0,) * len(low)
    return f.op("pad", x, value, edge_padding_low=low, edge_padding_high=high, interior_padding=gaps or none)


def fold(f: B, x: str, dims: tuple[int, ...], opcode: str = "add", init: object = 0) -> str:
    element = f.instructions[x].tensor.element
    body = f.module.reducer(opcode, element)
    return f.op("reduce", x, f.constant(init, element), called=(body,), dimensions=dims)


def dot(f: B, x: str, y: str, batch: tuple, contract: tuple) -> str:
    shape = product_shape(f, x, y, batch, contract)
    return f.add(
        "dot_general",
        TensorType(f.instructions[x].tensor.element, shape),
        x,
        y,
        lhs_batching_dimensions=batch[0],
        rhs_batching_dimensions=batch[1],
        lhs_contracting_dimensions=contract[0],
        rhs_contracting_dimensions=contract[1],
        precision_config=("DEFAULT", "HIGHEST"),
    )


def product_shape(f: B, x: str, y: str, batch: tuple, contract: tuple) -> tuple[int, ...]:
    left, right = f.instructions[x].tensor.shape, f.instructions[y].tensor.shape
    free = [s for d, s in enumerate(left) if d not in batch[0] + contract[0]]
    other = [s for d, s in enumerate(right) if d not in batch[1] + contract[1]]
    return (*(left[d] for d in batch[0]), *free, *other)


example("broadcast-nothing")(lambda f: spread(f, f.parameter(F32, 2, 3), (2, 3), 0, 1))
example("broadcast-nothing")(lambda f: spread(f, f.parameter(F32, 3, 3), (3, 3), 1, 0))
example("broadcast-as-reshape")(lambda f: spread(f, f.parameter(F32, 2, 3), (2, 1, 3, 1), 0, 2))
example("broadcast-as-reshape")(lambda f: spread(f, f.parameter(F32, 1, 3), (3, 1), 1, 0))
example("broadcast-of-broadcast")(
    lambda f: spread(f, spread(f, f.parameter(F32, 1, 3), (2, 3), 0, 1), (4, 3, 2), 2, 1)
)
example("broadcast-of-reshape")(
    lambda f: spread(f, f.shaped("reshape", (2, 1, 3), f.parameter(F32, 2, 3)), (2, 4, 3), 0, 1, 2)
)
example("reshape-nothing")(lambda f: f.shaped("reshape", (2, 3), f.parameter(F32, 2, 3)))
example("reshape-of-reshape")(
    lambda f: f.shaped("reshape", (3, 2), f.shaped("reshape", (6,), f.parameter(F32, 2, 3)))
)
example("reshape-of-broadcast")(lambda f: f.shaped("reshape", (3, 4), spread(f, f.parameter(F32), (2, 6))))
example("reshape-of-broadcast")(
    lambda f: f.shaped("reshape", (1, 2, 3), spread(f, f.parameter(F32, 3), (2, 1, 3), 2))
)
example("transpose-nothing")(lambda f: f.op("transpose", f.parameter(F32, 2, 3), permutation=(0, 1)))
example("transpose-of-transpose")(
    lambda f: f.op(
        "transpose",
        f.op("transpose", f.parameter(F32, 2, 3, 4), permutation=(1, 2, 0)),
        permutation=(0, 2, 1),
    )
)
example("transpose-as-reshape")(lambda f: f.op("transpose", f.parameter(F32, 2, 1, 3), permutation=(1, 0, 2)))
example("transpose-of-broadcast")(
    lambda f: f.op("transpose", spread(f, f.parameter(F32, 3), (2, 3), 1), permutation=(1, 0))
)
example("iota-of-one")(lambda f: f.iota(I32, 4, 1, dimension=1))
example("reverse-of-ones")(lambda f: f.op("reverse", f.parameter(F32, 1, 3), dimensions=(0, 1)))
example("reverse-of-ones")(
    lambda f: f.op("reverse", spread(f, f.parameter(F32, 3), (2, 3), 1), dimensions=(0,))
)
example("reverse-of-reverse")(
    lambda f: f.op("reverse", f.op("reverse", f.parameter(F32, 2, 3), dimensions=(0, 1)), dimensions=(1,))
)
example("reverse-of-reverse")(
    lambda f: f.op("reverse", f.op("reverse", f.parameter(F32, 3), dimensions=(0,)), dimensions=(0,))
)


@example("elementwise-of-broadcasts")
def _(f: B) -> str:
    x, y = f.parameter(F32, 3), f.parameter(F32, 3)
    total = f.op("add", spread(f, x, (2, 3), 1), spread(f, y, (2, 3), 1))
    return f.op("multiply", f.op("exponential", total), f.splat(2, F32, 2, 3))


@example("elementwise-of-broadcasts")
def _(f: B) -> str:
    x = spread(f, f.parameter(I32, 3), (3, 5), 0)
    return f.op("compare", x, f.splat(2, I32, 3, 5), comparison_direction="LT", compare_type="SIGNED")


example("slice-everything")(lambda f: cut(f, f.parameter(F32, 2, 3), (0, 0), (2, 3)))
example("slice-of-slice")(
    lambda f: cut(f, cut(f, f.parameter(F32, 20, 5), (2, 0), (19, 5), (3, 2)), (1, 1), (6, 3), (2, 1))
)
example("slice-of-slice")(lambda f: cut(f, cut(f, f.parameter(F32, 20), (2,), (19,), (3,)), (2,), (2,)))
example("slice-of-broadcast")(
    lambda f: cut(f, spread(f, f.parameter(F32, 1, 6), (4, 6), 0, 1), (1, 2), (3, 5), (1, 2))
)
example("slice-of-pad")(
    lambda f: cut(f, pad(f, f.parameter(F32, 6), f.parameter(F32), (2,), (3,)), (3,), (8,), (2,))
)
example("slice-of-iota")(lambda f: cut(f, f.iota(I32, 5, 6, dimension=1), (1, 0), (4, 3), (2, 1)))
example("pad-nothing")(lambda f: pad(f, f.parameter(F32, 2, 1), f.parameter(F32), (0, 0), (0, 0), (0, 3)))
example("concatenate-one")(lambda f: f.op("concatenate", f.parameter(F32, 2), dimension=0))
example("concatenate-empty")(
    lambda f: f.op("concatenate", f.parameter(F32, 2), f.parameter(F32, 0), dimension=0)
)


@example("slice-of-concatenate")
def _(f: B) -> str:
    joined = f.op("concatenate", f.parameter(F32, 2, 3), f.parameter(F32, 2, 4), dimension=1)
    return cut(f, joined, (0, 4), (2, 7), (1, 2))


@example("pad-of-pad")
def _(f: B) -> str:
    value = f.parameter(F32)
    return pad(f, pad(f, f.parameter(F32, 3), value, (1,), (2,), (1,)), value, (0,), (4,))


@example("concatenate-of-concatenate")
def _(f: B) -> str:
    inner = f.op("concatenate", f.parameter(F32, 2), f.parameter(F32, 3), dimension=0)
    return f.op("concatenate", f.parameter(F32, 1), inner, dimension=0)


@example("concatenate-of-slices")
def _(f: B) -> str:
    x, y = f.parameter(F32, 6, 2), f.parameter(F32, 1, 2)
    return f.op("concatenate", cut(f, x, (0, 0), (2, 2)), cut(f, x, (2, 0), (5, 2)), y, dimension=0)


@example("concatenate-of-copies")
def _(f: B) -> str:
    x = f.parameter(F32, 3)
    return f.op("concatenate", spread(f, x, (2, 3), 1), spread(f, x, (4, 3), 1), dimension=0)


def at(f: B, *places: int) -> list[str]:
    return [f.constant(place, I32) for place in places]


example("dynamic-slice-everything")(
    lambda f: f.op("dynamic_slice", f.parameter(F32, 4), f.parameter(I32), slice_sizes=(4,))
)
example("dynamic-slice-known")(
    lambda f: f.op("dynamic_slice", f.parameter(F32, 4, 5), *at(f, -3, 4), slice_sizes=(2, 3))
)
example("update-everything")(
    lambda f: f.op("dynamic_update_slice", f.parameter(F32, 4), f.parameter(F32, 4), f.parameter(I32))
)
example("update-nothing")(
    lambda f: f.op("dynamic_update_slice", f.parameter(F32, 4), f.parameter(F32, 0), f.parameter(I32))
)


@example("dynamic-slice-of-update")
def _(f: B) -> str:
    place = f.parameter(I32)
    updated = f.op("dynamic_update_slice", f.parameter(F32, 6), f.parameter(F32, 2), place)
    return f.op("dynamic_slice", updated, place, slice_sizes=(2,))


@example("update-twice")
def _(f: B) -> str:
    place = f.parameter(I32)
    once = f.op("dynamic_update_slice", f.parameter(F32, 6), f.parameter(F32, 2), place)
    return f.op("dynamic_update_slice", once, f.parameter(F32, 2), place)


@example("update-by-own-slice")
def _(f: B) -> str:
    x, place = f.parameter(F32, 6), f.parameter(I32)
    return f.op("dynamic_update_slice", x, f.op("dynamic_slice", x, place, slice_sizes=(2,)), place)


@example("gather-of-one-window")
def _(f: B) -> str:
    return f.op(
        "gather",
        f.parameter(F32, 5, 4, 3),
        f.parameter(I32, 1, 2),
        offset_dims=(1, 2),
        collapsed_slice_dims=(1,),
        operand_batching_dims=(),
        start_indices_batching_dims=(),
        start_index_map=(1, 0),
        index_vector_dim=1,
        slice_sizes=(2, 1, 3),
        indices_are_sorted=False,
    )


def converted(f: B, x: str, *elements: object) -> str:
    for element in elements:
        x = f.add("convert", TensorType(element, f.instructions[x].tensor.shape), x)
    return x


example("convert-nothing")(lambda f: converted(f, f.parameter(F32, 9), F32))
for chain in (
    (BF16, F32, BF16),
    (F16, F32, F64),
    (I8, I32, F32),
    (I1, F32, I32),
    (I8, F32, F64),
    (UI32, F64, F32),
    (F32, F64, I8),
):
    example("convert-of-widening")(lambda f, chain=chain: converted(f, f.parameter(chain[0], 25), *chain[1:]))
for direction, value in (("NE", 0), ("EQ", 0), ("EQ", 1), ("NE", 1)):
    example("compare-converted-truth")(
        lambda f, direction=direction, value=value: f.op(
            "compare",
            converted(f, f.parameter(I1, 9), I32),
            f.splat(value, I32, 9),
            comparison_direction=direction,
            compare_type="SIGNED",
        )
    )


def cast(f: B, x: str, element: object, *shape: int) -> str:
    return f.add("bitcast_convert", TensorType(element, shape), x)


example("bitcast-convert-nothing")(lambda f: cast(f, f.parameter(F32, 3), F32, 3))
example("bitcast-convert-twice")(lambda f: cast(f, cast(f, f.parameter(F32, 3), I32, 3), UI32, 3))
example("bitcast-convert-twice")(lambda f: cast(f, cast(f, f.parameter(I32, 3), I8, 3, 4), I32, 3))
example("reduce-precision-to-own")(
    lambda f: f.op("reduce_precision", f.parameter(F32, 40), exponent_bits=8, mantissa_bits=23)
)
example("reduce-precision-to-own")(
    lambda f: f.op("reduce_precision", f.parameter(BF16, 40), exponent_bits=8, mantissa_bits=7)
)


@example("reduce-precision-twice")
def _(f: B) -> str:
    once = f.op("reduce_precision", f.parameter(F32, 40), exponent_bits=5, mantissa_bits=10)
    return f.op("reduce_precision", once, exponent_bits=5, mantissa_bits=10)


example("divide-unsigned-by-power-of-two")(
    lambda f: f.op("divide", f.parameter(UI32, 30), f.splat(8, UI32, 30))
)
example("remainder-unsigned-of-power-of-two")(
    lambda f: f.op("remainder", f.parameter(UI32, 30), f.splat(16, UI32, 30))
)
example("shift-by-everything")(lambda f: f.op("shift_left", f.parameter(I32, 30), f.splat(32, I32, 30)))
example("shift-by-everything")(
    lambda f: f.op("shift_right_logical", f.parameter(I32, 30), f.splat(-1, I32, 30))
)
example("constant-to-the-right")(lambda f: f.op("add", f.splat(2, F32, 9), f.parameter(F32, 9)))
example("constant-to-the-right")(
    lambda f: f.op(
        "compare", f.splat(1, F32, 40), f.parameter(F32, 40), comparison_direction="LT", compare_type="FLOAT"
    )
)
for element, direction in ((I32, "LT"), (I32, "GE"), (F32, "EQ"), (F32, "NE")):
    example("not-of-compare")(
        lambda f, element=element, direction=direction: f.op(
            "not",
            f.op(
                "compare",
                f.parameter(element, 40),
                f.parameter(element, 40),
                comparison_direction=direction,
                compare_type="FLOAT" if element is F32 else "SIGNED",
            ),
        )
    )

for opcode, element, init in (
    ("add", F32, 0.0),
    ("add", F32, -0.0),
    ("maximum", F32, -np.inf),
    ("multiply", I32, 1),
    ("or", I1, False),
):
    example("reduce-of-ones")(
        lambda f, o=opcode, e=element, i=init: fold(f, f.parameter(e, 7, 1, 5, 1), (1, 3), o, i)
    )
example("reduce-drops-ones")(lambda f: fold(f, f.parameter(F32, 7, 1, 5), (1, 2)))
example("reduce-of-reduce")(lambda f: fold(f, fold(f, f.parameter(I32, 2, 3, 4), (1,)), (1,), init=7))
example("reduce-of-reduce")(
    lambda f: fold(f, fold(f, f.parameter(F32, 4, 3, 4), (0,), "maximum", -np.inf), (0,), "maximum", -np.inf)
)
example("reduce-of-transpose")(
    lambda f: fold(f, f.op("transpose", f.parameter(I32, 2, 3, 4), permutation=(2, 0, 1)), (1,))
)
example("reduce-of-transpose")(
    lambda f: fold(
        f, f.op("transpose", f.parameter(F32, 2, 3, 4), permutation=(2, 1, 0)), (2,), "minimum", np.inf
    )
)
example("reduce-of-reshape")(lambda f: fold(f, f.shaped("reshape", (6, 4), f.parameter(I32, 2, 3, 4)), (0,)))
example("reduce-of-reshape")(
    lambda f: fold(f, f.shaped("reshape", (2, 2, 3, 5), f.parameter(I32, 4, 3, 5)), (0, 1))
)
example("reduce-of-reshape")(
    lambda f: fold(f, f.shaped("reshape", (2, 1, 3, 5), f.parameter(I32, 2, 15)), (2, 3))
)
example("reduce-of-broadcast")(
    lambda f: fold(f, spread(f, f.parameter(I8, 3, 2), (3, 100, 2), 0, 2), (1, 2), init=5)
)
example("reduce-of-broadcast")(
    lambda f: fold(f, spread(f, f.parameter(F32, 3, 2), (3, 100, 2), 0, 2), (1,), "maximum", -np.inf)
)
example("reduce-of-nothing")(lambda f: fold(f, f.parameter(F32, 3, 0), (1,), init=2.5))
example("reduce-by-identity")(lambda f: fold(f, f.splat(0, I32, 3, 4), (1,), init=3))
example("dot-without-sum")(
    lambda f: dot(f, f.parameter(I32, 3, 1, 2), f.parameter(I32, 2, 1, 4), ((2,), (0,)), ((1,), (1,)))
)
example("dot-without-sum")(lambda f: dot(f, f.parameter(I32, 3), f.parameter(I32, 4), ((), ()), ((), ())))


@example("transpose-of-dot")
def _(f: B) -> str:
    product = dot(f, f.parameter(I32, 2, 3, 5), f.parameter(I32, 2, 5, 4, 6), ((0,), (0,)), ((2,), (1,)))
    return f.op("transpose", product, permutation=(0, 2, 3, 1))


KEPT: dict[str, Example] = {
    "a sum of float sums": lambda f: fold(f, fold(f, f.parameter(F32, 2, 3, 4), (1,)), (1,)),
    "a sum of sums that begin at 7": lambda f: fold(
        f, fold(f, f.parameter(I32, 2, 3, 4), (1,), init=7), (1,)
    ),
    "a float sum of copies": lambda f: fold(f, spread(f, f.parameter(F32, 3), (3, 10), 0), (1,)),
    "a float through a narrower one": lambda f: converted(f, f.parameter(F32, 30), BF16, F32),
    "an integer through a float to a narrower integer": lambda f: converted(f, f.parameter(I32, 30), F64, I8),
    "a large integer through f32": lambda f: converted(f, f.parameter(I32, 30), F32, F64),
    "an interior pad cut": lambda f: cut(
        f, pad(f, f.parameter(F32, 3), f.parameter(F32), (1,), (1,), (1,)), (1,), (4,)
    ),
    "float division by three": lambda f: f.op("divide", f.parameter(F32, 9), f.splat(3, F32, 9)),
    "signed division by a power of two": lambda f: f.op("divide", f.parameter(I32, 9), f.splat(8, I32, 9)),
    "a float comparison negated": lambda f: f.op(
        "not",
        f.op(
            "compare",
            f.parameter(F32, 9),
            f.parameter(F32, 9),
            comparison_direction="LT",
            compare_type="FLOAT",
        ),
    ),
    "a division by a tiny power of two": lambda f: f.op(
        "divide", f.parameter(F32, 9), f.splat(2.0**-140, F32, 9)
    ),
    "a partial group of a reshape": lambda f: fold(
        f, f.shaped("reshape", (2, 3, 4), f.parameter(I32, 6, 4)), (1,)
    ),
    "slices that do not touch": lambda f: f.op(
        "concatenate",
        cut(f, x := f.parameter(F32, 6), (0,), (2,)),
        cut(f, x, (3,), (5,)),
        dimension=0,
    ),
}
