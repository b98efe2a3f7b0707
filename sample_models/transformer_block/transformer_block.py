"""One block of a decoder: layer normalisation, causal self-attention, and a GELU feed-forward layer, each residual."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

HEADS = 4


def layer_norm(params, x):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(x - mean), axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * params["scale"] + params["bias"]


def causal_attention(params, x):
    batch, length, width = x.shape
    heads = (x @ params["qkv"]).reshape(batch, length, 3, HEADS, width // HEADS)
    query, key, value = (heads[:, :, part] for part in range(3))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * (width // HEADS) ** -0.5
    visible = jnp.arange(length)[:, None] >= jnp.arange(length)[None, :]
    scores = jnp.where(visible, scores, -1e9)
    weights = jax.nn.softmax(scores, axis=-1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value)
    return mixed.reshape(batch, length, width) @ params["out"]


def feed_forward(params, x):
    return jax.nn.gelu(x @ params["up"]) @ params["down"]


def transformer_block(params, x):
    """The block's output [2, 16, 32] for hidden states [2, 16, 32]."""
    x = x + causal_attention(params["attention"], layer_norm(params["norm_0"], x))
    return x + feed_forward(params["mlp"], layer_norm(params["norm_1"], x))


def example_arguments():
    random = np.random.default_rng(3)

    def matrix(rows, columns):
        return random.normal(0, rows**-0.5, (rows, columns)).astype(np.float32)

    def norm():
        return {
            "scale": (1 + random.normal(0, 0.1, 32)).astype(np.float32),
            "bias": random.normal(0, 0.1, 32).astype(np.float32),
        }

    params = {
        "attention": {"qkv": matrix(32, 96), "out": matrix(32, 32)},
        "mlp": {"up": matrix(32, 128), "down": matrix(128, 32)},
        "norm_0": norm(),
        "norm_1": norm(),
    }
    return params, random.normal(size=(2, 16, 32)).astype(np.float32)
