"""Matrix products and convolutions: from dimension numbers and layouts to strides, with elementwise epilogues.

f32, f64, f16 and bf16 go to the register-tiled kernels; products of other types are plain loop nests that fold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

from compiler.backends.cpu.contraction import GemmSpec, MatrixView, TileVector, emit_gemm
from compiler.backends.cpu.contraction.schedule import plan
from compiler.backends.cpu.emit.elemental import ElementalEmitter
from compiler.backends.cpu.emit.naming import PLACEHOLDER, named_after_text
from compiler.backends.cpu.emit.registers import Registers, memory_type
from compiler.backends.cpu.emit.sums import sum_of_products
from compiler.backends.cpu.kernel_code import KernelCode, SharedFunction
from compiler.backends.cpu.lowered import Operand, Result, Use, numbered
from compiler.backends.cpu.text_builder import TextBuilder, llvm_type
from compiler.backends.cpu.vector_math import Key, closure
from compiler.ir.program import Attributes, Computation, Instruction, make_computation
from compiler.ir.types import ElementType, TensorType
from compiler.kernel.elemental import Choose, External, Fold, Load, Node, walk
from compiler.kernel.expansion import CannotExpand, Expansion, plain
from compiler.kernel.index_expression import ZERO, Axis, Index, axis_index, delinearise, physical_strides
from compiler.kernel.schedule import lane_step

if TYPE_CHECKING:
    from compiler.backends.cpu.lowering import Lowering

FAST = frozenset(("f16", "bf16", "f32", "f64"))


@dataclass(frozen=True, slots=True)
class DotDimensions:
    """A dot_general's dimensions: batch, rows and columns (each operand's own), and summed ones."""

    lhs: TensorType
    rhs: TensorType
    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    lhs_summed: tuple[int, ...]
    rhs_summed: tuple[int, ...]

    @classmethod
    def of(cls, computation: Computation, dot: Instruction) -> DotDimensions:
        """From the instruction's attributes."""
        lhs, rhs = (computation[name].tensor for name in dot.operands)
        a = dot.attributes
        if dot.opcode == "dot":
            return cls(lhs, rhs, (), (), (lhs.rank - 1,), (0,))
        return cls(
            lhs,
            rhs,
            tuple(a.get("lhs_batching_dimensions", ())),
            tuple(a.get("rhs_batching_dimensions", ())),
            tuple(a.get("lhs_contracting_dimensions", ())),
            tuple(a.get("rhs_contracting_dimensions", ())),
        )

    @property
    def lhs_free(self) -> tuple[int, ...]:
        """The left operand's own dimensions."""
        return tuple(d for d in range(self.lhs.rank) if d not in self.lhs_batch and d not in self.lhs_summed)

    @property
    def rhs_free(self) -> tuple[int, ...]:
        """The right operand's own dimensions."""
        return tuple(d for d in range(self.rhs.rank) if d not in self.rhs_batch and d not in self.rhs_summed)


def _one_stride(sizes: Sequence[int], strides: Sequence[int]) -> int | None:
    """The stride of several dimensions counted as one; None when there is none."""
    step, found = 0, False
    expected = 0
    for size, stride in reversed(list(zip(sizes, strides, strict=True))):
        if size == 1:
            continue
        if not found:
            step, expected, found = stride, stride * size, True
        elif stride != expected:
            return None
        else:
            expected = stride * size
    return step if found else 1


