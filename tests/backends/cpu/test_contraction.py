"""Matrix products against NumPy: odd sizes, strides, batches, types, epilogues, guarded buffers."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from guarded import Array, Side, run_kernel

from compiler.backends.cpu.contraction import EpilogueEmitter, GemmSpec, MatrixView, TileVector, emit_gemm
from compiler.backends.cpu.contraction.conversion import narrow, storage_type
from compiler.backends.cpu.contraction.microkernel import Microkernel, emit_microkernel
from compiler.backends.cpu.contraction.schedule import plan, row_copy_stride
from compiler.backends.cpu.jit import ModuleCompiler
from compiler.backends.cpu.kernel_code import KernelCode, kernel_module
from compiler.backends.cpu.runtime import NativeRuntime, Pool
from compiler.backends.cpu.target import Target, detect, from_features
from compiler.backends.cpu.text_builder import TextBuilder, assemble_module, llvm_type

_DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
# The largest relative rounding error.
_EPSILON = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}
_SIZES = [1, 2, 3, 4, 5, 7, 8, 11, 13, 14, 16, 17, 23, 26, 27, 31, 32, 33, 37, 40]


@dataclass
class Case:
    """A product with its operands; `right` is what it should give, in f64."""

    spec: GemmSpec
    lhs: Array
    rhs: Array
    out: Array
    right: Array
    extra: tuple[Array, ...] = ()

    def check(self, result: Array) -> None:
        eps = _EPSILON[self.spec.accumulate]
        bound = np.full_like(self.right, eps * (self.spec.k + 2) * 4)
        if result.dtype.itemsize == 2:
            bound = bound + _EPSILON[self.spec.out.element] * np.abs(self.right)
        wrong = np.abs(result.astype(np.float64) - self.right) > bound
        assert not wrong.any(), (self.spec, np.argwhere(wrong)[:5])


def _case(
    m: int,
    n: int,
    k: int,
    *,
    element: str = "f32",
    out: str | None = None,
    accumulate: str | None = None,
    flips: str = "",
    batch: tuple[int, ...] = (),
) -> Case:
    """Operands with values in [-1, 1]; `flips` names the matrices stored column by column."""
    rng = np.random.default_rng([m, n, k, len(batch)])
    accumulate = accumulate or ("f64" if element == "f64" else "f32")

    def matrix(rows: int, columns: int, name: str, kind: str, buffer: int) -> tuple[Array, MatrixView, Array]:
        flipped = name in flips
        shape = (*batch, columns, rows) if flipped else (*batch, rows, columns)
        array = rng.uniform(-1, 1, shape).astype(_DTYPES[kind])
        strides = [int(np.prod(shape[at + 1 :])) for at in range(len(shape))]
        row, column = (strides[-1], strides[-2]) if flipped else (strides[-2], strides[-1])
        seen = np.swapaxes(array, -1, -2) if flipped else array
        return array, MatrixView(buffer, kind, row, column, tuple(strides[:-2])), seen

    lhs, lhs_view, a = matrix(m, k, "lhs", element, 0)
    rhs, rhs_view, b = matrix(k, n, "rhs", element, 1)
    result, out_view, _ = matrix(m, n, "out", out or accumulate, 2)
    right = np.asarray(a.astype(np.float64) @ b.astype(np.float64))
    spec = GemmSpec(m, n, k, lhs_view, rhs_view, out_view, batch, accumulate)
    if "out" in flips:
        right = np.swapaxes(right, -1, -2)
    return Case(spec, lhs, rhs, result, right)


def _run(
    cases: Sequence[Case],
    target: Target,
    *,
    epilogues: Sequence[EpilogueEmitter | None] = (),
    threads: int = 1,
    side: Side = "end",
    ranges: int = 1,
) -> None:
    """All cases in one module, each checked."""
    chosen = list(epilogues) or [None] * len(cases)
    codes = [
        emit_gemm(f"gemm.{number}", case.spec, target, epilogue, threads)
        for number, (case, epilogue) in enumerate(zip(cases, chosen, strict=True))
    ]
    library = ModuleCompiler(target).load(kernel_module(codes))
    for code, case in zip(codes, cases, strict=True):
        arrays = [case.lhs, case.rhs, case.out, *case.extra]
        case.check(run_kernel(library, code, arrays, side, min(ranges, max(code.tasks, 1)))[2])


def _narrower(target: Target, bits: int, *, masked: bool, fma: bool) -> Target:
    return replace(
        target, vector_bits=bits, vector_registers=16, has_masked_memory=masked, has_fma=fma, l2_bytes=8192
    )


@pytest.fixture(scope="module")
def target() -> Target:
    return detect()


@pytest.mark.parametrize("side", ["start", "end"])
def test_odd_sizes(target: Target, side: Side) -> None:
    rng = np.random.default_rng(7)
    cases = [_case(*(int(size) for size in rng.choice(_SIZES, 3))) for _ in range(60)]
    cases += [_case(1, n, 9) for n in (1, 15, 16, 17, 129)] + [_case(m, 1, 19) for m in (2, 15, 16, 17, 130)]
    _run(cases, target, side=side)


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_every_storage_order(target: Target, element: str) -> None:
    flips = ["", "lhs", "rhs", "out", "lhs rhs", "lhs out", "rhs out", "lhs rhs out"]
    sizes = [(1, 33, 18), (33, 1, 18), (3, 70, 35), (14, 35, 17), (40, 37, 33)]
    _run([_case(*size, element=element, flips=flip) for size in sizes for flip in flips], target)


def test_empty_products(target: Target) -> None:
    _run(
        [_case(0, 3, 4), _case(3, 0, 4), _case(5, 7, 0), _case(0, 0, 0), _case(1, 4, 0), _case(4, 1, 0)],
        target,
    )
    assert emit_gemm("none", _case(0, 3, 4).spec, target).tasks == 0
    assert emit_gemm("none", _case(3, 4, 5, batch=(0,)).spec, target).tasks == 0


def test_batches(target: Target) -> None:
    cases = [_case(5, 9, 7, batch=(3, 2)), _case(1, 20, 33, batch=(4,)), _case(20, 35, 8, batch=(2, 1, 3))]
    cases.append(_case(6, 40, 21, batch=(5,), flips="rhs"))
    _run(cases, target, threads=4, ranges=3)


def test_large_batches_share_scratch_memory(target: Target) -> None:
    case = _case(5, 20, 9, batch=(7, 5), flips="lhs rhs")
    code = emit_gemm("batched", case.spec, target, threads=2)
    assert code.tasks == 7
    assert code.scratch_bytes < 7 * 8192
    _run([case, _case(3, 4, 5, batch=(41,), flips="rhs")], target, threads=2, ranges=3)


def test_any_strides(target: Target) -> None:
    """Gaps, negative strides and strides of zero (a broadcast)."""
    rng = np.random.default_rng(3)
    m, n, k = 15, 37, 20
    lhs, rhs = rng.uniform(-1, 1, (2 * m, 3 * k)).astype(np.float32), rng.uniform(-1, 1, n).astype(np.float32)
    out = np.zeros((m, 2 * n), np.float32)
    gaps = MatrixView(0, "f32", -2 * 3 * k, 3, (), (2 * m - 2) * 3 * k)
    spec = GemmSpec(m, n, k, gaps, MatrixView(1, "f32", 0, 1), MatrixView(2, "f32", 2 * n, 2))
    seen = lhs[::-2][:, ::3] if (2 * m - 1) % 2 == 0 else lhs[-2::-2][:, ::3]
    code = emit_gemm("gaps", spec, target)
    result = run_kernel(ModuleCompiler(target).load(kernel_module([code])), code, [lhs, rhs, out])[2]
    np.testing.assert_allclose(result[:, ::2], seen @ np.broadcast_to(rhs, (k, n)), atol=1e-5)
    assert (result[:, 1::2] == 0).all()


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_half_precision(target: Target, element: str) -> None:
    flips = ["", "lhs", "rhs", "out", "lhs rhs"]
    cases = [
        _case(*size, element=element, flips=flip) for size in [(1, 9, 5), (19, 35, 33)] for flip in flips
    ]
    cases += [_case(*size, element=element, out=element) for size in [(1, 9, 5), (5, 1, 9), (19, 35, 33)]]
    cases.append(_case(6, 17, 9, element=element, out=element, accumulate="f64"))
    _run(cases, target)


def test_many_blocks_and_tasks(target: Target) -> None:
    small = replace(target, l2_bytes=1 << 14)
    cases = [_case(m, n, k) for m, n, k in [(130, 75, 200), (300, 40, 64), (33, 500, 70), (210, 260, 30)]]
    cases += [_case(200, 130, 60, flips="lhs rhs"), _case(64, 64, 1024), _case(2, 300, 512, flips="rhs")]
    for threads in (1, 3):
        _run(cases, small, threads=threads, ranges=threads)
    assert plan(cases[0].spec, small, 3).tiles_per_block < plan(cases[0].spec, small, 3).tiles
    assert emit_gemm("tasks", cases[2].spec, small, threads=3).tasks > 1
    assert row_copy_stride(1024, 4) == 1024 * 4 + 64


def test_long_sums_are_done_in_blocks(target: Target) -> None:
    cases = [_case(15, 37, 1700), _case(14, 33, 3100, flips="lhs rhs"), _case(3, 17, 900, element="f64")]
    cases += [_case(200, 40, 1601), _case(1, 4100, 1030), _case(14, 20, 1700, flips="out")]
    assert all(plan(case.spec, target, 1).k_block < case.spec.k for case in cases[:-1])
    _run(cases, target)


def test_threads_give_the_same_result(target: Target) -> None:
    compiler = ModuleCompiler(target)
    runtime = NativeRuntime(compiler)
    case = _case(220, 333, 129)
    code = emit_gemm("product", case.spec, target, threads=3)
    assert code.tasks > 3
    library = compiler.load(kernel_module([code]))
    scratch = np.zeros(code.scratch_bytes + 64, np.uint8)
    results = []
    for threads in (1, 3):
        out = np.zeros_like(case.out)
        buffers = (ctypes.c_void_p * 4)(*[array.ctypes.data for array in (case.lhs, case.rhs, out, scratch)])
        with Pool(runtime, threads) as pool:
            pool.run(library.address("product"), ctypes.addressof(buffers), code.tasks)
        results.append(out)
    case.check(results[0])
    assert (results[0] == results[1]).all()


@pytest.mark.parametrize(
    ("bits", "masked", "fma"),
    [(256, True, True), (256, False, False), (128, False, False), (64, False, True)],
)
def test_narrower_vectors(target: Target, bits: int, masked: bool, fma: bool) -> None:
    if bits > target.vector_bits:
        pytest.skip("wider than this processor")
    sizes = [(1, 33, 18), (33, 1, 18), (3, 70, 35), (14, 35, 17), (40, 37, 33)]
    cases = [_case(*size, flips=flip) for size in sizes for flip in ("", "lhs rhs", "rhs out")]
    cases += [_case(7, 9, 5, element="f64"), _case(7, 9, 5, element="bf16", out="bf16")]
    _run(cases, _narrower(target, bits, masked=masked, fma=fma))


def test_special_values_propagate(target: Target) -> None:
    case = _case(14, 35, 9)
    case.lhs[3, 2], case.lhs[5, 0], case.rhs[0, 7] = np.nan, np.inf, -np.inf
    code = emit_gemm("special", case.spec, target)
    arrays = [case.lhs, case.rhs, case.out]
    result = run_kernel(ModuleCompiler(target).load(kernel_module([code])), code, arrays)[2]
    with np.errstate(invalid="ignore"):
        expected = case.lhs @ case.rhs
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(result), np.isinf(expected))


@dataclass(frozen=True)
class BiasAndRelu:
    """``max(sum + bias[column], 0) + residual[batch, row, column]``, converted to `out`."""

    n: int
    m: int
    element: str
    out: str

    @property
    def key(self) -> str:
        return f"bias.{self.m}.{self.n}.{self.element}.{self.out}"

    def emit(self, b: TextBuilder, value: str, where: TileVector) -> str:
        kind, element = llvm_type(self.element, where.lanes), self.element
        across = 1 if where.axis == "column" else 0
        bias = where.load(b, where.buffer(b, 4), where.column, across, element)
        total = b.op(f"fadd {kind} {value}, {bias}")
        zero = "zeroinitializer" if where.lanes > 1 else "0.0"
        positive = b.op(f"fcmp ogt {kind} {total}, {zero}")
        total = b.op(f"select {llvm_type('i1', where.lanes)} {positive}, {kind} {total}, {kind} {zero}")
        row = b.add(b.mul(where.batch, self.m), where.row)
        if where.axis == "column" or self.n == 1:
            place = b.add(b.mul(row, self.n), where.column)
            residual = where.load(b, where.buffer(b, 5), place, 1, element)
        else:
            # Lanes run down a column: the residual is stored transposed for this one.
            place = b.add(b.mul(b.add(b.mul(where.batch, self.n), where.column), self.m), where.row)
            residual = where.load(b, where.buffer(b, 5), place, 1, element)
        total = b.op(f"fadd {kind} {total}, {residual}")
        stored = narrow(b, total, self.element, self.out, where.lanes)
        if self.out != "bf16":
            return stored
        return b.op(
            f"bitcast {storage_type(self.out, where.lanes)} {stored} to {llvm_type(self.out, where.lanes)}"
        )


@pytest.mark.parametrize("out", ["f32", "bf16"])
def test_epilogues_see_every_element_once_at_its_place(target: Target, out: str) -> None:
    cases, epilogues = [], []
    for m, n, k, flips in [
        (14, 37, 9, ""),
        (1, 40, 5, ""),
        (3, 33, 18, "rhs"),
        (40, 1, 9, ""),
        (17, 33, 6, "out"),
        (30, 70, 0, ""),
        (130, 66, 300, ""),
        (15, 40, 1700, ""),
        (17, 33, 1700, "out"),
    ]:
        case = _case(m, n, k, flips=flips, out=out, batch=(2,))
        rng = np.random.default_rng(m)
        bias = rng.uniform(-1, 1, n).astype(np.float32)
        residual = rng.uniform(-1, 1, case.right.shape).astype(np.float32)
        along = bias[:, None] if "out" in flips else bias
        right = np.maximum(case.right + along, 0) + residual
        scratch = np.zeros(0, np.uint8)
        spec = replace(case.spec, scratch_buffer=6)
        cases.append(replace(case, spec=spec, right=right, extra=(scratch, bias, residual)))
        epilogues.append(BiasAndRelu(n, m, "f32", out))
    for narrow_target in (target, _narrower(target, 128, masked=False, fma=False)):
        _run(cases, narrow_target, epilogues=epilogues)


def test_products_share_microkernels(target: Target) -> None:
    codes: list[KernelCode] = [
        emit_gemm(f"gemm.{k}", _case(26, 64, k).spec, target, threads=1) for k in (8, 100, 333)
    ]
    assert len({function.name for code in codes for function in code.shared}) == len(codes[0].shared)
    assert kernel_module(codes).count("define internal") == len(codes[0].shared)


@pytest.mark.parametrize(
    ("cpu", "features", "shapes"),
    [
        ("haswell", "avx avx2 fma f16c bmi2", [(6, 2, 8), (5, 2, 8), (2, 4, 8), (1, 8, 8)]),
        (
            "skylake-avx512",
            "avx2 fma avx512f avx512vl avx512bw avx512dq",
            [(13, 2, 16), (6, 4, 16), (2, 8, 16)],
        ),
        ("znver4", "avx2 fma avx512f avx512vl avx512bw avx512dq", [(13, 2, 16), (12, 2, 16), (1, 8, 16)]),
    ],
)
def test_sums_stay_in_registers(cpu: str, features: str, shapes: list[tuple[int, int, int]]) -> None:
    """A spill in the innermost loop costs a third of the speed, and nothing else would show it."""
    if not detect().triple.startswith("x86_64"):
        pytest.skip("needs LLVM's x86 code generator")
    other = from_features("x86_64-unknown-linux-gnu", cpu, dict.fromkeys(features.split(), True))
    for rows, vectors, lanes in shapes:
        function = emit_microkernel(Microkernel("f32", "f32", rows, vectors, lanes, False, False), other)
        module = assemble_module([function.text.replace("internal ", "")], function.declarations)
        blocks = re.split(r"\n\.L\w+:", ModuleCompiler(other).assembly(module))
        innermost = max(blocks, key=lambda block: block.count("vfmadd"))
        assert innermost.count("vfmadd") == rows * vectors
        assert "(%rsp)" not in innermost


def test_code_for_other_processors_is_valid() -> None:
    llvm = pytest.importorskip("llvmlite.binding")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    neon = from_features("aarch64-unknown-linux-gnu", "cortex-a76", {"neon": True, "fullfp16": True})
    code = emit_gemm("product", _case(40, 50, 60).spec, neon, threads=2)
    try:
        text = ModuleCompiler(neon).assembly(kernel_module([code]))
    except RuntimeError:
        pytest.skip("this LLVM knows no AArch64")
    assert "fmla" in text
