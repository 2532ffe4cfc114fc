"""`levels_more` imports `levels`, never the reverse: it adds rows and replaces none, and mixed use is never silent."""

import numpy as np
import pytest
from fresh import printed

from levels import high_level as own_high
from levels import mid_level as own_mid
from levels_more import high_level, mid_level
from levels_more.saving import load_model

X = np.random.default_rng(1).normal(size=(40, 3))
Y = X.sum(1, keepdims=True)

ROWS = """
import levels.high_level
from levels import hardware, kernels, low_level, mid_level
from levels.support import compiled

def rows():
    tables = dict(
        kernels=kernels.KERNELS, planners=kernels.PLANNERS, rules=low_level.VJPS, forms=low_level.LOWERINGS,
        shares=low_level.SHARES,
        activations=mid_level.ACTIVATIONS, initializers=mid_level.INITIALIZERS, losses=mid_level.LOSSES,
        optimizers=mid_level.OPTIMIZERS, stands=compiled.SUBSTITUTIONS, elementwise=kernels.ELEMENTWISE,
        operators=low_level.OPERATORS,
    )
    lists = dict(passes=low_level.PASSES, back_ends=low_level.BACK_ENDS)
    found = {(name, key): row for name, table in tables.items() for key, row in table.items()}
    found |= {(name, row.__name__): row for name, each in lists.items() for row in each}
    return found | {(kind, name): value for kind, each in kernels.BACKENDS.items() for name, value in vars(each).items()}

before = rows()
import levels_more.high_level, levels_more.saving, levels_more.torch, levels_more.tensorflow
after = rows()
print(len(after) - len(before), [key for key in before if after[key] is not before[key] is not None])
"""


@pytest.mark.quick
def test_importing_a_room_adds_rows_and_replaces_none():
    added, _, replaced = printed("-c", ROWS).partition(" ")
    assert int(added) > 100 and replaced.strip() == "[]", replaced


class Own(own_high.Model):
    """A model of the core with a wide part in an attribute, and a step of its own."""

    def __init__(self):
        super().__init__()
        self.dense, self.drop = own_mid.Dense(1), mid_level.Dropout(0.5)

    def call(self, x):
        return self.dense(self.drop(x))


class OwnStep(Own):
    def train_step(self, x, y):
        return own_high.Model.train_step(self, x, y)


REFUSED = "is a layer of levels_more, and {} a model of levels; take the model from levels_more.high_level"


@pytest.mark.quick
@pytest.mark.parametrize("kind", [Own, OwnStep])
@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.fit(X, Y, verbose=0),
        lambda model: model.evaluate(X, Y),
        lambda model: model(X, training=True),
        lambda model: own_high.run_training(model, own_mid.Dataset.from_tensor_slices((X, Y)).batch(8), 1),
    ],
)
def test_a_wide_part_in_a_model_of_the_core_is_refused(kind, use):
    model = kind()
    model.compile("sgd", "mse")
    with pytest.raises(TypeError, match=REFUSED.format(kind.__name__)):
        use(model)


@pytest.mark.quick
@pytest.mark.parametrize(
    "part", [mid_level.Dropout(0.5), mid_level.BatchNormalization(), mid_level.Dense(1, kernel_regularizer="l2")]
)
def test_a_wide_layer_in_a_sequential_of_the_core_is_refused(part):
    with pytest.raises(TypeError, match=REFUSED.format("Sequential")):
        own_high.Sequential([own_mid.Dense(2), part])


def trained(models, parts):
    """A model from here, trained with its layers, optimizer, loss and rows from there."""
    parts.RANDOM.seed(3)
    model = models.Sequential([parts.Dense(4, "relu"), parts.Dense(1)])
    model.compile(parts.SGD(0.01), parts.MeanSquaredError())
    model.fit(parts.Dataset.from_tensor_slices((X, Y)).batch(8), epochs=3, verbose=0)
    return model


def test_parts_of_the_core_work_in_a_wide_model_with_the_same_bits(tmp_path):
    core, mixed = trained(own_high, own_mid), trained(high_level, own_mid)
    wide = trained(high_level, mid_level)
    assert core.history.losses.tobytes() == mixed.history.losses.tobytes() == wide.history.losses.tobytes()
    mixed.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.predict(X).tobytes() == mixed.predict(X).tobytes()


def test_a_loss_of_the_core_takes_weights_in_a_wide_model():
    weights = np.arange(40.0)
    losses = []
    for mid in own_mid, mid_level:
        model = high_level.Sequential(
            [high_level.Input((3,), "float64"), mid_level.Dense(1, kernel_initializer="ones")]
        )
        model.compile("sgd", mid.MeanSquaredError())
        losses.append(model.evaluate(X, Y + 1.0, sample_weight=weights))
    assert losses[0] == losses[1] == pytest.approx(weights.mean())


@pytest.mark.parametrize("layers", [own_mid, mid_level])
def test_an_input_stands_before_layers_of_either(layers):
    model = high_level.Sequential([high_level.Input((3,)), layers.Dense(4, "relu")])
    model.add(layers.Dense(1))
    assert [weights.shape for weights in model.get_weights()] == [(3, 4), (1, 4), (4, 1), (1, 1)]
    assert model.predict(X).shape == (40, 1)


@pytest.mark.quick
@pytest.mark.parametrize(
    "use", [lambda model, data: model.fit(data, verbose=0), lambda model, data: model.evaluate(data)]
)
def test_a_wide_dataset_in_a_model_of_the_core_is_refused(use):
    model = own_high.Sequential([own_mid.Dense(1)])
    model.compile("sgd", "mse")
    data = mid_level.Dataset.from_tensor_slices((X, Y)).batch(8)
    with pytest.raises(TypeError, match="take the model from levels_more.high_level"):
        use(model, data)
    assert model.variables == [], "refused before anything has run"


def test_what_a_callback_of_levels_more_needs_is_said(tmp_path):
    model = own_high.Sequential([own_mid.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X, Y, epochs=3, verbose=0, callbacks=[high_level.EarlyStopping("loss", patience=1)])
    with pytest.raises(TypeError, match="ModelCheckpoint saves models of levels_more.high_level"):
        model.fit(X, Y, verbose=0, callbacks=[high_level.ModelCheckpoint("model", "loss")])
    with pytest.raises(TypeError, match="TensorBoard draws models of levels_more.high_level"):
        model.fit(X, Y, verbose=0, callbacks=[high_level.TensorBoard(tmp_path / "logs")])
    assert not (tmp_path / "logs").exists()
