"""Level 5's callbacks: what they do to a training, and that a training survives them."""

import csv
import math
import re
import signal
import sys
import time

import numpy as np
import pytest

from course import tasks
from levels_more.high_level import (
    Callback,
    CSVLogger,
    EarlyStopping,
    LambdaCallback,
    LearningRateScheduler,
    ModelCheckpoint,
    ReduceLROnPlateau,
    Sequential,
    TensorBoard,
    TerminateOnNaN,
)
from levels_more.mid_level import SGD, Dataset, Dense, ExponentialDecay
from levels_more.saving import load_model

TASK = tasks.linear()
X, Y = TASK.x[:64], TASK.y[:64]


def model(rate=0.0005):
    result = Sequential([Dense(1)])
    result.build(X.shape, "f8")
    result.set_weights(TASK.weights)
    result.compile(SGD(rate), "mse")
    return result


def fit(*callbacks, rate=0.0005, epochs=6, validation_data=(TASK.x_test, TASK.y_test), **options):
    """A model that was fitted in the company of these callbacks."""
    result = model(rate)
    options = dict(batch_size=16, verbose=0, seed=1) | options
    result.fit(X, Y, epochs=epochs, validation_data=validation_data, callbacks=callbacks, **options)
    return result


def play(callback, values, name="val_loss"):
    """Tell a callback of epochs with these values, as `fit` would; returns the numbers that it leaves in the logs."""
    callback.model = model()
    callback.model.stop_training, told = False, []
    callback.on_train_begin()
    for epoch, value in enumerate(values):
        callback.on_epoch_begin(epoch)
        told.append({"loss": 1.0, name: value})
        callback.on_epoch_end(epoch, told[-1])
        if callback.model.stop_training:
            break
    callback.on_train_end()
    return told


class Kept(Callback):
    """Keeps the weights of each epoch."""

    def on_train_begin(self):
        self.weights = []

    def on_epoch_end(self, epoch, logs):
        self.weights.append(self.model.get_weights())


def same(weights, others):
    return all((a == b).all() for a, b in zip(weights, others, strict=True))


# EarlyStopping


@pytest.mark.parametrize(
    "values, options, epochs, best_epoch",
    [
        ([3, 2, 2, 1], dict(), 3, 1),  # equal is not better
        ([3, 2, 2, 1], dict(patience=1), 3, 1),  # in Keras too, 0 and 1 are the same
        ([3, 2, 2.5, 1, 1, 1, 1], dict(patience=2), 6, 3),
        ([3, 2.95, 2.9, 2.85], dict(min_delta=0.1, patience=2), 3, 0),
        ([3, 2.95, 2.85, 2.85], dict(min_delta=-0.1, patience=2), 4, 2),  # as in Keras, its sign does not count
        ([1, 2, 3, 2], dict(mode="max"), 4, 2),
        ([0.9, 0.95, 0.95, 0.95, 0.95], dict(mode="max", patience=2), 4, 1),
        ([0.9, 0.95, 0.97, 0.98], dict(mode="max", min_delta=0.05, patience=2), 4, 2),
        ([math.nan, 2, math.nan, 1], dict(patience=2), 4, 3),
        ([math.inf, math.inf, 1], dict(patience=2), 2, None),
    ],
)
def test_early_stopping_by_example(values, options, epochs, best_epoch):
    stopping = EarlyStopping(**options)
    assert len(play(stopping, values)) == epochs
    assert stopping.best_epoch == best_epoch


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_early_stopping_without_a_best_epoch_says_so(value, capsys):
    play(EarlyStopping(verbose=1), [value] * 3)
    assert capsys.readouterr().out == "epoch 1: stopped, for val_loss was never finite\n"


@pytest.mark.quick
def test_early_stopping_restores_the_best_weights():
    kept, stopping = Kept(), EarlyStopping("loss", mode="max", patience=2, restore_best_weights=True)
    for _ in "12":  # it serves several trainings
        net = fit(kept, stopping)  # the loss falls, so for "max" the first epoch is the best
        assert len(kept.weights) == 3 and stopping.best_epoch == 0
        assert same(net.get_weights(), kept.weights[0]) and not same(net.get_weights(), kept.weights[-1])


def test_the_best_weights_come_back_after_an_error_and_without_a_stop_too():
    kept, stopping, net = Kept(), EarlyStopping("loss", mode="max", patience=9, restore_best_weights=True), model()
    failing = LambdaCallback(on_epoch_end=lambda epoch: 1 / (epoch - 3))
    with pytest.raises(ZeroDivisionError):
        net.fit(X, Y, epochs=9, verbose=0, callbacks=[kept, stopping, failing])
    assert len(kept.weights) == 4 and same(net.get_weights(), kept.weights[0])
    assert same(fit(kept, stopping).get_weights(), kept.weights[0])


