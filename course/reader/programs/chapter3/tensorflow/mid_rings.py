"""Chapter 3-2 of "eat tensorflow2 in 30 days", the two rings: with the calls of its edition of 2020-05-07
(commit 679a597f).

The stored losses are those of TensorFlow 2.21.0 with Keras 3.15.1.
"""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, losses, metrics, optimizers

from course import tasks

tf.keras.backend.set_floatx("float64")
task = tasks.rings()
adam = {"learning_rate": 0.001, "beta_1": 0.9, "beta_2": 0.999}
# Keras rounds some of them to float32, even in float64
adam = {name: float(np.float32(number)) for name, number in adam.items()}
data = (
    tf.data.Dataset.from_tensor_slices((task.x, task.y))
    .shuffle(buffer_size=1)  # of one row: more would be drawn in another order by another library
    .batch(100)
    .prefetch(tf.data.experimental.AUTOTUNE)
)


class DNN(tf.Module):
    def __init__(self, name=None):
        super().__init__(name=name)
        self.dense1 = layers.Dense(4, activation="relu")
        self.dense2 = layers.Dense(8, activation="relu")
        self.dense3 = layers.Dense(1, activation="sigmoid")

    @tf.function(input_signature=[tf.TensorSpec(shape=[None, 2], dtype=tf.float64)])
    def __call__(self, x):
        return self.dense3(self.dense2(self.dense1(x)))


model = DNN()
model.loss_func = losses.binary_crossentropy
model.metric_func = metrics.binary_accuracy
model.optimizer = optimizers.Adam(**adam)

features, labels = next(data.as_numpy_iterator())
prediction = model(features)
dense = [model.dense1, model.dense2, model.dense3]
variables = [w for layer in dense for w in layer.trainable_variables]  # tf.Module finds none in Keras 3's layers
tf.print("first loss", model.loss_func(tf.reshape(labels, [-1]), tf.reshape(prediction, [-1])))
for layer, w, b in zip(dense, task.weights[::2], task.weights[1::2]):
    layer.set_weights([w, b[0]])


@tf.function
def step(model, features, labels):
    with tf.GradientTape() as tape:
        prediction = model(features)
        loss = model.loss_func(tf.reshape(labels, [-1]), tf.reshape(prediction, [-1]))
    gradients = tape.gradient(loss, variables)
    model.optimizer.apply_gradients(zip(gradients, variables))
    return loss, model.metric_func(tf.reshape(labels, [-1]), tf.reshape(prediction, [-1]))


told = []
for epoch in tf.range(1, 60 + 1):
    loss, accuracy = tf.constant(0.0), tf.constant(0.0)
    for features, labels in data:
        loss, accuracy = step(model, features, labels)
    if epoch % 10 == 0:
        tf.print("epoch", epoch, "loss", loss, "accuracy", accuracy)
        told.append(float(loss))

inside = tf.boolean_mask(task.x, tf.squeeze(model(task.x) < 0.5), axis=0)
print(len(inside), "points are said to lie inside")
losses = told
