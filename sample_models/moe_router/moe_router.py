"""A mixture of experts: each token goes to its two best experts, sorted by expert, with a limited capacity."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

EXPERTS, CHOSEN, CAPACITY = 4, 2, 16


def route(router, tokens):
    """Expert and weight of each token's choices, both [tokens * CHOSEN]."""
    probabilities = jax.nn.softmax(tokens @ router, axis=-1)
    weights, experts = lax.top_k(probabilities, CHOSEN)
    weights = weights / jnp.sum(weights, axis=-1, keepdims=True)
    return experts.reshape(-1), weights.reshape(-1)


def moe_router(params, tokens):
    """The experts' weighted outputs [32, 16] for tokens [32, 16], and how many choices each expert got [4]."""
    experts, weights = route(params["router"], tokens)
    order = jnp.argsort(experts, stable=True)
    sorted_experts = experts[order]
    counts = jnp.zeros(EXPERTS, jnp.int32).at[experts].add(1)
    firsts = jnp.cumsum(counts) - counts
    slots = jnp.arange(len(order)) - firsts[sorted_experts]
    sources = order // CHOSEN
    # A slot beyond the capacity is out of bounds: its token is dropped by the scatter and read as zero.
    buffers = jnp.zeros((EXPERTS, CAPACITY, tokens.shape[1]), tokens.dtype)
    buffers = buffers.at[sorted_experts, slots].set(tokens[sources], mode="drop")
    hidden = jax.nn.silu(jnp.einsum("ecd,edf->ecf", buffers, params["up"]))
    outputs = jnp.einsum("ecf,efd->ecd", hidden, params["down"])
    returned = outputs.at[sorted_experts, slots].get(mode="fill", fill_value=0)
    mixed = jnp.zeros_like(tokens).at[sources].add(returned * weights[order][:, None])
    return mixed, counts


def example_arguments():
    random = np.random.default_rng(6)
    params = {
        "router": random.normal(0, 0.5, (16, EXPERTS)).astype(np.float32),
        "up": random.normal(0, 0.25, (EXPERTS, 16, 32)).astype(np.float32),
        "down": random.normal(0, 32**-0.5, (EXPERTS, 32, 16)).astype(np.float32),
    }
    return params, random.normal(size=(32, 16)).astype(np.float32)
