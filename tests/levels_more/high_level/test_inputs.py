"""What people have goes into fit, evaluate and predict; what comes out is what NumPy says."""

import itertools

import numpy as np
import pytest

from levels_more.high_level import (
    CSVLogger,
    EarlyStopping,
    LambdaCallback,
    Model,
    ModelCheckpoint,
    ReduceLROnPlateau,
    Sequential,
)
from levels_more.low_level import Module, Variable, reduce_mean, reduce_sum
from levels_more.mid_level import (
    SGD,
    Adam,
    BatchNormalization,
    Dataset,
    Dense,
    DenseFeatures,
    Dropout,
    MeanSquaredError,
    categorical_column_with_vocabulary_list,
    indicator_column,
    metrics,
    numeric_column,
)
from levels_more.saving import load_model

DRAWS = np.random.RandomState(0)
X = DRAWS.normal(size=(100, 3)).astype("f4")
Y = X @ np.array([[1.0], [2.0], [-1.0]], "f4") + 0.5
LABELS = (Y > 0.0).astype("f4")
WEIGHTS = DRAWS.uniform(0.0, 3.0, size=100)
KERNEL, BIAS, RATE = np.array([[0.3], [-0.2], [0.1]], "f4"), np.array([[0.1]], "f4"), 0.05


def net(loss="mse", activation=None, metrics=None, optimizer=None, units=1):
    """One layer, with weights that are known."""
    model = Sequential([Dense(units, activation)])
    model.build((None, 3))
    if units == 1:
        model.set_weights([KERNEL, BIAS])
    model.compile(optimizer or SGD(RATE), loss, metrics)
    return model


def fitted(model, *given, **options):
    """Its weights after three epochs in the order of the rows."""
    model.fit(*given, **{"batch_size": 32, "epochs": 3, "shuffle": False, "verbose": 0} | options)
    return [w.astype("f8") for w in model.get_weights()]


def same(one, other, rtol=2e-5):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


# By hand: the gradients of both losses for a weight on each row, the sum divided by the number of rows


def descent(x, y, weights, logistic=False, batches=None, epochs=3):
    """(the weights of one layer after plain descent in float64, each epoch's loss)."""
    kernel, bias, history = KERNEL.astype("f8"), BIAS.astype("f8"), []
    batches = batches or [slice(k, k + 32) for k in range(0, len(x), 32)]
    for _ in range(epochs):
        total = 0.0
        for rows in batches:
            z, w, n = x[rows] @ kernel + bias, weights[rows][:, None], len(x[rows])
            p = 1.0 / (1.0 + np.exp(-z)) if logistic else z
            each = -(y[rows] * np.log(p) + (1 - y[rows]) * np.log(1 - p)) if logistic else (p - y[rows]) ** 2
            total += (w * each).sum()
            dz = w * ((p - y[rows]) if logistic else 2.0 * (p - y[rows])) / n
            kernel, bias = kernel - RATE * x[rows].T @ dz, bias - RATE * dz.sum(0, keepdims=True)
        history.append(total / sum(len(x[rows]) for rows in batches))
    return [kernel, bias], history


WEIGHTED = {
    "an array": lambda: ((X, Y), {"sample_weight": WEIGHTS}),
    "a column": lambda: ((X, Y), {"sample_weight": WEIGHTS[:, None]}),
    "a tuple": lambda: (((X, Y, WEIGHTS),), {}),
    "a stream": lambda: ((Dataset.from_tensor_slices((X, Y, WEIGHTS)).map(lambda *row: row).batch(32),), {}),
}


@pytest.mark.parametrize("make", WEIGHTED.values(), ids=WEIGHTED)
def test_sample_weight_is_that_of_a_calculation_by_hand(make):
    given, options = make()
    by_hand, losses = descent(X, Y, WEIGHTS)
    model = net()
    same(fitted(model, *given, **options), by_hand)
    np.testing.assert_allclose(model.history.history["loss"], losses, rtol=1e-5)
    assert not np.allclose(by_hand[0], descent(X, Y, np.ones(100))[0][0], rtol=1e-2)


