"""The C library's functions, lane by lane: for arguments and functions that have no vector form here."""

from __future__ import annotations

from compiler.backends.cpu.vector_math.lanes import Key, MathFunction, function_name, vector_type

LIBRARY = {
    name: 2 if name in ("fmod", "pow") else 1
    for name in (
        *("acos", "acosh", "asin", "asinh", "atanh", "cos", "fmod"),
        *("lgamma", "pow", "sin", "tan"),
    )
}
"""The functions of doubles that are used, and how many arguments each takes."""


def library_function(key: Key) -> MathFunction:
    """A function ``libm.NAME`` of f64: the C function NAME of each lane, in a loop (kept out of line)."""
    op, _, lanes = key
    symbol = op.removeprefix("libm.")
    count = LIBRARY[symbol]
    kind = vector_type("f64", lanes)
    arguments = [f"%x{index}" for index in range(count)]
    head = (
        f"define internal {kind} @{function_name(*key)}({', '.join(f'{kind} {name}' for name in arguments)})"
    )
    # errno is the only memory the C functions touch, and nobody here reads it.
    declaration = f"declare double @{symbol}({', '.join(['double'] * count)}) nounwind memory(none)"
    lines = [f"{head} nounwind noinline cold {{", "entry:"]
    if lanes == 1:
        operands = ", ".join(f"double {name}" for name in arguments)
        lines += [f"  %r = call double @{symbol}({operands})", "  ret double %r"]
    else:
        lines += _loop(symbol, lanes, arguments)
    return MathFunction(function_name(*key), "\n".join([*lines, "}"]) + "\n", (), (declaration,))


def _loop(symbol: str, lanes: int, arguments: list[str]) -> list[str]:
    kind = vector_type("f64", lanes)
    lines = []
    for index, name in enumerate(arguments):
        lines += [f"  %slot{index} = alloca {kind}", f"  store {kind} {name}, ptr %slot{index}"]
    lines += ["  br label %lane", "lane:", "  %i = phi i64 [ 0, %entry ], [ %next, %lane ]"]
    for index in range(len(arguments)):
        lines.append(f"  %p{index} = getelementptr inbounds double, ptr %slot{index}, i64 %i")
        lines.append(f"  %a{index} = load double, ptr %p{index}")
    operands = ", ".join(f"double %a{index}" for index in range(len(arguments)))
    return [
        *lines,
        f"  %r = call double @{symbol}({operands})",
        "  store double %r, ptr %p0",
        "  %next = add nuw nsw i64 %i, 1",
        f"  %more = icmp ult i64 %next, {lanes}",
        "  br i1 %more, label %lane, label %done",
        "done:",
        f"  %all = load {kind}, ptr %slot0",
        f"  ret {kind} %all",
    ]
