"""JAX: a step jitted, and an epoch as one lax.scan over row numbers that NumPy shuffled."""

import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from course.author.bench.formulas import BETAS, corrected, loss, net, update
from course.author.bench.peers.numpy import one_op
from course.author.bench.work import Trainer

NAME, VERSION, PACKAGES = "JAX", jax.__version__, ["jax", "jaxlib"]
LIB = SimpleNamespace(**vars(jnp) | vars(jax.nn))


def by_arrays(work):
    """step(state, x, y, rows) -> the new state and the loss; and the state at the start: weights, moments, corrections."""
    betas = BETAS[work.optimizer]

    def step(state, x, y, rows):
        weights, moments, corrections = state
        data, target = (a.at[rows].get(mode="promise_in_bounds") for a in (x, y))
        value, gradients = jax.value_and_grad(lambda w: loss(LIB, work.loss, net(LIB, data, w), target))(weights)
        corrections = [corrected(beta, c) for beta, c in zip(betas, corrections, strict=True)]
        new = [update(LIB, work.rate, *each, corrections) for each in zip(weights, gradients, moments, strict=True)]
        return ([w for w, _ in new], [mv for _, mv in new], corrections), value

    zeros = [tuple(jnp.zeros(w.shape) for _ in betas) for w in work.weights]
    return step, ([jnp.array(w) for w in work.weights], zeros, [jnp.float32(0.0) for _ in betas])


def jitted(work):
    step, state = by_arrays(work)
    step, x, y = jax.jit(step, donate_argnums=0), jnp.array(work.x), jnp.array(work.y)

    def epoch(order):
        nonlocal state
        losses = []
        for rows in work.batches(order).astype(np.int32):
            state, value = step(state, x, y, rows)
            losses.append(value)
        return [float(value) for value in jax.block_until_ready(losses)]

    return Trainer(epoch, lambda: [np.asarray(w) for w in state[0]])


def scanned(work):
    step, state = by_arrays(work)
    x, y = jnp.array(work.x), jnp.array(work.y)

    @functools.partial(jax.jit, donate_argnums=0)
    def run(state, x, y, batches):
        return jax.lax.scan(lambda state, rows: step(state, x, y, rows), state, batches)

    def epoch(order):
        nonlocal state
        state, losses = jax.block_until_ready(run(state, x, y, work.batches(order).astype(np.int32)))
        return np.asarray(losses)

    return Trainer(epoch, lambda: [np.asarray(w) for w in state[0]])


def kernel(work):
    x, y, held = jnp.array(work.x), jnp.array(work.y), [None]
    op = jax.jit(
        {"add": jnp.add, "exp": lambda x, _: jnp.exp(x), "sum": lambda x, _: x.sum(), "matmul": jnp.matmul}[work.loss]
    )

    def call():
        held[0] = jax.block_until_ready(op(x, y))

    return one_op(call, lambda: np.asarray(held[0]))


MODES = {"jit": ("step", jitted), "lax.scan": ("epoch", scanned), "kernel": ("kernel", kernel)}
