"""Levels 4 and 5: parts that own their variables, models that own their loop."""

import math

import numpy as np
import pytest
from core_alone import more

from course import tasks
from levels import high_level as core_high
from levels import mid_level as core_mid
from levels_more.high_level import Callback, EarlyStopping, Input, Model, Sequential
from levels_more.low_level import GradientTape, constant
from levels_more.mid_level import (
    SGD,
    Dataset,
    Dense,
    Embedding,
    Flatten,
    Layer,
)
from levels_more.saving import load_model

TASK = tasks.linear()


def compiled(*layers, kind=Sequential, optimizer="sgd", loss="mse", metrics=()):
    result = kind(list(layers))
    result.compile(optimizer, loss, metrics)
    return result


def started(*layers, rate=0.0005, optimizer=None, **options):
    """A linear model of the linear task, with its starting weights."""
    result = compiled(*layers or [Dense(1)], optimizer=optimizer or SGD(rate), **options)
    result.build(TASK.x.shape, "f8")
    result.set_weights(TASK.weights)
    return result


@pytest.mark.more("fit(seed=)")
@pytest.mark.parametrize("seed, other", [(1, 1), (1, 2), (None, None)])
def test_fit_on_arrays_learns_and_repeats_with_its_seed(seed, other):
    task, runs = tasks.linear(), []
    for number in (seed, other):
        net = started()
        history = net.fit(task.x, task.y, batch_size=30, epochs=30, seed=number, verbose=0)
        assert len(history.losses) == 30 * 14 and len(history.history["loss"]) == 30 and net.history is history
        assert net.evaluate(task.x_test, task.y_test) < 8 < history.losses[0]
        runs.append(history.losses.tolist())
    assert (runs[0] == runs[1]) == (seed == other == 1)


@pytest.mark.quick
def test_an_epochs_loss_is_the_mean_over_its_rows():
    """Not over its batches, the last of which is shorter."""
    x, y, net = TASK.x[:10], TASK.y[:10], started(rate=1e-12)
    history = net.fit(x, y, batch_size=4, epochs=1, shuffle=False, verbose=0)
    assert history.history["loss"][0] == pytest.approx(net.evaluate(x, y), rel=1e-6)
    assert history.history["loss"][0] == pytest.approx(np.dot(history.losses, [4, 4, 2]) / 10)


@pytest.mark.quick
def test_fit_shuffles_the_rows_anew_in_each_epoch_unless_told_not_to():
    """With a rate of nearly 0 a step's loss is that of its rows: each row counts once per epoch, in any order."""
    net = started(rate=1e-300)
    error = net.predict(TASK.x) - TASK.y
    in_order = (error.reshape(10, 40) ** 2).mean(1)
    told = [net.fit(TASK.x, TASK.y, 40, 2, verbose=0, **options).losses.reshape(2, 10) for options in ({}, UNSHUFFLED)]
    for losses in (*told[0], *told[1]):
        assert losses.mean() == pytest.approx(in_order.mean())
    np.testing.assert_allclose(told[1], [in_order] * 2)
    assert not np.allclose(told[0][0], in_order) and not np.allclose(told[0][0], told[0][1])


UNSHUFFLED = {"shuffle": False}
DATASETS = {
    "in memory": lambda: Dataset.from_tensor_slices((TASK.x, TASK.y)).batch(50),
    "a generator": lambda: Dataset.from_generator(lambda: zip(TASK.x, TASK.y, strict=True)).batch(50),
    "mapped": lambda: Dataset.from_tensor_slices((TASK.x, TASK.y)).map(lambda x, y: (x * 1.0, y)).batch(50).prefetch(2),
}


@pytest.mark.more("validation_data, from_generator, map")
@pytest.mark.parametrize("verbose", [0, 1])
@pytest.mark.parametrize("make", DATASETS.values(), ids=DATASETS)
def test_any_dataset_trains_the_same(make, verbose):
    net, other = started(), started()
    net.fit(make(), epochs=2, verbose=verbose, validation_data=make())
    other.fit(TASK.x, TASK.y, batch_size=50, epochs=2, shuffle=False, verbose=0)
    np.testing.assert_allclose(net.history.losses, other.history.losses, rtol=1e-12)
    assert net.history.history["val_loss"][-1] == pytest.approx(net.evaluate(TASK.x, TASK.y))
    assert net.evaluate(make()) == pytest.approx(net.evaluate(TASK.x, TASK.y))