@pytest.mark.quick
def test_evaluate_weighs_the_loss_and_not_the_metrics():
    model = net(metrics=["mae"])
    error = X.astype("f8") @ KERNEL + BIAS - Y
    found = model.evaluate(X, Y, sample_weight=WEIGHTS, batch_size=30)
    np.testing.assert_allclose(found, [(WEIGHTS[:, None] * error**2).mean(), np.abs(error).mean()], rtol=1e-5)
    held = model.fit(X, Y, validation_data=(X, Y, WEIGHTS), epochs=1, verbose=0).history["val_loss"]
    assert held == [pytest.approx(model.evaluate((X, Y, WEIGHTS))[0], rel=1e-6)]


@pytest.mark.parametrize("kind", [float, int, bool])
def test_class_weight_is_that_of_a_calculation_by_hand(kind):
    by_hand, losses = descent(X, LABELS, np.where(LABELS[:, 0] == 1, 5.0, 0.5), logistic=True)
    for y in (LABELS.astype(kind), LABELS[:, 0].astype(kind)):
        model = net("binary_crossentropy", "sigmoid")
        same(fitted(model, X, y, class_weight={0: 0.5, 1: 5.0}), by_hand)
        np.testing.assert_allclose(model.history.history["loss"], losses, rtol=1e-5)
    rows = Dataset.from_tensor_slices((X, LABELS))
    for data in (rows, rows.map(lambda *row: row)):
        model = net("binary_crossentropy", "sigmoid")
        same(fitted(model, data.batch(32), class_weight={0: 0.5, 1: 5.0}), by_hand)


def test_class_weight_of_several_classes_and_of_columns_of_ones():
    """A class that is not named weighs 1; both weights together are multiplied."""
    kinds = np.arange(100) % 3
    table = np.array([1.0, 4.0, 0.25])
    options = {"class_weight": {1: 4.0, 2: 0.25}, "sample_weight": WEIGHTS[:, None]}
    first = net("sparse_categorical_crossentropy", "softmax", units=3)
    start = first.get_weights()
    losses = []
    for name, y, given in (
        ("sparse_categorical_crossentropy", kinds, options),
        ("categorical_crossentropy", np.eye(3)[kinds], options),
        ("sparse_categorical_crossentropy", kinds[:, None], {"sample_weight": table[kinds] * WEIGHTS}),
    ):
        model = net(name, "softmax", units=3)
        model.set_weights(start)
        fitted(model, X, y, **given)
        losses.append(model.history.losses)
    same(losses[:1] * 2, losses[1:])
    z = X[:32].astype("f8") @ start[0] + start[1]
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    by_hand = (-np.log(p[np.arange(32), kinds[:32]]) * (table[kinds] * WEIGHTS)[:32]).mean()
    assert losses[0][0] == pytest.approx(by_hand, rel=1e-5)


class Own(Sequential):
    """A step that does not ask for the weights of rows."""

    def train_step(self, x, y):
        return reduce_mean((self(x) - y) ** 2)


def test_a_step_that_would_pass_over_the_weights_is_refused():
    model = Own([Dense(1)])
    model.compile("sgd", "mse")
    assert len(model.fit(X, Y, verbose=0).losses) == 4
    with pytest.raises(ValueError, match=r"Own.train_step does not heed the weights of rows; call self.training.loss"):
        model.fit(X, Y, sample_weight=WEIGHTS, verbose=0)


# Arrays, tables, columns


@pytest.mark.parametrize("kind", ["u1", "?"])
def test_labels_of_any_kind_are_numbers_of_classes(kind):
    labels = (LABELS[:, 0] * 1).astype(kind)
    model = net("sparse_categorical_crossentropy", "softmax", ["accuracy"], units=2)
    model.fit(X, labels, epochs=60, verbose=0)
    right = (model.predict(X).argmax(1) == LABELS[:, 0]).mean()
    assert model.evaluate(X, labels)[1] == pytest.approx(right) and right > 0.85


