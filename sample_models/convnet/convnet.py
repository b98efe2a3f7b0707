"""A small convolutional network, images NCHW: two convolutions with max pooling, a global average, a dense layer."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def convolution(layer, images):
    """A 3x3 convolution that keeps the size of the image; kernels are OIHW."""
    features = lax.conv_general_dilated(
        images, layer["kernel"], (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")
    )
    return features + layer["bias"][:, None, None]


def max_pool(features):
    return lax.reduce_window(features, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def convnet(params, images):
    """Log probabilities [4, 10] of images [4, 3, 16, 16]."""
    features = max_pool(jax.nn.relu(convolution(params["conv_0"], images)))
    features = max_pool(jax.nn.relu(convolution(params["conv_1"], features)))
    pooled = jnp.mean(features, axis=(2, 3))
    logits = pooled @ params["logits"]["kernel"] + params["logits"]["bias"]
    return logits - jax.nn.logsumexp(logits, axis=-1, keepdims=True)


def example_arguments():
    random = np.random.default_rng(2)

    def layer(shape, fan_in, fan_out):
        return {
            "kernel": random.normal(0, (2 / fan_in) ** 0.5, shape).astype(np.float32),
            "bias": random.normal(0, 0.1, fan_out).astype(np.float32),
        }

    params = {
        "conv_0": layer((8, 3, 3, 3), 27, 8),
        "conv_1": layer((16, 8, 3, 3), 72, 16),
        "logits": layer((16, 10), 16, 10),
    }
    return params, random.normal(size=(4, 3, 16, 16)).astype(np.float32)