@pytest.mark.quick
def test_evaluate_and_predict_are_what_the_weights_say():
    net = started()
    net.set_weights([np.array([[2.0], [-3.0]]), np.array([[3.0]])])
    predicted = TASK.x_test @ [[2.0], [-3.0]] + 3.0
    np.testing.assert_allclose(net.predict(TASK.x_test), predicted)
    for size in (1, 7, 1024):
        loss = net.evaluate(TASK.x_test, TASK.y_test, batch_size=size)
        assert loss == pytest.approx(((predicted - TASK.y_test) ** 2).mean())
    assert net.predict(TASK.x_test[:0]).shape == (0, 1)


# What people have


ROWS = np.array([[1.0, -2.0], [0.0, 3.0], [4.0, 1.0], [-1.0, -1.0], [2.0, 5.0], [3.0, 0.0]])
ANSWERS = np.array([[2.0], [7.0], [-1.0], [4.0], [0.0], [3.0]])
AS = {  # what may stand in the place of ROWS and ANSWERS
    "float64": lambda rows: rows,
    "lists": lambda rows: rows.tolist(),
    "whole numbers": lambda rows: rows.astype(int),
    "lists of whole numbers": lambda rows: rows.astype(int).tolist(),
    "int16": lambda rows: rows.astype(np.int16),
    "float16": lambda rows: rows.astype(np.float16),
    "tensors": constant,
}


def by_hand(x, y, epochs, rate=0.05):
    """The weights of a line after so many epochs in float32, each one step over all rows, and the loss then."""
    w, b = np.zeros((2, 1), "f4"), np.zeros((1, 1), "f4")
    x, y, rate = x.astype("f4"), y.astype("f4").reshape(-1, 1), np.float32(rate)
    for _ in range(epochs):
        e = x @ w + b - y
        w, b = w - rate * (2 * x.T @ e / len(x)), b - rate * (2 * e.mean(keepdims=True))
    return w, b, float(((x @ w + b - y) ** 2).mean())


def float32_line(*data, **options):
    net = compiled(Dense(1), optimizer=SGD(0.05))
    net.build((None, 2))
    net.set_weights([np.zeros((2, 1), "f4"), np.zeros((1, 1), "f4")])
    net.fit(*data, epochs=3, shuffle=False, verbose=0, **options)
    return net


