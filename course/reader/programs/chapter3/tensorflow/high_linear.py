"""Chapter 3-3 of "eat tensorflow2 in 30 days", the line: with the calls of its edition of 2020-05-07 (commit 679a597f).

The stored losses are those of TensorFlow 2.21.0 with Keras 3.15.1.
"""

import tensorflow as tf
from tensorflow.keras import layers, models

from course import tasks

tf.keras.backend.set_floatx("float64")
tf.keras.backend.clear_session()
task = tasks.linear()
x, y = tf.constant(task.x), tf.constant(task.y)

model = models.Sequential()
model.add(layers.Dense(1, input_shape=(2,)))
model.summary()
model.set_weights([task.weights[0], task.weights[1][0]])

model.compile(optimizer="adam", loss="mse", metrics=["mae"])
history = model.fit(x, y, batch_size=10, epochs=200, shuffle=False)  # in order: see tensorflow/mid_linear.py

tf.print("w", model.layers[0].kernel)
tf.print("b", model.layers[0].bias)
w, b = model.variables
losses = history.history["loss"][49::50]
