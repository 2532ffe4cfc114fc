"""PyTorch: a usual loop, and one whose whole step torch.compile makes one graph of."""

import os

import numpy as np
import torch
from torch import nn

from course.author.bench.formulas import BETAS, EPSILON, corrected, loss, net, update
from course.author.bench.peers.numpy import one_op
from course.author.bench.work import Trainer

NAME, VERSION, PACKAGES = "PyTorch", torch.__version__, ["torch", "numpy"]
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
LOSSES = {"mse": nn.MSELoss, "bce": nn.BCEWithLogitsLoss, "cross_entropy": nn.CrossEntropyLoss}


def eager(work):
    """A module, a loss and an optimizer; `fused`, because it is the quickest."""
    pairs = list(zip(work.weights[::2], work.weights[1::2], strict=True))
    layers = [part for w, _ in pairs for part in (nn.Linear(*w.shape), nn.ReLU())][:-1]
    model, loss_of = nn.Sequential(*layers), LOSSES[work.loss]()
    with torch.no_grad():
        for layer, (w, b) in zip(layers[::2], pairs, strict=True):
            layer.weight.copy_(torch.tensor(w.T))
            layer.bias.copy_(torch.tensor(b[0]))
    if work.optimizer == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), work.rate, fused=True)
    else:
        optimizer = torch.optim.Adam(model.parameters(), work.rate, eps=EPSILON, fused=True)
    x, y = torch.tensor(work.x), torch.tensor(work.y)
    target = y.argmax(1) if work.loss == "cross_entropy" else y

    def step(rows):
        value = loss_of(model(x[rows]), target[rows])
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        return value.detach()

    def epoch(order):
        return torch.stack([step(rows) for rows in torch.from_numpy(work.batches(order))]).numpy()

    def weights():
        found = (layer.detach().numpy() for layer in model.parameters())
        return [w.T if w.ndim == 2 else w[None] for w in found]

    return Trainer(epoch, weights)


def compiled(work):
    """Gather, forward, backward and update in one graph, which changes the weights in place."""
    x, y = torch.tensor(work.x), torch.tensor(work.y)
    weights, betas = [torch.tensor(w) for w in work.weights], BETAS[work.optimizer]
    moments = [[torch.zeros_like(w) for _ in betas] for w in weights]
    corrections = [torch.zeros(()) for _ in betas]

    def value(weights, rows, target):
        return loss(LIB, work.loss, net(LIB, rows, weights), target)

    @torch.compile(fullgraph=True)
    def step(rows):
        gradients, losses = torch.func.grad_and_value(value)(weights, x[rows], y[rows])
        for c, beta in zip(corrections, betas, strict=True):
            c.copy_(corrected(beta, c))
        for w, dw, mv in zip(weights, gradients, moments, strict=True):
            new, new_mv = update(LIB, work.rate, w, dw, mv, corrections)
            for old, tensor in zip((w, *mv), (new, *new_mv), strict=True):
                old.copy_(tensor)
        return losses

    def epoch(order):
        return torch.stack([step(rows) for rows in torch.from_numpy(work.batches(order))]).numpy()

    return Trainer(epoch, lambda: [w.numpy() for w in weights])


class LIB:
    relu, sigmoid, clip, log, mean, sum, sqrt = (
        staticmethod(getattr(torch, name)) for name in ("relu", "sigmoid", "clip", "log", "mean", "sum", "sqrt")
    )
    log_softmax = staticmethod(lambda z: torch.log_softmax(z, -1))


def kernel(work):
    x, y, out = torch.tensor(work.x), torch.tensor(work.y), torch.empty(() if work.loss == "sum" else work.x.shape)
    call = {
        "add": lambda: torch.add(x, y, out=out),
        "exp": lambda: torch.exp(x, out=out),
        "sum": lambda: torch.sum(x, (), out=out),
        "matmul": lambda: torch.matmul(x, y, out=out),
    }[work.loss]
    return one_op(call, lambda: np.asarray(out))


MODES = {"eager": ("eager", eager), "torch.compile": ("step", compiled), "kernel": ("kernel", kernel)}
