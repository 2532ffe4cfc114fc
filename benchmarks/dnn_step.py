"""A step of the rings' DNN, float32, batch 100: level 1's whole run against eager PyTorch and NumPy, in one process.

Each peer first proves that it computes the same: its weights after one epoch. Then all run in turn, and the medians'
ratios are printed. One thread each. PyTorch is optional: `pip install torch`, then `python benchmarks/dnn_step.py`.
"""

import statistics
import time

import numpy as np

from course import tasks
from levels.hardware.tasks import dnn_classifier

RINGS = tasks.rings()
X, Y = RINGS.x.astype("f4"), RINGS.y.astype("f4")
WEIGHTS = [w.astype("f4") for w in RINGS.weights]


def level_1(batches):
    return dnn_classifier(X, Y, WEIGHTS, batches, RINGS.learning_rate).weights


def numpy_in_place(batches):
    weights, rate = [w.copy() for w in WEIGHTS], np.float32(RINGS.learning_rate)
    w1, b1, w2, b2, w3, b3 = weights
    for rows in batches:
        x, y = X[rows], Y[rows]
        h1 = np.maximum(x @ w1 + b1, 0)
        h2 = np.maximum(h1 @ w2 + b2, 0)
        p = 1 / (1 + np.exp(-(h2 @ w3 + b3)))
        c = np.clip(p, 1e-7, 1 - 1e-7)
        -np.mean(y * np.log(c) + (1 - y) * np.log(1 - c))
        dz = (p - y) / np.float32(len(y))
        dh2 = (dz @ w3.T) * (h2 > 0)
        dh1 = (dh2 @ w2.T) * (h1 > 0)
        for w, b, inputs, d in ((w1, b1, x, dh1), (w2, b2, h1, dh2), (w3, b3, h2, dz)):
            w -= rate * (inputs.T @ d)
            b -= rate * d.sum(axis=0)
    return weights


def eager_pytorch(batches):
    import torch

    torch.set_num_threads(1)
    x_all, y_all = torch.from_numpy(X), torch.from_numpy(Y)
    weights = [torch.tensor(w, requires_grad=True) for w in WEIGHTS]
    w1, b1, w2, b2, w3, b3 = weights
    optimizer, loss_of = torch.optim.SGD(weights, lr=RINGS.learning_rate), torch.nn.BCELoss()
    for rows in torch.from_numpy(batches):
        x, y = x_all[rows], y_all[rows]
        h2 = torch.relu(torch.relu(x @ w1 + b1) @ w2 + b2)
        loss = loss_of(torch.sigmoid(h2 @ w3 + b3), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [w.detach().numpy() for w in weights]


def main(repeats=9):
    epoch, peers = RINGS.batches[:40], {}
    for peer in (level_1, numpy_in_place, eager_pytorch):
        try:
            weights = peer(epoch)
        except ImportError as error:
            print(f"{peer.__name__}: skipped ({error})")
            continue
        distance = max(float(np.abs(p - q).max()) for p, q in zip(weights, level_1(epoch), strict=True))
        if distance > 1e-4:
            raise SystemExit(
                f"{peer.__name__} computes something else: weights differ by {distance:.1e} after an epoch"
            )
        peers[peer] = []
    for _ in range(repeats):
        for peer, times in peers.items():
            batches = RINGS.batches[:24000] if peer is level_1 else RINGS.batches[:400]
            start = time.perf_counter()
            peer(batches)
            times.append((time.perf_counter() - start) / len(batches) * 1e6)
    base = statistics.median(peers[level_1])
    for peer, times in peers.items():
        median = statistics.median(times)
        spread = f"{min(times):.2f} to {max(times):.2f}"
        print(f"{peer.__name__:16} {median:8.2f} µs a step ({spread}), {median / base:6.1f} times level 1")


if __name__ == "__main__":
    main()
