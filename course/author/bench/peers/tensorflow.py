"""TensorFlow and Keras: op by op, a step or an epoch as a tf.function, and Keras' fit."""

import os

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import tensorflow as tf

from course.author.bench.formulas import BETAS, EPSILON, corrected, loss, net, update
from course.author.bench.peers.numpy import one_op
from course.author.bench.work import Trainer

NAME, VERSION = "TensorFlow", f"{tf.__version__}, Keras {keras.__version__}"
PACKAGES = ["tensorflow", "tensorflow-cpu"]
THREADS = int(os.environ["OMP_NUM_THREADS"])
tf.config.threading.set_intra_op_parallelism_threads(THREADS)
tf.config.threading.set_inter_op_parallelism_threads(THREADS)


class LIB:
    relu, sigmoid, log_softmax = tf.nn.relu, tf.sigmoid, tf.nn.log_softmax
    clip, log, mean, sum, sqrt = tf.clip_by_value, tf.math.log, tf.reduce_mean, tf.reduce_sum, tf.sqrt


def by_tensors(work):
    """step(rows of x and y) -> loss, and what gives the weights."""
    x, y, betas = tf.constant(work.x), tf.constant(work.y), BETAS[work.optimizer]
    weights = [tf.Variable(w) for w in work.weights]
    moments = [[tf.Variable(tf.zeros_like(w)) for _ in betas] for w in weights]
    corrections = [tf.Variable(0.0) for _ in betas]

    def step(rows):
        data, target = tf.gather(x, rows), tf.gather(y, rows)
        with tf.GradientTape() as tape:
            value = loss(LIB, work.loss, net(LIB, data, weights), target)
        for c, beta in zip(corrections, betas, strict=True):
            c.assign(corrected(beta, c))
        for w, dw, mv in zip(weights, tape.gradient(value, weights), moments, strict=True):
            new, new_mv = update(LIB, work.rate, w, dw, mv, corrections)
            for variable, tensor in zip((w, *mv), (new, *new_mv), strict=True):
                variable.assign(tensor)
        return value

    return step, lambda: [w.numpy() for w in weights]


def eager(work):
    step, weights = by_tensors(work)
    return Trainer(step_by_step(work, step), weights)


def step_by_step(work, step):
    return lambda order: [float(value) for value in [step(rows) for rows in tf.constant(work.batches(order))]]


def function(work):
    step, weights = by_tensors(work)
    return Trainer(step_by_step(work, tf.function(step)), weights)


def xla(work):
    step, weights = by_tensors(work)
    return Trainer(step_by_step(work, tf.function(step, jit_compile=True)), weights)


def whole_epoch(work):
    """One tf.function goes through all batches."""
    step, weights = by_tensors(work)

    @tf.function
    def run(batches):
        losses = tf.TensorArray(tf.float32, len(batches))
        for i in tf.range(tf.shape(batches)[0]):
            losses = losses.write(i, step(batches[i]))
        return losses.stack()

    return Trainer(lambda order: run(tf.constant(work.batches(order))).numpy(), weights)


LOSSES = {
    "mse": keras.losses.MeanSquaredError,
    "bce": keras.losses.BinaryCrossentropy,
    "cross_entropy": lambda: keras.losses.CategoricalCrossentropy(from_logits=True),
}


def fit(work):
    *hidden, outputs = (w.shape[1] for w in work.weights[::2])
    layers = [keras.layers.Dense(n, "relu") for n in hidden]
    layers.append(keras.layers.Dense(outputs, "sigmoid" if work.loss == "bce" else None))
    model = keras.Sequential([keras.Input((work.x.shape[1],)), *layers])
    model.set_weights([w[0] if k % 2 else w for k, w in enumerate(work.weights)])
    sgd = work.optimizer == "sgd"
    optimizer = keras.optimizers.SGD(work.rate) if sgd else keras.optimizers.Adam(work.rate, epsilon=EPSILON)
    model.compile(optimizer, LOSSES[work.loss]())

    def run(x, y, epochs=1, shuffle=False):
        return model.fit(x, y, work.batch, epochs, shuffle=shuffle, verbose=0).history["loss"]

    return Trainer(
        lambda order: run(work.x[order], work.y[order]),
        lambda: [w if w.ndim == 2 else w[None] for w in model.get_weights()],
        lambda epochs: run(work.x, work.y, epochs, shuffle=True),
    )


def kernel(work):
    x, y, held = tf.constant(work.x), tf.constant(work.y), [None]
    op = {
        "add": lambda: tf.add(x, y),
        "exp": lambda: tf.exp(x),
        "sum": lambda: tf.reduce_sum(x),
        "matmul": lambda: tf.matmul(x, y),
    }[work.loss]

    def call():
        held[0] = op()

    return one_op(call, lambda: np.asarray(held[0]))


MODES = {
    "eager": ("eager", eager),
    "tf.function": ("step", function),
    "tf.function, XLA": ("step", xla),
    "tf.function, epoch": ("epoch", whole_epoch),
    "Keras fit": ("fit", fit),
    "Keras fit again": ("again", lambda work: fit(work)._replace(fit=None)),
    "kernel": ("kernel", kernel),
}
