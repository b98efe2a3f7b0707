"""Kernels of `cholesky` and `triangular_solve`: plain loop nests on working copies in double precision.

Batches are independent, and so are the columns of the right-hand side. As in the operations' own rules, everything is
computed in double precision and rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.backends.cpu.emit.registers import Registers
from compiler.backends.cpu.emit.rows import Rows, Slot, cut_rows, over_rows
from compiler.backends.cpu.emit.skeleton import KernelWriter
from compiler.backends.cpu.emit.wide_matrix import Elements, Parts, WideArithmetic, WideMatrix
from compiler.backends.cpu.kernel_code import KernelCode
from compiler.backends.cpu.lowered import Operand, Result, Use
from compiler.backends.cpu.target import Target
from compiler.backends.cpu.text_builder import TextBuilder, Value, llvm_type
from compiler.ir.program import Computation, Instruction
from compiler.ir.types import ElementType, TensorType
from compiler.kernel.index_expression import physical_strides

if TYPE_CHECKING:
    from compiler.backends.cpu.lowering import Lowering

_PRODUCT_NS = 0.15
_ROWS_AT_ONCE = 4
_VECTORS_AT_ONCE = 4
_NAN = "0x7FF8000000000000"


def cholesky_use(low: Lowering, computation: Computation, cholesky: Instruction) -> Use | None:
    """The kernel of a `cholesky`."""
    a = computation[cholesky.operands[0]].tensor
    if not isinstance(a.element, ElementType):
        return None
    is_lower = bool(cholesky.attributes.get("lower", False))
    code = _Cholesky(a, cholesky.tensor, a.element, is_lower, low.target).code(low.threads)
    return Use(code, (Operand(0), Result(0)), "linear algebra")


def triangular_solve_use(low: Lowering, computation: Computation, solve: Instruction) -> Use | None:
    """The kernel of a `triangular_solve`."""
    a, right = (computation[name].tensor for name in solve.operands)
    if not isinstance(a.element, ElementType):
        return None
    code = _Solve(a, right, solve.tensor, a.element, solve, low.target).code(low.threads)
    return Use(code, (Operand(0), Operand(1), Result(0)), "linear algebra")


def _matrix_strides(kind: TensorType) -> tuple[int, int]:
    row, column = physical_strides(kind.shape, kind.minor_to_major)[-2:]
    return row, column


def _batches(kind: TensorType) -> Rows:
    return Rows.of(kind, (kind.rank - 2, kind.rank - 1))


def _zeros(is_complex: bool, lanes: int = 1) -> list[tuple[str, str]]:
    zero = "0.0" if lanes == 1 else "zeroinitializer"
    return [(llvm_type("f64", lanes), zero)] * (2 if is_complex else 1)


@dataclass
class _Cholesky:
    """Column by column: what is left of a column after the product of the columns before it, over its pivot.

    With `is_lower` unset, the conjugate transpose of the upper triangle is factored, and the result transposed back.
    """

    a: TensorType
    result: TensorType
    element: ElementType
    is_lower: bool
    target: Target

    def code(self, threads: int) -> KernelCode:
        n, lanes = self.a.shape[-1], self.target.lanes(64)
        stride = -(-n // lanes) * lanes
        scratch = WideMatrix.bytes_of(n, stride, self.element.is_complex)
        tasks = cut_rows(_batches(self.a), _PRODUCT_NS * n**3 / 3, threads, scratch)
        writer = KernelWriter(1)
        b = writer.b
        source, out = writer.pointer(0), writer.pointer(1)
        elements = Elements(Registers(b, writer.needed), self.element)

        def factor(starts: list[str], memory: str) -> None:
            size = llvm_type(f"i{8 * self.element.storage_bytes}")
            a, result = b.gep(source, starts[0], size), b.gep(out, starts[1], size)
            wide = WideMatrix(b, memory, n, stride, self.element.is_complex)
            self._factor(b, elements, wide, a, result)

        over_rows(writer, tasks, [self.a, self.result], factor)
        return writer.finish("cholesky", tasks.count, tasks.all_scratch_bytes)

    def _factor(self, b: TextBuilder, elements: Elements, wide: WideMatrix, a: str, out: str) -> None:
        n, math = wide.rows, WideArithmetic(b, self.target.has_fma)
        down, across = _matrix_strides(self.a) if self.is_lower else reversed(_matrix_strides(self.a))
        failed = Slot.new(b, "i1", "false")
        with b.loop(0, n, hint="column") as j:
            own = wide.row(j)

            def left(i: Value, total: Parts, j: str = j) -> Parts:
                place = b.add(b.mul(i, down), b.mul(j, across))
                return math.minus(elements.load(a, place, conjugate=not self.is_lower), total)

            (total,) = self._products(b, math, wide, [own], own, j)
            pivot = b.intrinsic("double", "llvm.sqrt.f64", ("double", left(j, total)[0]))
            wide.store(own, j, (pivot, "0.0")[: len(own)])
            self._note_nan(b, failed, (pivot,))

            def finish(i: Value, total: Parts, j: str = j, pivot: str = pivot) -> None:
                value = tuple(math.op("fdiv", part, pivot) for part in left(i, total))
                wide.store(wide.row(i), j, value)
                self._note_nan(b, failed, value)

            first = b.add(j, 1)
            whole = b.add(first, b.mul(b.div(b.sub(n, first), _ROWS_AT_ONCE), _ROWS_AT_ONCE))
            with b.loop(first, whole, _ROWS_AT_ONCE, "rows") as i:
                numbers = [b.add(i, offset) for offset in range(_ROWS_AT_ONCE)]
                totals = self._products(b, math, wide, [wide.row(number) for number in numbers], own, j)
                for number, total in zip(numbers, totals, strict=True):
                    finish(number, total)
            with b.loop(whole, n, hint="row") as i:
                (total,) = self._products(b, math, wide, [wide.row(i)], own, j)
                finish(i, total)
        self._write(b, elements, wide, out, failed.get())

    def _products(
        self,
        b: TextBuilder,
        math: WideArithmetic,
        wide: WideMatrix,
        rows: list[list[str]],
        own: list[str],
        count: str,
    ) -> list[Parts]:
        """The first `count` columns of some rows times the conjugates of those of one row, summed."""
        lanes, parts = self.target.lanes(64), len(own)
        whole = b.mul(b.div(count, lanes), lanes)

        def run(start: Value, stop: Value, lanes: int, before: list[Parts]) -> list[Parts]:
            kinds = [(llvm_type("f64", lanes), part) for values in before for part in values]
            with b.carried_loop(start, stop, kinds, lanes, "k") as loop:
                right = wide.load(own, loop.index, lanes)
                for number, row in enumerate(rows):
                    total = tuple(loop.values[number * parts : (number + 1) * parts])
                    value = wide.load(row, loop.index, lanes)
                    loop.next += math.add_product(total, value, right, lanes, conjugate=True)
            return [tuple(loop.results[at : at + parts]) for at in range(0, len(kinds), parts)]

        zero = tuple(value for _, value in _zeros(parts == 2, lanes))
        vectors = run(0, whole, lanes, [zero] * len(rows))
        if lanes == 1:
            return vectors
        return run(whole, count, 1, [math.summed(values, lanes) for values in vectors])

    def _note_nan(self, b: TextBuilder, failed: Slot, value: Parts) -> None:
        for part in value:
            failed.set(b.op(f"or i1 {failed.get()}, {b.op(f'fcmp uno double {part}, {part}')}"))

    def _write(self, b: TextBuilder, elements: Elements, wide: WideMatrix, out: str, failed: str) -> None:
        """A matrix that is not positive definite gives NaN in the whole triangle; the other triangle is zero."""
        n = wide.rows
        down, across = (
            _matrix_strides(self.result) if self.is_lower else reversed(_matrix_strides(self.result))
        )
        zero: Parts = ("0.0", "0.0") if wide.is_complex else ("0.0",)
        with b.loop(0, n, hint="i") as i:
            row = wide.row(i)
            start = b.mul(i, down)
            with b.loop(0, b.add(i, 1), hint="j") as j:
                real, *rest = wide.load(row, j)
                value = [b.select(failed, _NAN, real, "double")]
                value += [b.select(failed, "0.0", part, "double") for part in rest]
                elements.store(out, b.add(start, b.mul(j, across)), tuple(value), conjugate=not self.is_lower)
            with b.loop(b.add(i, 1), n, hint="j") as j:
                elements.store(out, b.add(start, b.mul(j, across)), zero)


@dataclass
class _Solve:
    """Substitution, forward or backward, a block of columns of the right-hand side at a time.

    ``x a = b`` is solved as ``aᵀ xᵀ = bᵀ``. Only the named triangle is read.
    """

    a: TensorType
    right: TensorType
    result: TensorType
    element: ElementType
    instruction: Instruction
    target: Target

    @property
    def _is_left(self) -> bool:
        return bool(self.instruction.attributes["left_side"])

    @property
    def _is_transposed(self) -> bool:
        is_named = bool(self.instruction.attributes["transpose_a"] != "NO_TRANSPOSE")
        return is_named == self._is_left

    @property
    def _has_ones(self) -> bool:
        return bool(self.instruction.attributes["unit_diagonal"])

    @property
    def _is_forward(self) -> bool:
        return bool(self.instruction.attributes["lower"]) != self._is_transposed

    def code(self, threads: int) -> KernelCode:
        n, lanes = self.a.shape[-1], self.target.lanes(64)
        columns = self.right.shape[-1 if self._is_left else -2]
        width = min(_VECTORS_AT_ONCE, -(-columns // lanes)) * lanes
        blocks = -(-columns // width)
        is_complex = self.element.is_complex
        matrix_bytes = WideMatrix.bytes_of(n, n, is_complex)
        scratch = matrix_bytes + WideMatrix.bytes_of(n, width, is_complex)
        batches = _batches(self.a)
        units = Rows((), (batches.count * blocks,))
        tasks = cut_rows(units, _PRODUCT_NS * n * n * width / 2, threads, scratch)
        writer = KernelWriter(2)
        b = writer.b
        bases = [writer.pointer(number) for number in range(4)]
        elements = Elements(Registers(b, writer.needed), self.element)
        size = f"i{8 * self.element.storage_bytes}"
        with b.loop("%begin", "%end", hint="task") as task:
            memory = b.gep(bases[3], b.mul(task, tasks.scratch_bytes))
            matrix = WideMatrix(b, memory, n, n, is_complex)
            block = WideMatrix(b, b.gep(memory, matrix_bytes), n, width, is_complex)
            first = b.mul(task, tasks.step)
            copied = Slot.new(b, "i64", "-1")
            copied.set("-1")
            with b.loop(first, b.minimum(b.add(first, tasks.step), units.count), hint="unit") as unit:
                batch, column = b.div(unit, blocks), b.mul(b.rem(unit, blocks), width)
                starts = batches.starts(b, batch, [self.a, self.right, self.result])
                a, right, out = (b.gep(base, start, size) for base, start in zip(bases, starts, strict=False))
                with b.when(b.compare("ne", batch, copied.get())):
                    self._copy_matrix(b, elements, matrix, a)
                    copied.set(batch)
                count = b.minimum(b.sub(columns, column), width)
                self._copy_block(b, elements, block, right, column, count)
                self._substitute(b, matrix, block)
                self._write(b, elements, block, out, column, count)
        return writer.finish("solve", tasks.count, tasks.all_scratch_bytes)

    def _copy_matrix(self, b: TextBuilder, elements: Elements, matrix: WideMatrix, a: str) -> None:
        """The triangle as it is substituted with; the diagonal too, unless it is all ones."""
        n = matrix.rows
        strides = _matrix_strides(self.a)
        down, across = reversed(strides) if self._is_transposed else strides
        conjugate = self.instruction.attributes["transpose_a"] == "ADJOINT"
        own = 0 if self._has_ones else 1
        with b.loop(0, n, hint="i") as i:
            row, start = matrix.row(i), b.mul(i, down)
            low, high = (0, b.add(i, own)) if self._is_forward else (b.add(i, 1 - own), n)
            with b.loop(low, high, hint="k") as k:
                place = b.add(start, b.mul(k, across))
                matrix.store(row, k, elements.load(a, place, conjugate=conjugate))

    def _block_strides(self, kind: TensorType) -> tuple[int, int]:
        down, across = _matrix_strides(kind)
        return (down, across) if self._is_left else (across, down)

    def _copy_block(
        self, b: TextBuilder, elements: Elements, block: WideMatrix, right: str, column: str, count: str
    ) -> None:
        """Some columns of the right-hand side, with zeros in what is left of the block."""
        down, across = self._block_strides(self.right)
        zero: Parts = ("0.0", "0.0") if block.is_complex else ("0.0",)
        with b.loop(0, block.rows, hint="i") as i:
            row = block.row(i)
            start = b.add(b.mul(i, down), b.mul(column, across))
            with b.loop(0, count, hint="c") as c:
                block.store(row, c, elements.load(right, b.add(start, b.mul(c, across))))
            with b.loop(count, block.stride, hint="c") as c:
                block.store(row, c, zero)

    def _write(
        self, b: TextBuilder, elements: Elements, block: WideMatrix, out: str, column: str, count: str
    ) -> None:
        down, across = self._block_strides(self.result)
        with b.loop(0, block.rows, hint="i") as i:
            row = block.row(i)
            start = b.add(b.mul(i, down), b.mul(column, across))
            with b.loop(0, count, hint="c") as c:
                elements.store(out, b.add(start, b.mul(c, across)), block.load(row, c))

    def _substitute(self, b: TextBuilder, matrix: WideMatrix, block: WideMatrix) -> None:
        n, lanes = matrix.rows, self.target.lanes(64)
        math = WideArithmetic(b, self.target.has_fma)
        parts = 2 if block.is_complex else 1
        vectors = block.stride // lanes
        with b.loop(0, n, hint="turn") as turn:
            i = turn if self._is_forward else b.sub(n - 1, turn)
            own = matrix.row(i)
            low, high = ("0", i) if self._is_forward else (b.add(i, 1), str(n))
            zeros = _zeros(block.is_complex, lanes) * vectors
            with b.carried_loop(low, high, zeros, hint="k") as loop:
                known = block.row(loop.index)
                factor = tuple(b.splat("double", part, lanes) for part in matrix.load(own, loop.index))
                for vector in range(vectors):
                    total = tuple(loop.values[vector * parts : (vector + 1) * parts])
                    value = block.load(known, vector * lanes, lanes)
                    loop.next += math.add_product(total, value, factor, lanes)
            target = block.row(i)
            divisor = None if self._has_ones else _Divisor.of(b, math, matrix.load(own, i))
            for vector in range(vectors):
                total = tuple(loop.results[vector * parts : (vector + 1) * parts])
                value = math.minus(block.load(target, vector * lanes, lanes), total, lanes)
                if divisor is not None:
                    value = divisor.divide(value, lanes)
                block.store(target, vector * lanes, value, lanes)


@dataclass(frozen=True, slots=True)
class _Divisor:
    """A number that vectors are divided by: ``(p + qi)⁻¹ ∝ (p - qi) scale`` without overflow (Smith, 1962)."""

    math: WideArithmetic
    p: str
    q: str
    scale: str

    @classmethod
    def of(cls, b: TextBuilder, math: WideArithmetic, value: Parts) -> _Divisor:
        """Prepares the division by a number."""
        if len(value) == 1:
            return cls(math, value[0], "", "")
        real, imag = value
        sizes = [b.intrinsic("double", "llvm.fabs.f64", ("double", part)) for part in value]
        is_real = b.op(f"fcmp oge double {sizes[0]}, {sizes[1]}")
        larger, smaller = (
            b.select(is_real, real, imag, "double"),
            b.select(is_real, imag, real, "double"),
        )
        is_zero = b.op(f"fcmp oeq double {larger}, 0.0")
        quotient = math.op("fdiv", smaller, larger)
        ratio = b.select(is_zero, "0.0", quotient, "double")
        total = math.op("fadd", larger, math.op("fmul", smaller, ratio))
        # A zero gives infinities and NaN of the numerator's signs, as a division of the parts would.
        scale = math.op("fdiv", "1.0", b.select(is_zero, "0.0", total, "double"))
        p, q = b.select(is_real, "1.0", ratio, "double"), b.select(is_real, ratio, "1.0", "double")
        return cls(math, p, q, scale)

    def divide(self, value: Parts, lanes: int) -> Parts:
        """Each lane divided."""
        math, b = self.math, self.math.b
        if len(value) == 1:
            return (math.op("fdiv", value[0], b.splat("double", self.p, lanes), lanes),)
        p, q, scale = (b.splat("double", part, lanes) for part in (self.p, self.q, self.scale))
        real, imag = value
        top = math.op("fadd", math.op("fmul", real, p, lanes), math.op("fmul", imag, q, lanes), lanes)
        low = math.op("fsub", math.op("fmul", imag, p, lanes), math.op("fmul", real, q, lanes), lanes)
        return math.op("fmul", top, scale, lanes), math.op("fmul", low, scale, lanes)


__all__ = ["cholesky_use", "triangular_solve_use"]
