"""The net, its losses and the optimizers once, for every library that has these names: relu, sigmoid, clip, log, mean, sum, …"""


def pairs(weights):
    return list(zip(weights[::2], weights[1::2], strict=True))


def net(lib, x, weights):
    """x [batch, inputs] -> [batch, outputs], before the last activation."""
    *hidden, last = pairs(weights)
    for w, b in hidden:
        x = lib.relu(x @ w + b)
    return x @ last[0] + last[1]


def loss(lib, name, z, y):
    """The mean squared error, or the crossentropy of sigmoid(z) or softmax(z)."""
    if name == "mse":
        return lib.mean((z - y) * (z - y))
    if name == "bce":
        c = lib.clip(lib.sigmoid(z), 1e-7, 1.0 - 1e-7)
        return -lib.mean(y * lib.log(c) + (1.0 - y) * lib.log(1.0 - c))
    return -lib.mean(lib.sum(y * lib.log_softmax(z), -1))


BETAS = {"sgd": (), "adam": (0.9, 0.999)}  # of the moments that an optimizer keeps of each gradient
EPSILON = 1e-13  # of Adam: so small that it does not matter whether a library adds it before or after the correction


def corrected(beta, c):
    """1 - betaᵗ, from the c of the step before, 0 at first. (1 - 0.999ᵗ from the power, in float32, is wrong in its fifth digit.)"""
    return beta * c + (1.0 - beta)


def update(lib, rate, w, dw, moments, corrections):
    """The new w and moments. Without moments SGD, with two Adam (Kingma and Ba, 2015), and a correction for each."""
    if not moments:
        return w - rate * dw, ()
    (m, v), (b1, b2), (c1, c2) = moments, BETAS["adam"], corrections
    m, v = b1 * m + (1.0 - b1) * dw, b2 * v + (1.0 - b2) * (dw * dw)
    return w - rate * (m / c1) / (lib.sqrt(v / c2) + EPSILON), (m, v)
