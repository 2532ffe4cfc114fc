"""The questions of the checks of notebook 04, and the cases of its blanks."""

import numpy as np

from course.reader.cases import KEPT, Wrong, cases, question
from course.reader.cases.drawn import drawn
from course.reader.cases.interpreting import all_interpreted


def numbers(result):
    """A tensor as an array; anything else as it is."""
    return result.numpy() if hasattr(result, "numpy") else result


def slope(mine, said, variable, function, *arguments):
    """The gradient of function(*arguments), or of its sum, in a variable, by the notebook's own tape."""

    def differentiated():
        with mine["GradientTape"]() as tape:
            y = function(*arguments)
        return tape.gradient(y, variable)

    return numbers(mine.call(f"the gradient of {said}", differentiated))


@question
def layer_at_first(mine, said, x):
    """The result of a new layer for x, and the shapes of its trainable variables."""
    layer = mine.made("Layer")
    return numbers(mine.call(said, layer.__call__, x)), [v.shape for v in layer.trainable_variables]


@question
def layer_with_weights(mine, said, x, more, w):
    """The results of a layer with the weights w for x and for more rows, and that of a second, new layer for x."""
    layer = with_weights(mine, said, x, w)
    other = mine.made("Layer")
    found = [mine.call(said, layer.__call__, batch) for batch in (x, more)]
    return [numbers(each) for each in (*found, mine.call(f"a second {mine.name}()", other.__call__, x))]


@question
def slope_of_a_layer(mine, said, x, w):
    """The gradient of the sum of a layer's result for x, in its weights w."""
    layer = with_weights(mine, said, x, w)
    return slope(mine, said, layer.trainable_variables[0], layer.__call__, x)


def with_weights(mine, said, x, w):
    layer = mine.made("Layer")
    mine.call(said, layer.__call__, x)
    layer.set_weights([w])
    return layer


@question
def loss_of(mine, said, *arrays):
    """The loss of y_true and y_pred, with sample weights or without."""
    return numbers(mine.call(said, mine.made("Loss").__call__, *arrays))


@question
def slope_of_a_loss(mine, said, true, predicted):
    """The gradient of the loss in the predictions."""
    variable = mine["Variable"](predicted)
    return slope(mine, said, variable, mine.made("Loss").__call__, true, variable)


@question
def steps_taken(mine, rate, start, steps):
    """The variables after each step. A step is (words, its learning rate, its gradients)."""
    optimizer = mine.made("Optimizer", rate)
    found = []
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
    """The metric after each batch (words, true, predicted[, weights]). It is reset before each round of batches."""
    metric = mine.made("BinaryAccuracy", threshold)
    found = []
    for batches in rounds:
        metric.reset_state()
        found.append([])
        for said, *batch in batches:
            mine.call(said, metric.update_state, *batch)
            found[-1].append(mine.call(said, metric.result))
    return found


def constant(array):
    """A tensor of level 3, on which the notebook builds."""
    from levels.low_level import constant

    return constant(np.asarray(array))


def check_slopes(mine, said, **arrays):
    """Raise Wrong unless a tape finds a gradient of the function's result for each of these named arguments."""
    from levels.low_level import GradientTape, Variable

    variables = {name: Variable(array) for name, array in arrays.items()}
    for name, variable in variables.items():
        with GradientTape() as tape:
            y = mine.call(said, mine.function, **variables)
        try:
            tape.gradient(y, variable)
        except (TypeError, ValueError):  # the result is no tensor, or does not depend on the variable
            raise Wrong(
                f"{said}: its numbers are right, but `{name}` gets no gradient, "
                "because part of it was computed without ops: "
                "use the operators of tensors (`+ - * / @`) and the functions of level 3, not those of NumPy"
            ) from None


@cases("04-affine")
@all_interpreted
def affine(mine, draw):
    """On arrays, where results can be checked by hand, and on tensors."""
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    kernel = np.array([[1.0, 10.0, 0.0], [1.0, 0.0, 10.0]])
    yield mine.on("two rows of 2, 3 units", x, kernel, np.array([[0.5, 0.0, 0.0]]))
    for rows, inputs, units in ((1, 1, 1), (3, 3, 3), (4, 9, 2)):
        for said, *arrays in drawn(draw, "f8", "f4", x=(rows, inputs), kernel=(inputs, units), bias=(1, units)):
            yield mine.on(f"tensors, {rows} rows of {inputs}, {units} units; {said}", *map(constant, arrays))
    x, *owned = (draw.normal(size=shape) for shape in ((2, 3), (3, 2), (1, 2)))
    from levels.low_level import Variable

    yield mine.on("an array, and variables of a layer", x, *map(Variable, owned))
    check_slopes(mine, "variables", x=x, kernel=owned[0], bias=owned[1])


@cases("04-squared_error")
@all_interpreted
def squared_error(mine, draw):
    yield mine.on("truth [1, 2], guess [1.5, 4]", np.array([1.0, 2.0]), np.array([1.5, 4.0]))
    for shape in ((3, 1), (2, 4)):
        for said, *arrays in drawn(draw, "f8", "f4", special=(0.0, -0.0, np.nan), y_true=shape, y_pred=shape):
            yield mine.on(f"tensors of shape {shape}; {said}", *map(constant, arrays))
    check_slopes(mine, "variables", y_true=draw.normal(size=(3, 1)), y_pred=draw.normal(size=(3, 1)))


@cases("04-cross_entropy")
@all_interpreted
def cross_entropy(mine, draw):
    for y, p in ((1.0, 0.9), (0.0, 0.9), (1.0, 1e-7), (0.0, 1.0 - 1e-7), (1.0, np.nan)):
        yield mine.on(f"truth {y:g}, p = {p}", constant([[y]]), constant([[p]]))
    for dtype in ("f8", "f4"):
        y = draw.integers(2, size=(20, 1)).astype(dtype)
        p = draw.uniform(0.01, 0.99, size=(20, 1)).astype(dtype)
        yield mine.on(f"20 drawn rows, {y.dtype}", constant(y), constant(p))
    yield mine.on("truth 0.5: a share", constant([[0.5]]), constant([[0.25]]))
    check_slopes(mine, "variables", y_true=y, p=p)


@cases("04-descend")
@all_interpreted
def descend(mine, draw):
    """On numbers, tensors and variables. With `w -= …` it is right, but a model's weights are variables."""
    some = [numbers for _, *numbers in drawn(draw, rate=(), dw=(), w=())]
    for rate, dw, w in ((0.5, 2.0, 1.0), (0.1, -2.0, 1.0), *some):
        yield mine.on(rate=rate, dw=dw, w=w)
    for said, rate, *arrays in drawn(draw, "f8", "f4", rate=(), dw=(3, 2), w=(3, 2)):
        yield mine.on(f"tensors of shape (3, 2); {said}", rate, *map(constant, arrays))
    from levels.low_level import Variable

    said = "the new value of a variable w, as a tensor"
    dw, w = draw.normal(size=(2, 3, 1))
    try:
        result, kept = mine.on(said, 0.3, constant(dw), Variable(w))[1], ""
    except Wrong as wrong:
        if "is no step of a variable" not in str(wrong):
            raise
        result = mine.on(said, 0.3, constant(dw), constant(w))[1]
        kept = "The weights of a model are variables, and `w -= …` is refused for these: `return w - …` works for all."
    yield said, result
    yield KEPT, kept
