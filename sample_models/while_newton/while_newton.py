"""Newton's iteration for a root of a polynomial: a `while` that ends when the data says so, with a `cond` inside."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

TOLERANCE, LIMIT = 1e-5, 50


def value_and_slope(coefficients, x):
    """Horner's scheme for a polynomial and its derivative, highest power first."""
    value, slope = jnp.zeros_like(x), jnp.zeros_like(x)
    for index in range(coefficients.shape[0]):
        slope = slope * x + value
        value = value * x + coefficients[index]
    return value, slope


def while_newton(coefficients, start):
    """A root, the polynomial's value there, and the number of steps; 50 at most.

    A step that would be longer than 1 is shortened to 1.
    """

    def unfinished(state):
        x, steps = state
        value, _ = value_and_slope(coefficients, x)
        return (jnp.abs(value) > TOLERANCE) & (steps < LIMIT)

    def step(state):
        x, steps = state
        value, slope = value_and_slope(coefficients, x)
        move = lax.cond(
            jnp.abs(value) > jnp.abs(slope),
            lambda: jnp.sign(value) * jnp.sign(slope),
            lambda: value / slope,
        )
        return x - move, steps + 1

    root, steps = lax.while_loop(unfinished, step, (start, jnp.int32(0)))
    return root, value_and_slope(coefficients, root)[0], steps


def example_arguments():
    # x^4 - 3x^3 + x^2 - 4x + 2, from far to the right of its larger root near 3.03.
    return np.array([1, -3, 1, -4, 2], np.float32), np.float32(9.0)
