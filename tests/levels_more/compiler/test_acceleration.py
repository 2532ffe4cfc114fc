"""One switch turns all that makes the eager mode quick off and on; in float64 the bits stay."""

import numpy as np
import pytest

from levels_more.compiler.eager import ACCELERATION, backward, small_ops
from levels_more.high_level import Sequential
from levels_more.high_level.loop import LookAhead
from levels_more.high_level.rows import batches_of_rows, row_numbers
from levels_more.kernels import PLANS
from levels_more.low_level import GradientTape, Variable, constant
from levels_more.mid_level import SGD, BinaryCrossentropy, Dense, update_program

DRAW = np.random.default_rng(0)
X, Y = DRAW.normal(size=(60, 2)), DRAW.integers(0, 2, (60, 1)).astype(float)
START = [DRAW.normal(size=shape) for shape in ((2, 4), (1, 4), (4, 1), (1, 1))]


def trained():
    """The losses and the weights of a small net that is trained by an eager loop and then by fit."""
    model = Sequential([Dense(4, "relu"), Dense(1, "sigmoid")])
    model.build((None, 2), "float64")
    model.set_weights(START)
    loss, optimizer, losses = BinaryCrossentropy(), SGD(0.1), []
    for start in range(0, 60, 5):
        x, y = constant(X[start : start + 5]), constant(Y[start : start + 5])
        with GradientTape() as tape:
            losses.append(loss(y, model(x)))
        optimizer.apply_gradients(zip(tape.gradient(losses[-1], model.variables), model.variables, strict=True))
    model.compile("sgd", "binary_crossentropy")
    history = model.fit(X, Y, batch_size=6, epochs=4, verbose=0, seed=1).history["loss"]
    return [*map(float, losses), *history], [w.tobytes() for w in model.get_weights()]


@pytest.fixture
def switch():
    backward._WALKS.clear()
    yield ACCELERATION
    ACCELERATION.on = True
    backward._WALKS.clear()


def test_off_each_op_is_launched_alone_and_the_bits_are_the_same(switch):
    quick = trained()
    assert any(type(plan) is small_ops.ProgramPlan for plan in PLANS.values())
    assert any(type(walk) is backward._Walk for walk in backward._WALKS.values())
    backward._WALKS.clear()
    switch.on = False
    assert trained() == quick
    assert not any(type(plan) is small_ops.ProgramPlan for plan in PLANS.values()) and backward._WALKS == {}


def test_each_piece_asks_the_switch(switch):
    switch.on = False
    rows = batches_of_rows((constant(X),), None, row_numbers(60), 6)
    assert LookAhead(None, rows).single
    optimizer, w = SGD(0.1), Variable(np.ones(3))
    optimizer.build([w])
    step = update_program.EagerStep(optimizer, optimizer.update)
    assert step.done([constant(np.ones(3))], [w]) is False and step.programs == {}


def test_the_switch_is_true_or_false():
    with pytest.raises(TypeError, match="ACCELERATION.on is 0; expected True or False"):
        ACCELERATION.on = 0
    assert ACCELERATION.on is True
