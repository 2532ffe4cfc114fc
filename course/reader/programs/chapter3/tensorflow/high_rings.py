"""Chapter 3-3 of "eat tensorflow2 in 30 days", the two rings: with the calls of its edition of 2020-05-07
(commit 679a597f).

The stored losses are those of TensorFlow 2.21.0 with Keras 3.15.1.
"""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, losses, metrics, models, optimizers

from course import tasks

tf.keras.backend.set_floatx("float64")
tf.keras.backend.clear_session()
task = tasks.rings()
n = 400  # points, of which three quarters are learned, as in the book; all others are held out
x, y = tf.constant(task.x), tf.constant(task.y)
train = (
    tf.data.Dataset.from_tensor_slices((x[0 : n * 3 // 4, :], y[0 : n * 3 // 4, :]))
    .shuffle(buffer_size=1)  # of one row: more would be drawn in another order by another library
    .batch(20)
    .prefetch(tf.data.experimental.AUTOTUNE)
    .cache()
)
valid = (
    tf.data.Dataset.from_tensor_slices((x[n * 3 // 4 :, :], y[n * 3 // 4 :, :]))
    .batch(20)
    .prefetch(tf.data.experimental.AUTOTUNE)
    .cache()
)


class DNN(models.Model):
    def build(self, input_shape):
        self.dense1 = layers.Dense(4, activation="relu", name="dense1")
        self.dense2 = layers.Dense(8, activation="relu", name="dense2")
        self.dense3 = layers.Dense(1, activation="sigmoid", name="dense3")
        super().build(input_shape)

    @tf.function(input_signature=[tf.TensorSpec(shape=[None, 2], dtype=tf.float64)])
    def call(self, x):
        return self.dense3(self.dense2(self.dense1(x)))


model = DNN()
model.build(input_shape=(None, 2))
model(x[:1])  # now the layers have their variables, in today's Keras as well
model.summary()
model.set_weights([w if k % 2 == 0 else w[0] for k, w in enumerate(task.weights)])

adam = {"learning_rate": 0.01, "beta_1": 0.9, "beta_2": 0.999}
# Keras rounds some of them to float32, even in float64
adam = {name: float(np.float32(number)) for name, number in adam.items()}
optimizer = optimizers.Adam(**adam)
loss_func = losses.BinaryCrossentropy()
train_loss, train_accuracy = metrics.Mean(name="train_loss"), metrics.BinaryAccuracy(name="train_accuracy")
valid_loss, valid_accuracy = metrics.Mean(name="valid_loss"), metrics.BinaryAccuracy(name="valid_accuracy")


@tf.function
def train_step(model, features, labels):
    with tf.GradientTape() as tape:
        prediction = model(features)
        loss = loss_func(labels, prediction)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_loss.update_state(loss)
    train_accuracy.update_state(labels, prediction)


@tf.function
def valid_step(model, features, labels):
    prediction = model(features)
    valid_loss.update_state(loss_func(labels, prediction))
    valid_accuracy.update_state(labels, prediction)


told = []
for epoch in tf.range(1, 1000 + 1):
    for features, labels in train:
        train_step(model, features, labels)
    for features, labels in valid:
        valid_step(model, features, labels)
    if epoch % 100 == 0:
        row = epoch, train_loss.result(), train_accuracy.result(), valid_loss.result(), valid_accuracy.result()
        tf.print(tf.strings.format("epoch {}: loss {}, accuracy {}; held out: {}, {}", row))
        told += [float(train_loss.result()), float(valid_loss.result())]
    for metric in (train_loss, train_accuracy, valid_loss, valid_accuracy):
        metric.reset_state()

losses = told