COLUMNS = {"a": X[:, 0], "b": X[:, 1].astype("f8"), "kind": np.where(X[:, 2] > 0, "u", "v")}
MATRIX = np.stack([X[:, 0], X[:, 1], COLUMNS["kind"] == "u", COLUMNS["kind"] == "v"], 1)


def on_columns():
    words = categorical_column_with_vocabulary_list("kind", ["u", "v"])
    columns = [numeric_column("a"), numeric_column("b"), indicator_column(words)]
    model = Sequential([DenseFeatures(columns), Dense(1)])
    model.compile(SGD(RATE), "mse")
    return model


def test_a_dict_of_columns_from_fit_to_a_file(tmp_path):
    """The same as the matrix that a reader would have made by hand."""
    model, plain = on_columns(), Sequential([Dense(1)])
    plain.build((None, 4))
    plain.compile(SGD(RATE), "mse")
    model.predict(COLUMNS)
    plain.set_weights([w.copy() for w in model.get_weights()])
    options = {"validation_split": 0.25, "sample_weight": WEIGHTS}
    same(fitted(model, COLUMNS, Y, **options), fitted(plain, MATRIX, Y, **options), rtol=0)
    for name, values in plain.history.history.items():
        assert model.history.history[name] == pytest.approx(values, rel=1e-6)
    assert model.evaluate(COLUMNS, Y) == pytest.approx(plain.evaluate(MATRIX, Y), rel=1e-6)
    same(model.predict(COLUMNS, batch_size=7), plain.predict(MATRIX, batch_size=7), rtol=1e-6)
    same(model(COLUMNS).numpy(), plain(MATRIX.astype("f4")).numpy(), rtol=1e-6)
    few = {"a": [0.5], "b": [1], "kind": ["u"]}
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    for data in (COLUMNS, few):
        np.testing.assert_array_equal(loaded.predict(data), model.predict(data))
    same(fitted(loaded, COLUMNS, Y), fitted(model, COLUMNS, Y), rtol=0)


# pandas


def test_tables_of_pandas():
    pd = pytest.importorskip("pandas")
    by_hand, _ = descent(X, Y, np.ones(100))
    table, answers = pd.DataFrame(X, columns=list("abc")), pd.Series(Y[:, 0], index=range(7, 107))
    for x in (table, table.astype("f8"), table.assign(c=table.c.astype("Float64"))):
        for y in (answers, answers.to_frame(), Y):
            same(fitted(net(), x, y), by_hand)
    same(fitted(net(), table, answers, sample_weight=pd.Series(WEIGHTS)), descent(X, Y, WEIGHTS)[0])
    model = net()
    np.testing.assert_array_equal(model.predict(table), model.predict(X))
    assert model.evaluate(table, answers) == pytest.approx(model.evaluate(X, Y))
    held = model.fit(table, answers, validation_data=(table, answers), validation_split=0.5, verbose=0, epochs=1)
    assert held.history["val_loss"][0] == pytest.approx(model.evaluate(X, Y))
    mixed = pd.DataFrame({"a": X[:, 0] > 0, "b": (X[:, 1] * 9).astype(int), "c": X[:, 2]})
    numbers = np.stack([X[:, 0] > 0, (X[:, 1] * 9).astype(int), X[:, 2]], 1).astype("f8")
    np.testing.assert_allclose(net().predict(mixed), numbers @ KERNEL + BIAS, rtol=1e-5)