def agree(net, x, y):
    """Whether the net has the weights that are found by hand, and its `evaluate` the loss."""
    w, b, loss = by_hand(x, y, 3)
    for ours, theirs in zip(net.get_weights(), (w, b), strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert net.evaluate(x, y) == pytest.approx(loss, rel=1e-5)
    np.testing.assert_allclose(net.predict(x), x @ w + b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("flat", [False, True], ids=["y [rows, 1]", "y [rows]"])
@pytest.mark.parametrize("given", AS.values(), ids=AS)
def test_what_people_have_trains_a_float32_model(given, flat):
    y = ANSWERS[:, 0] if flat else ANSWERS
    net = float32_line(given(ROWS), given(y))
    agree(net, ROWS, y)
    assert net.evaluate(given(ROWS), given(y)) == net.evaluate(ROWS, ANSWERS)
    assert (net.predict(given(ROWS)) == net.predict(ROWS)).all()


def test_yes_or_no_may_be_bools():
    x, y = ROWS > 0, ANSWERS[:, 0] > 1
    agree(float32_line(x, y), x, y)
    agree(float32_line(x.tolist(), y.tolist()), x, y)


def test_a_single_column_of_targets_is_never_broadcast():
    """[rows] beside [rows, 1] would be an array [rows, rows]. Any other shape is refused."""
    flat = float32_line(ROWS, ANSWERS[:, 0])
    assert [w.tolist() for w in flat.get_weights()] == [w.tolist() for w in float32_line(ROWS, ANSWERS).get_weights()]
    two = compiled(Dense(2))
    for y in (ANSWERS[:, 0], ANSWERS, ANSWERS[:, :, None], ANSWERS.T):
        with pytest.raises(ValueError, match="expected equal shapes|as many in each"):
            two.fit(ROWS, y, verbose=0)


def test_whole_numbers_stay_where_a_layer_looks_rows_up():
    net = compiled(Embedding(5, 1), Flatten(), optimizer=SGD(0.5))
    for ids in (np.array([[1], [4]]), np.array([[1], [4]], np.uint8), [[1], [4]]):
        net.fit(ids, [3.0, -2.0], epochs=40, verbose=0)
        assert net.predict(ids).ravel() == pytest.approx([3.0, -2.0], abs=1e-3)


def test_a_number_too_large_for_the_model_is_refused():
    with pytest.raises(OverflowError, match="too large for float32"):
        float32_line(ROWS * 1e300, ANSWERS)


@pytest.mark.more("return_dict")
@pytest.mark.quick
def test_evaluate_gives_a_loss_without_metrics_as_keras_gives_it():
    alone = started().evaluate(TASK.x, TASK.y)
    assert isinstance(alone, float) and started().evaluate(TASK.x, TASK.y, return_dict=True) == {"loss": alone}


def test_layers_are_added_one_by_one(tmp_path):
    net, place = Sequential(), Sequential([Input((2,))])
    for model in (net, place):
        for layer in (Dense(3, "relu"), Dense(1)):
            model.add(layer)
        model.compile("sgd", "mse")
    assert place.count() == 13 and net.count() == 0 and len(net.layers) == 2
    net.fit(ROWS, ANSWERS, verbose=0)
    for model in (net, place):
        model.save(tmp_path / "net")
        assert load_model(tmp_path / "net").predict(ROWS).tolist() == model.predict(ROWS).tolist()
    with pytest.raises(TypeError, match="is no layer"):
        net.add("dense")


# Validation


@pytest.mark.more("validation_split")
def test_validation_split_keeps_the_last_rows_out():
    net, other = started(), started()
    split = net.fit(TASK.x, TASK.y, validation_split=0.25, epochs=2, verbose=0, seed=0).history
    given = other.fit(
        TASK.x[:300], TASK.y[:300], validation_data=(TASK.x[300:], TASK.y[300:]), epochs=2, verbose=0, seed=0
    )
    assert split == given.history and {*split} == {"loss", "val_loss"}
    assert split["val_loss"][-1] == pytest.approx(net.evaluate(TASK.x[300:], TASK.y[300:]))


# Models of other shapes


class Twice(Model):
    """One layer, called twice."""

    def __init__(self):
        super().__init__()
        self.shared, self.top = Dense(2, "tanh"), Dense(1)

    def call(self, x):
        return self.top(self.shared(self.shared(x)))


def test_a_shared_layer_is_counted_and_trained_once():
    place, shared = Input((2,), "float64"), Dense(2, "tanh")
    functional, subclass = Model(place, Dense(1)(shared(shared(place)))), Twice()
    subclass.build((None, 2), "float64")
    assert functional.count() == subclass.count() == 6 + 3
    assert [len(net.trainable_variables) for net in (functional, subclass)] == [4, 4]
    assert functional.layers[0] is shared and len(functional.layers) == 2
    subclass.set_weights(functional.get_weights())
    runs = []
    for net in (functional, subclass):
        net.compile(SGD(0.01), "mse")
        runs.append(net.fit(TASK.x / 10, TASK.y / 10, epochs=3, verbose=0, seed=0).losses.tolist())
    assert runs[0] == runs[1]


def test_a_step_of_your_own():
    """Gradient ascent: the same model, trained to be wrong."""

    class Ascent(Sequential):
        def train_step(self, x, y):
            with GradientTape() as tape:
                loss = self.loss(y, self(x, training=True))
                wrong = -loss
            variables = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(wrong, variables), variables, strict=True))
            return loss

    net = started(kind=Ascent)
    losses = net.fit(TASK.x, TASK.y, epochs=3, verbose=0, shuffle=False).history["loss"]
    assert losses == sorted(losses) and losses[0] < losses[-1]


