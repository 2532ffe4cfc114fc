"""This course, at each of its levels."""

from types import SimpleNamespace

import numpy as np

import levels_more.low_level as low
from course.author.bench.formulas import BETAS, EPSILON, corrected, loss, net, update
from course.author.bench.peers.numpy import one_op
from course.author.bench.work import Trainer
from levels_more.hardware import Assembler, Lanes, pool
from levels_more.hardware import tasks as hardware
from levels_more.high_level import Sequential
from levels_more.kernels import launch
from levels_more.kernels import tasks as kernels
from levels_more.low_level import GradientTape, Variable, constant, function, gather
from levels_more.mid_level import (
    SGD,
    Adam,
    BinaryCrossentropy,
    CategoricalCrossentropy,
    Dataset,
    Dense,
    MeanSquaredError,
)

NAME, VERSION, PACKAGES = "levels", "", ["numpy", "numba", "llvmlite"]
LIB = SimpleNamespace(**vars(low) | {"mean": low.reduce_mean, "sum": low.reduce_sum, "log_softmax": low.log_softmax})
NETS = {"mse": [1], "bce": [4, 8, 1]}  # what levels 1 and 2 train


def check_net(work):
    if [w.shape[1] for w in work.weights[::2]] != NETS.get(work.loss) or work.optimizer != "sgd":
        raise NotImplementedError("levels 1 and 2 train the course's two tasks, with SGD")


def level_1(work):
    """The assembled program, bound to the batches of each epoch."""
    check_net(work)
    cpu, dtype = pool()["cpu:0"], work.x.dtype
    weights = [cpu.put(w) for w in work.weights]
    a = Lanes("train", dtype) if dtype == np.float32 else Assembler("train", dtype)
    row = hardware.line_row if work.loss == "mse" else hardware.net_row
    hardware.write_steps(a, row, [w.shape for w in weights])
    program = a.assemble()
    given = {"x": cpu.put(work.x), "y": cpu.put(work.y), "rate": work.rate}
    given |= {f"w{k}": w for k, w in enumerate(weights)}

    def epoch(order):
        batches = cpu.put(work.batches(order))
        losses = cpu.alloc((len(batches.data),), dtype)
        program(batches=batches, losses=losses, **given)
        return losses.data

    return Trainer(epoch, lambda: [w.numpy() for w in weights])


def level_2(work):
    check_net(work)
    train, weights = kernels.linear_regression if work.loss == "mse" else kernels.dnn_classifier, work.weights

    def epoch(order):
        nonlocal weights
        fit = train(work.x, work.y, weights, work.batches(order), work.rate)
        weights = fit.weights
        return fit.losses

    return Trainer(epoch, lambda: weights)


def by_tensors(work):
    """A step of level 3, formulas and optimizer by hand: step(rows, target) -> loss, and the variables."""
    weights, betas = [Variable(w) for w in work.weights], BETAS[work.optimizer]
    moments = [[Variable(np.zeros_like(w)) for _ in betas] for w in work.weights]
    corrections = [Variable(np.zeros((), work.x.dtype)) for _ in betas]

    def step(rows, target):
        with GradientTape() as tape:
            value = loss(LIB, work.loss, net(LIB, rows, weights), target)
        gradients = tape.gradient(value, weights)
        for c, beta in zip(corrections, betas, strict=True):
            c.assign(corrected(beta, c))
        for w, dw, mv in zip(weights, gradients, moments, strict=True):
            new, new_mv = update(LIB, work.rate, w, dw, mv, corrections)
            for variable, value_ in zip((w, *mv), (new, *new_mv), strict=True):
                variable.assign(value_)
        return value

    return step, lambda: [w.numpy() for w in weights]


def level_3_eager(work):
    """Each step as it stands, op by op."""
    step, weights = by_tensors(work)
    x, y = constant(work.x), constant(work.y)

    def epoch(order):
        indices = (constant(rows) for rows in work.batches(order))
        return [float(loss) for loss in [step(gather(x, i), gather(y, i)) for i in indices]]

    return Trainer(epoch, weights)


def level_3_step(work):
    """Compiled; Python calls each step."""
    step, weights = by_tensors(work)
    step, x, y = function(step), constant(work.x), constant(work.y)

    def epoch(order):
        losses = [step(gather(x, i), gather(y, i)) for i in map(constant, work.batches(order))]
        return [float(loss) for loss in losses]

    return Trainer(epoch, weights)


