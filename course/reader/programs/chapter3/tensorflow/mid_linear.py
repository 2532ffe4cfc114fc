"""Chapter 3-2 of "eat tensorflow2 in 30 days", the line: with the calls of its edition of 2020-05-07 (commit 679a597f).

The stored losses are those of TensorFlow 2.21.0 with Keras 3.15.1.
"""

import tensorflow as tf
from tensorflow.keras import layers, losses, optimizers

from course import tasks

tf.keras.backend.set_floatx("float64")
task = tasks.linear()
data = (
    tf.data.Dataset.from_tensor_slices((task.x, task.y))
    .shuffle(buffer_size=1)  # of one row: more would be drawn in another order by another library
    .batch(10)
    .prefetch(tf.data.experimental.AUTOTUNE)
)

model = layers.Dense(units=1)
model.build(input_shape=(2,))
model.set_weights([task.weights[0], task.weights[1][0]])
model.loss_func = losses.mse
model.optimizer = optimizers.SGD(learning_rate=0.001)


@tf.function
def step(model, features, labels):
    with tf.GradientTape() as tape:
        prediction = model(features)
        loss = model.loss_func(tf.reshape(labels, [-1]), tf.reshape(prediction, [-1]))
    gradients = tape.gradient(loss, model.variables)
    model.optimizer.apply_gradients(zip(gradients, model.variables))
    return loss


features, labels = next(data.as_numpy_iterator())
step(model, features, labels)

told = []
for epoch in tf.range(1, 200 + 1):
    loss = tf.constant(0.0)
    for features, labels in data:
        loss = step(model, features, labels)
    if epoch % 50 == 0:
        tf.print("epoch", epoch, "loss", loss, "w", model.variables[0], "b", model.variables[1])
        told.append(float(loss))

losses = told
