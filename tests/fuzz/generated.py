"""Programs for fuzzing: elementwise operations and data movement of every kind of element, and heavier ones among them.

What `tests.passes` generates, and steps of dots, convolutions, windows, gathers, scatters, sorts, loops and branches. Sums
are of small whole numbers or of integers, so that their order does not show.
"""

from __future__ import annotations

from compiler.ir.program import Module
from compiler.ir.types import F32, I1, I32, TensorType, TupleType
from tests.passes.test_random_programs import ELEMENT_CHOICES, Generator

_SIZES = (1, 2, 3, 5, 17)
_HEAVY = ("dot", "convolution", "window", "gather", "scatter", "sort", "loop", "branch")


class HeavyGenerator(Generator):
    """Every step may also be one of the heavier operations."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.compare = self._comparator()
        self.adders = {element: self.m.reducer("add", element) for element in (I32, F32)}
        self.largest = self.m.reducer("maximum", I32)

    def _comparator(self) -> str:
        body = self.m.computation("less")
        pair = [body.parameter(I32), body.parameter(I32)]
        body.root(body.op("compare", *pair, comparison_direction="LT", compare_type="SIGNED"))
        return body.name

    def whole(self, *shape: int) -> str:
        """Small whole numbers that depend on an argument: a sum of a few products of them is exact in f32."""
        flat = self.f.iota(I32, *shape, dimension=0) if shape else self.f.splat(2, I32)
        seen = next((v for v in self.values if self.element(v) is I32 and self.shape(v) == shape), None)
        mixed = flat if seen is None else self.f.op("xor", flat, seen)
        return self.f.op("and", mixed, self.f.splat(7, I32, *shape))

    def floats(self, *shape: int) -> str:
        return self.f.add("convert", TensorType(F32, shape), self.whole(*shape))

    def heavy(self) -> None:
        made = getattr(self, f"_{self.chance.choice(_HEAVY)}")()
        self.values.append(made)

    def _size(self) -> int:
        return self.chance.choice(_SIZES)

    def _dot(self) -> str:
        batch, m, k, n = (self._size() for _ in range(4))
        return self.f.op(
            "dot_general",
            self.floats(batch, m, k),
            self.floats(batch, k, n),
            lhs_batching_dimensions=(0,),
            rhs_batching_dimensions=(0,),
            lhs_contracting_dimensions=(2,),
            rhs_contracting_dimensions=(1,),
            precision_config=("DEFAULT", "DEFAULT"),
        )

    def _convolution(self) -> str:
        channels, features = self.chance.choice((1, 2, 4)), self.chance.choice((1, 3, 4))
        stride, dilation = self.chance.choice((1, 2)), self.chance.choice((1, 2))
        return self.f.op(
            "convolution",
            self.floats(2, 7, 6, channels),
            self.floats(3, 2, channels, features),
            window_strides=(stride, 1),
            padding=((1, 1), (0, self.chance.choice((0, 1)))),
            lhs_dilation=(1, self.chance.choice((1, 2))),
            rhs_dilation=(1, dilation),
            window_reversal=(self.chance.random() < 0.3, False),
            input_batch_dimension=0,
            input_feature_dimension=3,
            input_spatial_dimensions=(1, 2),
            kernel_input_feature_dimension=2,
            kernel_output_feature_dimension=3,
            kernel_spatial_dimensions=(0, 1),
            output_batch_dimension=0,
            output_feature_dimension=3,
            output_spatial_dimensions=(1, 2),
            feature_group_count=1,
            batch_group_count=1,
            precision_config=("DEFAULT", "DEFAULT"),
        )

    def _window(self) -> str:
        x, step = self.whole(6, 9), self.chance.choice((1, 2))
        return self.f.op(
            "reduce_window",
            x,
            self.f.splat(0, I32),
            called=(self.chance.choice((self.adders[I32], self.largest)),),
            window_dimensions=(2, 3),
            window_strides=(1, step),
            base_dilations=(1, self.chance.choice((1, 2))),
            window_dilations=(self.chance.choice((1, 2)), 1),
            padding=((0, 1), (1, 1)),
        )

    def _gather(self) -> str:
        rows = self._size()
        return self.f.op(
            "gather",
            self.floats(rows, 4),
            self.whole(6, 1),
            offset_dims=(1,),
            collapsed_slice_dims=(0,),
            operand_batching_dims=(),
            start_indices_batching_dims=(),
            start_index_map=(0,),
            index_vector_dim=1,
            slice_sizes=(1, self.chance.randint(1, 4)),
            indices_are_sorted=False,
        )

    def _scatter(self) -> str:
        return self.f.op(
            "scatter",
            self.whole(5, 4),
            self.whole(6, 1),
            self.whole(6, 4),
            called=(self.adders[I32],),
            update_window_dims=(1,),
            inserted_window_dims=(0,),
            input_batching_dims=(),
            scatter_indices_batching_dims=(),
            scatter_dims_to_operand_dims=(0,),
            index_vector_dim=1,
            indices_are_sorted=False,
            unique_indices=False,
        )

    def _sort(self) -> str:
        shape = (self._size(), self._size())
        dimension = self.chance.randrange(2)
        return self.f.op(
            "sort", self.whole(*shape), called=(self.compare,), dimension=dimension, is_stable=True
        )

    def _loop(self) -> str:
        """Doubles and adds, so many times as the first counter says."""
        kind = TupleType((TensorType(I32, ()), TensorType(I32, (5, 3))))
        number = self.m.next_number()
        condition = self.m.computation(f"condition.{number}")
        state = condition.parameter_of(kind)
        limit = condition.constant(self.chance.randint(0, 4), I32)
        pair = [condition.element(state, 0), limit]
        condition.root(condition.op("compare", *pair, comparison_direction="LT", compare_type="SIGNED"))
        body = self.m.computation(f"body.{number}")
        state = body.parameter_of(kind)
        count, x = body.element(state, 0), body.element(state, 1)
        turned = body.op("reverse", x, dimensions=(self.chance.randrange(2),))
        body.root(body.op("add", count, body.constant(1, I32)), body.op("add", turned, x))
        start = self.f.op("tuple", self.f.constant(0, I32), self.whole(5, 3))
        made = self.f.op("while", start, called=(condition.name, body.name))
        return self.f.element(made, 1)

    def _branch(self) -> str:
        kind = TupleType((TensorType(I32, (4,)),))
        number, called = self.m.next_number(), []
        for index, opcode in enumerate(("negate", "abs")):
            body = self.m.computation(f"branch_{index}.{number}")
            body.root(body.op(opcode, body.element(body.parameter_of(kind), 0)))
            called.append(body.name)
        seen = [v for v in self.values if self.element(v) is I1 and not self.shape(v)]
        chosen = seen[-1] if seen else self.f.splat(self.chance.random() < 0.5, I1)
        operands = [self.f.op("tuple", self.whole(4)) for _ in called]
        return self.f.op("if", chosen, *operands, called=tuple(called))


def generated_program(seed: int, steps: int = 18) -> Module:
    """A program of so many steps, a third of them heavy."""
    g = HeavyGenerator(seed)
    for _ in range(3):
        shape = tuple(g.chance.choice((1, 2, 3)) for _ in range(g.chance.randint(0, 3)))
        g.values.append(g.f.parameter(g.chance.choice(ELEMENT_CHOICES), *shape))
    for _ in range(steps):
        if g.chance.random() < 0.3:
            g.heavy()
        else:
            g.step()
    g.f.root(*dict.fromkeys(g.values[-8:]))
    return g.m.build()