def test_words_of_pandas_go_to_feature_columns():
    pd = pytest.importorskip("pandas")
    table, model = pd.DataFrame(COLUMNS), on_columns()
    model.fit(table, Y, verbose=0)
    np.testing.assert_array_equal(model.predict(table), model.predict(COLUMNS))
    for kind in ("category", "string", object):
        np.testing.assert_array_equal(model.predict(table.astype({"kind": kind})), model.predict(COLUMNS))
    gaps = table.copy()
    gaps.loc[0, "kind"] = None
    for kind in ("category", "string", object):
        encoded = model.layers[0](gaps.astype({"kind": kind})).numpy()
        assert encoded[0, 2:].tolist() == [0.0, 0.0] and (encoded[1:] == MATRIX[1:]).all()
    with pytest.raises(TypeError, match=r"kind: no numbers; give them to feature columns"):
        net().predict(table)
    with pytest.raises(ValueError, match="x is not a finite number in row 2"):
        net().fit(pd.DataFrame({"a": pd.array([1, 2, None], dtype="Int64"), "b": 0.0, "c": 1.0}), Y[:3], verbose=0)


# Datasets and steps


def test_a_dataset_is_predicted_in_its_order():
    model = net()
    expected = model.predict(X)
    rows = Dataset.from_tensor_slices
    for data in (rows(X), rows((X,)), rows((X, Y)), rows((X, Y, WEIGHTS)), rows((X, Y)).map(lambda x, y: (x, y))):
        np.testing.assert_array_equal(model.predict(data.batch(30)), expected)
    np.testing.assert_array_equal(model.predict(rows(X).batch(30).repeat(), steps=2), expected[:60])
    for steps in (1, 2, 99):  # so many batches of rows, too
        np.testing.assert_array_equal(model.predict(X, 30, steps=steps), expected[: 30 * steps])
    with pytest.raises(ValueError, match="predict: steps is 0"):
        model.predict(X, steps=0)


SHARES = [  # rows, the share that is kept out, the rows that are left to train on
    *[(10, 0.2, 8), (10, 0.3, 7), (10, 0.4, 6), (10, 0.25, 7), (4, 0.1, 3), (100, 0.57, 43)],
    *[(100, 0.001, 99), (100, 0.99, 1), (100, 0.5, 50)],
]


@pytest.mark.parametrize("kind", [float, np.float32])
def test_a_share_of_rows_is_the_one_that_was_written_and_leaves_some_on_both_sides_or_is_refused(kind):
    """Keras trains on the first int(rows · (1 - share)), and 1 - np.float32(0.2) is 0.8, as NumPy has it."""
    for rows, share, kept in SHARES:
        model = net()
        model.fit(X[:rows], Y[:rows], batch_size=1, validation_split=kind(share), verbose=0)
        assert len(model.history.losses) == kept
    for rows, share in ((1, 0.5), (100, 0.999), (100, 1.0)):
        with pytest.raises(ValueError, match=f"validation_split {share} leaves 0 to train on"):
            net().fit(X[:rows], Y[:rows], validation_split=kind(share), verbose=0)


@pytest.mark.parametrize("use, batch", [("fit", 0), ("evaluate", 2), ("validation", 2)])
def test_labels_that_are_no_probabilities_are_refused_wherever_they_come_from(use, batch):
    """Rows and datasets in memory are checked before the first step, others batch by batch."""
    labels = (Y > 0).astype("f4")
    wrong = labels.copy()
    wrong[40 * batch + 5] = -1.0
    for data in (
        Dataset.from_tensor_slices((X, wrong)).batch(40),
        Dataset.from_tensor_slices((X, wrong)).map(lambda x, y: (x, y)).batch(40),
        ((X[k : k + 40], wrong[k : k + 40]) for k in range(0, 100, 40)),
    ):
        model = Sequential([Dense(1, "sigmoid")])
        model.compile("sgd", "binary_crossentropy")
        with pytest.raises(ValueError, match="y_true holds -1; expected probabilities, from 0 to 1"):
            if use == "validation":
                model.fit(X, labels, validation_data=data, verbose=0)
            else:
                getattr(model, use)(data, verbose=0)