@pytest.mark.more("metrics")
def test_metrics_start_anew_with_each_pass():
    net = started(rate=1e-12, metrics=["mae"])
    history = net.fit(TASK.x, TASK.y, epochs=2, verbose=0, validation_data=(TASK.x_test, TASK.y_test)).history
    errors = [np.abs(net.predict(x) - y).mean() for x, y in ((TASK.x, TASK.y), (TASK.x_test, TASK.y_test))]
    assert history["mae"] == pytest.approx([errors[0]] * 2)
    assert history["val_mae"] == pytest.approx([errors[1]] * 2)
    assert net.evaluate(TASK.x_test, TASK.y_test, return_dict=True)["mae"] == pytest.approx(errors[1])
    assert net.trainable_variables == net.variables  # a metric's are not among them


class Proud(Layer):
    """A layer that works in no model."""

    def call(self, x):
        return x * 1.0

    def check_model(self, model):
        raise TypeError(f"no layer for {type(model).__name__}")


class Housing(Model):
    """A model with a layer as an attribute, so that nothing looks at the layer when it is added."""

    def __init__(self, layer):
        super().__init__()
        self.inside, self.top = layer, Dense(1)

    def call(self, x):
        return self.top(self.inside(x))


@pytest.mark.parametrize("train", ["fit", "a loop of one's own"])
def test_a_layer_that_does_not_work_in_a_model_is_refused_before_it_is_trained(train):
    net = Housing(Proud())
    net.compile("sgd", "mse")
    net.build((None, 2), "f8")
    before = net.get_weights()
    for _ in "12":
        with pytest.raises(TypeError, match="no layer for Housing"):
            (net.fit if train == "fit" else net.train_step)(TASK.x, TASK.y)
    assert all((old == new).all() for old, new in zip(before, net.get_weights(), strict=True))
    with pytest.raises(TypeError, match="no layer for Sequential"):
        Sequential([Proud()])


class Broken(Model):
    def call(self, x):
        raise ZeroDivisionError("inside call")


class HearsBatches(Callback):
    def on_batch_end(self, batch, logs):
        raise AssertionError


