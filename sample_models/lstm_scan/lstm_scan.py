"""An LSTM run over a sequence with `lax.scan`: the loop becomes a `while` whose body slices, computes and stores."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def lstm_cell(params, carry, inputs):
    hidden, cell = carry
    gates = inputs @ params["input_kernel"] + hidden @ params["hidden_kernel"] + params["bias"]
    input_gate, forget_gate, candidate, output_gate = jnp.split(gates, 4, axis=-1)
    cell = jax.nn.sigmoid(forget_gate) * cell + jax.nn.sigmoid(input_gate) * jnp.tanh(candidate)
    hidden = jax.nn.sigmoid(output_gate) * jnp.tanh(cell)
    return (hidden, cell), hidden


def lstm_scan(params, sequence):
    """The last hidden state [4, 16] and all of them [12, 4, 16] for a sequence [12, 4, 8]."""
    zeros = jnp.zeros((sequence.shape[1], 16), sequence.dtype)
    (hidden, _), states = lax.scan(lambda carry, x: lstm_cell(params, carry, x), (zeros, zeros), sequence)
    return hidden, states


def example_arguments():
    random = np.random.default_rng(4)
    params = {
        "input_kernel": random.normal(0, 8**-0.5, (8, 64)).astype(np.float32),
        "hidden_kernel": random.normal(0, 16**-0.5, (16, 64)).astype(np.float32),
        "bias": random.normal(0, 0.1, 64).astype(np.float32),
    }
    return params, random.normal(size=(12, 4, 8)).astype(np.float32)