def test_an_epoch_of_so_many_steps_goes_on_where_the_last_one_stopped():
    batches = [slice(k, k + 10) for k in range(0, 100, 10)]
    order = [*itertools.islice(itertools.cycle(batches), 12)]
    for data in (
        Dataset.from_tensor_slices((X, Y)).batch(10).repeat(),
        Dataset.from_tensor_slices((X, Y)).batch(10),
        Dataset.from_tensor_slices((X, Y)).map(lambda x, y: (x, y)).batch(10).repeat(),
        ((X[rows], Y[rows]) for rows in order),
    ):
        model = net()
        same(fitted(model, data, steps_per_epoch=4), descent(X, Y, np.ones(100), batches=order, epochs=1)[0])
        assert len(model.history.losses) == 12 and len(model.history.history["loss"]) == 3
    held = Dataset.from_tensor_slices((X, Y)).batch(10).repeat()
    model = net()
    found = model.fit(X, Y, validation_data=held, validation_steps=3, verbose=0).history["val_loss"]
    assert found == [pytest.approx(model.evaluate(X[:30], Y[:30]), rel=1e-6)]  # the same rows in each epoch


def test_a_dataset_that_never_ends_is_refused():
    data, model = Dataset.from_tensor_slices((X, Y)).batch(10).repeat(), net()
    for use, name in ((model.fit, "steps_per_epoch"), (model.evaluate, "steps"), (model.predict, "steps")):
        with pytest.raises(ValueError, match=f"never ends; give {name}, or take"):
            use(data)
    with pytest.raises(ValueError, match="never ends; give validation_steps"):
        model.fit(X, Y, validation_data=data, verbose=0)


@pytest.mark.parametrize(
    "make", [lambda rows: rows.batch(30).repeat(2), lambda rows: rows.batch(30).shuffle(4, seed=2)]
)
def test_a_short_batch_may_stand_anywhere(make):
    data = make(Dataset.from_tensor_slices((X, Y)))
    rows = [[int(np.flatnonzero((row == X).all(1))[0]) for row in batch.numpy()] for batch, _ in data]
    again = make(Dataset.from_tensor_slices((X, Y)))
    same(fitted(net(), again, epochs=1), descent(X, Y, np.ones(100), batches=rows, epochs=1)[0])
    assert sorted({len(batch) for batch in rows}) == [10, 30]


def test_initial_epoch_is_the_number_of_the_first(tmp_path):
    model, other, heard = net(), net(), []
    hears = LambdaCallback(on_epoch_begin=heard.append, on_epoch_end=lambda epoch, logs: heard.append(epoch))
    log = CSVLogger(tmp_path / "log.csv")
    model.fit(X, Y, epochs=4, initial_epoch=2, callbacks=[hears, log], shuffle=False, verbose=0)
    assert heard == [2, 2, 3, 3]
    assert [line[0] for line in (tmp_path / "log.csv").read_text().splitlines()[1:]] == ["2", "3"]
    same(model.get_weights(), fitted(other, X, Y, epochs=2), rtol=1e-6)
    assert len(model.fit(X, Y, epochs=2, initial_epoch=5, verbose=0).losses) == 0


# Functions as losses and metrics, and names


def each_error(y, predicted):
    return (y - predicted) ** 2


def mean_error(y, predicted):
    return reduce_mean((y - predicted) ** 2)


def test_a_function_is_a_loss():
    for loss in (each_error, mean_error, MeanSquaredError, MeanSquaredError()):
        same(fitted(net(loss), X, Y), descent(X, Y, np.ones(100))[0])
    same(fitted(net(each_error), X, Y, sample_weight=WEIGHTS), descent(X, Y, WEIGHTS)[0])
    with pytest.raises(ValueError, match="mean_error: it gives one number for the batch; with sample_weight"):
        net(mean_error).fit(X, Y, sample_weight=WEIGHTS, verbose=0)


