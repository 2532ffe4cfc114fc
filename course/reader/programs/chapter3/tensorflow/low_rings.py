"""Chapter 3-1 of "eat tensorflow2 in 30 days", the two rings: with the calls of its edition of 2020-05-07
(commit 679a597f).

The stored losses are those of TensorFlow 2.21.0 with Keras 3.15.1.
"""

import numpy as np
import tensorflow as tf

from course import tasks

task = tasks.rings()
np.random.seed(3)
x, y = tf.constant(task.x), tf.constant(task.y)
ROWS = tf.TensorSpec(shape=[None, 2], dtype=tf.float64)
ANSWERS = tf.TensorSpec(shape=[None, 1], dtype=tf.float64)


def batches(features, labels, batch_size=8):
    """Batches of the rows in a new order each time; NumPy's draws are the same everywhere."""
    rows = list(range(len(features)))
    np.random.shuffle(rows)
    for first in range(0, len(rows), batch_size):
        chosen = rows[first : first + batch_size]
        yield tf.gather(features, chosen), tf.gather(labels, chosen)


class DNN(tf.Module):
    def __init__(self, start, name=None):
        super().__init__(name=name)
        self.w1 = tf.Variable(start[0], dtype=tf.float64)
        self.b1 = tf.Variable(tf.zeros([1, 4], dtype=tf.float64), dtype=tf.float64)
        self.w2 = tf.Variable(start[2], dtype=tf.float64)
        self.b2 = tf.Variable(tf.zeros([1, 8], dtype=tf.float64), dtype=tf.float64)
        self.w3 = tf.Variable(start[4], dtype=tf.float64)
        self.b3 = tf.Variable(tf.zeros([1, 1], dtype=tf.float64), dtype=tf.float64)

    @tf.function(input_signature=[ROWS])
    def __call__(self, x):
        x = tf.nn.relu(x @ self.w1 + self.b1)
        x = tf.nn.relu(x @ self.w2 + self.b2)
        return tf.nn.sigmoid(x @ self.w3 + self.b3)

    @tf.function(input_signature=[ANSWERS, ANSWERS])
    def loss(self, y_true, y_pred):
        p = tf.clip_by_value(y_pred, 1e-7, 1.0 - 1e-7)
        return tf.reduce_mean(-y_true * tf.math.log(p) - (1 - y_true) * tf.math.log(1 - p))

    @tf.function(input_signature=[ANSWERS, ANSWERS])
    def accuracy(self, y_true, y_pred):
        answer = tf.where(y_pred > 0.5, tf.ones_like(y_pred), tf.zeros_like(y_pred))
        return tf.reduce_mean(1 - tf.abs(y_true - answer))


@tf.function
def step(model, features, labels):
    with tf.GradientTape() as tape:
        prediction = model(features)
        loss = model.loss(labels, prediction)
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients):
        variable.assign(variable - 0.001 * gradient)
    return loss, model.accuracy(labels, prediction)


model = DNN(task.weights)
losses = []
for epoch in tf.range(1, 600 + 1):
    for features, labels in batches(x, y, 100):
        loss, accuracy = step(model, features, labels)
    if epoch % 100 == 0:
        tf.print("epoch", epoch, "loss", loss, "accuracy", accuracy)
        losses.append(float(loss))

outside = tf.boolean_mask(x, tf.squeeze(model(x) >= 0.5), axis=0)
print(len(model.trainable_variables), "variables;", len(outside), "points are said to lie outside")
