"""Conversions between the storage types of a matrix and the type its sums are kept in.

bf16 is converted with integer operations: the processors' own instructions flush subnormal numbers to zero.
"""

from __future__ import annotations

from compiler.backends.cpu.text_builder import TextBuilder, llvm_type


def storage_type(element: str, lanes: int) -> str:
    """The LLVM type that elements are loaded and stored as: bf16 as integers, the others as themselves."""
    return llvm_type("i16" if element == "bf16" else element, lanes)


def widen(b: TextBuilder, value: str, source: str, target: str, lanes: int) -> str:
    """`value`, loaded with type `storage_type(source)`, as `target` (at least as wide as `source`)."""
    if source == target:
        return value
    if source == "bf16":
        integer, single = llvm_type("i32", lanes), llvm_type("f32", lanes)
        shift = _constant("i32", 16, lanes)
        bits = b.op(
            f"shl {integer} {b.op(f'zext {storage_type(source, lanes)} {value} to {integer}')}, {shift}"
        )
        value = b.op(f"bitcast {integer} {bits} to {single}")
        return value if target == "f32" else widen(b, value, "f32", target, lanes)
    if source == "f16" and target == "f64":
        value, source = widen(b, value, "f16", "f32", lanes), "f32"
    return b.op(f"fpext {llvm_type(source, lanes)} {value} to {llvm_type(target, lanes)}")


def narrow(b: TextBuilder, value: str, source: str, target: str, lanes: int) -> str:
    """`value` of type `source`, rounded to nearest even, with type `storage_type(target)`."""
    if source == target:
        return value
    if source == "f64" and target != "f32":
        # Rounding twice goes wrong only where the first rounding makes a tie; rounding to odd first cannot.
        value = _round_to_odd_single(b, value, lanes)
    if target != "bf16":
        return _cast(b, value, "f32" if target != "f32" else source, target, lanes)
    integer, single = llvm_type("i32", lanes), llvm_type("f32", lanes)

    def constant(number: int) -> str:
        return _constant("i32", number, lanes)

    bits = b.op(f"bitcast {single} {value} to {integer}")
    high = b.op(f"lshr {integer} {bits}, {constant(16)}")
    odd = b.op(f"and {integer} {high}, {constant(1)}")
    bias = b.op(f"add {integer} {odd}, {constant(0x7FFF)}")
    rounded = b.op(f"add {integer} {bits}, {bias}")
    quiet = b.op(f"or {integer} {bits}, {constant(0x400000)}")
    nan = b.op(f"fcmp uno {single} {value}, {value}")
    chosen = b.op(f"select {llvm_type('i1', lanes)} {nan}, {integer} {quiet}, {integer} {rounded}")
    kept = b.op(f"lshr {integer} {chosen}, {constant(16)}")
    return b.op(f"trunc {integer} {kept} to {llvm_type('i16', lanes)}")


def _cast(b: TextBuilder, value: str, source: str, target: str, lanes: int) -> str:
    return b.op(f"fptrunc {llvm_type(source, lanes)} {value} to {llvm_type(target, lanes)}")


def _round_to_odd_single(b: TextBuilder, value: str, lanes: int) -> str:
    """An f64 as f32 whose last bit is set if anything was lost."""
    double, single, integer = llvm_type("f64", lanes), llvm_type("f32", lanes), llvm_type("i32", lanes)
    near = _cast(b, value, "f64", "f32", lanes)
    back = b.op(f"fpext {single} {near} to {double}")
    lost = b.op(f"fcmp one {double} {back}, {value}")
    beyond = b.op(f"fcmp ogt {double} {_absolute(b, back, lanes)}, {_absolute(b, value, lanes)}")
    bits = b.op(f"bitcast {single} {near} to {integer}")
    # Where rounding went away from zero, the number below in magnitude is the truncated one.
    flag = llvm_type("i1", lanes)
    down = b.op(f"sub {integer} {bits}, {b.op(f'zext {flag} {beyond} to {integer}')}")
    odd = b.op(f"or {integer} {down}, {b.op(f'zext {flag} {lost} to {integer}')}")
    return b.op(f"bitcast {integer} {odd} to {single}")


def _absolute(b: TextBuilder, value: str, lanes: int) -> str:
    suffix = f"v{lanes}f64" if lanes > 1 else "f64"
    kind = llvm_type("f64", lanes)
    return b.intrinsic(kind, f"llvm.fabs.{suffix}", (kind, value))


def _constant(kind: str, number: int, lanes: int) -> str:
    return str(number) if lanes == 1 else f"<{', '.join(f'{kind} {number}' for _ in range(lanes))}>"