def test_a_function_is_a_metric():
    def over_one(y, predicted):
        return each_error(y, predicted) > 1.0

    model = net(metrics=[each_error, mean_error, over_one, MeanSquaredError()])
    error = X.astype("f8") @ KERNEL + BIAS - Y
    squares = (error**2).mean()
    found = model.evaluate(X, Y, batch_size=30, return_dict=True)
    assert [*found] == ["loss", "each_error", "mean_error", "over_one", "mean_squared_error"]
    np.testing.assert_allclose([*found.values()], [squares] * 3 + [(np.abs(error) > 1).mean(), squares], rtol=1e-5)
    with pytest.raises(ValueError, match="expected a number for each of 100 rows, or one"):
        net(metrics=[lambda y, predicted: reduce_sum(predicted, 0)]).evaluate(X, Y)


def test_two_metrics_of_one_class_have_two_names():
    model = net("binary_crossentropy", "sigmoid", [metrics.Precision(0.2), metrics.Precision(0.6), "accuracy"])
    found = model.fit(X, LABELS, epochs=1, verbose=0, validation_data=(X, LABELS)).history
    p = 1 / (1 + np.exp(-(X.astype("f8") @ model.get_weights()[0] + model.get_weights()[1])))
    assert [*found][:4] == ["loss", "precision", "precision_1", "accuracy"]
    for name, bound in (("val_precision", 0.2), ("val_precision_1", 0.6)):
        assert found[name][0] == pytest.approx(LABELS[p > bound].mean(), rel=1e-6)


# A call that hears of a training


class Heeds(Model):
    """As Keras users write it."""

    def __init__(self):
        super().__init__()
        self.drop, self.top = Dropout(0.5, seed=1), Dense(1, kernel_initializer="ones")

    def call(self, x, training=False):
        return self.top(self.drop(x, training=training))


class Deaf(Heeds):
    def call(self, x):
        return self.top(self.drop(x))


@pytest.mark.parametrize("kind", [Heeds, Deaf])
def test_dropout_works_in_fit_and_nowhere_else(kind):
    model = kind()
    model.compile(SGD(1e-12), "mse")
    full = X.sum(1, keepdims=True)
    found = model.fit(X, full, verbose=0, batch_size=100, validation_data=(X, full)).history
    assert found["loss"][0] > 0.5 > 1e-8 > max(model.evaluate(X, full), *found["val_loss"])
    np.testing.assert_allclose(model.predict(X), full, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model(X).numpy(), full, rtol=1e-4, atol=1e-6)
    assert not np.allclose(model(X, training=True).numpy(), full)
    np.testing.assert_allclose(model(X, training=False).numpy(), full, rtol=1e-4, atol=1e-6)


# Frozen layers


def two_layers():
    model = Sequential([Dense(4, "tanh"), Dense(1)])
    model.build((None, 3))
    model.compile(SGD(RATE), "mse")
    return model


def test_a_frozen_layer_stays_as_it_is(tmp_path, capsys):
    model = two_layers()
    first, second = model.layers
    first.trainable = False
    assert model.trainable_variables == second.variables and first.trainable is False and second.trainable
    assert model.non_trainable_weights == first.variables and model.weights == model.variables
    before = model.get_weights()
    after = fitted(model, X, Y)
    same(after[:2], before[:2], rtol=0)
    assert not np.allclose(after[2], before[2])
    model.summary()
    assert "trained                                   5" in capsys.readouterr().out
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert [layer.trainable for layer in loaded.layers] == [False, True]
    same(fitted(loaded, X, Y), fitted(model, X, Y), rtol=0)
    loaded.layers[0].trainable = True
    assert len(loaded.trainable_variables) == 4


def test_freezing_goes_down_and_may_be_undone():
    model = Sequential([Sequential([Dense(2), Dense(2)]), Dense(1)])
    model.layers[0].trainable = False  # before there are variables
    model.build((None, 3))
    assert len(model.trainable_variables) == 2
    model.trainable = False
    assert model.trainable_variables == [] and not model.layers[0].layers[1].trainable
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="no variable to train"):
        model.fit(X, Y, verbose=0)
    model.trainable = True
    assert len(model.trainable_variables) == 6
    model.layers[1].trainable = False
    model.fit(X, Y, verbose=0)
    model.layers[1].trainable = True
    with pytest.raises(ValueError, match="built for other variables"):  # never half of it in silence
        model.fit(X, Y, verbose=0)
    model.compile("sgd", "mse")
    assert len(model.fit(X, Y, verbose=0).losses) == 4
    with pytest.raises(TypeError, match=r"dense_\d: trainable is 'no'; expected True or False"):
        model.layers[1].trainable = "no"