x, y = np.ones((4, 1)), np.ones((4, 1))
net = lambda **options: compiled(Dense(1), **options)  # noqa: E731


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: Sequential([Dense(1)]).fit(x, y), "not compiled"),
        (lambda: Sequential([Dense(1)]).evaluate(x, y), "not compiled"),
        (lambda: net(optimizer="sdg"), "no optimizer is called 'sdg'; did you mean 'sgd'"),
        (lambda: net(loss="mso"), "no loss is called 'mso'; there are mse, "),
        (lambda: net().fit(x, y[:3]), r"arrays of \[4, 3\] rows|x has 4 rows, y has 3 rows"),  # the core, or more
        (lambda: net().fit(x[:0], y[:0]), "at least one"),
        (lambda: net().fit(x, np.ones((4, 2))), r"y_true is float64\[4, 2\].* and y_pred is float64\[4, 1\]"),
        (lambda: net().fit(x), "y is missing"),
        (lambda: net().fit(x, y * np.nan), "y is not a finite number in row 0; drop or fill such rows"),
        (lambda: net().fit(np.where(np.arange(4)[:, None] == 2, np.inf, x), y), "x is not a finite number in row 2"),
        (lambda: net().fit(Dataset.from_tensor_slices((x * np.nan, y)).batch(2)), "x is not a finite number in row 0"),
        (lambda: net().evaluate(x * np.nan, y), "x is not a finite number in row 0"),
        (lambda: net(optimizer=SGD(1e30)).fit(x, y, epochs=9), "the loss is .* after epoch .*"),
        (lambda: net(loss="binary_crossentropy").fit(x, -y), "y_true holds -1; expected probabilities"),
        (lambda: net().fit(x, y, epochs=-1), "epochs is -1"),
        (lambda: net().fit(x, y, batch_size=0), "batch_size is 0"),
        (lambda: Sequential([Dense]), "is no layer"),
        (lambda: compiled(Dense(1), kind=lambda layers: Broken()).fit(x, y), "inside call"),
        *more(
            "these arguments",
            (lambda: net(metrics=["accurace"]), "no metric is called 'accurace'"),
            (lambda: net().fit(x, y, validation_data=(x, y * np.nan)), "y is not a finite number in row 0"),
            (lambda: net(loss="categorical_crossentropy").fit(x, 3 * y), "y_true holds 3; expected probabilities"),
            (lambda: net(loss="sparse_categorical_crossentropy").fit(x, np.arange(4)), "there are 1 classes"),
            (lambda: net(loss=["mse", "mse"]).fit(x, y), "1 outputs, with 1 targets and 2 losses"),
            (lambda: net().fit(x, [y, y]), "1 outputs, with 2 targets and 1 losses"),
            (lambda: compiled(Flatten()).fit(x, y), "no variable to train"),
            (lambda: net().fit(x, y, validation_split=1.0), "leaves 0 to train on and 4 to validate"),
            (lambda: net().fit(Dataset.from_batches(x, y, [[0]]), validation_split=0.5), "needs arrays x and y"),
            (lambda: net().fit(x, y, validation_data=x), "y is missing: give x and y, or a Dataset"),
            (lambda: net().fit(x, y, validation_data=(np.ones((4, 2)), y)), "inner sizes 2 and 1 differ"),
            (lambda: net().fit(Dataset.from_batches(x, y, [[0]]).take(0)), "gave no batch|at least one"),
            (lambda: net().fit(x, y, callbacks=[EarlyStopping]), "expected objects, such as EarlyStopping"),
            (lambda: net().fit(x, y, callbacks=[HearsBatches()]), "on_batch_end is never called"),
            (lambda: Model(Input((2,)), Dense(1)(Input((2,)))), "not among the inputs"),
        ),
    ],
)
def test_wrong_calls_are_refused(call, message):
    with pytest.raises(Exception, match=message) as error:
        call()
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.more("from_generator")
def test_an_error_in_the_data_comes_through_and_nothing_is_lost():
    def rows():
        yield from zip(TASK.x[:100], TASK.y[:100], strict=True)
        raise OSError("the cable is out")

    net, other = started(), started()
    with pytest.raises(OSError, match="the cable is out"):
        net.fit(Dataset.from_generator(rows).batch(50), epochs=5, verbose=0)
    other.fit(TASK.x[:100], TASK.y[:100], batch_size=50, shuffle=False, verbose=0)
    np.testing.assert_allclose(net.history.losses, other.history.losses)
    assert [w.tolist() for w in net.get_weights()] == [w.tolist() for w in other.get_weights()]


WORLDS = {"core": (core_high.Model, core_mid.Layer, core_mid.Dense), "wide": (Model, Layer, Dense)}
HELD = {  # a layer in an attribute, and how to find it there
    "a layer": (lambda layer: layer, lambda held: held),
    "a list": (lambda layer: [layer], lambda held: held[0]),
    "a dict": (lambda layer: {"first": layer}, lambda held: held["first"]),
}


def net_with(base, dense, name, form):
    """A net of two dense layers, the first in the attribute of that name."""
    put, found = HELD[form]

    class Net(base):
        def __init__(self):
            super().__init__()
            setattr(self, name, put(dense(4)))
            self.out = dense(3)

        def call(self, x):
            return self.out(found(getattr(self, name))(x))

    return Net()


