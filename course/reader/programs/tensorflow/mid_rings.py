import tensorflow as tf
from tensorflow.keras import Model, layers, optimizers

from course import tasks

tf.keras.backend.set_floatx("float64")
task = tasks.rings()
order = task.batches[:200].ravel()
data = tf.data.Dataset.from_tensor_slices((task.x[order], task.y[order])).batch(100).prefetch(tf.data.AUTOTUNE)


class DNN(Model):
    def __init__(self):
        super().__init__()
        self.dense1 = layers.Dense(4, activation="relu")
        self.dense2 = layers.Dense(8, activation="relu")
        self.dense3 = layers.Dense(1, activation="sigmoid")

    def call(self, x):
        return self.dense3(self.dense2(self.dense1(x)))


model = DNN()  # model
model(task.x[:1])
for layer, w, b in zip(model.layers, task.weights[::2], task.weights[1::2]):
    layer.set_weights([w, b[0]])
loss_of, sgd = tf.keras.losses.BinaryCrossentropy(), optimizers.SGD(task.learning_rate)


@tf.function
def step(rows, target):
    with tf.GradientTape() as tape:
        prediction = model(rows, training=True)  # forward
        loss = loss_of(target, prediction)  # loss
    gradients = tape.gradient(loss, model.trainable_variables)  # backward
    sgd.apply_gradients(zip(gradients, model.trainable_variables))  # update
    return loss


losses = [float(step(rows, target)) for rows, target in data]
