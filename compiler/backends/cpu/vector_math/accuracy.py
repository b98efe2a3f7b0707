"""How far each function may be from the correctly rounded result.

Measured over every 61st of all f32 values (binary functions and f64: over some hundred thousand random values
of all exponents, and denser ones where the function varies), against wider arithmetic; the tests hold each
function to its bound. Units are those of the last place (ULP) of the result; 0.5 is correct rounding. NaN,
infinities and the sign of zero are exact. f64 of tan, asin, acos, asinh, acosh, atanh and power is the C
library's, for which glibc's manual lists errors of 2 ULP at most.
"""

from __future__ import annotations

BOUNDS: dict[str, tuple[float, float]] = {
    # operation: f32, f64
    "sqrt": (0.5, 0.5),
    "rsqrt": (1.5, 1.5),
    "exponential": (1.0, 1.0),
    "exponential_minus_one": (1.04, 1.1),
    "logistic": (1.5, 1.6),
    "tanh": (1.45, 1.4),
    "log": (0.85, 0.85),
    "log_plus_one": (0.9, 0.9),
    "sine": (1.55, 0.8),
    "cosine": (1.55, 0.8),
    "tan": (0.51, 2.0),
    "erf": (1.1, 1.0),
    "erfc": (0.51, 1.8),
    "erf_inv": (1.6, 1.6),
    "asin": (0.51, 2.0),
    "acos": (0.51, 2.0),
    "atan": (0.51, 1.55),
    "atan2": (0.51, 1.55),
    "sinh": (0.51, 0.9),
    "cosh": (0.51, 1.0),
    "asinh": (0.51, 2.0),
    "acosh": (0.51, 2.0),
    "atanh": (0.51, 2.0),
    "cbrt": (0.51, 0.9),
    "power": (0.51, 2.0),
    "remainder": (0.0, 0.0),
}
"""ULPs by operation, f32 and f64.

lgamma and digamma have zeros near which no relative bound holds; away from them f32 is within 0.51, and f64
within 4 ULP of the larger of the result and 1 (lgamma) or of the terms that are summed (digamma).
"""