def gemm_spec(
    dims: DotDimensions, result: TensorType, out_element: ElementType, out_type: TensorType
) -> GemmSpec | None:
    """The product as strides; None where some dimensions cannot be counted as one, or types have no fast kernel."""
    kinds = (dims.lhs.element, dims.rhs.element, result.element, out_element)
    if any(kind.name not in FAST for kind in kinds):
        return None
    accumulate = "f64" if "f64" in (kind.name for kind in kinds[:3]) else "f32"
    if accumulate == "f64" and any(kind.name != "f64" for kind in kinds[:3]):
        return None
    lhs, rhs = (physical_strides(t.shape, t.minor_to_major) for t in (dims.lhs, dims.rhs))
    out = physical_strides(out_type.shape, out_type.minor_to_major)
    batch = tuple(dims.lhs.shape[d] for d in dims.lhs_batch)
    rows, columns = dims.lhs_free, dims.rhs_free
    first = len(batch)

    def stride(shape: Sequence[int], strides: Sequence[int], chosen: Sequence[int]) -> int | None:
        return _one_stride([shape[d] for d in chosen], [strides[d] for d in chosen])

    shape = out_type.shape
    row_dims, column_dims = range(first, first + len(rows)), range(first + len(rows), len(shape))
    lhs_row, lhs_k = stride(dims.lhs.shape, lhs, rows), stride(dims.lhs.shape, lhs, dims.lhs_summed)
    rhs_k, rhs_column = stride(dims.rhs.shape, rhs, dims.rhs_summed), stride(dims.rhs.shape, rhs, columns)
    out_row, out_column = stride(shape, out, row_dims), stride(shape, out, column_dims)
    if lhs_row is None or lhs_k is None or rhs_k is None or rhs_column is None:
        return None
    if out_row is None or out_column is None:
        return None
    return GemmSpec(
        m=prod(dims.lhs.shape[d] for d in rows),
        n=prod(dims.rhs.shape[d] for d in columns),
        k=prod(dims.lhs.shape[d] for d in dims.lhs_summed),
        lhs=MatrixView(0, dims.lhs.element.name, lhs_row, lhs_k, tuple(lhs[d] for d in dims.lhs_batch)),
        rhs=MatrixView(1, dims.rhs.element.name, rhs_k, rhs_column, tuple(rhs[d] for d in dims.rhs_batch)),
        out=MatrixView(2, out_element.name, out_row, out_column, tuple(out[:first])),
        batch=batch,
        accumulate=accumulate,
    )


def dot_use(low: Lowering, computation: Computation, dot: Instruction) -> Use | None:
    """A product that stands alone."""
    dims = DotDimensions.of(computation, dot)
    spec = _spec(dims, dot.tensor, dot.tensor)
    if spec is None:
        return low.nest_use(sum_of_products(dims, dot), 2)
    code = emit_gemm(PLACEHOLDER, spec, low.target, None, low.threads)
    return Use(named_after_text("dot", code), (Operand(0), Operand(1), Result(0)), "contraction")


def _spec(dims: DotDimensions, result: TensorType, out: TensorType) -> GemmSpec | None:
    if not isinstance(out.element, ElementType) or not isinstance(dims.lhs.element, ElementType):
        return None
    return gemm_spec(dims, result, out.element, out)


@dataclass
class FusedEpilogue:
    """The elementwise part of a fusion whose producer is a product; implements `EpilogueEmitter`.

    Attributes:
        value: what is stored, over the axes `batch`, `row` and `column`, with External 0 for the product.
        product: the product's element type; sums are rounded to it first.
        out: the element type that is stored.
    """

    value: Node
    product: ElementType
    out: ElementType
    batch: Axis
    row: Axis
    column: Axis
    key: str
    needed: dict[Key, None] = field(default_factory=dict)

    def emit(self, b: TextBuilder, value: str, where: TileVector) -> str:
        """See the protocol."""
        registers = Registers(b, self.needed)
        nodes = _loads(self.value)
        buffers = {node.operand: where.buffer(b, node.operand) for node in nodes}
        e = ElementalEmitter(registers, buffers)
        e.axes = {self.batch: where.batch, self.row: where.row, self.column: where.column}
        along = self.row if where.axis == "row" else self.column
        e.along, e.lanes, e.mask = (along if where.lanes > 1 else None), where.lanes, where.mask
        if where.element != self.product.name and self.product.bits < 32:
            bits = registers.convert_call("f32", self.product.name, where.lanes, value)
            value = registers.convert_call(self.product.name, "f32", where.lanes, bits)
        e.bound, e.bound_lanes = {0: value}, where.lanes
        result = str(e.value(self.value))
        if self.out.bits >= 32:
            return result
        bits, lanes = registers.to_memory(self.out, where.lanes, result), where.lanes
        return b.op(f"bitcast {memory_type(self.out, lanes)} {bits} to {llvm_type(self.out.name, lanes)}")


def _loads(root: Node) -> list[Load]:
    return [node for node in walk((root,)) if isinstance(node, Load)]


