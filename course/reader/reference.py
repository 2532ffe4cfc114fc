"""Both tasks in plain Python floats: the arithmetic of record. Every level gives the same numbers, compared with `==`.

It does not use NumPy. A number is a float, a matrix is a list of rows. Sums start at 0.0 and add from the first element
on; a mean divides by n. `exp` and `log` are arguments, so that the course's own functions can be passed.
"""

import math


def dot(a, b):
    """Return 0.0 + a[0]·b[0] + a[1]·b[1] + …, added in that order."""
    total = 0.0
    for p, q in zip(a, b, strict=True):
        total = total + p * q
    return total


def layer(inputs, w, b):
    """Return a dense layer's output for one row: out[j] = Σ inputs[k]·w[k][j] + b[0][j]. The bias is added last."""
    return [dot(inputs, column) + bias for column, bias in zip(zip(*w, strict=True), b[0], strict=True)]


def add_outer(total, column, row):
    """Add an outer product in place: total[k][j] += column[k]·row[j]."""
    for k, p in enumerate(column):
        for j, q in enumerate(row):
            total[k][j] = total[k][j] + p * q


def zeros_like(weights):
    return [[[0.0 for _ in row] for row in w] for w in weights]


def descend(weights, gradients, learning_rate):
    """Return w - learning_rate·dw for every number of every weight, as new lists."""
    return [
        [[p - learning_rate * q for p, q in zip(row, drow, strict=True)] for row, drow in zip(w, dw, strict=True)]
        for w, dw in zip(weights, gradients, strict=True)
    ]


def linear_step(x, y, weights):
    """Return the loss (Σ e·e) / n of one batch and its gradients [dw, db].

    e·e is a product of two factors e: the chain rule passes g·e to each, so de = g·e + g·e."""
    w, b = weights
    n, total, (dw, db) = float(len(x)), 0.0, zeros_like(weights)
    for row, (target,) in zip(x, y, strict=True):
        (z,) = layer(row, w, b)  # forward
        e = z - target  # loss
        total = total + e * e
        g = 1.0 / n  # backward
        de = g * e + g * e
        add_outer(dw, row, [de])
        add_outer(db, [1.0], [de])
    return total / n, [dw, db]


def dnn_step(x, y, weights, exp, log):
    """Return the binary cross-entropy of one batch and its gradients [dw1, db1, dw2, db2, dw3, db3]."""
    w1, b1, w2, b2, w3, b3 = weights
    n, total, (dw1, db1, dw2, db2, dw3, db3) = float(len(x)), 0.0, zeros_like(weights)
    for row, (target,) in zip(x, y, strict=True):
        h1 = [0.0 if z <= 0.0 else z for z in layer(row, w1, b1)]  # forward
        h2 = [0.0 if z <= 0.0 else z for z in layer(h1, w2, b2)]
        (z,) = layer(h2, w3, b3)
        p = 1.0 / (1.0 + exp(0.0 - z))
        c = min(max(p, 1e-7), 1.0 - 1e-7)  # loss
        total = total + (target * log(c) + (1.0 - target) * log(1.0 - c))
        g = -1.0 / n  # backward
        dc = g * target / c - g * (1.0 - target) / (1.0 - c)
        dp = dc if 1e-7 < p < 1.0 - 1e-7 else 0.0
        dz = [dp * p * (1.0 - p)]
        dh2 = [0.0 if h <= 0.0 else dot(dz, w) for h, w in zip(h2, w3, strict=True)]
        dh1 = [0.0 if h <= 0.0 else dot(dh2, w) for h, w in zip(h1, w2, strict=True)]
        for dw, db, inputs, d in ((dw1, db1, row, dh1), (dw2, db2, h1, dh2), (dw3, db3, h2, dz)):
            add_outer(dw, inputs, d)
            add_outer(db, [1.0], d)
    return 0.0 - total / n, [dw1, db1, dw2, db2, dw3, db3]


def train(step, x, y, weights, batches, learning_rate):
    """Run `step` on every batch, and return (losses, weights). Arrays are accepted and converted to lists."""
    x, y = ([[float(v) for v in row] for row in rows] for rows in (x, y))
    weights, losses = [[[float(v) for v in row] for row in w] for w in weights], []  # model
    for rows in batches:
        loss, gradients = step([x[i] for i in rows], [y[i] for i in rows], weights)
        weights = descend(weights, gradients, learning_rate)  # update
        losses.append(loss)
    return losses, weights


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Train linear regression: mean squared error, stochastic gradient descent. Returns (losses, weights)."""
    return train(linear_step, x, y, weights, batches, learning_rate)


def dnn_classifier(x, y, weights, batches, learning_rate=0.01, exp=math.exp, log=math.log):
    """Train features-4-8-1 (relu, relu, sigmoid): binary cross-entropy, SGD. Returns (losses, weights)."""
    return train(lambda x, y, w: dnn_step(x, y, w, exp, log), x, y, weights, batches, learning_rate)
