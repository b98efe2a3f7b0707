"""Makes the right operand of a convolution whose images lie feature by feature (NCHW).

There neighbours in memory are neighbours in the image, so the product is done transposed: output features
are its rows, output positions its columns, and panels of input positions are made where other products pack
their right operand.
"""

from __future__ import annotations

from compiler.backends.cpu.contraction.conversion import storage_type, widen
from compiler.backends.cpu.contraction.convolution_spec import ConvolutionSpec
from compiler.backends.cpu.contraction.spec import ELEMENT_BYTES
from compiler.backends.cpu.kernel_code import SharedFunction
from compiler.backends.cpu.target import Target
from compiler.backends.cpu.text_builder import TextBuilder, llvm_type

_PARAMETERS = (("ptr", "to"), ("ptr", "lhs"), ("i64", "group"), ("i64", "first"), ("i64", "columns"))


def emit_image_panel(
    name: str,
    spec: ConvolutionSpec,
    target: Target,
    feature_step: int,
    tap_steps: tuple[int, ...],
    width: int,
) -> SharedFunction:
    """``void (ptr to, ptr lhs, i64 group, i64 first, i64 columns)``: one panel.

    Columns are the output positions from ``first`` on, counted row-major with the batch first; rows are the
    taps and features of the sums.

    Args:
        name: the function's name.
        spec: the convolution.
        target: the processor.
        feature_step: how many rows lie between two input features of the same tap.
        tap_steps: how many rows lie between neighbouring taps, for each spatial dimension.
        width: elements in a row of the panel.
    """
    b = TextBuilder(name, _PARAMETERS, linkage="internal", attributes="nounwind noinline")
    writer = _PanelWriter(b, spec, target, feature_step, tap_steps, width)
    image = b.gep("%lhs", b.mul(b.mul("%group", spec.group_lhs_stride), spec.lhs.element_bytes))
    # A stretch of positions that differ in the innermost dimension only.
    head, body, done = b.label("stretch"), b.label("body"), b.label("done")
    before = b.block
    b.branch(head)
    b.place(head)
    column, following = b.fresh("column"), b.fresh("column.next")
    latch = b.label("latch")
    b.emit(f"{column} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]")
    b.branch_if(b.compare("slt", column, "%columns"), body, done)
    b.place(body)
    position, corner = b.add("%first", column), []
    inner = b.rem(position, spec.output_spatial[-1])
    for size, stride, low in reversed(
        list(zip(spec.output_spatial, spec.strides, spec.padding_low, strict=True))
    ):
        corner.append(b.sub(b.mul(b.rem(position, size), stride), low, "corner"))
        position = b.div(position, size)
    corner.reverse()
    count = b.minimum(b.sub(spec.output_spatial[-1], inner), b.sub("%columns", column))
    base = b.gep(image, b.mul(position, spec.lhs.outer_stride * spec.lhs.element_bytes))
    writer.emit(base, b.gep("%to", b.mul(column, ELEMENT_BYTES[spec.accumulate])), corner, count)
    b.branch(latch)
    b.place(latch)
    b.emit(f"{following} = add i64 {column}, {count}")
    b.branch(head)
    b.place(done)
    b.ret()
    return SharedFunction(name, b.text(), tuple(sorted(b.declarations)))