# ModelCheckpoint


def weights_read(path):
    """A model with the weights of a file."""
    result = model()
    result.load_weights(path)
    return result


@pytest.mark.parametrize("alone, read", [(False, load_model), (True, weights_read)])
def test_checkpoints_hold_the_weights_of_their_epoch(alone, read, tmp_path, capsys):
    kept, pattern = Kept(), tmp_path / "{epoch}-{val_loss:.1f}.h5"
    net = fit(kept, ModelCheckpoint(pattern, save_weights_only=alone, verbose=1), epochs=3)
    losses = net.history.history["val_loss"]
    names = [f"{epoch}-{loss:.1f}.h5" for epoch, loss in enumerate(losses, 1)]
    assert sorted(path.name for path in tmp_path.iterdir()) == names  # and no file that is half written
    said = capsys.readouterr().out.splitlines()
    for name, weights, loss, line in zip(names, kept.weights, losses, said, strict=True):
        assert same(read(tmp_path / name).get_weights(), weights)
        assert line.endswith(f"{name}, val_loss {loss:.6g}")


def test_save_best_only_waits_for_a_better_epoch_also_in_a_second_training(tmp_path):
    """As in Keras: what the checkpoint calls the best is that of all its trainings."""
    saving = ModelCheckpoint(tmp_path / "{epoch}", save_best_only=True)
    for values, saved in (([3, 4, 2, 2, 1], ["1", "3", "5"]), ([2, 1, 1, 0.5], ["1", "3", "4", "5"])):
        play(saving, values)
        assert sorted(path.name for path in tmp_path.iterdir()) == saved


# The learning rate


@pytest.mark.parametrize(
    "values, options, rates",  # rates in units of the first one, at the beginning of each epoch
    [
        ([3, 2, 1], dict(patience=1), [1, 1, 1]),
        ([3, 3, 3, 3], dict(patience=1), [1, 1, 1 / 2, 1 / 4]),
        ([3, 3, 3, 3, 3, 3], dict(patience=2), [1, 1, 1, 1 / 2, 1 / 2, 1 / 4]),
        ([3, 3, 3, 3, 3], dict(patience=1, min_lr=0.0002), [1, 1, 1 / 2, 0.4, 0.4]),
        ([3, 2.99, 2.98], dict(patience=1, min_delta=0.1), [1, 1, 1 / 2]),
        ([3, 2, 2], dict(patience=0), [1, 1, 1]),
        ([3, 3, 3], dict(patience=1, min_lr=0.01), [1, 1, 1]),  # it never raises the rate
    ],
)
def test_reduce_on_plateau_by_example(values, options, rates):
    told = play(ReduceLROnPlateau(factor=0.5, **options), values)
    np.testing.assert_allclose([logs["learning_rate"] for logs in told], np.multiply(rates, 0.0005))


@pytest.mark.quick
@pytest.mark.parametrize("rate", ["0.1", None, math.nan, -0.1, [0.1]])
def test_a_rate_is_checked_when_it_changes(rate):
    optimizer = SGD(0.1)
    with pytest.raises(ValueError, match="SGD: learning_rate is .*; expected a positive number"):
        optimizer.learning_rate = rate
    assert optimizer.learning_rate == 0.1


def test_a_schedule_trains_with_its_rates():
    """One `fit` whose rate changes is, to the last bit, one `fit` for each rate."""
    data, rates, asked = Dataset.from_batches(X, Y, np.arange(64).reshape(4, 16)), [0.0005, 0.0001, 0.0002], []
    one, net = model(), model(0.9)
    for rate in rates:
        one.compile(SGD(rate), "mse")
        one.fit(data, verbose=0)
    scheduler = LearningRateScheduler(lambda epoch, rate: asked.append(rate) or rates[epoch])
    history = net.fit(data, epochs=3, verbose=0, callbacks=[scheduler])
    assert asked == [0.9, *rates[:2]] and history.history["learning_rate"] == rates
    assert same(net.get_weights(), one.get_weights())


# Logs


@pytest.mark.quick
def test_csv_logger_writes_each_epoch_and_begins_anew(tmp_path):
    path = tmp_path / "new" / "log.csv"
    history = fit(CSVLogger(path), epochs=2).history.history
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["epoch", "loss", "val_loss"]
    expected = [[epoch, history["loss"][epoch], history["val_loss"][epoch]] for epoch in range(2)]
    assert [[float(value) for value in row] for row in rows] == expected
    fit(CSVLogger(path), epochs=1)
    assert len(path.read_text().splitlines()) == 2


