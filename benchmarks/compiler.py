"""Level 3 compiled: `function` against level 1's program, JAX and eager PyTorch; float32, one thread.

The rings' net, 2-4-8-1, batch 100: an epoch of 40 batches in one call, beside level 1's program, bound once, and JAX's jitted
`lax.scan`, which gathers rows inside; one step a call, beside PyTorch; an epoch and its shuffle. The MLP 784-512-512-10,
batch 256, Adam: one step a call. Then the first call in a fresh process, with no program kept and with the program kept.

All first show that they compute the same losses. Then they run in turn in one process, on one core; medians are compared,
and the ratio is our time over theirs, so below 1 we are faster. Peers: `pip install jax torch`. Repeat with
`python benchmarks/compiler.py`. Where a process cannot be held to one core (macOS), NPROC still holds JAX to one thread.
"""

import functools
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from types import SimpleNamespace

import numpy as np

from course import tasks
from levels import low_level as level_3
from levels.hardware import amount, pool
from levels.hardware.tasks import dnn_program, weight_names
from levels.low_level import GradientTape, Variable, constant, function

TASK, RATE, UNITS = tasks.rings(), 0.01, (784, 512, 512, 10)
X, Y, WEIGHTS = TASK.x.astype("f4"), TASK.y.astype("f4"), [w.astype("f4") for w in TASK.weights]
EPOCHS = np.asarray(TASK.batches[:200], np.int64).reshape(5, 40, 100)

# The formulas, for all: `lib` is PyTorch, or has its names --------------------------------------------------------------

OURS = SimpleNamespace(**vars(level_3) | {"mean": level_3.reduce_mean, "sum": level_3.reduce_sum})


