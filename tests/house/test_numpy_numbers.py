"""NumPy's scalars are numbers, as a search over np.logspace gives them: hyperparameters take them, and keep Python's."""

import numpy as np
import pytest

from levels.support.checks import check_int, check_positive, real
from levels_more import hardware, high_level, kernels, low_level, mid_level, torch
from levels_more import tensorflow as tf
from levels_more.checks import as_python, number
from levels_more.high_level import DNNClassifier, DNNRegressor, LinearRegressor
from levels_more.mid_level import SGD, Adam, Dataset, Dense, Dropout
from levels_more.saving import load_model

K = tf.keras
FLOATS = np.float64, np.float32, np.float16


def test_one_rule():
    for value in (3, 0.1, np.float64(0.1), np.float32(0.1), np.float16(0.1), np.int64(3), np.uint8(3)):
        assert real(value) == value and type(real(value)) in (int, float)
        assert number("x", value) == value and type(check_positive("x", value)) in (int, float)
    assert check_positive("x", np.float32(0.1)) == float(np.float32(0.1)) != 0.1
    for wrong in (True, np.bool_(True), "0.1", None, 1j, np.complex64(1), np.array(0.1), [0.1], np.timedelta64(3)):
        assert real(wrong) is None
        for check in (number, check_positive):
            with pytest.raises((TypeError, ValueError), match="the rate is "):
                check("the rate", wrong)
    assert check_int(1, "n", np.uint8(3)) == 3 and as_python([np.float32(0.5), (np.int8(1), "a")]) == [0.5, (1, "a")]


X = np.random.default_rng(0).normal(size=(24, 3)).astype("f4")
Y = (X @ [[1.0], [2.0], [-1.0]]).astype("f4")


def trained(optimizer, x=X, y=Y, **how):
    """The losses of a short training by this optimizer, of core parts."""
    model = high_level.Sequential([Dense(2, "relu", kernel_initializer="ones"), Dense(1, kernel_initializer="ones")])
    model.compile(optimizer, "mse")
    return model.fit(x, y, **{"batch_size": 8, "epochs": 2, "verbose": 0, "shuffle": False} | how).losses


@pytest.mark.parametrize(("kind", "dtype"), [(np.float64, "float32"), (np.float32, "float64")])
def test_trainings_of_both_kinds_of_numbers_are_one(kind, dtype):
    x, y, rate = X.astype(dtype), Y.astype(dtype), float(np.float32(0.0625))
    for make in (
        lambda f: SGD(f(rate)),
        lambda f: SGD(f(rate), momentum=f(0.5), nesterov=True),
        lambda f: SGD(rate, clipnorm=f(0.5)),
        lambda f: SGD(rate, clipvalue=f(0.5)),
        lambda f: SGD(rate, global_clipnorm=f(0.5)),
        lambda f: Adam(f(rate), f(0.5), beta_2=f(0.75), epsilon=f(0.125)),
        lambda f: mid_level.AdamW(f(rate), weight_decay=f(0.25)),
        lambda f: mid_level.RMSprop(f(rate), f(0.5), f(0.125)),
        lambda f: SGD(mid_level.ExponentialDecay(f(rate), 4, f(0.5))),
        lambda f: SGD(mid_level.PiecewiseConstantDecay([np.int64(2), np.int32(4)], [f(0.25), f(0.125), f(0.0625)])),
    ):
        assert trained(make(kind), x, y).tolist() == trained(make(float), x, y).tolist()
    whole = dict(batch_size=np.int64(8), epochs=np.int64(2), verbose=np.int64(0))
    assert trained(SGD(rate), x, y, **whole).tolist() == trained(SGD(rate), x, y).tolist()


@pytest.mark.parametrize("kind", FLOATS)
def test_a_rate_may_be_assigned(kind):
    for make in (SGD, Adam, K.optimizers.SGD, K.optimizers.Adam):
        optimizer = make(kind(0.5))
        optimizer.learning_rate = kind(0.25)
        assert float(optimizer.learning_rate) == 0.25
        assert trained(optimizer).size  # now it is a variable
        optimizer.learning_rate = kind(0.125)
        assert float(optimizer.learning_rate) == 0.125
    with pytest.raises(ValueError, match="SGD: learning_rate is '0.1'"):
        SGD(0.1).learning_rate = "0.1"


