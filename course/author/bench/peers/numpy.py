"""NumPy, gradients by hand: as one writes it first, and as somebody writes it who makes every array only once."""

import numpy as np

from course.author.bench.formulas import BETAS, EPSILON, pairs
from course.author.bench.work import Trainer

NAME, VERSION, PACKAGES = "NumPy", np.__version__, ["numpy"]


def loss_and_slope(name, z, y):
    """The loss of a batch, and its gradient by z."""
    n = len(z)
    if name == "mse":
        e = z - y
        return (e * e).sum() / n, 2 * e / n
    if name == "bce":
        p = 1 / (1 + np.exp(-z))
        c = np.clip(p, 1e-7, 1 - 1e-7)
        return -(y * np.log(c) + (1 - y) * np.log(1 - c)).sum() / n, (p - y) / n
    shifted = z - z.max(axis=1, keepdims=True)
    e = np.exp(shifted)
    total = e.sum(axis=1, keepdims=True)
    return -(y * (shifted - np.log(total))).sum() / n, (e / total - y) / n


def naive(work):
    """Every operation makes a new array."""
    weights, (rate, kept) = [w.copy() for w in work.weights], (work.rate, BETAS[work.optimizer])
    moments, steps = [[np.zeros_like(w) for _ in kept] for w in weights], 0

    def step(rows):
        nonlocal steps, weights
        h, y = [work.x[rows]], work.y[rows]
        for w, b in pairs(weights)[:-1]:
            h.append(np.maximum(h[-1] @ w + b, 0))
        loss, d = loss_and_slope(work.loss, h[-1] @ weights[-2] + weights[-1], y)
        gradients = []
        for k in reversed(range(len(h))):
            gradients = [h[k].T @ d, d.sum(axis=0, keepdims=True), *gradients]
            if k:
                d = (d @ weights[2 * k].T) * (h[k] > 0)
        steps += 1
        weights = [w - delta(dw, *mv) for w, dw, mv in zip(weights, gradients, moments, strict=True)]
        return loss

    def delta(dw, m=None, v=None):
        if m is None:
            return rate * dw
        m[...] = 0.9 * m + 0.1 * dw
        v[...] = 0.999 * v + 0.001 * dw * dw
        return rate * (m / (1 - 0.9**steps)) / (np.sqrt(v / (1 - 0.999**steps)) + EPSILON)

    return Trainer(lambda order: [step(rows) for rows in work.batches(order)], lambda: weights)


class InPlace:
    """Every array is made once, and every result is written into one."""

    def __init__(self, work):
        self.work, self.weights, self.steps = work, [w.copy() for w in work.weights], 0
        self.m, self.v, self.g, self.t1, self.t2 = ([np.zeros_like(w) for w in self.weights] for _ in range(5))
        widths, batch, dtype = [len(w) for w in self.weights[::2]], work.batch, work.x.dtype
        widths.append(self.weights[-1].shape[1])
        self.h, self.d = ([np.empty((batch, n), dtype) for n in widths] for _ in "hd")
        self.on, self.y = [np.empty((batch, n), bool) for n in widths], np.empty((batch, widths[-1]), dtype)
        self.p, self.log = np.empty_like(self.y), np.empty_like(self.y)
        self.one = np.empty((batch, 1), dtype)

    def step(self, rows):
        h, w, y = self.h, self.weights, self.y
        np.take(self.work.x, rows, 0, h[0], mode="clip")  # the other modes buffer the result
        np.take(self.work.y, rows, 0, y, mode="clip")
        last = len(h) - 2
        for k in range(last + 1):
            np.matmul(h[k], w[2 * k], h[k + 1])
            h[k + 1] += w[2 * k + 1]
            if k < last:
                np.maximum(h[k + 1], 0, out=h[k + 1])
        loss = getattr(self, self.work.loss)(h[-1], self.d[-1], y) / len(y)
        self.backward(last)
        self.steps += 1
        for group in zip(w, self.g, self.m, self.v, self.t1, self.t2, strict=True):
            getattr(self, self.work.optimizer)(*group)
        return loss

    def mse(self, z, d, y):
        np.subtract(z, y, d)
        np.multiply(d, d, self.p)
        d *= 2 / len(y)
        return self.p.sum()

    def bce(self, z, d, y):
        p, c, log = self.p, self.d[-1], self.log
        np.negative(z, p)
        np.exp(p, p)
        p += 1
        np.reciprocal(p, p)
        np.clip(p, 1e-7, 1 - 1e-7, out=c)
        np.log(c, log)
        log *= y
        loss = log.sum()
        np.subtract(1, c, c)
        np.log(c, c)
        np.subtract(1, y, log)
        log *= c
        loss += log.sum()
        np.subtract(p, y, d)  # sigmoid and logarithm cancel
        d /= len(y)
        return -loss

    def cross_entropy(self, z, d, y):
        np.max(z, 1, self.one, keepdims=True)
        z -= self.one
        np.exp(z, d)
        np.sum(d, 1, out=self.one, keepdims=True)
        d /= self.one
        np.log(self.one, self.one)
        z -= self.one
        np.multiply(y, z, self.p)
        d -= y
        d /= len(y)
        return -self.p.sum()

    def backward(self, last):
        for k in reversed(range(last + 1)):
            np.matmul(self.h[k].T, self.d[k + 1], self.g[2 * k])
            np.sum(self.d[k + 1], 0, keepdims=True, out=self.g[2 * k + 1])
            if k:
                np.matmul(self.d[k + 1], self.weights[2 * k].T, self.d[k])
                np.greater(self.h[k], 0, out=self.on[k])
                self.d[k] *= self.on[k]

    def sgd(self, w, g, m, v, t1, t2):
        g *= self.work.rate
        w -= g

    def adam(self, w, g, m, v, t1, t2):
        m *= 0.9
        np.multiply(g, 0.1, t1)
        m += t1
        v *= 0.999
        g *= g
        g *= 0.001
        v += g
        np.divide(v, 1 - 0.999**self.steps, t1)
        np.sqrt(t1, t1)
        t1 += EPSILON
        np.divide(m, t1, t2)
        t2 *= self.work.rate / (1 - 0.9**self.steps)
        w -= t2

    def epoch(self, order):
        return [self.step(rows) for rows in self.work.batches(order)]


def in_place(work):
    own = InPlace(work)
    return Trainer(own.epoch, lambda: own.weights)


def kernel(work):
    """One op on x and y, into an array that is there."""
    x, y, op = work.x, work.y, work.loss
    out = np.empty((), x.dtype) if op == "sum" else np.empty_like(x)
    call = {
        "add": lambda: np.add(x, y, out),
        "exp": lambda: np.exp(x, out),
        "sum": lambda: np.sum(x, out=out),
        "matmul": lambda: np.matmul(x, y, out),
    }[op]
    return one_op(call, lambda: out)


def one_op(call, result):
    """A Trainer whose epoch is one call of an op."""

    def run(times):
        for _ in range(times):
            call()
        return 0.0  # in the place of a loss

    return Trainer(lambda order: run(1), lambda: [result()], run)


MODES = {"naive": ("by hand", naive), "in place": ("by hand", in_place), "kernel": ("kernel", kernel)}