def net(lib, x, weights):
    w1, b1, w2, b2, w3, b3 = weights
    return lib.relu(lib.relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3


def rings_loss(lib, weights, rows, target):
    c = lib.clip(lib.sigmoid(net(lib, rows, weights)), 1e-7, 1.0 - 1e-7)
    return -lib.mean(target * lib.log(c) + (1.0 - target) * lib.log(1.0 - c))


def mlp_loss(lib, weights, rows, one_hot):
    return lib.mean(-lib.sum(one_hot * lib.log_softmax(net(lib, rows, weights)), axis=-1))


def sgd(lib, w, dw):
    return (w - RATE * dw,)


def adam(lib, w, dw, m, v, power1, power2, rate=0.001):
    """Kingma and Ba, 2015; the powers are 0.9**t and 0.999**t."""
    m, v = 0.9 * m + 0.1 * dw, 0.999 * v + 0.001 * dw * dw
    return w - rate * (m / (1.0 - power1)) / (lib.sqrt(v / (1.0 - power2)) + 1e-8), m, v


# A train step, by each --------------------------------------------------------------------------------------------------


def ours(loss_of, optimizer, start):
    """The compiled step of new weights."""
    weights, betas = [Variable(w) for w in start], (0.9, 0.999) if optimizer is adam else ()
    moments = [[Variable(np.zeros_like(w)) for _ in betas] for w in start]
    powers = [Variable(np.float32(1.0)) for _ in betas]

    def step(rows, target):
        with GradientTape() as tape:
            loss = loss_of(OURS, weights, rows, target)
        for power, beta in zip(powers, betas, strict=True):
            power.assign(beta * power)
        for w, dw, mv in zip(weights, tape.gradient(loss, weights), moments, strict=True):
            for variable, value in zip((w, *mv), optimizer(OURS, w, dw, *mv, *powers), strict=True):
                variable.assign(value)
        return loss

    return function(step)


def in_jax(loss_of, optimizer, start, epoch=False):
    """The same, jitted: a call takes (rows, target), or (x, y, batches) for an epoch, and the state is donated to it."""
    import jax
    import jax.numpy as jnp

    lib, betas = SimpleNamespace(**vars(jnp) | vars(jax.nn)), (0.9, 0.999) if optimizer is adam else ()
    value_and_grad = jax.value_and_grad(functools.partial(loss_of, lib))

    def step(state, rows, target):
        weights, moments, powers = state
        loss, gradients = value_and_grad(weights, rows, target)
        powers = [beta * power for power, beta in zip(powers, betas, strict=True)]
        new = [optimizer(lib, w, dw, *mv, *powers) for w, dw, mv in zip(weights, gradients, moments, strict=True)]
        return ([w for w, *_ in new], [mv for _, *mv in new], powers), loss

    def over(state, x, y, batches):
        def at(state, i):
            return step(state, *(a.at[i].get(mode="promise_in_bounds") for a in (x, y)))

        return jax.lax.scan(at, state, batches)

    program = jax.jit(over if epoch else step, donate_argnums=0)
    moments, powers = [[jnp.zeros(w.shape) for _ in betas] for w in start], [jnp.float32(beta**0) for beta in betas]
    state = [jnp.array(w) for w in start], moments, powers

    def call(*data):
        nonlocal state
        state, losses = jax.block_until_ready(program(state, *data))
        return losses

    return call


def rings_in_torch():
    """The same, eager."""
    import torch

    weights = [torch.tensor(w, requires_grad=True) for w in WEIGHTS]

    def step(rows, target):
        loss = rings_loss(torch, weights, rows, target)
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for w, dw in zip(weights, gradients, strict=True):
                w.copy_(*sgd(torch, w, dw))
        return loss.detach()

    return step


def mlp_in_torch(start):
    """The same, eager, with PyTorch's own loss and Adam."""
    import torch

    weights = [torch.tensor(w, requires_grad=True) for w in start]
    optimizer = torch.optim.Adam(weights)

    def step(rows, classes):
        loss = torch.nn.functional.cross_entropy(net(torch, rows, weights), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def level_1(batches):
    """Level 1's program, bound: a call without arguments trains through these batches. And where it leaves the losses."""
    put, losses = pool()["cpu:0"].put, pool()["cpu:0"].alloc((len(batches),), np.float32)
    weights = dict(zip(weight_names(WEIGHTS), map(put, WEIGHTS), strict=True))
    given = {"x": put(X), "y": put(Y), "batches": put(batches), "losses": losses, "learning_rate": RATE}
    return dnn_program(np.dtype("f4"), 2).bind(**given, **weights), losses


# The comparisons --------------------------------------------------------------------------------------------------------


def same(what, losses, *others):
    """Stop unless all these losses are the same within float32's rounding."""
    for other in others:
        np.testing.assert_allclose(np.ravel(other), np.ravel(losses), 1e-3, err_msg=what)


def medians(*calls, rounds=41, repeats=25, per=1):
    """The median seconds of each of these calls, taken in turn, divided by `per`."""
    times = [[] for _ in calls]
    for _, (call, own) in itertools.product(range(rounds), list(zip(calls, times, strict=True))):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        own.append((time.perf_counter() - start) / repeats / per)
    return map(statistics.median, times)


def row(what, own, name="", peer=None, bar=None, limit=None):
    """Print a line. Our seconds shall be at most `bar` times the peer's, or at most `limit`."""
    beside = f"{name:13} {amount(peer, 's'):>8}   ratio {own / peer:8.4f}" if peer else " " * 39
    verdict = "ok" if own <= (bar * peer if limit is None else limit) else "MISSED"
    asked = f"{bar:g}" if limit is None else amount(limit, "s")
    print(f"{what:27} ours {amount(own, 's'):>8}   {beside}   bar {asked:6}  {verdict}", flush=True)


def epochs_in_a_call():
    import jax.numpy as jnp

    x, y, data = constant(X), constant(Y), (jnp.array(X), jnp.array(Y))
    in_device = [jnp.array(epoch, jnp.int32) for epoch in EPOCHS]
    for name, optimizer in (("SGD", sgd), ("Adam", adam)):
        step, over = ours(rings_loss, optimizer, WEIGHTS), in_jax(rings_loss, optimizer, WEIGHTS, epoch=True)
        mine, theirs = [step.over(x, y, epoch).numpy() for epoch in EPOCHS], [over(*data, epoch) for epoch in in_device]
        calls = [lambda step=step: step.over(x, y, EPOCHS[0]), functools.partial(over, *data, in_device[0])]
        same(f"JAX, {name}", mine, theirs)
        if optimizer is sgd:
            launch, losses = level_1(EPOCHS.reshape(-1, 100))
            launch()
            same("level 1", mine, losses.numpy())
            calls.append(level_1(EPOCHS[0])[0])
        own, other, *hand = medians(*calls, per=40)
        if hand:
            row(f"epoch, a step, {name}", own, "level 1", *hand, bar=2)
        row(f"epoch, a step, {name}", own, "JAX", other, bar=1)


def one_step_a_call():
    import torch

    step, peer, losses = ours(rings_loss, sgd, WEIGHTS), rings_in_torch(), []
    for i in EPOCHS.reshape(-1, 100):
        mine, theirs = [constant(X[i]), constant(Y[i])], [torch.from_numpy(X[i]), torch.from_numpy(Y[i])]
        losses.append((step(*mine).numpy(), peer(*theirs)))
    same("PyTorch", *zip(*losses, strict=True))
    own, other = medians(lambda: step(*mine), lambda: peer(*theirs), rounds=11, repeats=400)
    row("a step, SGD", own, "eager PyTorch", other, bar=1 / 50)


def shuffled_epochs():
    step, x, y, order = ours(rings_loss, sgd, WEIGHTS), constant(X), constant(Y), np.arange(4000)
    rng = np.random.Generator(np.random.SFC64(1))  # NumPy's quickest

    def shuffled():
        rng.shuffle(order)
        return order.reshape(40, 100)

    step.over(x, y, shuffled())
    own, alone = medians(lambda: step.over(x, y, shuffled()), shuffled)
    row("epoch and its shuffle, SGD", own, "shuffle alone", alone, limit=100e-6)


def large_steps():
    import jax.numpy as jnp
    import torch

    rng = np.random.default_rng(1)
    shapes = [shape for sizes in itertools.pairwise(UNITS) for shape in (sizes, (1, sizes[1]))]
    start = [np.float32((2 / s[0]) ** 0.5 * (s[0] > 1)) * rng.standard_normal(s, "f4") for s in shapes]
    rows, classes = rng.standard_normal((256, UNITS[0]), "f4"), rng.integers(0, UNITS[-1], 256)
    data = rows, np.eye(UNITS[-1], dtype="f4")[classes]
    step, peer = ours(mlp_loss, adam, start), mlp_in_torch(start)
    calls = [
        functools.partial(step, *map(constant, data)),
        functools.partial(peer, torch.from_numpy(rows), torch.from_numpy(classes)),
        functools.partial(in_jax(mlp_loss, adam, start), *map(jnp.array, data)),
    ]
    same("MLP", *([np.asarray(call()) for _ in range(20)] for call in calls))
    # 113 steps in all: after some 700 the moments of a unit that is always cut become denormal numbers, which are slow
    own, other, jitted = medians(*calls, rounds=31, repeats=3)
    row("MLP, a step, Adam", own, "eager PyTorch", other, bar=1)
    row("MLP, a step, Adam, moonshot", own, "JAX", jitted, bar=1)


def first_call():
    """Print the seconds of the first `.over` in this process."""
    step, x, y = ours(rings_loss, sgd, WEIGHTS), constant(X), constant(Y)
    start = time.perf_counter()
    step.over(x, y, EPOCHS[0])
    print(time.perf_counter() - start)


def first_calls():
    times = {"nothing kept": [], "program kept": []}
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"LEVELS_CACHE": folder, "NUMBA_CACHE_DIR": folder}
            for seconds in times.values():
                command = [sys.executable, __file__, "first"]
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
                seconds.append(float(done.stdout))
    for (name, seconds), limit in zip(times.items(), (0.5, 0.05), strict=True):
        row(f"first call, {name}", statistics.median(seconds), limit=limit)


def main():
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ["NPROC"] = "1"  # JAX's threads; the flag alone leaves it two for the MLP
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import torch

    torch.set_num_threads(1)
    for compare in (epochs_in_a_call, one_step_a_call, shuffled_epochs, large_steps, first_calls):
        compare()


if __name__ == "__main__":
    first_call() if sys.argv[1:] == ["first"] else main()
