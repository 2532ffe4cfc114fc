"""Chapter 3-1 of "eat tensorflow2 in 30 days", the line: with the calls of its edition of 2020-05-07 (commit 679a597f).

The stored losses are those of TensorFlow 2.21.0 with Keras 3.15.1.
"""

import numpy as np
import tensorflow as tf

from course import tasks

task = tasks.linear()
np.random.seed(3)
x, y = tf.constant(task.x), tf.constant(task.y)
w = tf.Variable(task.weights[0])
b = tf.Variable(tf.zeros_like(task.weights[1], dtype=tf.float64))


@tf.function
def clock():
    """Print the time of day, hh:mm:ss."""

    def two_digits(number):
        text = tf.strings.format("{}", number)
        if tf.strings.length(text) == 1:
            return tf.strings.format("0{}", number)
        else:
            return text

    now = tf.timestamp() % (24 * 60 * 60)
    hour = tf.cast(now // 3600 + 1, tf.int32) % tf.constant(24)
    minute = tf.cast(now % 3600 // 60, tf.int32)
    second = tf.cast(tf.floor(now % 60), tf.int32)
    tf.print("-" * 60, tf.strings.join([two_digits(hour), two_digits(minute), two_digits(second)], separator=":"))


def batches(features, labels, batch_size=8):
    """Batches of the rows in a new order each time; NumPy's draws are the same everywhere."""
    rows = list(range(len(features)))
    np.random.shuffle(rows)
    for first in range(0, len(rows), batch_size):
        chosen = rows[first : first + batch_size]
        yield tf.gather(features, chosen), tf.gather(labels, chosen)


class Line:
    def __call__(self, x):
        return x @ w + b

    def loss(self, y_true, y_pred):
        return tf.reduce_mean((y_true - y_pred) ** 2 / 2)


def step(model, features, labels):
    with tf.GradientTape() as tape:
        prediction = model(features)
        loss = model.loss(labels, prediction)
    dw, db = tape.gradient(loss, [w, b])
    w.assign(w - 0.001 * dw)
    b.assign(b - 0.001 * db)
    return loss


def train(step, epochs):
    for epoch in tf.range(1, epochs + 1):
        for features, labels in batches(x, y, 10):
            loss = step(model, features, labels)
        if epoch % 50 == 0:
            clock()
            tf.print("epoch", epoch, "loss", loss, "w", w, "b", b)
            losses.append(float(loss))


model = Line()
losses = []
train(step, epochs=200)  # op by op
train(tf.function(step), epochs=200)  # and on from there as a graph
