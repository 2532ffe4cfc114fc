"""What `levels_more` has in the place of a small part of the core trains both tasks to the same bits, in float64.

Each wide part is put in the place of one part of the core, and the losses and the weights are compared with those that
the core's parts give: op by op (`eager`), compiled call by call, in one call (`over`), and in `fit`.
"""

import pytest

from course import tasks
from levels import high_level as model_of
from levels import low_level as core
from levels import mid_level as layer_of
from levels_more import high_level as wide_model_of
from levels_more import low_level as wide
from levels_more import mid_level as wide_layer_of

STEPS = 60
TASKS = {"line": tasks.linear, "net": tasks.rings}
WAYS = "eager", "compiled", "over"


@pytest.fixture(params=TASKS)
def task(request):
    return TASKS[request.param]()


@pytest.fixture
def core_alone(monkeypatch):
    """Only the core's passes and back end, as if `levels_more` were not imported."""

    def only():
        monkeypatch.setattr(core.functions, "BACK_ENDS", [core.RowProgram])
        monkeypatch.setattr(core.functions, "PASSES", [core.dce])

    return only


def layers_for(task, dense=layer_of.Dense, **options):
    sizes = [w.shape[1] for w in task.weights[::2]]
    activations = ["relu"] * (len(sizes) - 1) + ["sigmoid" if len(sizes) > 1 else None]
    return [dense(units, activation, **options) for units, activation in zip(sizes, activations, strict=True)]


def loss_for(task, module=layer_of):
    return module.BinaryCrossentropy() if len(task.weights) > 2 else module.MeanSquaredError()


def formula(task, x, weights):
    """The loss of a batch, by level 3's formulas."""
    rows, y = x
    if len(weights) == 2:
        error = rows @ weights[0] + weights[1] - y
        return core.reduce_mean(error * error)
    c = core.clip(core.dnn(rows, weights), 1e-7, 1.0 - 1e-7)
    return -core.reduce_mean(y * core.log(c) + (1.0 - y) * core.log(1.0 - c))


def trained(task, way, tape=core.GradientTape, function=core.function, often=1):
    """The losses and the last weights of some steps on level 3, with this tape and this `function`; its programs' names."""
    weights = [core.Variable(w) for w in task.weights]

    @function
    def step(x, y):
        with tape() as recorded:
            loss = formula(task, (x, y), weights)
        for _ in range(often):
            gradients = recorded.gradient(loss, weights)
        for w, dw in zip(weights, gradients, strict=True):
            w.assign(w - float(task.learning_rate) * dw)
        return loss

    x, y = core.constant(task.x), core.constant(task.y)
    batches = task.batches[:STEPS]
    if way == "over":
        losses = step.over(x, y, batches).numpy()
    elif way == "compiled":
        losses = [step(core.gather(x, rows), core.gather(y, rows)).numpy() for rows in batches]
    else:
        with core.eager():
            losses = [step(core.gather(x, rows), core.gather(y, rows)).numpy() for rows in batches]
    kinds = {type(program).__name__ for program, _ in step.programs.values()}
    return [float(loss).hex() for loss in losses], [w.numpy().tobytes() for w in weights], kinds


def fitted(task, layers, optimizer, loss, module=model_of, **fit):
    """The losses and the last weights of `fit` on level 5, with these parts."""
    model = module.Sequential(layers)
    model.build(task.x.shape, task.x.dtype)
    model.set_weights(task.weights)
    model.compile(optimizer, loss)
    data = layer_of.Dataset.from_batches(task.x, task.y, task.batches[:STEPS])
    if module is wide_model_of:
        data = wide_layer_of.Dataset.from_batches(task.x, task.y, task.batches[:STEPS])
    history = model.fit(data, epochs=2, verbose=0, **fit)
    assert len(history.losses) == 2 * STEPS
    return [float(loss).hex() for loss in history.losses], [w.tobytes() for w in model.get_weights()]


def by_the_core(task, core_alone):
    core_alone()
    return fitted(task, layers_for(task), layer_of.SGD(task.learning_rate), loss_for(task))


@pytest.mark.parametrize("way", WAYS)
def test_quick_row_programs_and_lanes(task, way, core_alone):
    *losses, kinds = trained(task, way)
    core_alone()
    *again, core_kinds = trained(task, way)
    assert again == losses
    if way != "eager":
        assert core_kinds == {"RowProgram"} != kinds


@pytest.mark.parametrize("way", WAYS)
def test_a_persistent_tape_that_is_read_twice(task, way):
    twice = trained(task, way, lambda: wide.GradientTape(persistent=True), often=2)
    assert trained(task, way)[:2] == twice[:2]


@pytest.mark.parametrize("way", WAYS)
def test_a_function_with_guards(task, way):
    assert trained(task, way)[:2] == trained(task, way, function=wide.function)[:2]


def test_a_second_derivative(task):
    """The wide tape gives d²loss / dw², which the core refuses in a sentence; its first gradient has the core's bits."""
    weights = [core.Variable(w) for w in task.weights]
    batch = [core.constant(rows[task.batches[0]]) for rows in (task.x, task.y)]
    with core.GradientTape() as one:
        loss = formula(task, batch, weights)
    small = [dw.numpy().tobytes() for dw in one.gradient(loss, weights)]
    with wide.GradientTape() as outer:
        with wide.GradientTape() as inner:
            loss = formula(task, batch, weights)
        gradients = inner.gradient(loss, weights)
        slope = core.reduce_sum(gradients[0])
    assert [dw.numpy().tobytes() for dw in gradients] == small
    second = outer.gradient(slope, weights[0]).numpy()
    nudged = []
    for sign in (1, -1):
        moved = [core.Variable(w) for w in task.weights]
        moved[0].assign(moved[0] + sign * 1e-6)
        with core.GradientTape() as tape:
            loss = formula(task, batch, moved)
        nudged.append(tape.gradient(loss, moved[0]).numpy().sum())
    assert second.sum() == pytest.approx((nudged[0] - nudged[1]) / 2e-6, rel=1e-4, abs=1e-8)


def test_fit_of_the_wide_model(task, core_alone):
    wide_losses = fitted(
        task,
        layers_for(task, wide_layer_of.Dense),
        wide_layer_of.SGD(task.learning_rate),
        loss_for(task, wide_layer_of),
        wide_model_of,
    )
    assert wide_losses == by_the_core(task, core_alone)