def test_a_frozen_batch_normalization_goes_by_what_it_has_seen():
    model = Sequential([BatchNormalization(momentum=0.0), Dense(1)])
    model.compile(SGD(1e-12), "mse")
    model.fit(X * 3 + 1, Y, batch_size=100, verbose=0)
    model.layers[0].trainable = False
    model.compile(SGD(1e-12), "mse")
    before = [v.numpy() for v in model.layers[0].moving]
    trained = model.fit(X, Y, batch_size=100, verbose=0).losses[0]
    assert trained == pytest.approx(model.evaluate(X, Y), rel=1e-5)
    same([v.numpy() for v in model.layers[0].moving], before, rtol=0)


# Weights


def test_weights_in_a_file(tmp_path):
    model, other, path = two_layers(), two_layers(), tmp_path / "deep" / "w.safetensors"
    model.save_weights(path), other.load_weights(str(path))
    same(other.get_weights(), model.get_weights(), rtol=0)
    assert [file.name for file in path.parent.iterdir()] == ["w.safetensors"]
    wrong = net()
    before = wrong.get_weights()
    with pytest.raises(ValueError, match="expected layers.0.kernel"):
        wrong.load_weights(path)
    same(wrong.get_weights(), before, rtol=0)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="checksum"):
        other.load_weights(path)
    with pytest.raises(OSError, match=r"none\.safetensors"):
        other.load_weights(tmp_path / "none.safetensors")


def test_weights_of_float64_go_into_a_model_of_float32(tmp_path):
    large, small = (Sequential([Dense(3, "relu"), Dense(1)]) for _ in range(2))
    large.build((None, X.shape[1]), "float64"), small.build((None, X.shape[1]), "float32")
    large.save_weights(tmp_path / "large.weights.h5")
    small.load_weights(tmp_path / "large.weights.h5")
    for wide, narrow in zip(large.get_weights(), small.get_weights(), strict=True):
        assert narrow.dtype == np.float32 and np.array_equal(wide.astype(np.float32), narrow)


def test_optimizers_and_metrics_are_no_part_of_a_module():
    module = Module()
    module.layer, module.optimizer, module.score, module.own = Dense(1), Adam(0.1), metrics.Mean(), Variable(1.0)
    module.layer(X)
    module.optimizer.build(module.layer.variables)
    module.score(X)
    assert [*module.named(Variable)] == ["layer.kernel", "layer.bias", "own"]
    assert len(module.get_weights()) == 3 and len(module.optimizer.variables) == 6 and len(module.score.variables) == 4


# Monitors


