import tensorflow as tf

from course import tasks

task = tasks.rings()
x, y = tf.constant(task.x), tf.constant(task.y)


class DNN(tf.Module):
    def __init__(self, weights, name=None):
        super().__init__(name=name)
        self.w1, self.b1, self.w2, self.b2, self.w3, self.b3 = (tf.Variable(w) for w in weights)

    @tf.function(input_signature=[tf.TensorSpec(shape=[None, 2], dtype=tf.float64)])
    def __call__(self, x):
        h1 = tf.nn.relu(x @ self.w1 + self.b1)
        h2 = tf.nn.relu(h1 @ self.w2 + self.b2)
        return tf.nn.sigmoid(h2 @ self.w3 + self.b3)


model = DNN(task.weights)  # model


@tf.function
def step(rows, target):
    with tf.GradientTape() as tape:
        prediction = model(rows)  # forward
        c = tf.clip_by_value(prediction, 1e-7, 1.0 - 1e-7)
        loss = -tf.reduce_mean(target * tf.math.log(c) + (1.0 - target) * tf.math.log(1.0 - c))  # loss
    gradients = tape.gradient(loss, model.trainable_variables)  # backward
    for w, dw in zip(model.trainable_variables, gradients):  # update
        w.assign_sub(task.learning_rate * dw)
    return loss


losses = []
for batch in task.batches[:200]:
    loss = step(tf.gather(x, batch), tf.gather(y, batch))
    losses.append(float(loss))