def events(folder):
    """What TensorBoard itself reads in a folder."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(folder), {"histograms": 0}).Reload()  # 0: all of them


def test_tensorboard_reads_the_curves_the_histograms_and_the_graph(tmp_path):
    net = fit(LearningRateScheduler(lambda epoch, rate: rate / 2), TensorBoard(tmp_path, histogram_freq=2), epochs=4)
    train, validation, history = events(tmp_path / "train"), events(tmp_path / "validation"), net.history.history
    assert {*train.Tags()["scalars"]} == {"epoch_loss", "epoch_learning_rate"}
    assert validation.Tags()["scalars"] == ["epoch_loss"] and not validation.Tags()["graph"]
    for run, tag, name in (
        (train, "epoch_loss", "loss"),
        (validation, "epoch_loss", "val_loss"),
        (train, "epoch_learning_rate", "learning_rate"),
    ):
        assert [point.step for point in run.Scalars(tag)] == [0, 1, 2, 3]
        np.testing.assert_allclose([point.value for point in run.Scalars(tag)], history[name], rtol=1e-6)
    assert {*train.Tags()["histograms"]} == {"layers/0/kernel/histogram", "layers/0/bias/histogram"}
    kernels = train.Histograms("layers/0/kernel/histogram")
    assert [point.step for point in kernels] == [0, 2] and kernels[0].histogram_value.num == 2
    nodes = {node.name: node for node in train.Graph().node}
    product, total = (next(node for node in nodes.values() if node.op == op) for op in ("matmul", "add"))
    assert "layers/0/kernel" in product.input and [*total.input] == [product.name, "layers/0/bias"]
    assert {name for node in nodes.values() for name in node.input} < nodes.keys()
    assert all(name.startswith("layers/0/") for name in (product.name, total.name))


def test_trainings_that_begin_in_one_second_keep_their_curves(tmp_path, monkeypatch):
    """With two callbacks, and with one callback that serves twice."""
    monkeypatch.setattr(time, "time", lambda: 1e9)
    board = TensorBoard(tmp_path)
    for first, callback in enumerate([board, board, TensorBoard(tmp_path), TensorBoard(tmp_path)]):
        fit(callback, initial_epoch=first, epochs=first + 1, validation_data=None)
    steps = []
    for path in (tmp_path / "train").iterdir():
        steps += [point.step for point in events(path).Scalars("epoch_loss")]
    assert sorted(steps) == [0, 1, 2, 3]


# What goes wrong


NO_NAMES = {  # the name of a file with braces, and what the error says
    "run{}": "positional fields",
    "run}": "Single '}' encountered",
    "run{val_loss:d}": "Unknown format code 'd' for object of type 'float'",
}


@pytest.mark.parametrize("filepath", NO_NAMES)
def test_braces_that_hold_no_name_are_refused_before_a_training(filepath):
    told = f"ModelCheckpoint: filepath is {filepath!r}: "
    with pytest.raises(ValueError, match=f"^{re.escape(told)}.*{re.escape(NO_NAMES[filepath])}.*; write {{epoch:03d}}"):
        ModelCheckpoint(filepath)


@pytest.mark.parametrize(
    "make, monitor, cure",
    [
        (EarlyStopping, "val_accuracy", "has loss; give fit validation_data or"),
        (lambda monitor: ModelCheckpoint("x", monitor, True), "los", "has loss$"),
    ],
)
def test_an_unknown_monitor_is_one_error_after_the_first_epoch(make, monitor, cure):
    net = model()
    with pytest.raises(ValueError, match=f"monitor is '{monitor}'; this training {cure}"):
        net.fit(X, Y, epochs=9, verbose=0, callbacks=[make(monitor)])
    assert len(net.history.history["loss"]) == 1


def test_a_loss_that_is_no_number():
    ended = fit(TerminateOnNaN(), rate=1.0, epochs=500)
    history = ended.history.history["loss"]
    assert not math.isfinite(history[-1]) and all(map(math.isfinite, history[:-1])) and len(history) < 500


@pytest.mark.parametrize("event", ["on_train_begin", "on_epoch_begin", "on_train_batch_end", "on_epoch_end"])
def test_a_callback_that_raises_loses_nothing(event):
    heard = []

    def fail(*args):
        heard.append(event)
        if len(heard) == 3 or event == "on_train_begin":
            raise ZeroDivisionError("from the callback")

    net, ending = model(), LambdaCallback(on_train_end=lambda: heard.append("end"))
    callbacks = [LambdaCallback(**{event: fail}), ending]
    with pytest.raises(ZeroDivisionError, match="from the callback"):
        net.fit(X, Y, batch_size=16, epochs=9, verbose=0, seed=1, callbacks=callbacks)
    steps = {"on_train_begin": 0, "on_epoch_begin": 8, "on_train_batch_end": 3, "on_epoch_end": 12}[event]
    assert len(net.history.losses) == steps and len(net.history.history.get("loss", [])) == steps // 4
    assert heard[-1] == "end" or event == "on_train_begin"
    again = model()
    again.fit(X, Y, batch_size=16, epochs=math.ceil(steps / 4), verbose=0, seed=1)
    assert (net.history.losses == again.history.losses[:steps]).all()
    assert same(net.get_weights(), again.get_weights()) == (steps % 4 == 0)


@pytest.mark.parametrize("event, steps, epochs", [("on_train_batch_end", 3, 0), ("on_epoch_end", 12, 3)])
def test_ctrl_c_is_heard_at_once_and_leaves_the_weights_of_the_last_step(event, steps, epochs):
    """Pressed at the third of these events."""
    net, again, handler = model(), model(), signal.getsignal(signal.SIGINT)
    callback = LambdaCallback(**{event: lambda number: number == 2 and signal.raise_signal(signal.SIGINT)})
    with pytest.raises(KeyboardInterrupt, match="fit was stopped"):  # (in the last epoch, for the second)
        net.fit(X, Y, batch_size=16, epochs=3, shuffle=False, verbose=0, callbacks=[callback])
    assert len(net.history.losses) == steps and len(net.history.history.get("loss", [])) == epochs
    assert signal.getsignal(signal.SIGINT) is handler
    again.fit(Dataset.from_tensor_slices((X, Y)).batch(16), epochs=steps, steps_per_epoch=1, verbose=0)
    assert same(net.get_weights(), again.get_weights())
    net.fit(X, Y, verbose=0)  # and it goes on


def test_ctrl_c_is_heard_in_the_validation():
    def rows():
        signal.raise_signal(signal.SIGINT)
        for _ in range(10**4):  # nobody waits for its end
            yield X[0], Y[0]

    net = model()
    with pytest.raises(KeyboardInterrupt, match="fit was stopped"):
        net.fit(X, Y, batch_size=16, verbose=0, validation_data=Dataset.from_generator(rows).batch(4))
    assert len(net.history.losses) == 4 and [*net.history.history] == ["loss"]  # the epoch was gone through


def net_with(*metrics):
    net = model()
    net.compile(SGD(0.0005), "mse", metrics)
    return net


ASIDE = {  # what a callback may do beside the training that it is told of
    "evaluate": lambda net: net.evaluate(X, -Y),
    "evaluate another model with the same metrics": lambda net: net_with(*net.training.metrics).evaluate(X, Y),
    "an error in evaluate": lambda net: pytest.raises(ValueError, net.evaluate, X, Y[:1]),
}


@pytest.mark.parametrize("event", ["on_train_batch_begin", "on_train_batch_end", "on_epoch_end"])
@pytest.mark.parametrize("aside", ASIDE)
def test_what_a_callback_does_aside_leaves_the_training_alone(aside, event):
    callback = LambdaCallback(**{event: lambda number: number < 2 and ASIDE[aside](net)})
    histories = []
    for callbacks in ([], [callback]):
        net = net_with("mae", "mse")
        for _ in "12":  # a second training with the same callback
            history = net.fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0, callbacks=callbacks)
        assert net.history is history and not net.stop_training
        histories.append(history.history)
    assert histories[0] == histories[1]


def test_a_callback_ends_the_training_after_a_batch():
    net = model()
    ender = LambdaCallback(on_train_batch_end=lambda step: setattr(net, "stop_training", step == 1))
    history = net.fit(X, Y, batch_size=16, epochs=3, verbose=0, callbacks=[ender])
    assert len(history.losses) == 2 and len(history.history["loss"]) == 1


def test_a_line_has_the_number_of_its_epoch_and_all_numbers(capsys):
    net = fit(epochs=5, initial_epoch=3, verbose=2)
    told = [f"loss {a:.4g}, val_loss {b:.4g}" for a, b in zip(*net.history.history.values(), strict=True)]
    assert capsys.readouterr().out.splitlines() == [f"Epoch 4/5: {told[0]}", f"Epoch 5/5: {told[1]}"]


def test_the_bar_shows_the_epoch(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    fit(epochs=3, verbose=1)
    said = capsys.readouterr().err
    assert "Epoch 3/3: 100%" in said and "12/12 " in said


def test_a_schedule_whose_count_stands_still_is_refused():
    net = Sequential([Dense(1)])  # of float32
    net.compile(SGD(ExponentialDecay(1e-4, 10, 0.9)), "mse")
    net.fit(X.astype("f4"), Y, verbose=0)
    net.optimizer.iterations.assign(np.float32(2**24 - 1))
    with pytest.raises(OverflowError, match="16,777,216 steps, and float32 counts no further"):
        net.fit(X.astype("f4"), Y, batch_size=2, verbose=0)
