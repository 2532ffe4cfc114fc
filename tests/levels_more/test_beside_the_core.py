"""`fit` with the parts of `levels_more` trains both tasks to the bits of the core's, in float64."""

import pytest

from course import tasks
from levels import high_level, mid_level
from levels_more import high_level as wide_high_level
from levels_more import mid_level as wide_mid_level

STEPS = 60


def fitted(task, layers, models):
    """The losses and the last weights of two epochs of `fit`, with the layers of one package and its models."""
    sizes = [w.shape[1] for w in task.weights[::2]]
    activations = ["relu"] * (len(sizes) - 1) + ["sigmoid" if len(sizes) > 1 else None]
    model = models.Sequential([layers.Dense(units, each) for units, each in zip(sizes, activations, strict=True)])
    model.build(task.x.shape, task.x.dtype)
    model.set_weights(task.weights)
    model.compile(layers.SGD(task.learning_rate), "binary_crossentropy" if len(sizes) > 1 else "mse")
    history = model.fit(layers.Dataset.from_batches(task.x, task.y, task.batches[:STEPS]), epochs=2, verbose=0)
    assert len(history.losses) == 2 * STEPS
    return history.losses.tobytes(), [w.tobytes() for w in model.get_weights()]


@pytest.mark.parametrize("make", [tasks.linear, tasks.rings])
def test_fit_of_the_wide_model(make):
    assert fitted(make(), wide_mid_level, wide_high_level) == fitted(make(), mid_level, high_level)