class _PanelWriter:
    """Writes a stretch of columns of a panel, a vector of them at a time where the input allows it."""

    def __init__(
        self,
        b: TextBuilder,
        spec: ConvolutionSpec,
        target: Target,
        feature_step: int,
        tap_steps: tuple[int, ...],
        width: int,
    ) -> None:
        self.b, self.spec = b, spec
        self.size = ELEMENT_BYTES[spec.accumulate]
        self.line = width * self.size
        self.feature_step, self.tap_steps = feature_step, tap_steps
        dense = spec.strides[-1] == spec.lhs_dilation[-1] == spec.lhs.spatial_strides[-1] == 1
        vectors = dense and target.has_masked_memory and spec.lhs.element == spec.accumulate
        self.lanes = target.lanes(8 * self.size) if vectors else 1

    def emit(self, base: str, to: str, corner: list[str], count: str) -> None:
        """`count` columns from `to` on; `corner` is the input position of the first one's first tap."""
        b = self.b
        with b.loop(0, count, self.lanes, "part") as part:
            left = b.sub(count, part)
            mask = b.lane_mask(left, self.lanes) if self.lanes > 1 else ""
            start = b.add(corner[-1], b.mul(part, self.spec.strides[-1]))
            place = b.gep(to, b.mul(part, self.size))
            self._taps(0, base, place, [*corner[:-1], start], mask, "true")

    def _taps(self, axis: int, base: str, to: str, corner: list[str], mask: str, inside: str) -> None:
        """Loops over the taps; an address outside the input is computed, but never used."""
        b, spec = self.b, self.spec
        step = spec.lhs.spatial_strides[axis] * spec.lhs.element_bytes
        extent = spec.input_spatial[axis]
        with b.loop(0, spec.kernel_spatial[axis], hint="tap") as tap:
            at = b.add(corner[axis], b.mul(tap, spec.rhs_dilation[axis]))
            line = b.gep(to, b.mul(tap, self.tap_steps[axis] * self.line))
            if axis == len(spec.kernel_spatial) - 1 and self.lanes > 1:
                address = b.op(f"getelementptr i8, ptr {base}, i64 {b.mul(at, step)}")
                self._features(address, line, mask, self._lanes_inside(at, extent, mask, inside))
            else:
                self._tap(axis, base, line, at, corner, mask, inside)

    def _tap(
        self, axis: int, base: str, line: str, at: str, corner: list[str], mask: str, inside: str
    ) -> None:
        """One tap whose position is the same for all lanes."""
        b, spec = self.b, self.spec
        step = spec.lhs.spatial_strides[axis] * spec.lhs.element_bytes
        dilation, extent = spec.lhs_dilation[axis], spec.input_spatial[axis]
        valid = b.compare("ult", at, max(0, (extent - 1) * dilation + 1))
        if dilation != 1:
            valid = b.op(f"and i1 {valid}, {b.compare('eq', b.rem(at, dilation), 0)}")
        valid = b.op(f"and i1 {valid}, {inside}")
        # Where it is outside, the position of the first element stands in for it.
        index = b.select(valid, b.div(at, dilation), 0)
        address = b.op(f"getelementptr i8, ptr {base}, i64 {b.mul(index, step)}")
        if axis == len(spec.kernel_spatial) - 1:
            self._scalar_features(address, line, valid)
        else:
            self._taps(axis + 1, address, line, corner, mask, valid)

    def _lanes_inside(self, at: str, extent: int, mask: str, inside: str) -> str:
        """Lanes whose input position, `at` and following, exists."""
        b, lanes = self.b, self.lanes
        vector, flags = f"<{lanes} x i64>", f"<{lanes} x i1>"
        numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
        places = b.op(f"add {vector} {b.splat('i64', at, lanes)}, <{numbers}>")
        valid = b.op(f"icmp ult {vector} {places}, {b.splat('i64', extent, lanes)}")
        valid = b.op(f"and {flags} {valid}, {mask}")
        return b.op(f"and {flags} {valid}, {b.splat('i1', inside, lanes)}")

    def _features(self, address: str, to: str, mask: str, valid: str) -> None:
        b, scalar, size = self.b, llvm_type(self.spec.accumulate), self.size
        step = self.spec.lhs.feature_stride * size
        with b.loop(0, self.spec.group_inputs, hint="feature") as feature:
            origin = b.op(f"getelementptr i8, ptr {address}, i64 {b.mul(feature, step)}")
            value = b.masked_load(scalar, self.lanes, origin, valid, size)
            place = b.gep(to, b.mul(feature, self.feature_step * self.line))
            b.masked_store(scalar, self.lanes, value, place, mask, size)

    def _scalar_features(self, address: str, to: str, valid: str) -> None:
        b, lhs, kind = self.b, self.spec.lhs, llvm_type(self.spec.accumulate)
        with b.loop(0, self.spec.group_inputs, hint="feature") as feature:
            place = b.gep(to, b.mul(feature, self.feature_step * self.line))
            b.store(kind, "0.0", place, self.size)
            with b.when(valid):
                origin = b.gep(address, b.mul(feature, lhs.feature_stride * lhs.element_bytes))
                value = b.load(storage_type(lhs.element, 1), origin, lhs.element_bytes)
                b.store(kind, widen(b, value, lhs.element, self.spec.accumulate, 1), place, self.size)
