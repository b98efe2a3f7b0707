"""Compiling IR text, loading it, and keeping object code on disk."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from compiler.backends.cpu.jit import CodeGenerationError, ModuleCompiler
from compiler.backends.cpu.object_cache import ObjectCache
from compiler.backends.cpu.parallel_compile import compile_modules
from compiler.backends.cpu.target import Target, detect, from_features
from compiler.backends.cpu.text_builder import TextBuilder, assemble_module

_TRIPLE = """
define i64 @triple(i64 %x) {
  %y = mul i64 %x, 3
  ret i64 %y
}
"""


@pytest.fixture(scope="module")
def target() -> Target:
    return detect()


def _call(address: int, *arguments: int) -> int:
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))(address)
    return int(function(*arguments))


def test_loaded_code_runs_and_links_to_another_library(target: Target) -> None:
    compiler = ModuleCompiler(target)
    first = compiler.load(_TRIPLE)
    assert _call(first.address("triple"), 14) == 42
    user = "declare i64 @triple(i64)\ndefine i64 @nine(i64 %x) {\n  %a = call i64 @triple(i64 %x)\n"
    user += "  %b = call i64 @triple(i64 %a)\n  ret i64 %b\n}\n"
    second = compiler.load(user, imports={"triple": first.address("triple")})
    assert _call(second.address("nine"), 5) == 45


def test_symbols_of_the_process_are_found(target: Target) -> None:
    text = (
        "declare i64 @llabs(i64)\ndefine i64 @f(i64 %x) {\n  %a = call i64 @llabs(i64 %x)\n  ret i64 %a\n}\n"
    )
    assert _call(ModuleCompiler(target).load(text, "full").address("f"), -7) == 7


def test_a_parse_error_shows_its_line(target: Target) -> None:
    with pytest.raises(CodeGenerationError, match=r"LLVM IR line 3: .*%y = mul i65"):
        ModuleCompiler(target).object_code(_TRIPLE.replace("mul i64", "mul i65"))


def test_invalid_ir_is_refused(target: Target) -> None:
    undominated = (
        "define i64 @f(i1 %c) {\n  br i1 %c, label %a, label %b\n"
        "a:\n  %x = add i64 1, 1\n  br label %b\n"
        "b:\n  ret i64 %x\n}\n"
    )
    with pytest.raises(CodeGenerationError, match="does not dominate"):
        ModuleCompiler(target).object_code(undominated)


def test_a_missing_symbol_is_an_error(target: Target) -> None:
    with pytest.raises(CodeGenerationError, match="@absent"):
        ModuleCompiler(target).load(_TRIPLE).address("absent")


def test_assembly_and_optimised_text(target: Target) -> None:
    compiler = ModuleCompiler(target)
    assert "triple:" in compiler.assembly(_TRIPLE).replace("_triple", "triple")
    doubled = _TRIPLE.replace(
        "%y = mul i64 %x, 3", "%p = alloca i64\n  store i64 %x, ptr %p\n  %y = load i64, ptr %p"
    )
    assert "alloca" not in compiler.optimised_text(doubled)


def test_cache_returns_what_was_stored_and_ignores_damage(target: Target, tmp_path: Path) -> None:
    compiler = ModuleCompiler(target, ObjectCache(tmp_path))
    contents = compiler.object_code(_TRIPLE)
    (entry,) = tmp_path.glob("*.o")
    assert compiler.cache is not None
    assert compiler.cache.get(entry.stem) == contents
    entry.write_bytes(entry.read_bytes()[:-3] + b"abc")
    assert compiler.cache.get(entry.stem) is None
    assert compiler.object_code(_TRIPLE) == contents
    assert not list(tmp_path.glob("*.part"))


def test_cache_keys_tell_everything_apart(target: Target) -> None:
    compiler = ModuleCompiler(target)
    other = ModuleCompiler(target, codegen_level=1)
    keys = {
        compiler.key("a", "light"),
        compiler.key("a", "full"),
        compiler.key("b", "light"),
        other.key("a", "light"),
    }
    assert len(keys) == 4
    assert ObjectCache.key(("ab", "c")) != ObjectCache.key(("a", "bc"))


def test_cache_keeps_to_its_limit(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, limit_bytes=1000)
    for number in range(10):
        cache.put(f"{number:02}", bytes(200))
    cache.trim()
    assert sum(path.stat().st_size for path in tmp_path.glob("*.o")) <= 1000
    assert list(tmp_path.glob("*.o"))


def test_an_unwritable_cache_is_no_error(target: Target, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    compiler = ModuleCompiler(target, ObjectCache(tmp_path / "file" / "below"))
    assert compiler.object_code(_TRIPLE)


def test_worker_processes_compile_the_same(target: Target) -> None:
    compiler = ModuleCompiler(target)
    texts = [_TRIPLE, _TRIPLE.replace("3", "5")]
    assert compile_modules(compiler, texts, workers=2) == [compiler.object_code(text) for text in texts]


def test_features_decide_the_vector_width() -> None:
    avx512 = {"avx2": True, "fma": True, "avx512f": True, "avx512vl": True, "avx512bw": True}
    wide = from_features("x86_64-unknown-linux-gnu", "znver4", avx512)
    assert (wide.vector_bits, wide.vector_registers, wide.lanes(32), wide.lanes(64)) == (512, 32, 16, 8)
    narrow = from_features(
        "x86_64-unknown-linux-gnu", "haswell", {"avx2": True, "fma": True, "avx512f": False}
    )
    assert (narrow.vector_bits, narrow.has_fma, narrow.has_masked_memory) == (256, True, True)
    assert from_features("arm64-apple-darwin", "apple-m1", {"neon": True}).architecture == "aarch64"


def test_builder_loops_carry_values(target: Target) -> None:
    b = TextBuilder("sum", [("i64", "n"), ("i64", "step")], "i64")
    with b.carried_loop(0, "%n", [("i64", "0")], "%step") as outer:
        with b.carried_loop(0, outer.index, [("i64", outer.values[0])]) as inner:
            inner.next = [b.add(inner.values[0], b.add(inner.index, 0))]
        outer.next = inner.results
    b.ret(f"i64 {outer.results[0]}")
    address = ModuleCompiler(target).load(assemble_module([b.text()]))
    expected = sum(sum(range(i)) for i in range(0, 10, 3))
    assert _call(address.address("sum"), 10, 3) == expected
    assert (b.add(2, 3), b.mul("0", "%x"), b.mul(1, "%x"), b.sub("%x", 0)) == ("5", "0", "%x", "%x")
