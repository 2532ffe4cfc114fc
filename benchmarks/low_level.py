"""Level 3 against PyTorch: one eager train step of the rings' net at batch 100, op for op the same, one thread.

Taken in turn in one process; the ratio is PyTorch's median time over ours, so above 1 we are faster. Both first show that
they compute the same. PyTorch is needed: `pip install torch`. Run `python benchmarks/low_level.py`.
"""

import statistics
import time

import numpy as np
import torch

from course import tasks
from levels.kernels import counted
from levels.low_level import GradientTape, Variable, clip, constant, gather, log, reduce_mean
from levels.low_level.tasks import dnn

TASK, RATE = tasks.rings(), 0.01


def ours(dtype):
    """A function that trains one step on these rows and gives the loss."""
    x, y = constant(TASK.x.astype(dtype)), constant(TASK.y.astype(dtype))
    weights = [Variable(w.astype(dtype)) for w in TASK.weights]

    def step(numbers):
        i = constant(numbers)
        rows, target = gather(x, i), gather(y, i)
        with GradientTape() as tape:
            c = clip(dnn(rows, weights), 1e-7, 1.0 - 1e-7)
            loss = -reduce_mean(target * log(c) + (1.0 - target) * log(1.0 - c))
        for w, dw in zip(weights, tape.gradient(loss, weights), strict=True):
            w.assign(w - RATE * dw)
        return loss

    return step


def theirs(dtype):
    """The same in PyTorch."""
    x, y = torch.from_numpy(TASK.x.astype(dtype)), torch.from_numpy(TASK.y.astype(dtype))
    weights = [torch.from_numpy(w.astype(dtype)).requires_grad_() for w in TASK.weights]
    w1, b1, w2, b2, w3, b3 = weights

    def step(numbers):
        i = torch.from_numpy(numbers)
        rows, target = x[i], y[i]
        h = torch.relu(torch.relu(rows @ w1 + b1) @ w2 + b2)
        c = torch.clamp(torch.sigmoid(h @ w3 + b3), 1e-7, 1.0 - 1e-7)
        loss = -(target * torch.log(c) + (1.0 - target) * torch.log(1.0 - c)).mean()
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for w, dw in zip(weights, gradients, strict=True):
                w.copy_(w - RATE * dw)
        return loss.detach()

    return step


def main():
    torch.set_num_threads(1)
    batches = np.asarray(TASK.batches[:200], np.int64)
    for dtype in ("float32", "float64"):
        mine, peer = ours(dtype), theirs(dtype)
        losses = [(float(mine(numbers)), float(peer(numbers))) for numbers in batches]
        np.testing.assert_allclose(*zip(*losses, strict=True), 1e-4 if dtype == "float32" else 1e-12)
        times = {mine: [], peer: []}
        for _ in range(21):
            for step, own in times.items():
                start = time.perf_counter()
                for numbers in batches:
                    step(numbers)
                own.append((time.perf_counter() - start) / len(batches) * 1e6)
        own, other = (statistics.median(each) for each in times.values())
        launches, _ = counted(lambda mine=mine: mine(batches[0]))
        ratio = f"{dtype}: {launches} launches, {own:.0f} µs a step, PyTorch {other:.0f} µs: {other / own:.2f} times"
        print(f"{ratio}   bar 2  {'ok' if other >= 2 * own else 'MISSED'}")


if __name__ == "__main__":
    main()