def output_fusion(low: Lowering, body: Computation) -> Use | None:
    """A fusion of one product and an elementwise epilogue of its shape; None when it is something else."""
    dots = [entry for entry in body if entry.opcode == "dot_general"]
    root = body.root_instruction
    if len(dots) != 1 or not isinstance(root.type, TensorType) or root.tensor.shape != dots[0].tensor.shape:
        return None
    dot = dots[0]
    if any(body[name].opcode != "parameter" for name in dot.operands) or (dot is root and len(body) > 3):
        return None
    dims = DotDimensions.of(body, dot)
    spec = _spec(dims, dot.tensor, root.tensor)
    if spec is None or root.tensor.size == 0:
        return None
    operands = len(body.parameters)
    positions = [body[name].attributes["index"] for name in dot.operands]
    spec = replace(
        spec,
        lhs=replace(spec.lhs, buffer=positions[0]),
        rhs=replace(spec.rhs, buffer=positions[1]),
        out=replace(spec.out, buffer=operands),
        scratch_buffer=operands + 1,
    )
    try:
        epilogue = _epilogue(low, body, dot, dims, spec)
    except CannotExpand:
        return None
    if epilogue is None or _overwrites(spec, low, epilogue, root.tensor):
        return None
    code = emit_gemm(PLACEHOLDER, spec, low.target, epilogue, low.threads)
    code = _with_functions(code, epilogue)
    return Use(named_after_text("dot", code), numbered(operands, 1), "contraction")


def _overwrites(spec: GemmSpec, low: Lowering, epilogue: FusedEpilogue, result: TensorType) -> bool:
    """Whether partial sums kept in the result could destroy an operand of the epilogue that lies there too."""
    if not any(load.axes for load in _loads(epilogue.value)):
        return False
    return any(plan(form, low.target, low.threads).k_block < form.k for form in (spec, spec.transposed))


def product_apart(body: Computation) -> tuple[Instruction, Computation] | None:
    """A fusion's product and the rest of it as a computation whose last parameter is the product."""
    dots = [entry for entry in body if entry.opcode in ("dot_general", "convolution")]
    if len(dots) != 1 or dots[0].name == body.root:
        return None
    product = dots[0]
    if any(body[name].opcode != "parameter" for name in product.operands):
        return None
    stand_in = Instruction(
        product.name, "parameter", product.type, (), Attributes(index=len(body.parameters))
    )
    rest = {entry.name: stand_in if entry is product else entry for entry in body}
    return product, make_computation(f"rest.of.{body.name}", rest, body.root)


def _with_functions(code: KernelCode, epilogue: FusedEpilogue) -> KernelCode:
    functions = [SharedFunction(f.name, f.text, f.declarations) for f in closure(epilogue.needed)]
    return replace(code, shared=(*code.shared, *functions))


def _epilogue(
    low: Lowering, body: Computation, dot: Instruction, dims: DotDimensions, spec: GemmSpec
) -> FusedEpilogue | None:
    root = body.root_instruction
    batch, row, column = Axis(0, spec.batch_size), Axis(1, spec.m), Axis(2, spec.n)
    every = frozenset((batch, row, column))
    product = plain(dot.tensor)
    external = External(product, every, dot.name, 0)
    expansion = Expansion(body, low.computations, externals={dot.name: external}, split=False)
    shape = dot.tensor.shape
    first, second = len(spec.batch), len(spec.batch) + len(dims.lhs_free)
    at: tuple[Index, ...] = tuple(
        index
        for axis, sizes in ((batch, shape[:first]), (row, shape[first:second]), (column, shape[second:]))
        for index in (delinearise(axis_index(axis), sizes) if axis.extent > 1 else (ZERO,) * len(sizes))
    )
    value = expansion.value(root.name, at)
    if expansion.tables or any(isinstance(node, (Choose, Fold)) for node in _all(value)):
        return None
    for load in _loads(value):
        if lane_step(load.offset, column) not in (0, 1) and lane_step(load.offset, row) not in (0, 1):
            return None
    return FusedEpilogue(value, product, plain(root.tensor), batch, row, column, _key(value))


def _all(root: Node) -> list[Node]:
    return list(walk((root,)))


def _key(root: Node) -> str:
    """A text that differs wherever the code would."""
    numbers: dict[Node, int] = {}
    parts = []
    for node in _all(root):
        numbers[node] = len(numbers)
        own = getattr(node, "operands", ())
        detail = [
            str(getattr(node, name))
            for name in ("opcode", "attributes", "operand", "offset", "value", "index", "number")
            if hasattr(node, name)
        ]
        parts.append(f"{type(node).__name__} {node.element} {detail} {[numbers[entry] for entry in own]}")
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()
