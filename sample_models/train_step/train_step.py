"""One step of training: the loss of a small classifier, its gradient, and Adam's update of every parameter."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

LEARNING_RATE, BETA_1, BETA_2, EPSILON = 1e-2, 0.9, 0.999, 1e-8


def loss_function(params, inputs, labels):
    """Mean cross entropy."""
    hidden = jnp.tanh(inputs @ params["w0"] + params["b0"])
    hidden = jnp.tanh(hidden @ params["w1"] + params["b1"])
    logits = hidden @ params["w2"] + params["b2"]
    log_probabilities = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.sum(jax.nn.one_hot(labels, 4) * log_probabilities, axis=-1))


def adam_update(parameter, gradient, mean, variance, step):
    mean = BETA_1 * mean + (1 - BETA_1) * gradient
    variance = BETA_2 * variance + (1 - BETA_2) * jnp.square(gradient)
    unbiased_mean = mean / (1 - BETA_1**step)
    unbiased_variance = variance / (1 - BETA_2**step)
    parameter = parameter - LEARNING_RATE * unbiased_mean / (jnp.sqrt(unbiased_variance) + EPSILON)
    return parameter, mean, variance


def train_step(params, means, variances, step, inputs, labels):
    """The new parameters, Adam's new moments, the next step's number, and the loss before the step."""
    loss, gradients = jax.value_and_grad(loss_function)(params, inputs, labels)
    step = step + 1
    updated = {
        name: adam_update(
            params[name], gradients[name], means[name], variances[name], step.astype(jnp.float32)
        )
        for name in params
    }
    new_params, new_means, new_variances = (
        {name: new[part] for name, new in updated.items()} for part in range(3)
    )
    return new_params, new_means, new_variances, step, loss


def example_arguments():
    random = np.random.default_rng(5)
    sizes = [(16, 32), (32, 32), (32, 4)]
    params = {}
    for index, (rows, columns) in enumerate(sizes):
        params[f"w{index}"] = random.normal(0, rows**-0.5, (rows, columns)).astype(np.float32)
        params[f"b{index}"] = random.normal(0, 0.1, columns).astype(np.float32)
    means = {name: random.normal(0, 0.01, value.shape).astype(np.float32) for name, value in params.items()}
    variances = {
        name: random.uniform(1e-4, 1e-3, value.shape).astype(np.float32) for name, value in params.items()
    }
    inputs = random.normal(size=(24, 16)).astype(np.float32)
    labels = random.integers(0, 4, 24).astype(np.int32)
    return params, means, variances, np.int32(7), inputs, labels
