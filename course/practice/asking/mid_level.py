"""What the checks of notebook 04 ask."""

import numpy as np

from course.practice.asking import question


def numbers(result):
    """A tensor as an array; anything else as it is."""
    return result.numpy() if hasattr(result, "numpy") else result


def slope(mine, said, variable, function, *arguments):
    """The gradient of function(*arguments), by the notebook's own tape; of several numbers, that of their sum."""

    def differentiated():
        with mine["GradientTape"]() as tape:
            y = function(*arguments)
        return tape.gradient(y, variable)

    return numbers(mine.call(f"the gradient of {said}", differentiated))


@question
def layer_at_first(mine, said, x):
    """What a new layer gives, and the shapes of its variables."""
    layer = mine.made("Layer")
    return numbers(mine.call(said, layer.__call__, x)), [v.shape for v in layer.trainable_variables]


@question
def layer_with_weights(mine, said, x, more, w):
    """What a layer gives for x and for more rows, its weights being w; and what a second layer gives for x."""
    layer, other = with_weights(mine, said, x, w), mine.made("Layer")
    found = [mine.call(said, layer.__call__, batch) for batch in (x, more)]
    return [numbers(each) for each in (*found, mine.call(f"a second {mine.name}()", other.__call__, x))]


@question
def slope_of_a_layer(mine, said, x, w):
    """The gradient, in its weights w, of the sum of what a layer gives for x."""
    layer = with_weights(mine, said, x, w)
    return slope(mine, said, layer.trainable_variables[0], layer.__call__, x)


def with_weights(mine, said, x, w):
    layer = mine.made("Layer")
    mine.call(said, layer.__call__, x)
    layer.set_weights([w])
    return layer


@question
def loss_of(mine, said, *arrays):
    """The loss of y_true and y_pred, with weights or without."""
    return numbers(mine.call(said, mine.made("Loss").__call__, *arrays))


@question
def slope_of_a_loss(mine, said, true, predicted):
    """The gradient of the loss in what is predicted."""
    variable = mine["Variable"](predicted)
    return slope(mine, said, variable, mine.made("Loss").__call__, true, variable)


@question
def steps_taken(mine, rate, start, steps):
    """The variables after each step (words, its rate, its gradients)."""
    optimizer, found = mine.made("Optimizer", rate), []
    variables = [mine["Variable"](x) for x in start]
    for said, now, dw in steps:
        if now != rate:
            optimizer.learning_rate = rate = now
        pairs = [(mine["constant"](x), variable) for x, variable in zip(dw, variables, strict=True)]
        mine.call(said, optimizer.apply_gradients, pairs)
        found.append([np.array(variable.numpy()) for variable in variables])
    return found


@question
def metric_of(mine, threshold, rounds):
    """What the metric is after each batch (words, true, predicted, weights or not); each round begins anew."""
    metric, found = mine.made("BinaryAccuracy", threshold), []
    for batches in rounds:
        metric.reset_state()
        found.append([])
        for said, *batch in batches:
            mine.call(said, metric.update_state, *batch)
            found[-1].append(mine.call(said, metric.result))
    return found
