"""Laws of real numbers that floats do not keep. They apply under `--fp fast` only, and every use is marked."""

from __future__ import annotations

from compiler.passes.rules.law import Condition, Law, compile_laws


def _fast(identity: str, text: str, kinds: str = "float", where: Condition | None = None) -> Law:
    return Law(identity, text, kinds, where, fast_math=True)


LAWS = (
    _fast("fast-add-zero", "add(x, 0) -> x", "float complex"),
    _fast("fast-multiply-by-zero", "multiply(x, 0) -> 0", "float complex"),
    _fast("fast-multiply-by-one", "multiply(x, 1) -> x", "complex"),
    _fast("fast-subtract-itself", "subtract(x, x) -> 0", "float complex"),
    _fast("fast-subtract-from-zero", "subtract(0, x) -> negate(x)", "float complex"),
    _fast("fast-negate-difference", "negate(subtract(x, y)) -> subtract(y, x)"),
    _fast("fast-add-subtracted", "add(subtract(x, y), y) -> x"),
    _fast("fast-subtract-addend", "subtract(add(x, y), y) -> x"),
    _fast("fast-add-constants", "add(add(x, c1), c2) -> add(x, add(c1, c2))"),
    _fast("fast-multiply-constants", "multiply(multiply(x, c1), c2) -> multiply(x, multiply(c1, c2))"),
    _fast("fast-divide-itself", "divide(x, x) -> 1"),
    _fast("fast-divide-product", "divide(multiply(x, y), y) -> x"),
    _fast("fast-divide-by-constant", "divide(x, c) -> multiply(x, divide(1, c))"),
    _fast("fast-divide-quotient", "divide(divide(x, y), z) -> divide(x, multiply(y, z))"),
    _fast("fast-divide-by-quotient", "divide(x, divide(y, z)) -> divide(multiply(x, z), y)"),
    _fast("fast-divide-by-sqrt", "divide(x, sqrt(y)) -> multiply(x, rsqrt(y))"),
    _fast("fast-divide-by-rsqrt", "divide(x, rsqrt(y)) -> multiply(x, sqrt(y))"),
    _fast("fast-divide-by-exponential", "divide(x, exponential(y)) -> multiply(x, exponential(negate(y)))"),
    _fast("fast-divide-by-power", "divide(x, power(y, z)) -> multiply(x, power(y, negate(z)))"),
    _fast("fast-log-of-exponential", "log(exponential(x)) -> x"),
    _fast("fast-exponential-of-log", "exponential(log(x)) -> x"),
    _fast("fast-log-of-power", "log(power(x, y)) -> multiply(y, log(x))"),
    _fast("fast-log-plus-one", "log_plus_one(exponential_minus_one(x)) -> x"),
    _fast("fast-exponential-product", "multiply(exponential(x), exponential(y)) -> exponential(add(x, y))"),
    _fast("fast-sqrt-of-square", "sqrt(multiply(x, x)) -> abs(x)"),
    _fast("fast-square-of-sqrt", "multiply(sqrt(x), sqrt(x)) -> x"),
    _fast("fast-square-of-rsqrt", "multiply(rsqrt(x), rsqrt(x)) -> divide(1, x)"),
    _fast("fast-multiply-rsqrt", "multiply(x, rsqrt(x)) -> sqrt(x)"),
    _fast("fast-common-factor", "add(multiply(x, z), multiply(y, z)) -> multiply(add(x, y), z)"),
    _fast("fast-equal-itself", "compare.EQ(x, x) -> ones"),
    _fast("fast-unequal-itself", "compare.NE(x, x) -> 0"),
    _fast("fast-select-larger", "select(compare.GT(x, y), x, y) -> maximum(x, y)"),
    _fast("fast-select-smaller", "select(compare.LT(x, y), x, y) -> minimum(x, y)"),
)

PATTERNS = compile_laws(__name__, LAWS)
