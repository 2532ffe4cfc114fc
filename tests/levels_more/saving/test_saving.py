"""A model that leaves the house: saved, loaded elsewhere, refused where it is damaged, and run without `levels`."""

import struct
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from course import build, tasks
from course.author import pretrained
from levels_more import low_level
from levels_more.high_level import Input, Model, Sequential
from levels_more.low_level import Variable, apply, concat, constant, nn, reduce_max, reduce_mean, reduce_sum, where
from levels_more.mid_level import (
    L1,
    L2,
    SGD,
    Activation,
    Adam,
    AdamW,
    BatchNormalization,
    BinaryCrossentropy,
    Concatenate,
    Dense,
    Dropout,
    Embedding,
    ExponentialDecay,
    Flatten,
    Layer,
    PiecewiseConstantDecay,
    RMSprop,
    squared_error,
)
from levels_more.saving import export, load_model, save
from levels_more.saving import model as saving

DRAW = np.random.default_rng(0)
X, Y = DRAW.normal(size=(60, 3)).astype("f4"), DRAW.integers(0, 2, (60, 1)).astype("f4")


def swish(x):
    return x * nn.sigmoid(x)


class Scale(Layer):
    """A layer of one's own, with arguments of every kind."""

    def __init__(self, by, extra=None, activation=None, **options):
        super().__init__(**options)
        self.by, self.extra, self.activation = by, extra, activation or (lambda x: x)

    def build(self, shape):
        self.factor = self.add_weight(shape[-1:], "ones")

    def call(self, x):
        return self.activation(x * self.factor * self.by[0])


class Residual(Model):
    def __init__(self, units, inner, **options):
        super().__init__(**options)
        self.first, self.inner, self.top = Dense(units, "relu"), inner, Dense(1, "sigmoid")

    def call(self, x):
        hidden = self.first(x)
        return self.top(hidden + self.inner(hidden))


OWN = {"Scale": Scale, "Residual": Residual, "swish": swish}


def plain():
    return Sequential([Dense(4, "relu"), Dense(1, "sigmoid")])


def all_layers():
    first = Dense(8, kernel_initializer="he_normal", kernel_regularizer=L2(0.01), name="first")
    second = Dense(6, nn.relu, use_bias=False, kernel_regularizer=L1(l1=0.001))
    rest = [BatchNormalization(0.9), Activation("tanh"), Dropout(0.4, seed=3), Flatten(), second, Dense(1, "sigmoid")]
    return Sequential([Input((3,)), first, *rest], name="all_of_them")


def functional():
    """Several inputs and outputs, a shared layer, and a model as a layer."""
    a, b = Input((3,)), Input((2,), "int64")
    shared, inner = Dense(3, "relu"), Sequential([Dense(3), Activation("tanh")], name="inner")
    words = Flatten()(Embedding(10, 4)(b))
    joined = Concatenate()([shared(shared(a)), inner(a), words])
    return Model([a, b], [Dense(1, "sigmoid", name="yes")(joined), Dense(2, "softmax")(joined)], name="graph")


def own_parts():
    scale = Scale([2.0, None, True], extra=L2(0.5), activation=swish)
    return Residual(4, inner=Sequential([scale, Dense(4, "tanh")]), name="mine")


ONE_OUTPUT = [plain, all_layers, own_parts]
SCHEDULE = ExponentialDecay(0.01, 7, decay_rate=0.9)
OPTIMIZERS = [
    SGD(0.05, momentum=0.9, nesterov=True),
    RMSprop(0.01, clipnorm=1.0),
    Adam(SCHEDULE),
    AdamW(PiecewiseConstantDecay([3, 9], [0.1, 0.01, 0.001]), global_clipnorm=0.5),
]


def trained(make=plain, optimizer="adam"):
    model = make()
    model.compile(optimizer, BinaryCrossentropy())
    fit(model, 1)
    return model


def fit(model, seed):
    return model.fit(X, Y, batch_size=9, epochs=2, seed=seed, verbose=0).losses.tolist()


def built(model):
    model.build((None, 3))
    return model


def same(first, second):
    assert [a.tolist() for a in first.get_weights()] == [a.tolist() for a in second.get_weights()]
    assert list(first.named(Variable)) == list(second.named(Variable))


