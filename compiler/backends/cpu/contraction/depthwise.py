"""Depthwise convolutions: each output feature comes from one input feature; vectors run along them."""

from __future__ import annotations

from compiler.backends.cpu.contraction.conversion import narrow, storage_type, widen
from compiler.backends.cpu.contraction.convolution_spec import ConvolutionSpec, TensorView
from compiler.backends.cpu.contraction.epilogue import EpilogueEmitter, TileVector
from compiler.backends.cpu.contraction.microkernel import multiply_add, store_form
from compiler.backends.cpu.contraction.spec import ELEMENT_BYTES
from compiler.backends.cpu.kernel_code import KernelCode
from compiler.backends.cpu.target import Target
from compiler.backends.cpu.text_builder import TextBuilder, llvm_type

_FLOPS_PER_TASK = 100_000
_MOST_VECTORS = 4


def suits_depthwise(spec: ConvolutionSpec) -> bool:
    """Whether each group is one input and one output feature, neighbours next to one another in memory."""
    along = spec.lhs.feature_stride == spec.rhs.feature_stride == spec.out.feature_stride == 1
    single = spec.feature_groups == spec.input_features == spec.output_features
    return single and spec.batch_groups == 1 and along and spec.feature_groups > 1


def emit_depthwise(
    name: str, spec: ConvolutionSpec, target: Target, epilogue: EpilogueEmitter | None, threads: int
) -> KernelCode:
    """The kernel. For the epilogue, rows count output positions (batch first), columns count features."""
    return _Depthwise(name, spec, target, epilogue, threads).emit()


