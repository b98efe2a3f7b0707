"""A multilayer perceptron that classifies: three dense layers, ReLU, softmax over ten classes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np


def dense(layer, inputs):
    return inputs @ layer["kernel"] + layer["bias"]


def mlp(params, images):
    """Class probabilities [32, 10] of images [32, 64]."""
    hidden = jax.nn.relu(dense(params["hidden_0"], images))
    hidden = jax.nn.relu(dense(params["hidden_1"], hidden))
    logits = dense(params["logits"], hidden)
    shifted = logits - jnp.max(logits, axis=-1, keepdims=True)
    exponentials = jnp.exp(shifted)
    return exponentials / jnp.sum(exponentials, axis=-1, keepdims=True)


def example_arguments():
    random = np.random.default_rng(1)
    sizes = {"hidden_0": (64, 96), "hidden_1": (96, 96), "logits": (96, 10)}
    params = {
        name: {
            "kernel": random.normal(0, fan_in**-0.5, (fan_in, fan_out)).astype(np.float32),
            "bias": random.normal(0, 0.1, fan_out).astype(np.float32),
        }
        for name, (fan_in, fan_out) in sizes.items()
    }
    return params, random.normal(size=(32, 64)).astype(np.float32)