# There and back -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ONE_OUTPUT)
def test_a_loaded_model_predicts_and_trains_on_as_if_nothing_had_happened(make, tmp_path):
    model = trained(make)
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m", OWN)
    assert type(loaded) is type(model) and loaded.name == model.name
    same(model, loaded)
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert fit(model, 2) == fit(loaded, 2)
    same(model, loaded)
    assert loaded.evaluate(X, Y) == model.evaluate(X, Y)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: type(optimizer).__name__)
def test_every_optimizer_goes_on_where_it_was(optimizer, tmp_path):
    model = trained(optimizer=optimizer)
    if not callable(optimizer.learning_rate):
        optimizer.rate.assign(optimizer.rate * 0.5)  # as a callback would
    save(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert type(loaded.training.optimizer) is type(optimizer) and loaded.training.optimizer is not optimizer
    assert float(loaded.training.optimizer.iterations) == float(optimizer.iterations) == 14
    assert fit(model, 2) == fit(loaded, 2)
    same(model.training.optimizer, loaded.training.optimizer)


@pytest.mark.quick
def test_a_functional_model_keeps_its_graph(tmp_path):
    model = functional()
    model.compile("sgd", ["binary_crossentropy", "sparse_categorical_crossentropy"])
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert type(loaded) is Model and len(loaded.steps) == 8 and len(loaded.layers) == 7
    assert [layer.name for layer in loaded.layers] == [layer.name for layer in model.layers]
    words = DRAW.integers(0, 10, (60, 2))
    for a, b in zip(model.predict([X, words]), loaded.predict([X, words]), strict=True):
        assert a.tolist() == b.tolist()
    targets = [Y, Y[:, 0].astype(int)]
    for _ in range(3):
        assert float(model.train_step([X, words], targets)) == float(loaded.train_step([X, words], targets))
    same(model, loaded)


@pytest.mark.quick
def test_not_compiled_frozen_and_float64(tmp_path):
    model = plain()
    model.build((None, 3), "float64")
    model.layers[0].kernel.trainable = False
    model.save(tmp_path / "deep" / "down")
    assert [p.name for p in (tmp_path / "deep" / "down").iterdir()] == ["weights.safetensors"]
    loaded = load_model(tmp_path / "deep" / "down")
    assert [v.trainable for v in loaded.variables] == [False, True, True, True]
    assert loaded.predict(X.astype("f8")).dtype == np.float64
    with pytest.raises(RuntimeError, match="not compiled"):
        loaded.fit(X, Y)


def test_weights_that_are_nan_or_infinite_are_numbers_too(tmp_path):
    model = built(plain())
    first, *others = model.get_weights()
    model.set_weights([first + np.float32("inf"), *(w * np.float32("nan") for w in others)])
    model.save(tmp_path / "m")
    for a, b in zip(model.get_weights(), load_model(tmp_path / "m").get_weights(), strict=True):
        assert a.tobytes() == b.tobytes()


FRESH = """
import sys
import numpy as np
import levels_more.saving
assert not {"matplotlib", "numba", "onnx", "safetensors", "sklearn"} & {*sys.modules}  # the level waits for no library
from levels_more.saving import load_model
x, y = np.load("xy.npy")
model = load_model("m")
np.save("predicted.npy", model.predict(x))
np.save("losses.npy", model.fit(x, y[:, :1], batch_size=9, epochs=2, seed=2, verbose=0).losses)
assert "onnx" not in sys.modules
"""


def test_a_fresh_process_loads_and_trains_on(tmp_path):
    model = trained()
    model.save(tmp_path / "m")
    np.save(tmp_path / "xy.npy", [X, np.repeat(Y, 3, 1)])
    subprocess.run([sys.executable, "-c", FRESH], cwd=tmp_path, env=build.environment(build.ROOT), check=True)
    assert np.load(tmp_path / "predicted.npy").tolist() == model.predict(X).tolist()
    assert np.load(tmp_path / "losses.npy").tolist() == fit(model, 2)


# What cannot be saved -------------------------------------------------------------------------------------------------


class Op(Layer):
    """A layer of a function."""

    def __init__(self, op):
        super().__init__()
        self.call = op


CALLS = Variable(0.0)


def noise(x):
    return x + apply("random_normal", constant([1, 2]), shape=x.shape, dtype=x.dtype)


def counts(x):
    CALLS.assign(CALLS + 1.0)
    return x


@pytest.mark.parametrize(
    "write, make, message",
    [
        (save, plain, "sequential is not built; call model.build"),
        (save, lambda: built(Sequential([Dense(2, lambda x: x)])), "functions that `def` gave a name"),
        (save, lambda: built(Sequential([Scale([1.0], extra=np.ones(3))])), "an argument is array"),
        (export, lambda: built(Sequential([Op(noise)])), "no ONNX form is known for random_normal"),
        (export, lambda: built(Sequential([Op(lambda x: x * float(x.shape[0]))])), "computes with the number of rows"),
        (export, lambda: built(Sequential([Op(counts)])), "assigns to a variable"),
    ],
)
def test_what_cannot_be_written_leaves_nothing_behind(write, make, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write(make(), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_nothing_but_a_model_is_replaced(tmp_path):
    model = trained()
    (tmp_path / "Documents").mkdir()
    (tmp_path / "Documents" / "letter.txt").write_text("dear reader")
    with pytest.raises(FileExistsError, match="a folder with other things in it"):
        model.save(tmp_path / "Documents")
    with pytest.raises(FileExistsError, match="is a file"):
        model.save(tmp_path / "Documents" / "letter.txt")
    model.save(tmp_path / "m.onnx")
    with pytest.raises(FileExistsError):
        model.export(tmp_path / "m.onnx")
    with pytest.raises(ValueError, match="ends in .onnx"):
        model.export(tmp_path / "Documents" / "letter.txt")
    assert (tmp_path / "Documents" / "letter.txt").read_text() == "dear reader"
    load_model(tmp_path / "m.onnx")


# What a stranger might send -------------------------------------------------------------------------------------------


WEIGHTS = "weights.safetensors"


def config(old, new):
    """A change of the config's text."""

    def damage(arrays):
        text = arrays["/config"].tobytes().decode()
        assert old in text
        arrays["/config"] = saving.as_bytes(text.replace(old, new, 1))

    return damage


def put(data):
    """A config of these bytes."""
    return lambda arrays: arrays.update({"/config": np.array([*data], "u1")})


STRANGE = {  # what a stranger may do to {name: array}, before the checksum is made
    "no config": lambda arrays: arrays.pop("/config"),
    "empty config": put(b""),
    "config of bytes": put(range(256)),
    "config is deep": put(b"[" * 100_000),
    "new format": config("levels 1", "levels 2"),
    "model is a layer": config('"Sequential"', '"Dense"'),
    "unknown class": config('"Dense"', '"os.system"'),
    "class of python": config('"Dense"', '"__import__"'),
    "unknown function": config('"relu"', '{"def": "print"}'),
    "absurd units": config("4", "4000000000000"),
    "no such part": config('"relu"', '{"is": 77}'),
    "unknown option": config('"arguments"', '"options": {"colour": "red"}, "arguments"'),
    "trained is unknown": config('"layers.0.kernel"', '"layers.9.kernel"'),
    "other optimizer": config('"adam"', '"sgd"'),
    "other dtype": lambda arrays: arrays.update({"layers.0.bias": arrays["layers.0.bias"].astype("f8")}),
    "missing array": lambda arrays: arrays.pop("layers.0.bias"),
}
DAMAGED = {  # what a file may hold
    "nothing": lambda data: b"",
    "noise": lambda data: bytes(range(256)) * 4,
    "absurd header": lambda data: struct.pack("<Q", 2**60) + b"{}" * 400,
    "a pickle": lambda data: b"\x80\x04\x95" + bytes(400),
    "no checksum": lambda data: safetensors.numpy.save(without_checksum(data)),
}


def without_checksum(data):
    """{name: array}, what a model's file holds, but for its checksum."""
    return {name: array for name, array in safetensors.numpy.load(data).items() if name != saving.SUM}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a model's file."""
    folder = tmp_path_factory.mktemp("whole") / "m"
    trained().save(folder)
    return (folder / WEIGHTS).read_bytes()


def refused(folder):
    """Loading raises one clear error, which names the file, and changes nothing that lasts."""
    tables = dict(saving.INITIALIZERS)
    with pytest.raises((OSError, ValueError)) as error:
        load_model(folder)
    message = str(error.value)
    assert "\n" not in message and 30 < len(message) < 700 and (folder / WEIGHTS).as_posix() in message, message
    assert type(error.value) in (ValueError, OSError, FileNotFoundError) and tables == saving.INITIALIZERS


@pytest.mark.parametrize("what", STRANGE)
def test_a_hostile_folder_is_one_clear_error(what, whole, tmp_path):
    arrays = without_checksum(whole)
    STRANGE[what](arrays)
    saving.put(arrays, tmp_path / "m")
    refused(tmp_path / "m")


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_folder_is_one_clear_error(what, whole, tmp_path):
    refused(tmp_path)
    (tmp_path / WEIGHTS).write_bytes(DAMAGED[what](whole))
    refused(tmp_path)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_cut_and_any_byte(whole, tmp_path, data):
    """The file, cut off anywhere: refused. A byte changed in any array: refused, or a model, but no other error."""
    (tmp_path / WEIGHTS).write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    refused(tmp_path)
    arrays = without_checksum(whole)
    name = data.draw(st.sampled_from(sorted(arrays)))
    changed = bytearray(arrays[name].tobytes())
    changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    arrays[name] = np.frombuffer(changed, arrays[name].dtype).reshape(arrays[name].shape)
    saving.put(arrays, tmp_path)
    try:
        assert isinstance(load_model(tmp_path), Model)
    except (OSError, ValueError) as error:
        assert "\n" not in str(error)


def test_classes_of_your_own_are_asked_for_by_name(tmp_path):
    trained(own_parts).save(tmp_path / "m")
    for own in ({}, {"swish": swish}, {"swish": swish, "Scale": Scale}):
        missing = next(name for name in ("swish", "Scale", "Residual") if name not in own)  # from the inside out
        with pytest.raises(ValueError, match=f"{missing!r}; pass custom_objects={{{missing!r}: "):
            load_model(tmp_path / "m", own)


def test_a_function_of_levels_needs_no_custom_objects_and_one_of_yours_is_no_other(tmp_path):
    """Both are called `square`."""

    def square(x):
        return x * x * 1.0

    for mine in (low_level.square, square):
        net = Sequential([Dense(2, mine), Dense(1)])
        net.compile("sgd", squared_error)
        net.fit(np.ones((4, 3), "f4"), np.ones((4, 1), "f4"), verbose=0)
        net.save(tmp_path / "m")
        if mine is square:
            with pytest.raises(ValueError, match="'square'; pass custom_objects"):
                load_model(tmp_path / "m")
        again = load_model(tmp_path / "m", {"square": mine})
        assert again.training.losses == [squared_error] and again.layers[0].activation is mine


def test_no_name_in_a_file_calls_a_function(whole, tmp_path):
    """A function that was handed over is an argument, and never called with what the file says."""
    arrays = without_checksum(whole)
    config('"Dense"', '"boom"')(arrays)
    saving.put(arrays, tmp_path / "m")
    called = []
    with pytest.raises(ValueError, match="no class is called 'boom'"):
        load_model(tmp_path / "m", {"boom": lambda *_: called.append(1)})
    assert not called


# Pretrained -----------------------------------------------------------------------------------------------------------


def test_pretrained_models_load_by_name():
    task = tasks.rings()
    rings = load_model("rings")
    assert (np.where(rings.predict(task.x_test) > 0.5, 1.0, 0.0) == task.y_test).mean() > 0.9
    measured = np.array([row[:4] for row in tasks.penguins() if None not in row])
    male = np.array([[row[4] == "male"] for row in tasks.penguins() if None not in row])
    assert ((load_model("penguins_sex").predict(measured) > 0.5) == male).mean() > 0.88
    with pytest.raises(FileNotFoundError, match="no folder ring; pretrained models are penguins_sex, rings"):
        load_model("ring")


def weights_in(file):
    """{name: bytes}, without the names of layers: those are newer than the stored models."""
    arrays = safetensors.numpy.load_file(file)
    return {name: array.tobytes() for name, array in arrays.items() if not name.startswith("/")}


def test_pretrained_models_are_what_their_function_makes(tmp_path):
    pretrained.make_models(tmp_path)
    for file in pretrained.MODELS.glob("*/*"):
        made = weights_in(tmp_path / file.relative_to(pretrained.MODELS))
        assert made == weights_in(file) and len(made) == 6, file
    assert len(list(tmp_path.glob("*/*"))) == len(list(pretrained.MODELS.glob("*/*"))) == 2


# Without levels -------------------------------------------------------------------------------------------------------


def agree(model, path, *inputs):
    """onnxruntime says the same as `predict`, for any number of rows."""
    model.export(path)
    onnx.checker.check_model(str(path), full_check=True)
    assert [(o.domain, o.version) for o in onnx.load(path).opset_import] == [("", 17)]
    run = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [i.name for i in run.get_inputs()]
    for rows in (1, 2, 5, len(inputs[0])):
        some = [x[:rows] for x in inputs]
        expected = model.predict(some if len(some) > 1 else some[0])
        expected = expected if isinstance(expected, list) else [expected]
        found = run.run(None, dict(zip(names, some, strict=True)))
        for a, b in zip(expected, found, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


LAYERS = {
    **{f"Dense {name}": lambda name=name: [Dense(5, name)] for name in ("relu", "tanh", "softmax", "elu")},
    "Dense erf": lambda: [Dense(5, low_level.erf)],
    "Activation": lambda: [Activation(nn.log_softmax)],
    "BatchNormalization": lambda: [Dense(4), BatchNormalization(0.5)],
    "Flatten": lambda: [Op(lambda x: concat([x[:, None], x[:, None] * 2.0], 1)), Flatten(), Dense(2)],
}


@pytest.mark.parametrize("layers, dtype", [*((layers, "f4") for layers in LAYERS), ("Flatten", "f8")])
def test_every_layer_runs_in_onnxruntime(layers, dtype, tmp_path):
    model = Sequential(LAYERS[layers]())
    model.build((None, 3), dtype)
    if any(v.trainable for v in model.variables):
        model.compile("sgd", "mse")
        model.fit(X.astype(dtype), model.predict(X.astype(dtype)) * 0.5, epochs=2, verbose=0)
    agree(model, tmp_path / "m.onnx", X.astype(dtype))


def handed_through():
    """An output may be an input, and may stand twice."""
    x = Input((3,))
    y = Dense(2)(x)
    return Model(x, [x, y, y])


@pytest.mark.parametrize("make", [all_layers, own_parts, functional, handed_through])
def test_whole_models_run_in_onnxruntime(make, tmp_path):
    more = [DRAW.integers(0, 10, (60, 2))] * (make is functional)
    agree(trained(make) if make in ONE_OUTPUT else make(), tmp_path / "m.onnx", X, *more)


OPS = {
    "arithmetic": lambda x: -(x - 1.5) / (x * x + 2.0) + x**2 + (x * x) ** 1.5,
    "logs": lambda x: apply("log", apply("sqrt", apply("exp", x)) + 1.0),
    "clip": lambda x: apply("clip", x, low=-0.5, high=0.5),
    "comparisons": lambda x: where(x < 0.1, where(x <= -1.0, x, 2.0 * x), where(x != 1.0, x, where(x == 2.0, x, -x))),
    "extremes": lambda x: apply("maximum", apply("minimum", x, 0.5), -0.5),
    "slices": lambda x: concat([x[:, 1:], x[:, ::-1], x[:, -1:], x[:, 2:0:-1], x[::-1, 0:1]], 1),
    "sums": lambda x: x - reduce_sum(x, 1, keepdims=True) - reduce_mean(x, (1,), keepdims=True) - reduce_max(x, 0),
    "all": lambda x: x - reduce_mean(x) - reduce_sum(x) - apply("reduce_min", x, axis=None, keepdims=False),
    "cast": lambda x: apply("cast", apply("cast", x, dtype=np.dtype("i8")), dtype=np.dtype("f4")),
    "waves": lambda x: low_level.sin(3.0 * x) * low_level.cos(x) + low_level.erf(x) - low_level.abs(x),
    "places": lambda x: apply("arg_max", x, axis=1) - apply("arg_min", x, axis=1),
    "any": lambda x: low_level.cast(low_level.reduce_any(x > 1.0, 1) == low_level.reduce_all(x > 0.0, 1), "f4"),
    "pieces": lambda x: low_level.stack([x[:, :1], x[:, 1:2], x[:, 2:], low_level.take(x, [1], 1)], 1),
    "the one place": lambda x: x + apply("cast", apply("arg_max", x, axis=None), dtype=np.dtype("f4")),
    "one hot": lambda x: apply("one_hot", apply("arg_max", x, axis=-1), depth=3, dtype=np.dtype("f4")),
    "matrices": lambda x: (
        apply("transpose", apply("transpose", x, axes=None), axes=(1, 0)) @ constant(np.eye(3, dtype="f4"))
    ),
    "long": lambda x: apply("reshape", x[:, None], shape=(x.shape[0] * 3, 1)),
}


@pytest.mark.parametrize("name", OPS)
def test_every_op_of_the_table_runs_in_onnxruntime(name, tmp_path):
    agree(built(Sequential([Op(OPS[name])])), tmp_path / "m.onnx", X)