class _Depthwise:
    """Writes one kernel: a loop over output positions, one over features, and inside that the taps."""

    def __init__(
        self, name: str, spec: ConvolutionSpec, target: Target, epilogue: EpilogueEmitter | None, threads: int
    ) -> None:
        self.b = TextBuilder(name, (("ptr noalias", "buffers"), ("i64", "begin"), ("i64", "end")))
        self.spec, self.target, self.epilogue = spec, target, epilogue
        self.name = name
        self.lanes = target.lanes(8 * ELEMENT_BYTES[spec.accumulate])
        positions = spec.output_batch
        for size in spec.output_spatial:
            positions *= size
        self.positions = positions
        flops = 2 * positions * spec.taps * spec.output_features
        wanted = max(1, min(4 * threads, flops // _FLOPS_PER_TASK, positions)) if threads > 1 else 1
        self.per_task = max(1, -(-positions // wanted))

    def emit(self) -> KernelCode:
        b = self.b
        tasks = -(-self.positions // self.per_task) if self.spec.output_features else 0
        if tasks:
            bases = [self._base(view) for view in (self.spec.lhs, self.spec.rhs, self.spec.out)]
            first = b.mul("%begin", self.per_task)
            end = b.minimum(b.mul("%end", self.per_task), self.positions)
            with b.loop(first, end, hint="position") as position:
                self._emit_position(bases, position)
        b.ret()
        return KernelCode(self.name, b.text(), tasks, declarations=tuple(sorted(b.declarations)))

    def _base(self, view: TensorView) -> str:
        address = self.b.load("ptr", self.b.gep("%buffers", view.buffer, "ptr"), 8, hint="tensor")
        return self.b.gep(address, view.offset * view.element_bytes)

    def _emit_position(self, bases: list[str], position: str) -> None:
        b, spec = self.b, self.spec
        rest, corner, place = position, [], "0"
        for size, stride, low, step in reversed(
            list(
                zip(
                    spec.output_spatial, spec.strides, spec.padding_low, spec.out.spatial_strides, strict=True
                )
            )
        ):
            index = b.rem(rest, size)
            corner.append(b.sub(b.mul(index, stride), low, "corner"))
            place = b.add(place, b.mul(index, step))
            rest = b.div(rest, size)
        corner.reverse()
        place = b.add(place, b.mul(rest, spec.out.outer_stride))
        image = b.gep(bases[0], b.mul(b.mul(rest, spec.lhs.outer_stride), spec.lhs.element_bytes))
        out = b.gep(bases[2], b.mul(place, spec.out.element_bytes))
        features = spec.output_features
        block = _MOST_VECTORS * self.lanes
        whole = features // block * block
        if whole:
            with b.loop(0, whole, block, "features") as feature:
                self._emit_block(image, bases[1], out, corner, position, feature, _MOST_VECTORS, None)
        full = features // self.lanes * self.lanes
        if full > whole:
            with b.loop(whole, full, self.lanes, "features") as feature:
                self._emit_block(image, bases[1], out, corner, position, feature, 1, None)
        if features > full:
            mask = b.lane_mask(features - full, self.lanes)
            self._emit_block(image, bases[1], out, corner, position, str(full), 1, mask)

    def _emit_block(
        self,
        image: str,
        kernel: str,
        out: str,
        corner: list[str],
        position: str,
        feature: str,
        vectors: int,
        mask: str | None,
    ) -> None:
        """Some vectors of features at one position: sums over the taps, epilogue, store."""
        b, spec = self.b, self.spec
        kind, element = llvm_type(spec.accumulate, self.lanes), spec.accumulate
        slots = [b.alloca(kind) for _ in range(vectors)]
        for slot in slots:
            b.store(kind, "zeroinitializer", slot)
        image = b.gep(image, b.mul(feature, spec.lhs.element_bytes))
        kernel = b.gep(kernel, b.mul(feature, spec.rhs.element_bytes))
        self._emit_taps(0, image, kernel, corner, slots, mask)
        for part, slot in enumerate(slots):
            value = b.load(kind, slot)
            column = b.add(feature, part * self.lanes)
            if self.epilogue is None:
                value = narrow(b, value, element, spec.out.element, self.lanes)
            else:
                where = TileVector("%buffers", "0", position, column, self.lanes, "column", mask, element)
                value = store_form(b, self.epilogue.emit(b, value, where), spec.out.element, self.lanes)
            address = b.gep(out, b.mul(column, spec.out.element_bytes))
            stored, size = storage_type(spec.out.element, 1), spec.out.element_bytes
            if mask is None or self.lanes == 1:
                b.store(storage_type(spec.out.element, self.lanes), value, address, size)
            else:
                b.masked_store(stored, self.lanes, value, address, mask, size)

    def _emit_taps(
        self, axis: int, image: str, kernel: str, corner: list[str], slots: list[str], mask: str | None
    ) -> None:
        b, spec = self.b, self.spec
        if axis == len(spec.kernel_spatial):
            self._emit_products(image, kernel, slots, mask)
            return
        dilation, extent = spec.lhs_dilation[axis], spec.input_spatial[axis]
        with b.loop(0, spec.kernel_spatial[axis], hint="tap") as tap:
            at = b.add(corner[axis], b.mul(tap, spec.rhs_dilation[axis]))
            inside = b.compare("ult", at, max(0, (extent - 1) * dilation + 1))
            if dilation != 1:
                inside = b.op(f"and i1 {inside}, {b.compare('eq', b.rem(at, dilation), 0)}")
            with b.when(inside):
                index = b.div(at, dilation)
                step = spec.lhs.spatial_strides[axis] * spec.lhs.element_bytes
                weight = spec.rhs.spatial_strides[axis] * spec.rhs.element_bytes
                inner = b.gep(image, b.mul(index, step)), b.gep(kernel, b.mul(tap, weight))
                self._emit_taps(axis + 1, *inner, corner, slots, mask)

    def _emit_products(self, image: str, kernel: str, slots: list[str], mask: str | None) -> None:
        b, element = self.b, self.spec.accumulate
        kind = llvm_type(element, self.lanes)
        for part, slot in enumerate(slots):
            left, right = (
                self._load(view, b.gep(base, part * self.lanes * view.element_bytes), mask)
                for view, base in ((self.spec.lhs, image), (self.spec.rhs, kernel))
            )
            total = b.load(kind, slot)
            b.store(kind, multiply_add(b, self.target, element, self.lanes, left, right, total), slot)

    def _load(self, view: TensorView, address: str, mask: str | None) -> str:
        b = self.b
        if mask is not None and self.lanes > 1:
            value = b.masked_load(
                storage_type(view.element, 1), self.lanes, address, mask, view.element_bytes
            )
        else:
            value = b.load(storage_type(view.element, self.lanes), address, view.element_bytes)
        return widen(b, value, view.element, self.spec.accumulate, self.lanes)