def test_a_schedule_of_numpy_gives_rates():
    """What a callback's schedule gives is NumPy's, where it is made by NumPy."""
    for schedule in (lambda epoch: np.float64(0.5) ** epoch * 0.1, lambda epoch: np.logspace(-1, -2, 3)[epoch]):
        losses = trained(SGD(0.1), callbacks=[high_level.LearningRateScheduler(schedule)])
        assert np.isfinite(losses).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layers_and_losses_compute_in_their_own_dtype(dtype):
    x, f = X.astype(dtype), np.float64
    L = K.layers
    for layer in (
        L.Dropout(f(0.5)),
        L.BatchNormalization(momentum=f(0.5), epsilon=f(0.125)),
        L.Dense(np.int64(2)),
        L.Dense(np.int32(2), kernel_regularizer=mid_level.L2(f(0.5))),
    ):
        assert layer(x, training=True).dtype == "float32"
    for layer in (Dense(np.int64(2)), Dropout(f(0.5))):
        assert layer(x, training=True).dtype == dtype
    for loss in (K.losses.BinaryCrossentropy(), K.losses.CategoricalCrossentropy()):
        p = np.full((4, 2), 0.5, dtype)
        assert loss(p, p).dtype == dtype
    F = torch.nn.functional
    t = torch.tensor(x)
    for y in (
        F.dropout(t, f(0.5)),
        t * f(0.5),
        torch.nn.Dropout(f(0.5))(t),
        torch.clamp(t, f(0.0), f(1.0)),
    ):
        assert str(y.dtype) == f"torch.{dtype}"


def test_pipelines_and_estimators_take_whole_numbers():
    i = np.int64
    data = Dataset.from_tensor_slices((X, Y)).shuffle(i(24), seed=i(0)).batch(i(8))
    assert len(data) == 3 and len(data.take(i(2))) == 2 and len(data.repeat(i(2))) == 6
    assert len([*tf.data.Dataset.from_tensor_slices(X).batch(i(8)).prefetch(i(1))]) == 3
    for make in (LinearRegressor, DNNRegressor, DNNClassifier):
        y = (Y[:, 0] > 0).astype(int) if make is DNNClassifier else Y[:, 0]
        how = dict(learning_rate=0.0625, epochs=3, batch_size=8, n_iter_no_change=2, random_state=0)
        of_numpy = how | dict(learning_rate=np.float32(0.0625), epochs=i(3), batch_size=i(8), n_iter_no_change=i(2))
        with pytest.warns(Warning):
            both = [make(**given).fit(X, y).loss_curve_ for given in (how, of_numpy)]
        assert both[0] == both[1]


def test_a_saved_model_holds_plain_numbers(tmp_path):
    f = np.float32
    regular = Dense(np.int64(2), kernel_regularizer=mid_level.L2(f(0.25)))
    model = high_level.Sequential([Dropout(f(0.5)), regular, Dense(1)])
    rate = mid_level.ExponentialDecay(f(0.125), np.int64(4), f(0.5))
    model.compile(SGD(rate, momentum=f(0.5)), mid_level.MeanAbsoluteError())
    model.fit(X, Y, epochs=1, verbose=0)
    model.save(tmp_path / "model")
    told = (tmp_path / "model").rglob("*.json")
    assert "float32(" not in "".join(path.read_text() for path in told)
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.layers[0].rate == 0.5 and again.training.optimizer.momentum == 0.5


def test_the_tasks_of_all_levels_take_a_rate_of_numpy():
    x, batches = X.astype("f8"), np.arange(24).reshape(3, 8)
    weights = [np.ones((3, 1)), np.zeros((1, 1))]
    for dtype in ("float32", "float64"):
        given = [x.astype(dtype), Y.astype(dtype), [w.astype(dtype) for w in weights], batches]
        for level in (hardware, kernels, low_level, mid_level, high_level):
            task = level.tasks.linear_regression
            assert task(*given, np.float64(0.0625)).losses.tolist() == task(*given, 0.0625).losses.tolist()
    with pytest.raises(ValueError, match="learning_rate is True"):
        high_level.tasks.linear_regression(*given, True)