@pytest.mark.parametrize("make", [EarlyStopping, ReduceLROnPlateau, lambda **given: ModelCheckpoint("x", save_best_only=True, **given)])  # fmt: skip
def test_an_unknown_monitor_needs_its_mode(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    f1 = LambdaCallback(on_epoch_end=lambda epoch, logs: logs.update(f1=float(epoch)))
    with pytest.raises(ValueError, match=r"is more of 'f1' better, or less\? give mode='max' or mode='min'"):
        net().fit(X, Y, epochs=3, verbose=0, callbacks=[f1, make(monitor="f1")])
    net().fit(X, Y, epochs=3, verbose=0, callbacks=[f1, make(monitor="f1", mode="max")])


@pytest.mark.parametrize(
    "name, rising",
    [("loss", 0), ("val_mean_squared_error", 0), ("mae", 0), ("accumulated_error", 0), ("val_binary_crossentropy", 0)]
    + [("acc", 1), ("val/acc", 1), ("val_accuracy", 1), ("auc_1", 1), ("val_precision", 1), ("r2_score", 1)],
)
def test_known_monitors_know_their_direction(name, rising):
    callback = EarlyStopping(name)
    callback.on_train_begin()
    assert callback.better({name: 0.5}) and callback.better({name: 0.6}) == bool(rising)
    assert callback.better({name: 0.4}) == (not rising)


# What is refused


ROWS = Dataset.from_tensor_slices((X, Y))
REFUSED = {
    "two weights a row": (lambda: net().fit(X, Y, sample_weight=np.ones((100, 2))), "one weight a row"),
    "a negative weight": (lambda: net().fit(X, Y, sample_weight=-WEIGHTS), "row 0; expected 0 or more"),
    "weights for three outputs": (lambda: net().fit(X, Y, sample_weight=[WEIGHTS] * 3), "3 arrays of sample_weight"),
    "balanced": (lambda: net().fit(X, LABELS, class_weight="balanced"), "expected a dict {class: weight}"),
    "classes that are none": (lambda: net().fit(X, Y, class_weight={1: 2.0}), "wants numbers of classes in y; row 0"),
    "weights beside a dataset": (lambda: net().fit(ROWS.batch(9), sample_weight=WEIGHTS), "nothing beside a Dataset"),
    "single rows": (lambda: net().fit(ROWS), "single rows; make batches"),
    "columns for a matrix": (
        lambda: net().predict({"a": X[:, :1], "b": X[:, 1:]}),
        "dense: got columns a, b; expected",
    ),
    "a column that is not there": (
        lambda: on_columns().predict({"a": [1.0], "kind": ["u"]}),
        "no column is called 'b'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_belong_there_is_refused(name):
    call, message = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=message):
        call()


# Data that hold nothing


def batches_of(*counts):
    """A Dataset, not in memory, of batches with so many rows."""
    return Dataset.from_generator(lambda: ((X[:count], Y[:count]) for count in counts))


NOTHING = {  # data without rows or batches, and what the error says in fit
    "arrays": ((X[:0], Y[:0]), "x has 0 rows, y has 0 rows; expected as many in each, and at least one"),
    "fewer y": ((X, Y[:3]), "x has 100 rows, y has 3 rows; expected as many in each"),
    "a filter": ((ROWS.filter(lambda x, y: False).batch(2),), "the dataset gave no batch$"),
    "a generator": ((batches_of(),), "the dataset gave no batch$"),
    "a batch without rows": ((batches_of(2, 0),), "x has 0 rows, y has 0 rows; expected as many in each"),
}


@pytest.mark.parametrize("name", NOTHING)
def test_data_without_rows_are_told_and_change_nothing(name):
    given, words = NOTHING[name]
    model = net()
    for _ in "12":
        for call in (
            lambda: model.fit(*given, verbose=0),
            lambda: model.evaluate(*given),
            lambda: model.fit(X, Y, verbose=0, epochs=1, validation_data=given if len(given) == 2 else given[0]),
        ):
            with pytest.raises(ValueError, match=words):
                call()
        assert len(model.fit(X, Y, verbose=0).losses) == 4  # the model is as usable as before


def test_predictions_for_no_rows_are_none_and_for_no_batch_an_error():
    model = net()
    assert model.predict(X[:0]).shape == (0, 1) and model.predict(X[:3]).shape == (3, 1)
    with pytest.raises(ValueError, match=r"^predict: x is \[\]; expected rows of numbers"):
        model.predict([])
    for data in (batches_of(), Dataset.from_tensor_slices(X).batch(2).take(0), (x for x in [])):
        with pytest.raises(ValueError, match="^predict: the dataset gave no batch"):
            model.predict(data)


def test_a_generator_that_is_used_up_is_told():
    model, once = net(), ((X[k : k + 2], Y[k : k + 2]) for k in (0, 2))
    words = "gave no batch; a generator is used up after a pass: give a Dataset, or epochs=1"
    with pytest.raises(ValueError, match=words):
        model.fit(once, epochs=3, verbose=0)
    assert len(model.history.losses) == 2  # of the first epoch