@pytest.mark.parametrize("form", HELD)
@pytest.mark.parametrize("world", WORLDS)
def test_a_layer_in_an_attribute_works_or_its_name_is_refused(world, form):
    """For each name that the framework uses itself, and for some that it does not."""
    refused = set()
    model, layer, dense = WORLDS[world]
    for base in (model, layer):
        kept = {*vars(base()), "history", "stop_training", "inputs", "outputs", "predictor", "encoder"}
        for name in sorted({name for name in {*dir(base)} | kept if not name.startswith("__")} - {"call"}):
            try:
                net = net_with(base, dense, name, form)
            except (AttributeError, TypeError) as error:
                refused.add(name)
                assert name == "trainable" or f"Net.{name} is already a name of the framework" in str(error)
                continue
            net(np.ones((2, 2), "f4"))
            first = HELD[form][1](getattr(net, name))
            first.kernel.assign(np.zeros((2, 4), "f4"))
            net.out.bias.assign(np.array([[1.0, 2.0, 3.0]], "f4"))
            assert net(np.ones((2, 2), "f4")).numpy().tolist() == [[1.0, 2.0, 3.0]] * 2, name
            assert len(net.variables) == 4, name
    assert {"build", "variables", "optimizer", "loss", "history", "stop_training", "fit"} < refused
    assert not {"encoder", "inputs", "outputs", "predictor", "input_specs", "output_shape"} & refused


@pytest.mark.parametrize("kind", [core_high.Sequential, Sequential])
def test_compile_has_defaults_that_work(kind):
    """What a signature offers, its own level has: here each argument in turn is left at its default."""
    for given in ({}, {"optimizer": "sgd"}, {"loss": "mse"}, {"metrics": ()}, {"metrics": None}):
        model = kind([core_mid.Dense(1)])
        model.compile(**given)
        losses = [model.fit(TASK.x, TASK.y, verbose=0).history["loss"][0] for _ in "123"]
        assert losses[0] > losses[1] > losses[2]


def test_the_core_hears_what_a_callback_changes_and_its_lines_show_the_epoch(capsys):
    class Scale(core_mid.Layer):
        def __init__(self):
            super().__init__()
            self.factor, self.w = 1.0, self.add_weight((1,), lambda shape: [1.0])

        def call(self, x):
            return x * self.factor * self.w

    class Anneal(core_high.Callback):
        def on_epoch_begin(self, epoch):
            self.model.layers[0].factor = epoch + 1.0

    model = core_high.Sequential([Scale()])
    model.compile(core_mid.SGD(0.0), "mse")
    x, y = np.ones((2, 1), "f4"), np.zeros((2, 1), "f4")
    for _ in "12":
        assert model.fit(x, y, epochs=3, callbacks=[Anneal()]).losses.tolist() == [1.0, 4.0, 9.0]
        assert capsys.readouterr().out.splitlines() == ["Epoch 1/3: loss 1", "Epoch 2/3: loss 4", "Epoch 3/3: loss 9"]


@pytest.mark.quick
@pytest.mark.parametrize("loss", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("kind", [core_high.Sequential, Sequential])
def test_ended_answers_and_the_sentence_comes_after_the_loop(kind, loss):
    """The training ends after the first epoch whose loss is not finite. A callback that ends it itself hears no error."""
    told = []

    class Lost(kind):
        def train_step(self, x, y):
            return super().train_step(x, y) * loss

    class Listens(Callback):
        def __init__(self, stops):
            self.stops = stops

        def on_epoch_end(self, epoch, logs):
            told.append(epoch)
            self.model.stop_training = self.stops

        def on_train_end(self):
            told.append("end")

    net = Lost([core_mid.Dense(1)])
    net.compile()
    for stopped, number in ((False, 1.0), (True, 1.0), (False, loss), (True, loss)):
        net.stop_training = stopped
        assert core_high.ended(net, 0, {"loss": number}) is (stopped or number is loss)
    with pytest.raises(FloatingPointError, match="fit: the loss is .* after epoch 0; try a lower learning rate"):
        net.fit(TASK.x, TASK.y, epochs=3, verbose=0, callbacks=[Listens(False)])
    assert told == [0, "end"] and len(net.history.epochs) == 1
    net.fit(TASK.x, TASK.y, epochs=3, verbose=0, callbacks=[Listens(True)])
    assert told == [0, "end"] * 2