def level_3_epoch(work):
    """Compiled; an epoch in one call."""
    step, weights = by_tensors(work)
    step, x, y = function(step), constant(work.x), constant(work.y)
    return Trainer(lambda order: step.over(x, y, work.batches(order)).numpy(), weights)


LOSSES = {
    "mse": MeanSquaredError,
    "bce": lambda: BinaryCrossentropy(from_logits=True),
    "cross_entropy": lambda: CategoricalCrossentropy(from_logits=True),
}


def layers_of(work):
    """Dense layers, as a user writes them."""
    *hidden, outputs = (w.shape[1] for w in work.weights[::2])
    return [*(Dense(n, "relu") for n in hidden), Dense(outputs)]


def optimizer_of(work):
    return SGD(work.rate) if work.optimizer == "sgd" else Adam(work.rate, epsilon=EPSILON)


def by_layers(work):
    """A step of level 4, by layers, a loss and an optimizer: step(rows, target) -> loss, and the variables."""
    layers, loss_of, optimizer = layers_of(work), LOSSES[work.loss](), optimizer_of(work)
    for layer, w, b in zip(layers, work.weights[::2], work.weights[1::2], strict=True):
        layer.build((None, len(w)))
        layer.set_weights([w, b])
    variables = [v for layer in layers for v in layer.trainable_variables]

    def step(x, y):
        with GradientTape() as tape:
            for layer in layers:
                x = layer(x, training=True)
            value = loss_of(y, x)
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))
        return value

    return step, lambda: [v.numpy() for v in variables]


def level_4_eager(work):
    """Op by op, in a loop over a Dataset."""
    step, weights = by_layers(work)
    x, y = constant(work.x), constant(work.y)

    def epoch(order):
        data = Dataset.from_batches(x, y, work.batches(order))
        return [float(loss) for loss in [step(*batch) for batch in data]]

    return Trainer(epoch, weights)


def level_4(work):
    """The same, compiled, and a shuffled Dataset."""
    step, weights = by_layers(work)
    step, x, y = function(step), constant(work.x), constant(work.y)
    data = Dataset.from_tensor_slices((x, y)).shuffle(len(work.x)).batch(work.batch)

    def run(data):
        arrays, batches = data.rows()
        return step.over(*arrays, batches).numpy()

    def fit(epochs):
        for _ in range(epochs):
            run(data)

    return Trainer(lambda order: run(Dataset.from_batches(x, y, work.batches(order))), weights, fit)


def level_5(work):
    model = Sequential(layers_of(work))
    model.build((None, work.x.shape[1]))
    model.set_weights(work.weights)
    model.compile(optimizer_of(work), LOSSES[work.loss]())
    return Trainer(
        lambda order: model.fit(work.x[order], work.y[order], work.batch, shuffle=False, verbose=0).losses,
        model.get_weights,
        lambda epochs: model.fit(work.x, work.y, work.batch, epochs, verbose=0),
    )


OPS = {"add": "add", "exp": "exp", "sum": "reduce_sum", "matmul": "matmul"}


def kernel(work):
    """A launch of level 2."""
    cpu, op = pool()["cpu:0"], OPS[work.loss]
    inputs = [cpu.put(a) for a in ((work.x, work.y) if work.loss in ("add", "matmul") else (work.x,))]
    out = cpu.alloc(() if work.loss == "sum" else work.x.shape, work.x.dtype)
    x, y = inputs if len(inputs) == 2 else (*inputs, None)
    call = (lambda: launch(op, out, x)) if y is None else lambda: launch(op, out, x, y)
    return one_op(call, lambda: out.numpy())


MODES = {
    "1": ("by hand", level_1),
    "2": ("by hand", level_2),
    "3 eager": ("eager", level_3_eager),
    "3 function": ("step", level_3_step),
    "3 function.over": ("epoch", level_3_epoch),
    "4 eager": ("eager", level_4_eager),
    "4": ("epoch", level_4),
    "5 fit": ("fit", level_5),
    "5 fit again": ("again", lambda work: level_5(work)._replace(fit=None)),
    "2 kernel": ("kernel", kernel),
}
