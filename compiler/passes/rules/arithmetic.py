"""Laws of arithmetic that hold to the bit.

For floats that means for infinities, NaN, subnormals and both zeros: `x + 0` is not `x` (of -0 it makes +0), `x + -0` is.
"""

from __future__ import annotations

from math import frexp

import numpy as np

from compiler.passes.rules.law import Bindings, Law, compile_laws
from compiler.passes.rules.pattern import Site

INTEGER = "int uint"
WHOLE = "int uint bool"
REAL = "int uint float"
NUMBER = "int uint float complex"


def _reciprocal_is_exact(site: Site, bound: Bindings) -> bool:
    """True for powers of two whose reciprocals are powers of two of the same type, in its normal range."""
    value = site.splat(bound["c"])
    if value is None or not np.isfinite(value) or value == 0 or abs(frexp(float(value))[0]) != 0.5:
        return False
    kind = site.type(bound["c"]).element.dtype
    with np.errstate(all="ignore"):
        inverse = np.float64(1.0 / float(value)).astype(kind)
    return bool(np.isfinite(inverse)) and float(inverse) * float(value) == 1.0


LAWS = (
    Law("add-zero", "add(x, 0) -> x", WHOLE),
    Law("add-minus-zero", "add(x, -0) -> x", "float"),
    Law("add-negated", "add(x, negate(y)) -> subtract(x, y)", NUMBER),
    Law("add-subtracted", "add(subtract(x, y), y) -> x", INTEGER),
    Law("add-constants", "add(add(x, c1), c2) -> add(x, add(c1, c2))", INTEGER),
    Law("add-constant-difference", "add(subtract(c1, x), c2) -> subtract(add(c1, c2), x)", INTEGER),
    Law("subtract-zero", "subtract(x, 0) -> x", REAL),
    Law("subtract-itself", "subtract(x, x) -> 0", INTEGER),
    Law("subtract-from-zero", "subtract(0, x) -> negate(x)", INTEGER),
    Law("subtract-from-minus-zero", "subtract(-0, x) -> negate(x)", "float"),
    Law("subtract-negated", "subtract(x, negate(y)) -> add(x, y)", NUMBER),
    Law("subtract-addend", "subtract(add(x, y), y) -> x", INTEGER),
    Law("subtract-sum", "subtract(x, add(x, y)) -> negate(y)", INTEGER),
    Law("subtract-constant", "subtract(x, c) -> add(x, negate(c))", INTEGER),
    Law("negate-twice", "negate(negate(x)) -> x", NUMBER),
    Law("negate-difference", "negate(subtract(x, y)) -> subtract(y, x)", INTEGER),
    Law("multiply-by-one", "multiply(x, 1) -> x", "int uint float bool"),
    Law("multiply-by-zero", "multiply(x, 0) -> 0", WHOLE),
    Law("multiply-by-minus-one", "multiply(x, -1) -> negate(x)", "int float"),
    Law("multiply-negated", "multiply(negate(x), negate(y)) -> multiply(x, y)", NUMBER),
    Law("multiply-negated-by-constant", "multiply(negate(x), c) -> multiply(x, negate(c))", REAL),
    Law("multiply-constants", "multiply(multiply(x, c1), c2) -> multiply(x, multiply(c1, c2))", INTEGER),
    Law("divide-by-one", "divide(x, 1) -> x", REAL),
    Law("divide-by-minus-one", "divide(x, -1) -> negate(x)", "int float"),
    Law("divide-negated", "divide(negate(x), negate(y)) -> divide(x, y)", "float"),
    Law(
        "divide-by-power-of-two",
        "divide(x, c) -> multiply(x, divide(1, c))",
        "float",
        _reciprocal_is_exact,
    ),
    Law("remainder-of-one", "remainder(x, 1) -> 0", INTEGER),
    Law("remainder-of-minus-one", "remainder(x, -1) -> 0", "int"),
    Law("abs-twice", "abs(abs(x)) -> abs(x)", "int float"),
    Law("abs-of-negated", "abs(negate(x)) -> abs(x)", "int float"),
    Law("abs-of-square", "abs(multiply(x, x)) -> multiply(x, x)", "float"),
    Law("abs-of-exponential", "abs(exponential(x)) -> exponential(x)", "float"),
    Law("abs-of-logistic", "abs(logistic(x)) -> logistic(x)", "float"),
    Law("sign-twice", "sign(sign(x)) -> sign(x)", "int float"),
    Law("floor-twice", "floor(floor(x)) -> floor(x)", "float"),
    Law("floor-of-ceil", "floor(ceil(x)) -> ceil(x)", "float"),
    Law("ceil-twice", "ceil(ceil(x)) -> ceil(x)", "float"),
    Law("ceil-of-floor", "ceil(floor(x)) -> floor(x)", "float"),
    Law("round-even-twice", "round_nearest_even(round_nearest_even(x)) -> round_nearest_even(x)", "float"),
    Law("round-afz-twice", "round_nearest_afz(round_nearest_afz(x)) -> round_nearest_afz(x)", "float"),
    Law("floor-of-rounded", "floor(round_nearest_even(x)) -> round_nearest_even(x)", "float"),
    Law("ceil-of-rounded", "ceil(round_nearest_even(x)) -> round_nearest_even(x)", "float"),
    Law("round-of-floor", "round_nearest_even(floor(x)) -> floor(x)", "float"),
    Law("round-of-ceil", "round_nearest_even(ceil(x)) -> ceil(x)", "float"),
    Law("power-of-one", "power(x, 1) -> x", REAL),
    Law("power-of-two", "power(x, 2) -> multiply(x, x)", REAL),
    Law("power-of-zero", "power(x, 0) -> 1", REAL),
    Law("power-of-minus-one", "power(x, -1) -> divide(1, x)", "float"),
    Law("real-of-complex", "real(complex(x, y)) -> x", "complex"),
    Law("imag-of-complex", "imag(complex(x, y)) -> y", "complex"),
    Law("complex-of-parts", "complex(real(x), imag(x)) -> x", "float"),
    Law("maximum-itself", "maximum(x, x) -> x", "int uint float bool"),
    Law("minimum-itself", "minimum(x, x) -> x", "int uint float bool"),
    Law("maximum-of-lowest", "maximum(x, lowest) -> x", "int uint float bool"),
    Law("minimum-of-highest", "minimum(x, highest) -> x", "int uint float bool"),
    Law("maximum-of-highest", "maximum(x, highest) -> highest", WHOLE),
    Law("minimum-of-lowest", "minimum(x, lowest) -> lowest", WHOLE),
    Law("maximum-again", "maximum(maximum(x, y), y) -> maximum(x, y)", "int uint float bool"),
    Law("minimum-again", "minimum(minimum(x, y), y) -> minimum(x, y)", "int uint float bool"),
    Law("maximum-of-minimum", "maximum(x, minimum(x, y)) -> x", WHOLE),
    Law("minimum-of-maximum", "minimum(x, maximum(x, y)) -> x", WHOLE),
    Law("maximum-constants", "maximum(maximum(x, c1), c2) -> maximum(x, maximum(c1, c2))", "int uint float"),
    Law("minimum-constants", "minimum(minimum(x, c1), c2) -> minimum(x, minimum(c1, c2))", "int uint float"),
    Law("clamp-to-everything", "clamp(lowest, x, highest) -> x", "int uint float"),
    Law("clamp-twice", "clamp(y, clamp(y, x, z), z) -> clamp(y, x, z)", "int uint float"),
)

PATTERNS = compile_laws(__name__, LAWS)
