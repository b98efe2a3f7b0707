"""Makes the left operand of a convolution's product: a row an output position, a column a tap and feature.

Only the rows a block of tiles needs exist at a time, in scratch memory that stays in the cache. Positions
outside the input become zeros here, so the product itself knows nothing of padding or dilation.
"""

from __future__ import annotations

from compiler.backends.cpu.contraction.convolution_spec import ConvolutionSpec
from compiler.backends.cpu.contraction.copying import emit_copy, emit_fill, memory_order
from compiler.backends.cpu.contraction.spec import ELEMENT_BYTES
from compiler.backends.cpu.kernel_code import SharedFunction
from compiler.backends.cpu.target import Target
from compiler.backends.cpu.text_builder import TextBuilder

_PARAMETERS = (
    ("ptr", "to"),
    ("i64", "to_stride"),
    ("ptr", "lhs"),
    ("i64", "group"),
    ("i64", "first"),
    ("i64", "rows"),
)


def emit_image_rows(name: str, spec: ConvolutionSpec, target: Target) -> SharedFunction:
    """``void (ptr to, i64 to_stride, ptr lhs, i64 group, i64 first, i64 rows)``.

    Writes rows ``first`` to ``first + rows`` of a group's left operand, ``to_stride`` bytes apart. Rows
    count output positions row-major, the batch first; columns count taps row-major, then the group's input
    features.
    """
    b = TextBuilder(name, _PARAMETERS, linkage="internal", attributes="nounwind noinline")
    lanes = target.lanes(8 * ELEMENT_BYTES[spec.accumulate])
    order = memory_order(0, spec.lhs.feature_stride)
    copy = emit_copy(spec.lhs.element, spec.accumulate, order, lanes, masked=target.has_masked_memory)
    fill = emit_fill(spec.accumulate, lanes)
    image = b.gep("%lhs", b.mul(b.mul("%group", spec.group_lhs_stride), spec.lhs.element_bytes))
    with b.loop(0, "%rows", hint="row") as row:
        position = b.add("%first", row)
        corner = []
        for size, stride, low in reversed(
            list(zip(spec.output_spatial, spec.strides, spec.padding_low, strict=True))
        ):
            corner.append(b.sub(b.mul(b.rem(position, size), stride), low, "corner"))
            position = b.div(position, size)
        corner.reverse()
        base = b.gep(image, b.mul(position, spec.lhs.outer_stride * spec.lhs.element_bytes))
        line = b.gep("%to", b.mul(row, "%to_stride"))
        _Window(b, spec, copy, fill).emit(base, line, corner)
    b.ret()
    return SharedFunction(name, b.text(), tuple(sorted(b.declarations)), (copy, fill))


class _Window:
    """Writes the row of one output position: a loop nest over the taps, the offset carried inward."""

    def __init__(
        self, b: TextBuilder, spec: ConvolutionSpec, copy: SharedFunction, fill: SharedFunction
    ) -> None:
        self.b = b
        self.spec = spec
        self.copy = copy
        self.fill = fill
        self.size = ELEMENT_BYTES[spec.accumulate]
        self.rank = len(spec.kernel_spatial)
        last = self.rank - 1
        # Neighbouring taps read neighbouring memory: the innermost taps are then one run.
        self.runs = (
            self.rank > 0
            and spec.lhs.feature_stride == 1
            and spec.lhs.spatial_strides[last] == spec.group_inputs
            and spec.lhs_dilation[last] == spec.rhs_dilation[last] == 1
        )

    def emit(self, base: str, line: str, corner: list[str]) -> None:
        self._axis(0, base, line, corner)

    def _axis(self, axis: int, base: str, line: str, corner: list[str]) -> None:
        if axis == self.rank:
            self._copy(line, base, self.spec.group_inputs)
        elif axis == self.rank - 1 and self.runs:
            self._run(base, line, corner[axis])
        else:
            self._taps(axis, base, line, corner)

    def _below(self, axis: int) -> int:
        """Columns that one tap along `axis` covers."""
        columns = self.spec.group_inputs
        for size in self.spec.kernel_spatial[axis + 1 :]:
            columns *= size
        return columns

    def _taps(self, axis: int, base: str, line: str, corner: list[str]) -> None:
        b, spec = self.b, self.spec
        columns = self._below(axis)
        dilation, extent = spec.lhs_dilation[axis], spec.input_spatial[axis]
        with b.loop(0, spec.kernel_spatial[axis], hint="tap") as tap:
            at = b.add(corner[axis], b.mul(tap, spec.rhs_dilation[axis]))
            place = b.gep(line, b.mul(tap, columns * self.size))
            inside = b.compare("ult", at, max(0, (extent - 1) * dilation + 1))
            if dilation != 1:
                exact = b.compare("eq", b.rem(at, dilation), 0)
                inside = b.op(f"and i1 {inside}, {exact}")
            with b.when(inside):
                index = b.div(at, dilation)
                step = spec.lhs.spatial_strides[axis] * spec.lhs.element_bytes
                self._axis(axis + 1, b.gep(base, b.mul(index, step)), place, corner)
            with b.otherwise(inside):
                self._zero(place, columns)

    def _run(self, base: str, line: str, start: str) -> None:
        """All taps of the innermost dimension: zeros before the input, one copy, zeros after it."""
        b, spec = self.b, self.spec
        features, taps, extent = spec.group_inputs, spec.kernel_spatial[-1], spec.input_spatial[-1]
        whole = b.compare("ult", start, max(0, extent - taps + 1))
        with b.when(whole):
            origin = b.gep(base, b.mul(start, features * spec.lhs.element_bytes))
            self._copy(line, origin, taps * features)
        with b.otherwise(whole):
            before = _clamp(b, b.sub(0, start), taps)
            after = _clamp(b, b.sub(extent, start), taps)
            end = b.select(b.compare("slt", after, before), before, after)
            self._zero(line, b.mul(before, features))
            origin = b.gep(base, b.mul(b.add(start, before), features * spec.lhs.element_bytes))
            self._copy(
                b.gep(line, b.mul(before, features * self.size)), origin, b.mul(b.sub(end, before), features)
            )
            self._zero(b.gep(line, b.mul(end, features * self.size)), b.mul(b.sub(taps, end), features))

    def _copy(self, to: str, origin: str, columns: str | int) -> None:
        lhs = self.spec.lhs
        stride = lhs.feature_stride * lhs.element_bytes
        arguments = (
            f"ptr {to}",
            "i64 0",
            f"ptr {origin}",
            "i64 1",
            f"i64 {columns}",
            "i64 0",
            f"i64 {stride}",
        )
        self.b.call("void", self.copy.name, *arguments)

    def _zero(self, to: str, columns: str | int) -> None:
        self.b.call("void", self.fill.name, f"ptr {to}", f"i64 {columns}")


def _clamp(b: TextBuilder, value: str, limit: int) -> str:
    """`value` between 0 and `limit`."""
    return b.minimum(b.select(b.compare("slt", value, 0), 0, value), limit)
